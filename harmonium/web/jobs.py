"""Work in separate processes: jobs, and decoding uploaded files.

Jobs (indexing, training, tagging, writing) are saved in the library's settings, so that a restarted
server shows them and continues unfinished ones. A job stops when its pipe says so or when the
server is gone. It stops the way Ctrl-C stops a command: finished work is kept, and a file that is
being written is completed.

An uploaded file may crash its decoder, use up the memory, or run forever, so its process has limits
and cannot write files.

The processes import this module, so it does not import FastAPI.
"""

import os
import platform
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeAlias

from harmonium.engine import EngineError, TimedOut, WorkerDied
from harmonium.engine.processes import Processes
from harmonium.errors import AudioError, HarmoniumError, LibraryError, NotInLibraryError, readable

if TYPE_CHECKING:
    from harmonium.web.service import Service

SETTING = "jobs"
MAX_SAVED = 20  # jobs that are saved
STOP_SECONDS = 30.0  # time that jobs get to stop when the server shuts down
BEAT_SECONDS = 20.0  # how often a server notes in the library that its jobs are still running
UNFINISHED = ("waiting", "running")
WORDS = {
    "index": "Indexing a folder",
    "import": "Learning from your files",
    "tag": "Tagging tracks",
    "train": "Training a model",
    "write": "Writing tags to files",
}
TRAINING = ("import", "train")
RESUMABLE = ("index", "tag", "write")  # continued after a restart; training would start over
REPORT_SECONDS = 0.2  # time between two progress reports
NICENESS = 10  # jobs run at this niceness, so that the server stays responsive
DECODE_SECONDS = 90.0  # time limit for decoding an upload
DECODE_CPU_SECONDS = 60
DECODE_MEMORY = 4 * 2**30  # limit on the address space; libraries reserve far more than they use
MAX_HOURS = 3  # limit on the length of an upload

Record: TypeAlias = dict[str, Any]
Records: TypeAlias = list[Record]
Report = Callable[[str, int, int], None]  # called with (what, done, total); 0: unknown


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

    def list(self) -> Records:
        """All jobs, the latest first, as the API shows them."""
        with self._lock:
            return [self._shown(record) for record in reversed(self._all())]

    def get(self, number: int) -> Record:
        """A job, as the API shows it."""
        with self._lock:
            return self._shown(self._record(number))

    def start(self, kind: str, asked: dict[str, Any], *, create: bool = False) -> Record:
        """Start a job; only one of each kind runs at a time, and only one that trains."""
        self._service.library(create=create)
        alike = TRAINING if kind in TRAINING else (kind,)
        with self._lock:
            for one in self._all():
                if one["kind"] in alike and one["state"] in UNFINISHED:
                    message = f"{WORDS[one['kind']]} is already running. Wait, or stop it first."
                    raise LibraryError(message)
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
            try:
                self._begin(record)
            except BaseException:
                self._all().remove(record)
                raise
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

    def resume(self, silent: dict[int, int] | None = None) -> None:
        """Continue the jobs that an earlier server left unfinished.

        If that server may still be running, watch it first: ``silent`` then has the last sign of
        life of each of its jobs. A library that cannot be written to is served without jobs.
        """
        with self._lock, suppress(LibraryError):
            library = self._service.library_if_any()
            if library is None or self._closing:
                return
            now = {one["id"]: one for one in library.settings.get(SETTING, [])}
            unsure = {}
            for record in self._all():
                number = record["id"]
                if number in self._running or record["state"] not in UNFINISHED:
                    continue
                record |= now.get(number, {})
                beat = record.get("beat", 0)
                alive = record["state"] == "running" and _may_be_alive(record.get("server"))
                if alive and (silent or {}).get(number) != beat:
                    unsure[number] = beat
                elif record["kind"] in RESUMABLE:
                    self._begin(record)
                else:
                    record["state"] = "stopped"
                    record["error"] = "The server stopped before the job was done. Start it again."
                    self._save()
            if unsure:
                timer = threading.Timer(3 * BEAT_SECONDS, self.resume, [unsure])
                timer.daemon = True
                timer.start()

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
        record |= {"state": "running", "server": {"pid": os.getpid(), "machine": platform.node()}}
        self._save()  # first, since a job that is not in the library must not run
        job = self._running[record["id"]] = RunningJob(record, self._service.place)
        thread = threading.Thread(target=self._follow, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()
        self._service.events.tell("job", self._shown(record))

    def _follow(self, job: RunningJob) -> None:
        """Follow the reports of a process until it ends."""
        what = "progress"
        try:
            beat = time.monotonic()
            while what == "progress":
                if time.monotonic() - beat > BEAT_SECONDS:
                    beat = time.monotonic()
                    self._update(job, beat=job.record.get("beat", 0) + 1)
                    with self._lock, suppress(HarmoniumError):
                        self._save()
                if not job.pipe.poll(BEAT_SECONDS):
                    continue
                what, value = job.pipe.recv()
                if what == "progress":
                    text, done, total = value
                    self._update(job, text=text, done=done, total=total or None)
            job.process.join(10)
        except (EOFError, OSError):
            job.process.join(10)
            what, value = "failed", f"The process crashed (exit code {job.process.exitcode})."
        state, text = what, what.capitalize()
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
        self._service.events.tell("job", shown)

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
        raise NotInLibraryError(f"There is no job {number}.")

    def _shown(self, record: Record) -> Record:
        hidden = ("asked", "server", "beat")
        shown = {name: value for name, value in record.items() if name not in hidden}
        if (job := self._running.get(record["id"])) is not None:
            shown["seconds"] = time.monotonic() - job.began
        return shown


def _may_be_alive(server: dict[str, Any] | None) -> bool:
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


def work(kind: str, place: str, asked: dict[str, Any], pipe: Connection) -> None:
    """Do a job and report through the pipe; the last report says how it ended."""
    last = 0.0

    def send(what: str, value: Any) -> None:
        with suppress(OSError):  # The server is gone; the job stops by itself.
            pipe.send((what, value))

    def progress(text: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_SECONDS or done == total:
            last = time.monotonic()
            send("progress", (text, int(done), int(total)))

    try:
        _listen_for_stop(pipe)  # From here on, the job may be stopped.
        from harmonium.library import Library

        with Library.open(place) as library:
            result = KINDS[kind](library, asked, progress)
        send("done", result)
    except KeyboardInterrupt:
        send("stopped", None)
    except HarmoniumError as error:
        send("failed", str(error))
    except Exception as error:
        send("failed", f"{type(error).__name__}: {error}")


def _listen_for_stop(pipe: Connection) -> None:
    """Interrupt this process once, when the server says so or is gone; ignore Ctrl-C."""
    asked, stopped = threading.Event(), threading.Event()

    def interrupt(*_: object) -> None:
        if asked.is_set() and not stopped.is_set():
            stopped.set()
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)

    def listen() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()  # the only message is to stop
        asked.set()
        if hasattr(signal, "pthread_kill"):  # this wakes the main thread if it waits for a lock
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            signal.raise_signal(signal.SIGINT)

    threading.Thread(target=listen, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _index(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    report("Looking for music", 0, 0)
    found = library.index(asked["folder"], progress=partial(report, "Listening"))
    lists = ("new", "moved", "changed", "missing", "unreadable")
    return {name: len(getattr(found, name)) for name in lists} | {"tagged": found.tagged or 0}


def _tag(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    report("Tagging", 0, 0)
    return {"tagged": library.tag_new(progress=partial(report, "Tagging")) or 0}


def _train(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.library.tagger import tag_library

    model = library.train(progress=report, use=False)
    tag_library(library, model, progress=partial(report, "Tagging"))
    if asked.get("take_over"):
        library.use_model(model.id)
    return {
        "model": model.id,
        "tags": len(model.vocabulary),
        "learnt": int((model.learnt & model.is_own).sum()),
        "mean_auc": model.report.get("mean_auc"),
        "in_use": library.models.current(whole=False).id == model.id,
    }


def _import(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    report("Reading the tags of your files", 0, 0)
    found = library.import_file_tags(asked["fields"])
    counts = {"tracks": found.n_tracks, "new": found.n_added, "change": found.change}
    return counts | _train(library, {"take_over": True}, report)


def _write(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    plan = library.plan_write(
        query=asked["q"],
        precision=asked["precision"],
        rules={"ignore": asked["ignore"]},
        skip=asked["skip"],
        progress=partial(report, "Reading files"),
    )
    written = library.write(plan, progress=partial(report, "Writing"))
    failed = plan.failures | written.failures
    failures = [f"{readable(path)}: {reason}" for path, reason in failed.items()]
    return {
        "change": written.change,
        "written": len(written.paths),
        "tags": written.n_tags,
        "failures": failures[:100],
        "failed": len(failures),
    }


KINDS = {"index": _index, "import": _import, "tag": _tag, "train": _train, "write": _write}


class TooLongError(AudioError):
    """An upload that is longer than the limit."""


def decode(path: str, extractor: str) -> tuple[list[float], float | None]:
    """The features of an uploaded file and its length in seconds, if its format tells.

    Raises an AudioError if it is not audio, or takes more time or memory than the limits allow.
    """
    engine = Processes(1, time_limit=DECODE_SECONDS)
    try:
        return engine.submit(_decode, path, extractor).result()
    except TimedOut:
        raise AudioError("Decoding the file takes too long.") from None
    except (WorkerDied, EngineError):
        raise AudioError(
            "The file cannot be decoded: its decoder crashed, or needs too much time or memory."
        ) from None
    finally:
        engine.abandon()


def _decode(path: str, extractor: str) -> tuple[list[float], float | None]:
    _set_limits()
    from harmonium.audio.decoding import with_decoder
    from harmonium.audio.extractors import features_of_file

    def length(source: Any) -> float | None:
        return None if source.n_frames is None else float(source.n_frames / source.rate)

    try:
        duration = with_decoder(path, length)
        if duration is None or duration <= 3600 * MAX_HOURS:
            return features_of_file(path, extractor).tolist(), duration
    except HarmoniumError as error:
        text = str(error).replace(repr(path), "The file").replace(path, "the file")
        raise AudioError(text) from None
    except MemoryError:
        raise AudioError("Decoding the file needs too much memory.") from None
    raise TooLongError(f"The sound is longer than {MAX_HOURS} hours.")


def _set_limits() -> None:
    """Limit this process if the system can; Windows cannot."""
    try:
        import resource
    except ImportError:
        return
    for what, limit in (
        (resource.RLIMIT_AS, DECODE_MEMORY),
        (resource.RLIMIT_CPU, DECODE_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):  # The limit may already be lower.
            resource.setrlimit(what, (limit, limit))
