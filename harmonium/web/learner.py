"""Learning from answers as they come, in a thread of its own: one run after the other."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from harmonium.errors import HarmoniumError
from harmonium.library.learning.quick import Improvement, improvement, learn_answers
from harmonium.web.service import Service

log = logging.getLogger("harmonium.web")


class Learner:
    """Lets the model learn whenever somebody has said something.

    Parameters
    ----------
    tell : called with the event "learnt" and the tags whose probabilities are others now
    """

    def __init__(self, service: Service, tell: Callable[[str, Any], None]) -> None:
        self._service, self._tell = service, tell
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._gain: Improvement | None = None
        self._known = False

    def learn(self) -> None:
        """Learn soon; what is said meanwhile is learnt with it."""
        with self._lock:
            self._known = False
            self._wanted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def gain(self, *, last: bool = False) -> Improvement | None:
        """What answers have improved; with ``last``, as far as that is known without working."""
        if not self._known and not last:
            found = improvement(self._service.library())
            with self._lock:
                self._gain, self._known = found, True
        return self._gain

    def close(self) -> None:
        """Wait for what is being learnt."""
        thread = self._thread
        if thread is not None:
            self._wanted.set()
            thread.join(10)

    def _run(self) -> None:
        while not self._service.closing.is_set():
            self._wanted.wait()
            self._wanted.clear()
            if self._service.closing.is_set():
                return
            try:
                report = learn_answers(self._service.library())
                self.gain()
            except HarmoniumError:
                continue  # no model, or nothing to compare sounds by
            except Exception:
                log.exception("Learning from answers failed.")  # the next answer tries again
                continue
            if report.refreshed or report.n_tracks:
                self._tell("learnt", {"tags": report.refreshed})
