"""The learner: keeps what the model in use has learnt from answers up to date.

What was learnt is stored beside the model's predictions, and goes out of date when opinions, tags,
predictions or the model in use change. The library's version tells. Every verb of `Library` that
may change these runs inside `Learner.watching`; when the outermost one has ended and its
transaction is committed, the learner learns again if something has changed.

Nothing is learnt inside `Learner.paused`; the next verb outside of it, or `Library.learn`, learns
from what was done there. A server learns in a thread of its own, see `Learner.learn_by`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harmonium.errors import HarmoniumError
from harmonium.library.store.database import LibraryPart, LibraryState
from harmonium.library.store.models import Refinement

if TYPE_CHECKING:
    from harmonium.library.learning.quick import Learnt
    from harmonium.library.library import Library, Progress

MAX_ATTEMPTS = 3  # to learn while others keep changing the library


@dataclass(frozen=True)
class QuickReport:
    """What was learnt."""

    tags: list[Refinement]  # what tags have learnt from answers, whether just now or before
    refreshed: list[str]  # the tags whose probabilities have changed
    n_answers: int  # the answers that they have learnt from
    n_tracks: int  # tracks whose other tags follow from what people said about them
    seconds: float


class Learner(LibraryPart):
    """Learns from answers after the changes of a library; threads may share it."""

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._learnt: LibraryState | None = None  # the last state that was learnt from, if known
        self._thread = _Thread()
        self._schedule: Callable[[], object] | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the library may have changed since it was last learnt from."""
        return self._learnt is None or self._learnt != self._library.state()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Learn from what this block changes; of nested blocks, the outermost learns."""
        with self.paused():
            yield
        if not self._thread.is_paused:
            self._library.when_committed(self._catch_up)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Learn nothing from what this thread changes inside."""
        before = self._thread.is_paused
        self._thread.is_paused = True
        try:
            yield
        finally:
            self._thread.is_paused = before

    def learn_by(self, schedule: Callable[[], object]) -> None:
        """From now on, call ``schedule`` instead of learning at once; it has to call `learn`."""
        self._schedule = schedule

    def learn(self, progress: Progress | None = None) -> QuickReport:
        """Let the model in use learn from the answers since it was trained, within about a second.

        Threads and processes may do so at any time: what is stored follows from the answers in
        force at the end.
        """
        from harmonium.library.learning.quick import learn_from_answers
        from harmonium.library.sound import update_sound_vectors

        began = time.perf_counter()
        update_sound_vectors(self._library, progress)
        for attempt in range(MAX_ATTEMPTS):
            with self._library.reading():
                state = self._library.state()
                learnt = learn_from_answers(self._library)
            is_last = attempt == MAX_ATTEMPTS - 1
            if learnt is None or self._store(learnt, state, anyway=is_last):
                break
        if learnt is None:
            self._learnt = state
            return QuickReport([], [], 0, 0, time.perf_counter() - began)
        return QuickReport(
            tags=learnt.refinements,
            refreshed=[refinement.name for refinement in learnt.refreshed],
            n_answers=sum(one.n_yes + one.n_no for one in learnt.refinements),
            n_tracks=len(learnt.completed.digests),
            seconds=time.perf_counter() - began,
        )

    def _store(self, learnt: Learnt, state: LibraryState, *, anyway: bool) -> bool:
        """Store what was learnt from a state, unless the library has changed; whether it did."""
        if learnt.is_stored:
            self._learnt = state
            return True
        refinements = self._library.refinements
        number = learnt.model.id
        with self._library.begin():
            is_current = self._library.state() == state
            if not is_current and not anyway:
                return False
            completed = learnt.completed
            refinements.put(number, learnt.refinements, learnt.columns)
            refinements.put_completed(
                number, completed.digests, completed.by_model, completed.probabilities
            )
            after = self._library.state()
        if is_current:
            self._learnt = after
        return True

    def _catch_up(self) -> None:
        """Learn if something has changed; if that fails, the next `learn` says why."""
        if not self.is_stale:
            return
        if self._schedule is not None:
            self._schedule()
            return
        with suppress(HarmoniumError):
            self.learn()


class _Thread(threading.local):
    """What a thread is doing."""

    is_paused = False
