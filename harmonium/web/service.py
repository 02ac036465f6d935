"""What the routes share: the library, its jobs and events, learning, and limits on costly work."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from harmonium.errors import HarmoniumError, LibraryError, NoLibraryError
from harmonium.library import Library
from harmonium.library.snapshot import Question, Snapshot
from harmonium.library.store.database import default_place
from harmonium.library.store.tracks import FORGOTTEN, Track
from harmonium.web.events import Events
from harmonium.web.guard import ServerSettings
from harmonium.web.jobs import Jobs
from harmonium.web.learner import Learner
from harmonium.web.problems import Problem, not_ready
from harmonium.web.sessions import Sessions

T = TypeVar("T")
RETRY_SECONDS = 2  # when to retry a request that was refused because the server was busy
WAIT_SECONDS = 8.0  # how long a request waits for another process that is writing to the library
LAG = 19  # a cached value may be out of date for this many times as long as it takes to make


@dataclass(frozen=True)
class _Cached:
    """A value that took long to make."""

    version: Hashable
    value: Any
    began: float
    ended: float

    def serves(self, version: Hashable, now: float, *, may_lag: bool) -> bool:
        """Whether it is still good, or it is too early to make it again."""
        is_young = now - self.ended < LAG * (self.ended - self.began)
        return self.version == version or (may_lag and is_young)


class Service:
    """A library, and what the server does with it."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.events = Events(self)
        self.jobs = Jobs(self)
        self.learner = Learner(self)
        self.sessions = Sessions(self)
        self._lock = threading.Lock()
        self._library: Library | None = None
        self._cache: dict[str, _Cached] = {}
        self._limits: dict[str, threading.BoundedSemaphore] = {}

    async def start(self) -> None:
        """Continue unfinished jobs, watch for changes, and prepare for the first search."""
        self.events.start()
        await run_in_threadpool(self.jobs.resume)
        if self.settings.folder is not None:
            with suppress(LibraryError):  # The folder is being indexed already.
                request = {"folder": self.settings.folder}
                await run_in_threadpool(self.jobs.start, "index", request, create=True)
        threading.Thread(target=self._warm_up, daemon=True).start()

    async def close(self) -> None:
        """Stop all work and close the library."""
        self.events.stop()
        await run_in_threadpool(self.jobs.close)
        await run_in_threadpool(self.learner.close)
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None

    @property
    def place(self) -> str:
        """Where the library is, or will be."""
        return self.settings.place or default_place()

    def library_if_any(self, *, create: bool = False) -> Library | None:
        """The open library; None if there is no library, unless ``create``."""
        with self._lock:
            if self._library is None:
                try:
                    self._library = Library.open(self.place, create=create, wait=WAIT_SECONDS)
                except NoLibraryError:
                    return None
                self._library.learner.learn_by(self.learner.learn)
            return self._library

    def library(self, *, create: bool = False) -> Library:
        """The open library; raises a `Problem` if there is no library."""
        library = self.library_if_any(create=create)
        if library is None:
            raise not_ready("There is no library yet. Index a folder of music to create one.")
        return library

    def snapshot(self) -> Snapshot:
        """The library as it is now."""
        return self.library().snapshot()

    def track(self, track_id: int) -> Track:
        """A track of the library; raises a `Problem` if it was removed."""
        track = self.library().tracks.get(track_id)
        if track.state == FORGOTTEN:
            raise Problem(404, f"Track #{track_id} was removed from the library.")
        return track

    def cached(
        self, key: str, version: Hashable, make: Callable[[], T], *, may_lag: bool = False
    ) -> T:
        """The last value made for a key; a new version makes it again.

        With ``may_lag``, a value that takes long to make is only renewed now and then.
        """
        began = time.monotonic()
        cached = self._cache.get(key)
        if cached is not None and cached.serves(version, began, may_lag=may_lag):
            return cached.value
        value = make()
        self._cache[key] = _Cached(
            version=version,
            value=value,
            began=began,
            ended=time.monotonic(),
        )
        return value

    @contextmanager
    def limited(self, work: str, most: int, *, wait: float = 0.0) -> Iterator[None]:
        """Limit how many requests do the same costly work at once; others get a 503."""
        limit = self._limits.setdefault(work, threading.BoundedSemaphore(most))
        if not limit.acquire(timeout=wait):
            message = f"The server is busy ({work}). Try again in a moment."
            raise Problem(503, message, retry_after=RETRY_SECONDS)
        try:
            yield
        finally:
            limit.release()

    def _warm_up(self) -> None:
        """Read what the first search needs."""
        with suppress(HarmoniumError):
            if (library := self.library_if_any()) is not None:
                snapshot = library.snapshot()
                snapshot.search(Question(), 1, shown_tags=True)
                snapshot.tagger  # noqa: B018


def _service(request: Request) -> Any:
    return request.app.state.service


UsedService = Annotated[Service, Depends(_service)]  # the parameter of routes that use the service
