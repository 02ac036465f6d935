"""Jobs: work in separate processes.

Jobs (indexing, training, tagging, writing) are saved in the library's settings, so that a restarted
server shows them and continues unfinished ones. A job stops when its pipe says so or when the
server is gone: between two steps, as Ctrl-C stops a command (`harmonium.stopping`). Finished work
is kept, and a file that is being written is completed.
"""

import os
import platform
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Self

from harmonium.errors import HarmoniumError, LibraryError, NotInLibraryError
from harmonium.web.work import Request, work

if TYPE_CHECKING:
    from harmonium.web.service import Service

SETTING = "jobs"
MAX_SAVED = 20  # jobs that are saved
STOP_SECONDS = 30.0  # time that jobs get to stop when the server shuts down
JOIN_SECONDS = 10.0  # time that a process gets to end after its last report
BEAT_SECONDS = 20.0  # how often a server notes in the library that its jobs are still running
UNFINISHED = ("waiting", "running")
DESCRIPTIONS = {
    "index": "Indexing a folder",
    "import": "Learning from your files",
    "tag": "Tagging tracks",
    "train": "Training a model",
    "write": "Writing tags to files",
}
TRAINING = ("import", "train")
RESUMABLE = ("index", "tag", "write")  # continued after a restart; training would start over
_NOT_SHOWN = ("asked", "server", "beat")


@dataclass(kw_only=True)
class Record:
    """A job, as the library saves it."""

    id: int
    kind: str
    started_at: str
    asked: Request  # what it was asked to do
    text: str  # what it is doing
    state: str = "waiting"  # or "running", "done", "failed", "stopped"
    done: int = 0
    total: int | None = None
    seconds: float = 0.0
    result: dict[str, Any] | None = None
    error: str | None = None
    server: dict[str, Any] | None = None  # the process and the machine of the server that runs it
    beat: int = 0  # counts up while that server is alive

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """A saved job; without what a newer version saved."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in saved.items() if name in names})

    def update(self, saved: Mapping[str, Any]) -> None:
        """Take over what another server has saved since."""
        for name, value in asdict(Record.from_dict(saved)).items():
            setattr(self, name, value)

    def shown(self) -> dict[str, Any]:
        """The job, as the API shows it."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_SHOWN}

    @property
    def is_unfinished(self) -> bool:
        """Whether it waits or runs."""
        return self.state in UNFINISHED


Records = list[Record]
ShownJobs = list[dict[str, Any]]


class RunningJob:
    """A job and its process."""

    def __init__(self, record: Record, place: str) -> None:
        self.record = record
        self.began = time.monotonic()
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (record.kind, place, record.asked, theirs)
        self.process = context.Process(target=work, args=arguments)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """Ask it to stop."""
        with suppress(OSError):
            self.pipe.send("stop")


class Jobs:
    """The jobs of a library; threads may share it. Pages are notified of every change."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._lock = threading.RLock()
        self._running: dict[int, RunningJob] = {}
        self._threads: list[threading.Thread] = []
        self._records: Records | None = None
        self._closing = False

    def list(self) -> ShownJobs:
        """All jobs, the latest first, as the API shows them."""
        with self._lock:
            return [self._shown(record) for record in reversed(self._all())]

    def get(self, number: int) -> dict[str, Any]:
        """A job, as the API shows it."""
        with self._lock:
            return self._shown(self._record(number))

    def start(self, kind: str, request: Request, *, create: bool = False) -> dict[str, Any]:
        """Start a job; only one of each kind runs at a time, and only one that trains."""
        self._service.library(create=create)
        with self._lock:
            self._check_free(kind)
            record = Record(
                id=max((other.id for other in self._all()), default=0) + 1,
                kind=kind,
                started_at=datetime.now(UTC).isoformat(),
                asked=request,
                text=DESCRIPTIONS[kind],
            )
            self._all().append(record)
            try:
                self._begin(record)
            except BaseException:
                self._all().remove(record)
                raise
            return self._shown(record)

    def stop(self, number: int) -> dict[str, Any]:
        """Ask a job to stop; it finishes what it is writing."""
        with self._lock:
            record = self._record(number)
            if number in self._running:
                record.text = "Stopping"
                self._running[number].stop()
            elif record.is_unfinished:
                record.state = "stopped"
                self._save()
            return self._shown(record)

    def resume(self, silent: Mapping[int, int] | None = None) -> None:
        """Continue the jobs that an earlier server left unfinished.

        If that server may still be running, watch it first: ``silent`` then has the last sign of
        life of each of its jobs. A library that cannot be written to is served without jobs.
        """
        with self._lock, suppress(LibraryError):
            library = self._service.library_if_any()
            if library is None or self._closing:
                return
            saved = {job["id"]: job for job in library.settings.get(SETTING, [])}
            unsure = {}
            for record in self._all():
                if record.id in self._running or not record.is_unfinished:
                    continue
                if record.id in saved:
                    record.update(saved[record.id])
                is_silent = silent is not None and silent.get(record.id) == record.beat
                if record.state == "running" and _may_be_alive(record.server) and not is_silent:
                    unsure[record.id] = record.beat
                elif record.kind in RESUMABLE:
                    self._begin(record)
                else:
                    record.state = "stopped"
                    record.error = "The server stopped before the job was done. Start it again."
                    self._save()
            if unsure:
                timer = threading.Timer(3 * BEAT_SECONDS, self.resume, [unsure])
                timer.daemon = True
                timer.start()

    def close(self) -> None:
        """Stop all jobs and wait for them; a later server continues them."""
        with self._lock:
            self._closing = True
            running = [*self._running.values()]
            threads = [*self._threads]
            for job in running:
                job.stop()
        end = time.monotonic() + STOP_SECONDS
        for job in running:
            job.process.join(max(0.1, end - time.monotonic()))
            if job.process.is_alive():
                job.process.terminate()
        for thread in threads:
            thread.join(5)

    def _check_free(self, kind: str) -> None:
        """A LibraryError if a job is unfinished that excludes a new one of this kind."""
        exclusive = TRAINING if kind in TRAINING else (kind,)
        for other in self._all():
            if other.kind in exclusive and other.is_unfinished:
                raise LibraryError(
                    f"{DESCRIPTIONS[other.kind]} is already running. Wait, or stop it first."
                )

    def _begin(self, record: Record) -> None:
        record.state = "running"
        record.server = {"pid": os.getpid(), "machine": platform.node()}
        self._save()  # first, since a job that is not in the library must not run
        job = RunningJob(record, self._service.place)
        self._running[record.id] = job
        thread = threading.Thread(target=self._follow, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()
        self._service.events.tell("job", self._shown(record))

    def _follow(self, job: RunningJob) -> None:
        """Follow the reports of a process until it ends."""
        try:
            what, value = self._last_report(job)
            job.process.join(JOIN_SECONDS)
        except (EOFError, OSError):
            job.process.join(JOIN_SECONDS)
            what = "failed"
            value = f"The process crashed (exit code {job.process.exitcode})."
        with self._lock:
            self._running.pop(job.record.id, None)
            self._end(job, what, value)
            with suppress(HarmoniumError):
                self._save()

    def _last_report(self, job: RunningJob) -> tuple[str, Any]:
        """Show the progress of a job until it ends; how it ended."""
        last_beat = time.monotonic()
        while True:
            if time.monotonic() - last_beat > BEAT_SECONDS:
                last_beat = time.monotonic()
                with self._lock, suppress(HarmoniumError):
                    job.record.beat += 1
                    self._save()
            if not job.pipe.poll(BEAT_SECONDS):
                continue
            what, value = job.pipe.recv()
            if what != "progress":
                return what, value
            text, done, total = value
            with self._lock:
                job.record.text = text
                job.record.done = done
                job.record.total = total or None
                shown = self._shown(job.record)
            self._service.events.tell("job", shown)

    def _end(self, job: RunningJob, what: str, value: Any) -> None:
        """Note how a job ended: "done" with a result, "failed" with an error, or "stopped"."""
        record = job.record
        record.seconds = time.monotonic() - job.began
        record.result = value if what == "done" else None
        record.error = value if what == "failed" else None
        if what == "stopped" and self._closing and record.kind in RESUMABLE:
            record.state = "waiting"
            record.text = "Continues when the server restarts"
        else:
            record.state = what
            record.text = what.capitalize()
        self._service.events.tell("job", self._shown(record))

    def _all(self) -> Records:
        if self._records is None:
            library = self._service.library_if_any()
            if library is None:
                return []
            saved = library.settings.get(SETTING, [])
            self._records = [Record.from_dict(job) for job in saved]
        return self._records

    def _save(self) -> None:
        """Save the last jobs."""
        records = self._all()
        del records[:-MAX_SAVED]
        saved = [asdict(record) for record in records]
        self._service.library().settings.set(SETTING, saved)

    def _record(self, number: int) -> Record:
        for record in self._all():
            if record.id == number:
                return record
        raise NotInLibraryError(f"There is no job {number}.")

    def _shown(self, record: Record) -> dict[str, Any]:
        shown = record.shown()
        job = self._running.get(record.id)
        if job is not None:
            shown["seconds"] = time.monotonic() - job.began
        return shown


def _may_be_alive(server: Mapping[str, Any] | None) -> bool:
    """Whether a job's server may still be running: on another machine, or its process here."""
    if server is None:
        return False
    if server.get("machine") != platform.node():
        return True  # This cannot be checked from here.
    if server.get("pid") == os.getpid() or os.name == "nt":
        return False  # Sending a signal would end it.
    try:
        os.kill(int(server["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
