"""What goes wrong with a library's database, as errors with a type and a way out.

SQLite's error codes and PostgreSQL's SQLSTATEs decide, not the words of their messages, which
depend on version and language.
"""

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa
from safetensors import SafetensorError
from sqlalchemy.exc import DBAPIError

from harmonium.errors import (
    LibraryBusyError,
    LibraryDamagedError,
    LibraryError,
    LibraryReadOnlyError,
    LibraryUnavailableError,
)


class Failure(NamedTuple):
    """A kind of failure: its error, and what to do about it."""

    error: type[LibraryError]
    way_out: str


_SAFE = "What was stored before is safe."
_IS_DAMAGED = "It is damaged. Restore a copy; `sqlite3 FILE .recover` saves what can be saved."
BUSY = Failure(
    LibraryBusyError, "Another program is still writing to it; try again when it is done."
)
OVERLOADED = Failure(
    LibraryUnavailableError, f"The server has too much to do. {_SAFE} Try again in a moment."
)
FULL = Failure(
    LibraryUnavailableError,
    f"The disk is full or failing. {_SAFE} Make room, and run the command again.",
)
STOPPED = Failure(
    LibraryUnavailableError,
    f"The server stopped or was restarted. {_SAFE} Run the command again.",
)
NO_CONNECTION = Failure(
    LibraryUnavailableError,
    f"Check the address, and that the server is running. {_SAFE} Run the command again.",
)
WRONG_ADDRESS = Failure(LibraryUnavailableError, "Correct the address, or create it on the server.")
READ_ONLY = Failure(
    LibraryReadOnlyError,
    "The file, its folder or the disk is read-only. Allow writing, or copy the library to another "
    "place and name that with --library.",
)
DAMAGED = Failure(LibraryDamagedError, _IS_DAMAGED)
NOT_A_DATABASE = Failure(
    LibraryDamagedError,
    "If it was a library, it is damaged: restore a copy. Otherwise, name another file with "
    "--library.",
)
UNKNOWN = Failure(LibraryError, "")

_BY_SQLITE_CODE = {  # the low byte of SQLite's extended error codes
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: NOT_A_DATABASE,
}
_BY_SQLSTATE = {  # PostgreSQL's codes, or the beginnings of them
    "55P03": BUSY,  # lock_timeout
    "40": BUSY,  # a deadlock, or transactions that cannot be ordered
    "53100": FULL,
    "58": FULL,
    "53": OVERLOADED,
    "08": STOPPED,
    "57P": STOPPED,
    "3D": WRONG_ADDRESS,
    "28": WRONG_ADDRESS,
    "25006": READ_ONLY,
    "42501": READ_ONLY,
    "42P01": DAMAGED,  # a missing table
    "42703": DAMAGED,  # a missing column
    "XX": DAMAGED,
}
_BY_ERRNO = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EIO: FULL,
    errno.EROFS: READ_ONLY,
    errno.EACCES: READ_ONLY,
    errno.EPERM: READ_ONLY,
}
# SQLite has no codes of their own for these.
_DAMAGED_SCHEMA = re.compile("no such table|no such column|foreign key mismatch|Could not decode")
_NO_SUCH_DATABASE = re.compile('FATAL: +(database|role) "')  # libpq passes no SQLSTATE on


@contextmanager
def explained(place: str) -> Iterator[None]:
    """A database's error as a `LibraryError`."""
    try:
        yield
    except Exception as error:
        if not _is_of_database(error):
            raise
        raise _explained(place, _cause(error), _failure(error)) from error


@contextmanager
def explained_file(place: str) -> Iterator[None]:
    """An error about a library's file or folder as a `LibraryError`."""
    try:
        yield
    except OSError as error:
        failure = _BY_ERRNO.get(error.errno or 0, UNKNOWN)
        raise _explained(place, str(error), failure) from error


def damaged(reason: str) -> LibraryDamagedError:
    """The error for a library whose values do not fit together."""
    return LibraryDamagedError(f"The library cannot be used: {reason}. {_IS_DAMAGED}")


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


def busy(place: str) -> LibraryError:
    """The error for a library that another program has been writing to for too long."""
    return _explained(place, "it is locked", BUSY)


def _explained(place: str, cause: str, failure: Failure) -> LibraryError:
    reason = cause.strip().splitlines()[0].strip() if cause.strip() else "an unknown failure"
    way_out = f" {failure.way_out}" if failure.way_out else ""
    return failure.error(f"The library {place} cannot be used: {reason}.{way_out}")


def _cause(error: Exception) -> str:
    """The database's own words."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return str(error.orig) or type(error.orig).__name__
    if isinstance(error, UnicodeDecodeError):  # SQLite's own words about a damaged name
        return bytes(error.object).decode(errors="replace")
    return str(error)


def _is_of_database(error: Exception) -> bool:
    known = (DBAPIError, sqlite3.Error, sa.exc.TimeoutError, UnicodeDecodeError)
    # SQLAlchemy does not wrap the errors of COPY; and psycopg need not be installed.
    return isinstance(error, known) or type(error).__module__.partition(".")[0] == "psycopg"


def _failure(error: Exception) -> Failure:
    """What kind of failure an error of a database is."""
    if isinstance(error, sa.exc.TimeoutError):  # this process has no connection left
        return OVERLOADED
    if isinstance(error, UnicodeDecodeError):
        return DAMAGED
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return STOPPED
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, sqlite3.Error):
        return _sqlite_failure(original)
    sqlstate = getattr(original, "sqlstate", None)
    if sqlstate is not None:
        return _postgresql_failure(sqlstate)
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
        return WRONG_ADDRESS if _NO_SUCH_DATABASE.search(str(original)) else NO_CONNECTION
    return UNKNOWN


def _sqlite_failure(error: sqlite3.Error) -> Failure:
    code = getattr(error, "sqlite_errorcode", None)  # its low byte is the kind
    if code is not None and (code & 0xFF) in _BY_SQLITE_CODE:
        return _BY_SQLITE_CODE[code & 0xFF]
    return DAMAGED if _DAMAGED_SCHEMA.search(str(error)) else UNKNOWN


def _postgresql_failure(sqlstate: str) -> Failure:
    for length in (5, 3, 2):
        if sqlstate[:length] in _BY_SQLSTATE:
            return _BY_SQLSTATE[sqlstate[:length]]
    return UNKNOWN
