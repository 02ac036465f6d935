"""Server-sent events for every open page: the progress of jobs, and changes of the library."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harmonium.errors import HarmoniumError
from harmonium.web.problems import Problem

if TYPE_CHECKING:
    from harmonium.web.service import Service

HEARTBEAT_SECONDS = 15.0  # time without events after which a comment shows that the server is alive
POLL_SECONDS = 1.0  # time between two looks at the changes, which other processes make too
MAX_LISTENERS = 64
MAX_WAITING = 200  # events that may wait for a slow page before it is disconnected


class Events:
    """The pages that listen, and what they are told.

    Any thread may call `tell` and `stop`; the other methods are for the server's event loop.
    """

    def __init__(self, service: "Service") -> None:
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
            self._loop.call_soon_threadsafe(self._send, None)

    def tell(self, event: str, data: Any) -> None:
        """Send an event to all listeners."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, _event(event, data))

    def listen(self) -> AsyncIterator[str]:
        """The events from now on, as lines of an event stream."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Problem(503, "Too many pages are open.", retry_after=30)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        return self._lines(queue)

    def _send(self, text: str | None) -> None:
        """Send a text to all listeners; None ends their streams."""
        for queue in list(self._listeners):
            if queue.qsize() < MAX_WAITING:
                queue.put_nowait(text)
            else:
                queue.put_nowait(None)
                self._listeners.discard(queue)

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
        """Tell listeners about every change, whichever process made it."""
        last: int | None = None
        while True:
            changes: Sequence[tuple[int, str]] = []
            with suppress(HarmoniumError):  # The next look may succeed.
                changes = await asyncio.to_thread(self._changes, last)
            for number, command in changes:
                if last is not None:
                    self._send(_event("change", {"id": number, "command": command}))
                last = number
            last = last or 0
            await asyncio.sleep(POLL_SECONDS)

    def _changes(self, last: int | None) -> Sequence[tuple[int, str]]:
        """The number and command of each change after one; with None, of the last change."""
        library = self._service.library_if_any()
        if library is None:
            return []
        if last is None:
            return [(change.id, change.command) for change in library.changes.list(1)]
        return library.changes.commands_since(last)


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
