"""Jobs: indexing, training, tagging and writing, each in a process of its own.

Jobs are saved in the library's settings, so that a restarted server shows them and continues those
that were not finished.
"""

import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeAlias

from harmonium.errors import HarmoniumError
from harmonium.web.problems import Problem
from harmonium.web.processes import STOP, work

if TYPE_CHECKING:
    from harmonium.web.service import Service

SETTING = "jobs"
MAX_SAVED = 20
"""Jobs that are saved."""
STOP_SECONDS = 30.0
"""Time that jobs get to stop when the server shuts down."""
UNFINISHED = ("waiting", "running")
WORDS = {
    "index": "Indexing a folder",
    "tag": "Tagging tracks",
    "train": "Training a model",
    "write": "Writing tags to files",
}
ENDINGS = {"done": "Done", "stopped": "Stopped", "failed": "Failed"}
RESUMABLE = ("index", "tag", "write")
"""Jobs that a restarted server continues; training would start from scratch."""
Record: TypeAlias = dict[str, Any]
Records: TypeAlias = list[Record]


class RunningJob:
    """A job and its process."""

    def __init__(self, record: Record, place: str) -> None:
        self.record, self.began = record, time.monotonic()
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (record["kind"], place, record["asked"], theirs)
        self.process = context.Process(target=work, args=arguments)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """Ask it to stop."""
        with suppress(OSError):
            self.pipe.send(STOP)


class Jobs:
    """The jobs of a library; threads may share it.

    Parameters
    ----------
    tell : called with a job whenever it has changed
    """

    def __init__(self, service: "Service", tell: Callable[[Record], None]) -> None:
        self._service, self._tell = service, tell
        self._lock = threading.RLock()
        self._running: dict[int, RunningJob] = {}
        self._threads: list[threading.Thread] = []
        self._records: Records | None = None
        self._closing = False

    def list(self) -> Records:
        """All jobs, the latest first, as the API shows them."""
        with self._lock:
            return [self._shown(record) for record in reversed(self._all())]

    def get(self, number: int) -> Record:
        """A job, as the API shows it."""
        with self._lock:
            return self._shown(self._record(number))

    def start(self, kind: str, asked: dict[str, Any], *, create: bool = False) -> Record:
        """Start a job; only one of each kind runs at a time."""
        self._service.library(create=create)
        with self._lock:
            if any(one["kind"] == kind and one["state"] in UNFINISHED for one in self._all()):
                raise Problem(409, f"{WORDS[kind]} is already running. Wait, or stop it first.")
            record = {
                "id": max((one["id"] for one in self._all()), default=0) + 1,
                "kind": kind,
                "text": WORDS[kind],
                "done": 0,
                "total": None,
                "started_at": datetime.now(UTC).isoformat(),
                "seconds": 0.0,
                "result": None,
                "error": None,
                "asked": asked,
            }
            self._all().append(record)
            self._begin(record)
            return self._shown(record)

    def stop(self, number: int) -> Record:
        """Ask a job to stop; it finishes what it is writing."""
        with self._lock:
            record = self._record(number)
            if number in self._running:
                record["text"] = "Stopping"
                self._running[number].stop()
            elif record["state"] in UNFINISHED:
                record["state"] = "stopped"
                self._save()
            return self._shown(record)

    def resume(self) -> None:
        """Continue the jobs that an earlier server had not finished."""
        if self._service.library_if_any() is None:
            return
        with self._lock:
            for record in self._all():
                if record["state"] not in UNFINISHED or _is_alive(record.get("server")):
                    continue
                if record["kind"] in RESUMABLE:
                    self._begin(record)
                else:
                    record["state"] = "stopped"
                    record["error"] = "The server stopped before the job was done. Start it again."
            self._save()

    def close(self) -> None:
        """Stop all jobs and wait for them; a later server continues them."""
        with self._lock:
            self._closing = True
            running, threads = list(self._running.values()), list(self._threads)
            for job in running:
                job.stop()
        end = time.monotonic() + STOP_SECONDS
        for job in running:
            job.process.join(max(0.1, end - time.monotonic()))
            if job.process.is_alive():
                job.process.terminate()
        for thread in threads:
            thread.join(5)

    def _begin(self, record: Record) -> None:
        record |= {"state": "running", "server": _this_server()}
        job = self._running[record["id"]] = RunningJob(record, self._service.place)
        self._save()
        thread = threading.Thread(target=self._follow, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()
        self._tell(self._shown(record))

    def _follow(self, job: RunningJob) -> None:
        """Follow the reports of a process until it ends."""
        what = "progress"
        try:
            while what == "progress":
                what, value = job.pipe.recv()
                if what == "progress":
                    text, done, total = value
                    self._update(job, text=text, done=done, total=total or None)
        except (EOFError, OSError):
            what = "crashed"
        job.process.join(10)
        if what == "crashed":
            what, value = "failed", f"The process crashed (exit code {job.process.exitcode})."
        state, text = what, ENDINGS[what]
        if what == "stopped" and self._closing and job.record["kind"] in RESUMABLE:
            state, text = "waiting", "Continues when the server restarts"
        result, error = (value if what == ending else None for ending in ("done", "failed"))
        with self._lock:
            self._running.pop(job.record["id"], None)
            seconds = time.monotonic() - job.began
            self._update(job, state=state, text=text, seconds=seconds, result=result, error=error)
            with suppress(HarmoniumError):
                self._save()

    def _update(self, job: RunningJob, **values: Any) -> None:
        with self._lock:
            job.record.update(values)
            shown = self._shown(job.record)
        self._tell(shown)

    def _all(self) -> Records:
        if self._records is None:
            library = self._service.library_if_any()
            if library is None:
                return []
            self._records = library.settings.get(SETTING, [])
        return self._records

    def _save(self) -> None:
        """Save the last jobs."""
        records = self._all()
        del records[:-MAX_SAVED]
        self._service.library().settings.set(SETTING, records)

    def _record(self, number: int) -> Record:
        for record in self._all():
            if record["id"] == number:
                return record
        raise Problem(404, f"There is no job {number}.")

    def _shown(self, record: Record) -> Record:
        shown = {name: value for name, value in record.items() if name not in ("asked", "server")}
        if (job := self._running.get(record["id"])) is not None:
            shown["seconds"] = time.monotonic() - job.began
        return shown


def _this_server() -> dict[str, Any]:
    return {"pid": os.getpid(), "machine": platform.node()}


def _is_alive(server: dict[str, Any] | None) -> bool:
    """Whether the server that started a job still runs."""
    if server is None or server.get("pid") == os.getpid():
        return False
    if server.get("machine") != platform.node():
        return True  # It cannot be checked from here.
    if os.name == "nt":
        return False  # Sending a signal would end it.
    try:
        os.kill(int(server["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
