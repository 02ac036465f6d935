"""Files and folders: safe writing, locks between processes, users' folders, paths as text."""

import errno
import os
import secrets
import shutil
import sqlite3
import stat
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from platformdirs import user_cache_path, user_data_path

from harmonium.errors import DataError, readable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everything but Windows
    msvcrt = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A new binary file; it takes the name ``path`` when the block ends and it is on the disk."""
    # If the block raises, the old file stays and nothing is left behind. A link stays a link.
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            shutil.copymode(path, part)
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and not error.filename:
            error.filename = os.fspath(path)  # the error of a full disk does not name the file
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there."""
    with atomic_file(path) as file:
        file.write(content)


def check_writable(path: PathLike, endings: Sequence[str] = ()) -> None:
    """Before any work, refuse a file with another ending, or in a missing or read-only folder."""
    file = Path(path)
    if endings and file.suffix.lower() not in endings:
        raise DataError(f"'{readable(file)}' must end in {' or '.join(endings)}.")
    if file.is_dir():
        raise DataError(f"'{readable(file)}' is a folder. Give the name of a file in it.")
    folder = f"'{readable(file.parent)}'"
    if not file.parent.is_dir():
        raise DataError(
            f"'{readable(file)}' cannot be written: there is no folder {folder}. Create it first."
        )
    if not os.access(file.parent, os.W_OK):
        raise DataError(
            f"'{readable(file)}' cannot be written: the folder {folder} is read-only. "
            "Choose another."
        )


def open_file(path: PathLike) -> BinaryIO:
    """Open a file to read it; an OSError if it is a folder, a pipe or a device."""
    # Opening a pipe would wait for its writer, and a pipe can take a file's place at any time.
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    descriptor = os.open(path, os.O_RDONLY | sum(flags))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(path, "rb", opener=lambda *_: descriptor)  # so that it knows its name
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))


def try_lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file; False if another process holds the lock and we do not wait for it.

    The lock ends when the file is closed, however the process ends. If the system has no locks, the
    file counts as locked.
    """
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # how flock and msvcrt say that another has it
        return False
    except OSError:
        return True
    return True


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder; also removes folders with this prefix that killed processes left."""
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError), (old / "lock").open("r+b") as lock:
            if try_lock(lock.fileno()):
                shutil.rmtree(old)
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    with folder as made, Path(made, "lock").open("wb") as lock:
        try_lock(lock.fileno(), wait=True)
        yield Path(made)


def enable_write_ahead_log(database: sqlite3.Connection, seconds: float) -> None:
    """Let SQLite's readers and writer work at once; waits for the lock, which SQLite may not."""
    end = time.monotonic() + seconds
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """A TOML file's contents; a DataError that begins with ``what`` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{what} '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"{what} '{path}' are not TOML: {error}.") from None


def read_secret(path: Path, what: str) -> str:
    """The first line of a file with a token or a password."""
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise DataError(f"The {what} file '{readable(path)}' cannot be read: {reason}.") from None
    return lines[0].strip() if lines else ""


def user_data_folder() -> Path:
    """The folder for what a user wants to keep: the library, downloaded datasets."""
    return user_data_path("harmonium", appauthor=False)


def user_cache_folder() -> Path:
    """The folder for what can be computed again: $HARMONIUM_CACHE, or the system's cache folder."""
    if named := os.environ.get("HARMONIUM_CACHE"):
        return Path(named).expanduser()
    return user_cache_path("harmonium", appauthor=False, opinion=False)


def absolute_path(path: PathLike) -> str:
    """The path as libraries store it: absolute, ~ expanded, without "..", links kept."""
    # ".." after a link leads to the folder above the link's target, as the system has it.
    name = os.path.expanduser(path)  # noqa: PTH111
    if ".." not in name:
        return os.path.abspath(name)  # noqa: PTH100
    full = Path.cwd() / name
    done = full.anchor
    for part in full.parts[1:]:
        if part == "..":
            folder = os.path.realpath(done) if os.path.islink(done) else done  # noqa: PTH114
            done = os.path.dirname(folder)  # noqa: PTH120
        else:
            done = os.path.join(done, part)  # noqa: PTH118
    return done


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is inside one of these folders."""
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
