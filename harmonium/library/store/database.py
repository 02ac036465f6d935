"""The database of a library: SQLite or PostgreSQL, set up alike, and how values are stored in it.

One transaction writes at a time: SQLite works that way, and on PostgreSQL an advisory lock does the
same, so that no other writer can come between reading and writing.

The `LibraryVersion` tells whoever keeps parts of a library in memory when to read them again.
Opinions and changes only ever get new numbers, so the last numbers tell. Tracks and predictions
change in place; whoever changes them calls `bump_version` in the same transaction.

Text holds neither NUL nor lone surrogates, which PostgreSQL rejects: `storable` replaces them, and
`stored_path` keeps paths that are not UTF-8.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import polars as pl
import sqlalchemy as sa
from safetensors import SafetensorError
from sqlalchemy.exc import DBAPIError

from harmonium.errors import LibraryError
from harmonium.files import enable_write_ahead_log, user_data_folder
from harmonium.library.store.schema import (
    VERSION,
    change,
    metadata,
    opinion,
    setting,
    table_version,
)

if TYPE_CHECKING:
    from harmonium.library.library import Library

ENVIRONMENT = "HARMONIUM_LIBRARY"  # the environment variable that names the default library
BUSY_SECONDS = 120  # how long to wait for another process that is writing
SYNCHRONOUS = "FULL"  # SQLite's: a commit outlives a power cut, since people's tags are in it
_WRITES = "harmonium_writes"
_LOCK = 0x4861726D  # the number of the advisory lock; locks are per database
_CACHE_KIB = 65_536
_POOL: Any = {"max_overflow": 60, "pool_timeout": 10}  # a server has about 40 threads
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # or Ctrl-C prints a traceback
_SAFE = "What was stored before is safe."
_DAMAGED = " It is damaged. Restore a copy; `sqlite3 FILE .recover` saves what can be saved."
_WAYS_OUT = {  # parts of a database's message → what to do about it
    ('FATAL:  database "', 'FATAL:  role "'): " Correct the address, or create it on the server.",
    ("locked", "lock timeout"): " Another program is still writing to it; try again when it is "
    "done.",
    ("not a database",): " If it was a library, it is damaged: restore a copy. Otherwise, name "
    "another file with --library.",
    ("disk I/O error", "disk is full", "No space left"): " The disk is full or failing. "
    f"{_SAFE} Make room, and run the command again.",
    ("readonly database", "unable to open", "Read-only file system", "Permission denied"): " The "
    "file, its folder or the disk is read-only. Allow writing, or copy the library to another "
    "place and name that with --library.",
    (
        *("malformed", "Could not decode", "foreign key mismatch"),
        *("no such table", "no such column", "does not exist"),
    ): _DAMAGED,
    (
        *("terminating connection", "server closed the connection", "connection is lost"),
        *("starting up", "shutting down"),
    ): f" The server stopped or was restarted. {_SAFE} Run the command again.",
}
TRACKS, PREDICTIONS = "version_of_tracks", "version_of_predictions"
"""The settings that count how often tracks, and predictions, have changed."""


class LibraryVersion(NamedTuple):
    """Numbers that change with parts of the library."""

    change: int
    opinion: int
    tracks: int
    predictions: int


class LibraryPart:
    """Base for the parts of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library


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

    ``wait`` is how many seconds to wait for another process that is writing.
    """
    url = sa.URL.create("sqlite", database=str(file))
    if _is_frozen(file):
        query = {"immutable": "1", "uri": "true"}
        url = sa.URL.create("sqlite", database=f"file:{quote(os.fsencode(file))}", query=query)
    seconds = BUSY_SECONDS if wait is None else wait
    engine = sa.create_engine(url, connect_args={"timeout": seconds}, **_POOL)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where `begin` says, not by guess
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A transaction that turns from reading to writing may fail, so it writes from the start.
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _is_frozen(file: Path) -> bool:
    """Whether a file is complete and on a read-only disk, which SQLite must be told."""
    try:
        read_only = os.statvfs(file).f_flag & os.ST_RDONLY
    except (AttributeError, OSError):  # Windows, or the file is missing
        return False
    return bool(read_only) and not file.with_name(f"{file.name}-wal").exists()


def shown_url(url: sa.URL) -> str:
    """The address of a database without its secrets."""
    url = url.difference_update_query([name for name in url.query if "password" in name])
    return url.set(drivername="postgresql").render_as_string()


def use_write_ahead_log(engine: sa.Engine) -> None:
    """Let SQLite's readers and writer work at once, from now on."""
    if engine.dialect.name == "sqlite":
        with closing(engine.raw_connection()) as raw:
            enable_write_ahead_log(raw.driver_connection, BUSY_SECONDS)  # type: ignore[arg-type]


def postgresql_engine(place: str, wait: float | None = None) -> sa.Engine:
    """An engine for a PostgreSQL database; ``wait`` as in `sqlite_engine`."""
    milliseconds = int(1000 * (BUSY_SECONDS if wait is None else wait)) or 1
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
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

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
def writing(engine: sa.Engine, place: str) -> Iterator[sa.Connection]:
    """A connection in a transaction that is committed as a whole, or not at all."""
    with explained(place), engine.connect() as connection:
        connection = connection.execution_options(**{_WRITES: True})
        with connection.begin():
            yield connection


def end_transactions(interrupt: KeyboardInterrupt) -> None:
    """Unlock the library, to write to it after an interrupt.

    SQLAlchemy may have been interrupted before it could roll back; then the traceback holds the
    transaction.
    """
    traceback.clear_frames(interrupt.__traceback__)


def stored_json(text: str) -> Any:
    """The value of a JSON column."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(f"a stored value is not JSON ({error})") from error


def damaged(reason: str) -> LibraryError:
    """The error for a library whose values do not fit together."""
    return LibraryError(f"The library cannot be used: {reason}.{_DAMAGED}")


@contextmanager
def intact(table: sa.Table, row: Any) -> Iterator[None]:
    """Check that a row's values have their columns' types and fit what is made of them."""
    try:
        for name, value in row._mapping.items():
            column = table.c[name]
            if not isinstance(value, column.type.python_type) and not column.nullable:
                raise TypeError(f"{name} is {type(value).__name__}")
        yield
    except (TypeError, ValueError, LookupError, OverflowError, SafetensorError) as error:
        raise damaged(f"a row of {table.name} is invalid ({error})") from error


@contextmanager
def explained(place: str) -> Iterator[None]:
    """A database's error as a `LibraryError`."""
    try:
        yield
    except (DBAPIError, sa.exc.TimeoutError, sqlite3.Error, OSError, UnicodeDecodeError) as error:
        cause: object = error.orig if isinstance(error, DBAPIError) and error.orig else error
        if isinstance(error, UnicodeDecodeError):  # SQLite's own words about damaged names
            cause = error.object.decode(errors="replace")
        reason = (str(cause).strip() or type(cause).__name__).splitlines()[0].strip()
        ways = (way for signs, way in _WAYS_OUT.items() if any(s in str(cause) for s in signs))
        way_out = next(ways, "")
        raise LibraryError(f"The library {place} cannot be used: {reason}.{way_out}") from error


def bump_version(connection: sa.Connection, key: str) -> None:
    """Note that tracks, or predictions, have changed."""
    count_up = """INSERT INTO setting (key, value) VALUES (:key, '1') ON CONFLICT (key)
        DO UPDATE SET value = CAST(CAST(setting.value AS BIGINT) + 1 AS TEXT)"""
    connection.execute(sa.text(count_up), {"key": key})


def read_version(connection: sa.Connection) -> LibraryVersion:
    """The version that the connection sees."""
    counter = sa.select(setting.c.value)
    query = sa.select(
        sa.select(sa.func.max(change.c.id)).scalar_subquery(),
        sa.select(sa.func.max(opinion.c.id)).scalar_subquery(),
        *(counter.where(setting.c.key == key).scalar_subquery() for key in (TRACKS, PREDICTIONS)),
    )
    values = connection.execute(query).one()  # if one is damaged, counting starts again
    return LibraryVersion(*(int(value) if str(value).isdecimal() else 0 for value in values))


Item = TypeVar("Item")
PAGE = 1000  # rows to read, or values in an IN, at a time
CHUNK = 100_000  # rows in flight at a time


def batches(items: Iterable[Item], size: int | None = None) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``, by default `PAGE`."""
    remaining = iter(items)
    while some := list(islice(remaining, size or PAGE)):
        yield some


def make_table(connection: sa.Connection, rows: pl.DataFrame, name: str = "incoming") -> None:
    """Make a temporary table from a frame of integers."""
    columns = ", ".join(f"{column} bigint NOT NULL" for column in rows.columns)
    connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {name} ({columns})")
    if connection.dialect.name == "postgresql":
        cursor: Any = connection.connection.cursor()
        with cursor, cursor.copy(f"COPY {name} ({', '.join(rows.columns)}) FROM STDIN") as copy:
            for some in rows.iter_slices(CHUNK):
                copy.write(some.write_csv(include_header=False, separator="\t"))
        connection.exec_driver_sql(f"ANALYZE {name}")
    else:
        marks = ", ".join("?" * len(rows.columns))
        for some in rows.iter_slices(CHUNK):
            connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({marks})", some.rows())


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


MIGRATIONS = {  # version → the statements that upgrade the tables from the version before
    "0009": ("ALTER TABLE feature DROP COLUMN heads", "ALTER TABLE crowd RENAME TO people_count"),
}
_OLDEST = "0008"


def read_table_version(connection: sa.Connection) -> tuple[str | None, bool]:
    """The version of the tables, or None; and whether there are no tables."""
    names = sa.inspect(connection).get_table_names()
    if table_version.name not in names:
        return None, not names
    return connection.scalar(sa.select(table_version.c.version_num)), False


def upgrade(connection: sa.Connection, place: str) -> None:
    """Create or upgrade the tables, in the connection's transaction."""
    version, _ = read_table_version(connection)  # another process may have done it first
    if version is None:
        for tables in (metadata, table_version.metadata):
            tables.create_all(connection)
        connection.execute(sa.insert(table_version).values(version_num=VERSION))
        return
    if version > VERSION:
        raise LibraryError(
            f"The library {place} was written by a newer version of Harmonium (version {version} "
            f"of the tables; this one knows {VERSION}). Upgrade Harmonium, or name another library "
            "with --library."
        )
    if version < _OLDEST:
        raise LibraryError(
            f"The library {place} was written before Harmonium's first release (version {version} "
            f"of the tables, before {_OLDEST}). Index the music into a new library."
        )
    for number, statements in MIGRATIONS.items():
        for statement in statements if number > version else ():
            connection.exec_driver_sql(statement)
    connection.execute(sa.update(table_version).values(version_num=VERSION))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """The current time, in microseconds since 1970."""
    return to_microseconds(datetime.now(UTC))


def to_datetime(microseconds: int) -> datetime:
    """A stored time."""
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(time: datetime) -> int:
    """A time as it is stored; one without a zone counts as UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def key_of(result: sa.CursorResult[Any]) -> int:
    """The number that a new row got."""
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def storable(text: str) -> str:
    """Text that both databases accept: NUL becomes a space, invalid Unicode a replacement mark."""
    return text.replace("\0", " ").encode(errors="replace").decode()


def stored_path(path: str) -> dict[str, Any]:
    """The columns of a path: readable text, and the bytes if the text is not enough."""
    raw = os.fsencode(path)
    text = raw.decode(errors="backslashreplace")
    return {"path": text, "path_bytes": None if text == path else raw}


def loaded_path(row: Any) -> str:
    """The original path, from a row with the columns of `stored_path`."""
    return str(row.path) if row.path_bytes is None else os.fsdecode(bytes(row.path_bytes))
