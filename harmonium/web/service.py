"""What the routes share: the library, its jobs and events, learning, and limits on costly work."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from harmonium.errors import HarmoniumError, LibraryError, NoLibraryError
from harmonium.library import Library
from harmonium.library.answers import Improvement
from harmonium.library.snapshot import Question, Snapshot
from harmonium.library.store.database import default_place
from harmonium.web.bodies import Problem, not_ready
from harmonium.web.guard import ServerSettings
from harmonium.web.jobs import Jobs

T = TypeVar("T")
RETRY_SECONDS = 2  # when to retry a request that was refused because the server was busy
WAIT_SECONDS = 8.0  # how long a request waits for another process that is writing to the library
LAG = 19  # a cached value may be out of date for this many times as long as it takes to make
HEARTBEAT_SECONDS = 15.0  # time without events after which a comment shows that the server is alive
POLL_SECONDS = 1.0  # time between two looks at the changes, which other processes make too
MAX_LISTENERS = 64
MAX_WAITING = 200  # events that may wait for a slow page before it is disconnected
log = logging.getLogger("harmonium.web")


class Service:
    """A library, and what the server does with it."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.events = Events(self)
        self.jobs = Jobs(self)
        self.learner = Learner(self)
        self._lock = threading.Lock()
        self._library: Library | None = None
        self._cache: dict[str, tuple[Hashable, Any, float, float]] = {}
        self._limits: dict[str, threading.BoundedSemaphore] = {}

    async def start(self) -> None:
        """Continue unfinished jobs, watch for changes, and prepare for the first search."""
        self.events.start()
        await run_in_threadpool(self.jobs.resume)
        if self.settings.folder is not None:
            with suppress(LibraryError):  # The folder is being indexed already.
                index = {"folder": self.settings.folder}
                await run_in_threadpool(self.jobs.start, "index", index, create=True)
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
            return self._library

    def library(self, *, create: bool = False) -> Library:
        """The open library; raises a `Problem` if there is no library."""
        found = self.library_if_any(create=create)
        if found is None:
            raise not_ready("There is no library yet. Index a folder of music to create one.")
        return found

    def snapshot(self) -> Snapshot:
        """The library as it is now."""
        return self.library().snapshot()

    def cached(
        self, key: str, version: Hashable, make: Callable[[], T], *, may_lag: bool = False
    ) -> T:
        """The last value made for a key; a new version makes it again.

        With ``may_lag``, a value that takes long to make is only renewed now and then.
        """
        now = time.monotonic()
        if (before := self._cache.get(key)) is not None:
            old, value, began, ended = before
            if old == version or (may_lag and now - ended < LAG * (ended - began)):
                return value
        found = make()
        self._cache[key] = (version, found, now, time.monotonic())
        return found

    @contextmanager
    def limited(self, what: str, most: int, *, wait: float = 0.0) -> Iterator[None]:
        """Limit how many requests do the same costly work at once; others get a 503."""
        limit = self._limits.setdefault(what, threading.BoundedSemaphore(most))
        if not limit.acquire(timeout=wait):
            message = f"The server is busy ({what}). Try again in a moment."
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


class Events:
    """Server-sent events for every open page: the progress of jobs, and changes of the library.

    Any thread may call `tell` and `stop`; the other methods are for the server's event loop.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poller: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching for changes."""
        self._loop = asyncio.get_running_loop()
        self._poller = asyncio.create_task(self._poll())

    def stop(self) -> None:
        """End all streams."""
        if self._loop is not None and self._poller is not None:
            self._loop.call_soon_threadsafe(self._poller.cancel)
            self._loop.call_soon_threadsafe(self._spread, None)

    def tell(self, event: str, data: Any) -> None:
        """Send an event to all listeners."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, _event(event, data))

    def _spread(self, text: str | None) -> None:
        for queue in list(self._listeners):
            full = queue.qsize() >= MAX_WAITING
            queue.put_nowait(None if full else text)
            if full:
                self._listeners.discard(queue)

    def listen(self) -> AsyncIterator[str]:
        """The events from now on, as lines of an event stream."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Problem(503, "Too many pages are open.", retry_after=30)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        return self._lines(queue)

    async def _lines(self, queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        text: str | None = "retry: 2000\n\n"
        try:
            while text is not None:
                yield text
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        text = await queue.get()
                except TimeoutError:
                    text = ": still here\n\n"
        finally:
            self._listeners.discard(queue)

    async def _poll(self) -> None:
        last: int | None = None
        while True:
            found: Sequence[tuple[int, str]] = []
            with suppress(HarmoniumError):  # The next look may succeed.
                found = await asyncio.to_thread(self._changes, last)
            for number, command in found:
                if last is not None:
                    self._spread(_event("change", {"id": number, "command": command}))
                last = number
            last = last or 0
            await asyncio.sleep(POLL_SECONDS)

    def _changes(self, last: int | None) -> Sequence[tuple[int, str]]:
        """The number and command of each change after one; with None, of the last change."""
        library = self._service.library_if_any()
        if library is None:
            return []
        if last is None:
            return [(one.id, one.command) for one in library.changes.list(1)]
        return library.changes.commands_since(last)


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


class Learner:
    """Learns from answers in a thread, and sends "learnt" with the tags that have changed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread = ThreadPoolExecutor(1, "learner")
        self._waiting: Future[None] | None = None
        self._improvement = Improvement(0, 0, 0)
        self._known = False

    def learn(self) -> None:
        """Learn soon; answers that arrive before that are learnt in the same run."""
        self._known = False
        if self._waiting is None or self._waiting.running() or self._waiting.done():
            self._waiting = self._thread.submit(self._learn)

    def improvement(self, *, last: bool = False) -> Improvement:
        """How much answers have improved the model; with ``last``, the last known value."""
        if not self._known and not last:
            found = self._service.library().improvement()
            self._improvement, self._known = found or Improvement(0, 0, 0), True
        return self._improvement

    def close(self) -> None:
        """Wait for the current run."""
        self._thread.shutdown(cancel_futures=True)

    def _learn(self) -> None:
        try:
            report = self._service.library().learn()
            self._known = False
            self.improvement()
        except HarmoniumError:
            return  # There is no model, or there are no features to compare.
        except Exception:
            log.exception("Learning from answers failed.")  # The next answer tries again.
            return
        if report.refreshed or report.n_tracks:
            self._service.events.tell("learnt", {"tags": report.refreshed})


def _service(request: Request) -> Any:
    return request.app.state.service


UsedService = Annotated[Service, Depends(_service)]  # the parameter of routes that use the service
