"""Server-sent events for every open page: the progress of jobs, and changes of the library."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

from harmonium.errors import HarmoniumError
from harmonium.web.problems import Problem

HEARTBEAT_SECONDS = 15.0
"""Time without events after which a comment shows that the server is alive."""
POLL_SECONDS = 1.0
"""Time between two looks at the changes, which other processes make too."""
MAX_LISTENERS = 64
MAX_WAITING = 200
"""Events that may wait for a page that does not read them; then its connection ends."""

Changes = Sequence[tuple[int, str]]


class Events:
    """Sends events to all listeners; all methods but `tell` are for the server's event loop.

    Parameters
    ----------
    changes : called with a change's number, gives the number and command of later changes; with
        None, of the last change
    closing : set when the server shuts down
    """

    def __init__(self, changes: Callable[[int | None], Changes], closing: threading.Event) -> None:
        self._changes, self._closing = changes, closing
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poller: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to watch for changes."""
        self._loop = asyncio.get_running_loop()
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """End all streams."""
        if self._poller is not None:
            self._poller.cancel()
        for queue in self._listeners:
            queue.put_nowait(None)

    def tell(self, event: str, data: Any) -> None:
        """Send an event to all listeners; any thread may call it."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, _event(event, data))

    def _spread(self, text: str) -> None:
        for queue in list(self._listeners):
            if queue.qsize() < MAX_WAITING:
                queue.put_nowait(text)
            else:
                self._listeners.discard(queue)
                queue.put_nowait(None)

    def listen(self) -> AsyncIterator[str]:
        """The events from now on, as lines of an event stream."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Problem(503, "Too many pages are open.", retry_after=30)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        return self._lines(queue)

    async def _lines(self, queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        try:
            yield "retry: 2000\n\n"
            waited = 0.0
            while not self._closing.is_set():
                try:
                    async with asyncio.timeout(POLL_SECONDS):
                        text = await queue.get()
                except TimeoutError:
                    waited += POLL_SECONDS
                    if waited >= HEARTBEAT_SECONDS:
                        waited = 0.0
                        yield ": still here\n\n"
                    continue
                if text is None:
                    return
                waited = 0.0
                yield text
        finally:
            self._listeners.discard(queue)

    async def _poll(self) -> None:
        last: int | None = None
        while True:
            found: Changes = []
            with suppress(HarmoniumError):  # The next look may succeed.
                found = await asyncio.to_thread(self._changes, last)
            for number, command in found:
                if last is not None:
                    self._spread(_event("change", {"id": number, "command": command}))
                last = number
            last = last or 0
            await asyncio.sleep(POLL_SECONDS)


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
