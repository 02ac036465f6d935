"""What jobs do, in processes of their own.

A job is asked to stop by a word on its pipe, and by the end of the server. It then stops as Ctrl-C
stops a command: what was done is kept, and a file that is being written is finished.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from harmonium.errors import HarmoniumError

STOP = "stop"
BETWEEN = 0.2
"""Seconds between two reports."""
NICE = 10
"""So much a job stands back behind the server."""

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: unknown)."""


def work(kind: str, place: str, asked: dict[str, Any], pipe: Connection) -> None:
    """Do a job, and report through the pipe; the last report says how it ended."""
    sender = _Sender(pipe)
    try:
        _settle(pipe)  # from here on it may be stopped
        from harmonium.library import Library

        with Library.open(place) as library:
            result = KINDS[kind](library, asked, sender.progress)
        sender.send("done", result)
    except KeyboardInterrupt:
        sender.send("stopped", None)
    except HarmoniumError as error:
        sender.send("failed", str(error))
    except Exception as error:
        sender.send("failed", f"{type(error).__name__}: {error}")


class _Sender:
    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, 0.0

    def progress(self, text: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= BETWEEN or done == total:
            self._last = now
            self.send("progress", (text, int(done), int(total)))

    def send(self, what: str, value: Any) -> None:
        try:
            self._pipe.send((what, value))
        except OSError:
            return  # the server is gone; the job stops by itself


def _settle(pipe: Connection) -> None:
    """Stop when the server says so or is gone, once; Ctrl-C is the server's to act on."""
    asked = threading.Event()

    def interrupt(*_: object) -> None:
        if asked.is_set() and not ended:
            ended.append(True)
            raise KeyboardInterrupt

    ended: list[bool] = []
    signal.signal(signal.SIGINT, interrupt)

    def listen() -> None:
        try:
            while pipe.recv() != STOP:
                pass
        except (EOFError, OSError):
            pass
        asked.set()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=listen, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICE)


def _index(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.files import user_cache_folder
    from harmonium.library.index import index

    report("Looking for music", 0, 0)
    found = index(
        library,
        [asked["folder"]] if asked.get("folder") else (),
        cache=user_cache_folder(),
        progress=lambda done, total: report("Listening", done, total),
    )
    counts = {name: len(getattr(found, name)) for name in ("new", "moved", "changed", "missing")}
    return {**counts, "unreadable": len(found.unreadable), **_tag(library, {}, report)}


def _tag(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    """Tag what the model in use has not tagged yet, if it can hear the library."""
    from harmonium.library.answering.shipped_model import use_shipped_model
    from harmonium.library.answering.tag import tag_library
    from harmonium.library.learning.quick import learn_answers
    from harmonium.library.store.schema import EXTRACTOR

    model = use_shipped_model(library)
    if model is None or model.extractor != library.settings.get(EXTRACTOR):
        return {"tagged": 0}
    report("Tagging", 0, 0)
    n = tag_library(library, model, progress=lambda d, total: report("Tagging", d, total))
    learn_answers(library)
    return {"tagged": n}


def _train(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.library.answering.tag import tag_library
    from harmonium.library.correcting.models import use_model
    from harmonium.library.learning.quick import learn_answers
    from harmonium.library.learning.train import train

    model = train(library, progress=report, use=False)
    report("Tagging", 0, 0)
    tag_library(library, model, progress=lambda done, total: report("Tagging", done, total))
    assert model.id is not None
    if asked.get("take_over"):
        use_model(library, model.id)
        learn_answers(library)
    return {
        "model": model.id,
        "tags": len(model.vocabulary),
        "learnt": int(model.learnt.sum()),
        "mean_auc": model.report.get("mean_auc"),
        "in_use": library.models.current(whole=False).id == model.id,
    }


def _write(library: Any, asked: dict[str, Any], report: Report) -> dict[str, Any]:
    from harmonium.library.write import plan_writes, write_planned
    from harmonium.web.writing import tracks_to_write, write_rules, write_sources

    ids = sorted(set(tracks_to_write(library, asked["q"]).tolist()) - set(asked["skip"]))
    plan = plan_writes(
        library,
        ids,
        write_rules(library, asked["ignore"]),
        source=write_sources(asked["precision"]),
        progress=lambda done, total: report("Reading files", done, total),
    )
    written = write_planned(
        library, plan.files, progress=lambda done, total: report("Writing", done, total)
    )
    failures = [*plan.failures, *written.failures]
    return {
        "change": written.change,
        "written": len(written.paths),
        "failures": [
            f"{os.fsencode(f.path).decode(errors='replace')}: {f.reason}" for f in failures
        ][:100],
        "failed": len(failures),
    }


KINDS: dict[str, Callable[[Any, dict[str, Any], Report], dict[str, Any]]] = {
    "index": _index,
    "tag": _tag,
    "train": _train,
    "write": _write,
}
