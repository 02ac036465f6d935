"""Work in processes of their own: jobs, and decoding files that somebody uploaded.

A job stops when its pipe says so or when the server is gone. It stops as Ctrl-C stops a command:
what was done is kept, and a file that is being written is finished. An uploaded file may crash its
decoder, take all memory, or last for ever, so its process has limits and cannot write files.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from harmonium.errors import AudioError, HarmoniumError

STOP = "stop"
REPORT_SECONDS = 0.2
"""Time between two progress reports."""
NICENESS = 10
"""Jobs run at this niceness, so that the server answers first."""
DECODE_SECONDS = 90.0
"""Time limit for an upload, from the start of its process to the result."""
DECODE_CPU_SECONDS = 60
DECODE_MEMORY = 4 * 2**30
"""Limit of the address space in bytes; libraries reserve far more than they use."""
MAX_HOURS = 3
"""Limit of the length of an uploaded sound."""

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and how much there is (0: unknown)."""


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
        _listen_for_stop(pipe)  # From here on it may be stopped.
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
    """Interrupt this process once, when the server says so or is gone; ignore Ctrl-C itself."""
    asked, stopped = threading.Event(), threading.Event()

    def interrupt(*_: object) -> None:
        if asked.is_set() and not stopped.is_set():
            stopped.set()
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)

    def listen() -> None:
        with suppress(EOFError, OSError):
            while pipe.recv() != STOP:
                pass
        asked.set()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=listen, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _index(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    report("Looking for music", 0, 0)
    folders = [asked["folder"]] if asked.get("folder") else []
    found = library.index(
        *folders, tag=False, progress=lambda done, total: report("Listening", done, total)
    )
    lists = ("new", "moved", "changed", "missing", "unreadable")
    counts = {name: len(getattr(found, name)) for name in lists}
    return counts | _tag(library, {}, report)


def _tag(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    report("Tagging", 0, 0)
    n = library.tag_new(progress=lambda done, total: report("Tagging", done, total))
    return {"tagged": n or 0}


def _train(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.library.tagging import tag_library

    model = library.train(progress=report, use=False)
    tag_library(library, model, progress=lambda done, total: report("Tagging", done, total))
    if asked.get("take_over"):
        library.use_model(model.id)
    return {
        "model": model.id,
        "tags": len(model.vocabulary),
        "learnt": int(model.learnt.sum()),
        "mean_auc": model.report.get("mean_auc"),
        "in_use": library.models.current(whole=False).id == model.id,
    }


def _write(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.files import readable

    plan = library.plan_write(
        query=asked["q"],
        precision=asked["precision"],
        rules={"ignore": asked["ignore"]},
        skip=asked["skip"],
        progress=lambda done, total: report("Reading files", done, total),
    )
    written = library.write(plan, progress=lambda done, total: report("Writing", done, total))
    failures = [f"{readable(one.path)}: {one.reason}" for one in plan.failures + written.failures]
    return {
        "change": written.change,
        "written": len(written.paths),
        "failures": failures[:100],
        "failed": len(failures),
    }


KINDS: dict[str, Callable[[Any, dict[str, Any], Report], dict[str, Any]]] = {
    "index": _index,
    "tag": _tag,
    "train": _train,
    "write": _write,
}


class TooLongError(AudioError):
    """A sound that is longer than the limit."""


def decode(path: str, extractor: str) -> tuple[list[float], float | None]:
    """The features of an uploaded file and its length in seconds, if its format tells.

    Raises
    ------
    AudioError
        if the file is no sound, or takes more time or memory than the limits allow
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_decode, args=(path, extractor, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(DECODE_SECONDS):
            raise AudioError("Decoding the file takes too long.")
        error, value = ours.recv()
    except (EOFError, OSError):
        raise AudioError(
            "The file cannot be decoded: its decoder crashed, or needs too much time or memory."
        ) from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if error is not None:
        raise error(value)
    return value


def _decode(path: str, extractor: str, pipe: Connection) -> None:
    """Send (None, result) or (class of the error, message)."""
    _set_limits()
    try:
        from harmonium.audio.decoding import with_decoder
        from harmonium.audio.extractors import features_of_file

        def length(source: Any) -> float | None:
            return None if source.n_frames is None else float(source.n_frames / source.rate)

        duration = with_decoder(path, length)
        if duration is not None and duration > 3600 * MAX_HOURS:
            pipe.send((TooLongError, f"The sound is longer than {MAX_HOURS} hours."))
        else:
            pipe.send((None, (features_of_file(path, extractor).tolist(), duration)))
    except HarmoniumError as error:
        text = str(error).replace(repr(path), "The file").replace(path, "the file")
        pipe.send((AudioError, text))
    except MemoryError:
        pipe.send((AudioError, "Decoding the file needs too much memory."))


def _set_limits() -> None:
    """Limit this process where the system can; Windows cannot."""
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
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
        with suppress(OSError, ValueError):  # The limit may be lower already.
            resource.setrlimit(what, (limit, limit))
