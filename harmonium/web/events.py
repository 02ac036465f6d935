"""What every open page is told: how jobs go on, and that the library has changed."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from harmonium.errors import HarmoniumError
from harmonium.web.problems import Problem
from harmonium.web.service import Service

HEARTBEAT = 15.0
"""Seconds after which a line without meaning shows that the server is there."""
POLL = 1.0
"""Seconds between two looks at the changes, which other processes make too."""
MOST_LISTENERS = 64
MOST_WAITING = 200
"""Events that wait for a page that does not read them; then its connection ends."""


class Events:
    """Passes events on to all who listen; all methods are for the server's loop but `tell`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poller: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for changes."""
        self._loop = asyncio.get_running_loop()
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Say goodbye to all listeners."""
        if self._poller is not None:
            self._poller.cancel()
        for queue in self._listeners:
            queue.put_nowait(None)

    def tell(self, event: str, data: Any) -> None:
        """Tell all listeners; from any thread."""
        text = _event(event, data)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, text)

    def _spread(self, text: str) -> None:
        for queue in list(self._listeners):
            if queue.qsize() < MOST_WAITING:
                queue.put_nowait(text)
            else:
                self._listeners.discard(queue)
                queue.put_nowait(None)

    def listen(self) -> AsyncIterator[str]:
        """What is told from now on, as lines of an event stream."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise Problem(503, "Too many pages are open.", retry_after=30)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        return self._lines(queue)

    async def _lines(self, queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        try:
            yield "retry: 2000\n\n"
            waited = 0.0
            while not self._service.closing.is_set():
                try:
                    async with asyncio.timeout(POLL):
                        text = await queue.get()
                except TimeoutError:
                    waited += POLL
                    if waited >= HEARTBEAT:
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
        found: Sequence[tuple[int, str]]
        while True:
            try:
                found = await asyncio.to_thread(self._changes, last)
            except HarmoniumError:
                found = []
            for number, command in found:
                if last is not None:
                    self._spread(_event("change", {"id": number, "command": command}))
                last = number
            last = last or 0
            await asyncio.sleep(POLL)

    def _changes(self, last: int | None) -> Sequence[tuple[int, str]]:
        library = self._service.library_if_there()
        if library is None:
            return []
        if last is None:
            return [(one.id, one.command) for one in library.changes.list(1)]
        return library.changes.commands_since(last)


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
