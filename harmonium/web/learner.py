"""Learning from answers while the server answers requests."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from harmonium.errors import HarmoniumError
from harmonium.library.teaching.improvement import Improvement

if TYPE_CHECKING:
    from harmonium.web.service import Service

NO_IMPROVEMENT = Improvement(n=0, right_before=0, right_now=0)
log = logging.getLogger("harmonium.web")


class Learner:
    """Learns from answers in a thread, and sends "learnt" with the tags that have changed."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._thread = ThreadPoolExecutor(1, "learner")
        self._waiting: Future[None] | None = None
        self._improvement = NO_IMPROVEMENT
        self._is_current = False  # whether nothing was answered since

    def learn(self) -> None:
        """Learn soon; answers that arrive before that are learnt in the same run."""
        self._is_current = False
        if self._waiting is None or self._waiting.running() or self._waiting.done():
            self._waiting = self._thread.submit(self._learn)

    def improvement(self, *, last: bool = False) -> Improvement:
        """How much answers have improved the model; with ``last``, the last known value."""
        if not self._is_current and not last:
            self._improvement = self._service.library().review.improvement() or NO_IMPROVEMENT
            self._is_current = True
        return self._improvement

    def close(self) -> None:
        """Wait for the current run."""
        self._thread.shutdown(cancel_futures=True)

    def _learn(self) -> None:
        try:
            report = self._service.library().learn()
            self._is_current = False
            self.improvement()
        except HarmoniumError:
            return  # There is no model, or there are no features to compare.
        except Exception:
            log.exception("Learning from answers failed.")  # The next answer tries again.
            return
        if report.refreshed or report.n_tracks:
            self._service.events.tell("learnt", {"tags": report.refreshed})
