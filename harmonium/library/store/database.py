"""The database of a library: SQLite or PostgreSQL, set up alike.

One transaction writes at a time: SQLite works that way, and on PostgreSQL an advisory lock does the
same, so that no other writer can come between reading and writing.

The `LibraryVersion` tells whoever keeps parts of a library in memory when to read them again.
Opinions and changes only ever get new numbers, so the last numbers tell. Tracks and predictions
change in place; whoever changes them calls `bump_version` in the same transaction.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import polars as pl
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from harmonium import stopping
from harmonium.errors import LibraryError
from harmonium.files import enable_write_ahead_log, user_data_folder
from harmonium.library.store.failures import busy, explained
from harmonium.library.store.schema import change, opinion, setting

if TYPE_CHECKING:
    from harmonium.library.library import Library

ENVIRONMENT = "HARMONIUM_LIBRARY"  # the environment variable that names the default library
BUSY_SECONDS = 120  # how long to wait for another process that is writing
SYNCHRONOUS = "FULL"  # SQLite's: a commit outlives a power cut, since people's tags are in it
_WRITES = "harmonium_writes"
_LOCK = 0x4861726D  # the number of the advisory lock; locks are per database
_MAX_DELAY = 0.05  # seconds between two attempts to begin to write
_CACHE_KIB = 65_536
_POOL: Any = {"max_overflow": 60, "pool_timeout": 10}  # a server has about 40 threads
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # or Ctrl-C prints a traceback
TRACKS = "version_of_tracks"
PREDICTIONS = "version_of_predictions"
WITHDRAWN = "version_of_withdrawn_opinions"
"""The settings that count how often tracks and predictions have changed, and opinions ended."""


class LibraryVersion(NamedTuple):
    """Numbers that change with parts of the library."""

    change: int
    opinion: int
    tracks: int
    predictions: int
    withdrawn: int  # a withdrawal may belong to an earlier change, and begins no opinion


class LibraryState(NamedTuple):
    """What everything that is derived from a library depends on."""

    version: LibraryVersion
    model_id: int | None  # the model in use


class LibraryPart:
    """Base for the parts of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library


class _LockedError(Exception):
    """Another program is writing to the library."""


def default_place() -> str:
    """$HARMONIUM_LIBRARY, or library.db in the user's data folder."""
    return os.environ.get(ENVIRONMENT) or str(user_data_folder() / "library.db")


def is_url(place: str) -> bool:
    """Whether a place is on a server, not a file."""
    return "://" in place


def place_name(place: str) -> str:
    """What to call a library: the name of its file or of its database."""
    if not is_url(place):
        return Path(place).stem
    try:
        return sa.make_url(place).database or "library"
    except (sa.exc.ArgumentError, ValueError):
        return "library"


def sqlite_engine(file: Path, wait: float | None = None) -> sa.Engine:
    """An engine for a file, which is created if missing.

    ``wait`` is how many seconds a reader waits if another process has locked the whole file.
    """
    seconds = BUSY_SECONDS if wait is None else wait
    wait_for_lock = f"PRAGMA busy_timeout = {int(1000 * seconds)}"
    url = sa.URL.create("sqlite", database=str(file))
    engine = sa.create_engine(url, creator=lambda: _connect(file, seconds), **_POOL)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where `begin` says, not by guess
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    @sa.event.listens_for(engine, "checkin")
    def check_in(connection: Any, record: Any) -> None:
        if isinstance(connection, _ReadOnlyConnection):  # the next one may find some room
            record.invalidate(soft=True)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        raw: Any = connection.connection.driver_connection
        if not connection.get_execution_options().get(_WRITES):
            raw.execute(wait_for_lock)
            connection.exec_driver_sql("BEGIN")
            return
        if isinstance(raw, _ReadOnlyConnection) and raw.reason is not None:
            raise raw.reason
        # A transaction that turns from reading to writing may fail, so it writes from the start.
        raw.execute("PRAGMA busy_timeout = 0")  # `_begin` waits
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0)
            if code & 0xFF == sqlite3.SQLITE_BUSY:
                raise _LockedError from None
            raise
        raw.execute(wait_for_lock)

    return engine


class _ReadOnlyConnection(sqlite3.Connection):
    """A connection that takes the file for one that cannot change, and writes nothing beside it."""

    reason: sqlite3.Error | None = None  # why another connection was impossible


def _connect(file: Path, seconds: float) -> sqlite3.Connection:
    """Open a file; without writing anything if its disk is read-only or full.

    In the usual mode, also a reader makes a small file beside the database.
    """
    if _is_on_read_only_disk(file) and _is_complete(file):
        return _connect_read_only(file)
    connection = sqlite3.connect(file, timeout=seconds, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        connection.close()
        if _is_disk_full(error) and _is_complete(file):
            return _connect_read_only(file, error)
        raise
    return connection


def _connect_read_only(file: Path, reason: sqlite3.Error | None = None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(file))}?immutable=1",
        uri=True,
        check_same_thread=False,
        factory=_ReadOnlyConnection,
    )
    connection.reason = reason
    return connection


def _is_on_read_only_disk(file: Path) -> bool:
    try:
        return bool(os.statvfs(file).f_flag & os.ST_RDONLY)
    except (AttributeError, OSError):  # Windows, or the file is missing
        return False


def _is_complete(file: Path) -> bool:
    """Whether no changes are waiting in the log beside a file."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size == 0
    except FileNotFoundError:
        return file.exists()
    except OSError:
        return False


def _is_disk_full(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def shown_url(url: sa.URL) -> str:
    """The address of a database without its secrets."""
    url = url.difference_update_query([name for name in url.query if "password" in name])
    return url.set(drivername="postgresql").render_as_string()


def use_write_ahead_log(engine: sa.Engine) -> None:
    """Let SQLite's readers and writer work at once, from now on."""
    if engine.dialect.name == "sqlite":
        with closing(engine.raw_connection()) as raw:
            enable_write_ahead_log(raw.driver_connection, BUSY_SECONDS)  # type: ignore[arg-type]


def postgresql_engine(place: str) -> sa.Engine:
    """An engine for a PostgreSQL database."""
    try:
        url = sa.make_url(place)
    except (sa.exc.ArgumentError, ValueError):  # a port that is not a number
        raise LibraryError(
            f"{place.partition('://')[0]}://… is not a valid address. Write "
            "postgresql://USER@HOST/DATABASE."
        ) from None
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise LibraryError(
            f"A library is a file or a PostgreSQL database (postgresql://…), got "
            f"'{url.drivername}://'."
        )
    try:
        url = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, pool_pre_ping=True, **_POOL)
    except ModuleNotFoundError as error:
        raise LibraryError(
            "Libraries in PostgreSQL need the package psycopg: pip install 'harmonium[postgres]'."
        ) from error

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get(_WRITES):
            return
        lock = f"SELECT pg_try_advisory_xact_lock({_LOCK})"
        if not connection.exec_driver_sql(lock).scalar():
            connection.connection.rollback()  # of this attempt; `_begin` makes another
            raise _LockedError

    @sa.event.listens_for(engine, "before_cursor_execute")
    def ask_for_binary(
        _: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        # As text, bytes take four times as long. SQLAlchemy reads the catalogue as text.
        cursor.format = int("pg_catalog" not in statement)  # psycopg: 1 is binary

    return engine


@contextmanager
def reading(engine: sa.Engine, place: str) -> Iterator[sa.Connection]:
    """A connection whose queries see one state of the library."""
    with explained(place), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def writing(engine: sa.Engine, place: str, wait: float = BUSY_SECONDS) -> Iterator[sa.Connection]:
    """A connection in a transaction that is committed as a whole, or not at all.

    If another process is still writing after ``wait`` seconds, that is a `LibraryBusyError`.
    """
    with explained(place), engine.connect() as connection:
        connection = connection.execution_options(**{_WRITES: True})
        with _begin(connection, place, wait):
            yield connection


def _begin(connection: sa.Connection, place: str, wait: float) -> sa.RootTransaction:
    """Begin to write, as soon as no other process does."""
    end = time.monotonic() + wait
    delay = 0.001
    while True:
        try:
            return connection.begin()
        except _LockedError:
            if time.monotonic() >= end:
                raise busy(place) from None
        stopping.check()
        time.sleep(delay)
        delay = min(2 * delay, _MAX_DELAY)


def bump_version(connection: sa.Connection, key: str) -> None:
    """Note that tracks, or predictions, have changed."""
    count_up = """INSERT INTO setting (key, value) VALUES (:key, '1') ON CONFLICT (key)
        DO UPDATE SET value = CAST(CAST(setting.value AS BIGINT) + 1 AS TEXT)"""
    connection.execute(sa.text(count_up), {"key": key})


def _last_id(table: sa.Table) -> sa.Label[Any]:
    return sa.select(sa.func.max(table.c.id)).scalar_subquery().label(table.name)


def _counter(key: str) -> sa.Label[Any]:
    value = sa.select(setting.c.value).where(setting.c.key == key)
    return value.scalar_subquery().label(key)


_VERSION = sa.select(
    _last_id(change),
    _last_id(opinion),
    _counter(TRACKS),
    _counter(PREDICTIONS),
    _counter(WITHDRAWN),
)
"""Made once: every search and every answer asks for the version, some several times."""


def read_version(connection: sa.Connection) -> LibraryVersion:
    """The version that the connection sees."""
    row = connection.execute(_VERSION).one()._mapping
    return LibraryVersion(
        change=_count(row[change.name]),
        opinion=_count(row[opinion.name]),
        tracks=_count(row[TRACKS]),
        predictions=_count(row[PREDICTIONS]),
        withdrawn=_count(row[WITHDRAWN]),
    )


def _count(value: object) -> int:
    """A number; 0 if there is none yet, or it is damaged and counting starts again."""
    return int(str(value)) if str(value).isdecimal() else 0


Item = TypeVar("Item")
PAGE = 1000  # rows to read, or values in an IN, at a time
IDS_AT_ONCE = 10_000  # numbers in an IN of a query that reads few columns
CHUNK = 100_000  # rows in flight at a time


def batches(items: Iterable[Item], size: int | None = None) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``, by default `PAGE`."""
    remaining = iter(items)
    while batch := list(islice(remaining, size or PAGE)):
        yield batch


def make_table(connection: sa.Connection, rows: pl.DataFrame, name: str = "incoming") -> None:
    """Make a temporary table from a frame of integers."""
    columns = ", ".join(f"{column} bigint NOT NULL" for column in rows.columns)
    connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {name} ({columns})")
    if connection.dialect.name == "postgresql":
        _copy_rows(connection, rows, name)
        connection.exec_driver_sql(f"ANALYZE {name}")
        return
    marks = ", ".join("?" * len(rows.columns))
    for part in rows.iter_slices(CHUNK):
        stopping.check()
        connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({marks})", part.rows())


def _copy_rows(connection: sa.Connection, rows: pl.DataFrame, name: str) -> None:
    """Copy rows into a table of PostgreSQL, which is faster than to insert them."""
    cursor: Any = connection.connection.cursor()
    with cursor, cursor.copy(f"COPY {name} ({', '.join(rows.columns)}) FROM STDIN") as copy:
        for part in rows.iter_slices(CHUNK):
            stopping.check()
            copy.write(part.write_csv(include_header=False, separator="\t"))


def pairs(connection: sa.Connection, key: sa.Column[Any], value: sa.Column[Any]) -> dict[Any, Any]:
    """One column of a table by another."""
    return {row[0]: row[1] for row in connection.execute(sa.select(key, value))}


def replace_rows(
    connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]], *old: Any
) -> None:
    """Replace the rows that meet all conditions."""
    connection.execute(sa.delete(table).where(*old))
    if rows:
        connection.execute(sa.insert(table), rows)


def read_frame(connection: sa.Connection, query: sa.Select[Any], schema: Any) -> pl.DataFrame:
    """The rows that a query finds, as a frame."""
    return pl.DataFrame(list(map(tuple, connection.execute(query))), schema=schema, orient="row")


def key_of(result: sa.CursorResult[Any]) -> int:
    """The number that a new row got."""
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])
