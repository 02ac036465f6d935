"""What the routes share: the library, what is kept of it in memory, and limits on costly work."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from harmonium.errors import HarmoniumError, NoLibraryError
from harmonium.library import Library
from harmonium.library.snapshot import Question, Snapshot
from harmonium.library.store.database import default_place
from harmonium.web.problems import Problem, not_ready
from harmonium.web.settings import ServerSettings

Kept = TypeVar("Kept")
MOST_KEPT = 8
RETRY_SECONDS = 2
"""When to try again what was refused because others were at work."""


class Service:
    """A library, served."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.closing = threading.Event()
        """Set when the server is about to end."""
        self._lock = threading.Lock()
        self._library: Library | None = None
        self._kept: dict[Hashable, Any] = {}
        self._recent: dict[str, tuple[Hashable, Any, float, float]] = {}
        self._limits: dict[str, threading.BoundedSemaphore] = {}

    @property
    def place(self) -> str:
        """Where the library is, or will be."""
        return self.settings.place or default_place()

    def library(self, *, create: bool = False) -> Library:
        """The open library; a `NoLibraryError` where there is none and none is to be made."""
        with self._lock:
            if self._library is None:
                self._library = Library.open(self.place, create=create)
            return self._library

    def library_if_there(self) -> Library | None:
        """The library, or None."""
        try:
            return self.library()
        except NoLibraryError:
            return None

    def view(self) -> Snapshot:
        """The library as it is now."""
        try:
            return self.library().snapshot()
        except NoLibraryError:
            raise not_ready(
                "There is no library yet. Index a folder of music: that makes one."
            ) from None

    def recent(self, key: str, version: Hashable, make: Callable[[], Kept]) -> Kept:
        """What was made last for a key; made anew for another version, as far as that is cheap.

        What takes long may be a little behind: at most a twentieth of the time goes into it.
        """
        with self._lock:
            before = self._recent.get(key)
        now = time.monotonic()
        if before is not None:
            old, value, began, ended = before
            if old == version or now - ended < 19 * (ended - began):
                return value
        found = make()
        with self._lock:
            self._recent[key] = (version, found, now, time.monotonic())
        return found

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What was made before for the same key, the last few times; else it is made."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        found = make()
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
        return found

    def warm_up(self) -> None:
        """Read what the first search will need, so that it need not wait."""
        with suppress(HarmoniumError):
            if self.library_if_there() is not None:
                view = self.view()
                view.page(view.find(Question()), 0, 1)
                view.tagger  # noqa: B018

    @contextmanager
    def limited(self, what: str, most: int, *, wait: float = 0.0) -> Iterator[None]:
        """Let at most so many do the same costly thing at once; others are asked to come back."""
        with self._lock:
            limit = self._limits.setdefault(what, threading.BoundedSemaphore(most))
        if not limit.acquire(timeout=wait):
            raise Problem(
                503,
                f"The server is busy ({what}). Try again in a moment.",
                retry_after=RETRY_SECONDS,
            )
        try:
            yield
        finally:
            limit.release()

    def close(self) -> None:
        """Close the library."""
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


UsedService = Annotated[Service, Depends(_service)]
"""The parameter of a route that needs it."""
