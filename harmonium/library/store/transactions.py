"""Reading and writing the database of a library, in transactions that threads may share.

A thread has at most one transaction that writes and one that reads: `Transactions.begin` and
`Transactions.connect` inside another one of the same thread give its connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from harmonium import stopping
from harmonium.library.store.database import (
    BUSY_SECONDS,
    LibraryVersion,
    read_version,
    reading,
    writing,
)
from harmonium.library.store.failures import busy
from harmonium.stopping import stops_on_interrupt

_TURN_SECONDS = 0.1  # how often a thread that waits to write looks whether it should stop


class Transactions:
    """An open database, for several threads."""

    def __init__(self, engine: sa.Engine, place: str, wait: float | None = None) -> None:
        self.engine = engine
        self.place = place  # where it is, without a password
        self._connections = _Connections()
        self._wait = BUSY_SECONDS if wait is None else wait
        self._writing = threading.Lock()
        """Threads wait for this lock, rather than each holding a connection that readers need."""

    def close(self) -> None:
        """Close all connections; the database can be used again."""
        self.engine.dispose()

    def version(self) -> LibraryVersion:
        """The version of the library's contents; it changes with every change."""
        with self.connect() as connection:
            return read_version(connection)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A connection for reading: all its queries see the state at the first one.

        Inside `begin` or `reading` in the same thread, it is their connection.
        """
        if (here := self._connections.writer or self._connections.reader) is not None:
            yield here
            return
        with stops_on_interrupt(), reading(self.engine, self.place) as connection:
            yield connection

    def fetch(self, query: sa.Select[Any]) -> Sequence[Any]:
        """All rows that a query finds."""
        with self.connect() as connection:
            return connection.execute(query).all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything that this thread reads inside sees one state of the library."""
        with self.connect() as connection:
            before = self._connections.reader
            self._connections.reader = connection
            try:
                yield
            finally:
                self._connections.reader = before

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A connection for writing, in one transaction: all or nothing.

        Inside another one in the same thread, it is part of that.
        """
        if self._connections.writer is not None:
            yield self._connections.writer
            return
        try:
            with (
                stops_on_interrupt(),
                self._turn_to_write(),
                writing(self.engine, self.place, self._wait) as connection,
            ):
                self._connections.writer = connection
                try:
                    yield connection
                finally:
                    self._connections.writer = None
        except BaseException:
            self._connections.waiting.clear()  # nothing was committed
            raise
        while self._connections.waiting:
            self._connections.waiting.pop(0)()

    @contextmanager
    def _turn_to_write(self) -> Iterator[None]:
        """Wait for other threads that are writing."""
        end = time.monotonic() + self._wait
        while not self._writing.acquire(timeout=_TURN_SECONDS):
            stopping.check()
            if time.monotonic() >= end:
                raise busy(self.place)
        try:
            yield
        finally:
            self._writing.release()

    def when_committed(self, action: Callable[[], object]) -> None:
        """Do this now; in a transaction of this thread, when that is committed."""
        if self._connections.writer is None:
            action()
        elif action not in self._connections.waiting:
            self._connections.waiting.append(action)


class _Connections(threading.local):
    """The open connections of a thread."""

    writer: sa.Connection | None = None  # in the transaction of `begin`
    reader: sa.Connection | None = None  # of `reading`

    def __init__(self) -> None:  # for each thread
        self.waiting: list[Callable[[], object]] = []
        """What to do when the transaction is committed."""
