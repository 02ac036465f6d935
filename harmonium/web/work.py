"""What a job does, in a process of its own.

The process imports this module, which therefore does not import FastAPI.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from harmonium import stopping
from harmonium.errors import HarmoniumError, with_path
from harmonium.stopping import Cancellation, Cancelled, cancellable

if TYPE_CHECKING:
    from harmonium.library import Library

REPORT_SECONDS = 0.2  # time between two progress reports
NICENESS = 10  # jobs run at this niceness, so that the server stays responsive
MAX_FAILURES = 100  # that a result lists

Request = Mapping[str, Any]  # what the job was asked to do, as JSON
Result = dict[str, Any]  # what it did, as JSON
Report = Callable[[str, int, int], None]  # called with (what, done, total); 0: unknown


def work(kind: str, place: str, request: Request, pipe: Connection) -> None:
    """Do a job and report through the pipe; the last report says how it ended."""
    last = 0.0

    def send(what: str, value: Any) -> None:
        with suppress(OSError):  # The server is gone; the job stops by itself.
            pipe.send((what, value))

    def progress(text: str, done: int, total: int) -> None:
        nonlocal last
        stopping.check()
        if time.monotonic() - last >= REPORT_SECONDS or done == total:
            last = time.monotonic()
            send("progress", (text, int(done), int(total)))

    cancellation = listen_for_stop(pipe)  # From here on, the job may be stopped.
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        with cancellable(cancellation):
            from harmonium.library import Library

            with Library.open(place) as library:
                result = KINDS[kind](library, request, progress)
        send("done", result)
    except Cancelled:
        send("stopped", None)
    except HarmoniumError as error:
        send("failed", str(error))
    except Exception as error:
        send("failed", f"{type(error).__name__}: {error}")


def listen_for_stop(pipe: Connection) -> Cancellation:
    """A request to stop, made when the server says so or is gone; Ctrl-C is the server's."""
    cancellation = Cancellation()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def listen() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()  # the only message is to stop
        cancellation.cancel()

    threading.Thread(target=listen, daemon=True).start()
    return cancellation


def _index(library: "Library", request: Request, report: Report) -> Result:
    report("Looking for music", 0, 0)
    indexed = library.index(request["folder"], progress=partial(report, "Listening"))
    return {
        "new": len(indexed.new),
        "moved": len(indexed.moved),
        "changed": len(indexed.changed),
        "missing": len(indexed.missing),
        "unreadable": len(indexed.unreadable),
        "tagged": indexed.tagged or 0,
    }


def _tag(library: "Library", request: Request, report: Report) -> Result:
    report("Tagging", 0, 0)
    return {"tagged": library.tag_new(progress=partial(report, "Tagging")) or 0}


def _train(library: "Library", request: Request, report: Report) -> Result:
    from harmonium.library.model.tagger import tag_library

    model = library.train(progress=report, use=False)
    tag_library(library, model, progress=partial(report, "Tagging"))
    if request.get("take_over"):
        library.models.use(model.id)
    in_use = library.models.current(whole=False)
    return {
        "model": model.id,
        "tags": model.report.n_given,
        "learnt": model.report.n_learnt,
        "mean_auc": model.report.mean_auc,
        "in_use": in_use is not None and in_use.id == model.id,
    }


def _import(library: "Library", request: Request, report: Report) -> Result:
    report("Reading the tags of your files", 0, 0)
    imported = library.import_file_tags(request["fields"])
    return {
        "tracks": imported.n_tracks,
        "new": imported.n_added,
        "change": imported.change,
        **_train(library, {"take_over": True}, report),
    }


def _write(library: "Library", request: Request, report: Report) -> Result:
    plan = library.writer.plan(
        query=request["q"],
        precision=request["precision"],
        rules={"ignore": request["ignore"]},
        skip=request["skip"],
        progress=partial(report, "Reading files"),
    )
    written = library.write(plan, progress=partial(report, "Writing"))
    failed = plan.failures | written.failures
    failures = [with_path(path, reason) for path, reason in failed.items()]
    return {
        "change": written.change,
        "written": len(written.paths),
        "tags": written.n_tags,
        "failures": failures[:MAX_FAILURES],
        "failed": len(failures),
    }


KINDS = {"index": _index, "import": _import, "tag": _tag, "train": _train, "write": _write}
