"""A music file as bytes: opened with clear errors, read and copied in parts, and replaced.

To replace a file, the new one is written beside the old one under a name that says what it is,
brought to the disk, and renamed over the old one: there is always one of the two. A process that is
killed before that leaves the part it has written, which the next write in that folder removes: the
writer holds a lock on it while it lives.
"""

import hashlib
import os
import re
import shutil
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from mutagen import MutagenError

from harmonium.errors import FileTagError
from harmonium.files import readable, try_lock

PathLike: TypeAlias = str | os.PathLike[str]

BLOCK = 1 << 20
"""Bytes that are held in memory at a time."""

# What Mutagen and the parsing here raise where a file is not what its format says.
_DAMAGE = (MutagenError, EOFError, struct.error, ValueError, LookupError, ArithmeticError)


class FileProblem(Exception):
    """Why a file cannot be read or written, in words that follow its name and a colon."""


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """The file, open for reading, with `explained` errors."""
    with explained(path):
        # Opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
            raise FileProblem("it is not a file")
        with Path(path).open("rb") as file:
            yield file


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Whatever goes wrong with a file, as one clear error."""
    try:
        yield
    except FileTagError:
        raise
    except FileNotFoundError:
        raise FileTagError(f"There is no file {readable(path)}.") from None
    except IsADirectoryError:
        raise FileTagError(f"{readable(path)} is a folder. Name a file in it.") from None
    except OSError as error:
        raise FileTagError(
            f"{readable(path)} cannot be read or written: {error.strerror or error}."
        ) from error
    except FileProblem as error:
        raise FileTagError(f"{readable(path)}: {error}.") from None
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise FileTagError(f"{readable(path)} is damaged: {reason}.") from error


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return file.seek(0, os.SEEK_END)


def read_at(file: BinaryIO, start: int, count: int) -> bytes:
    """The bytes from ``start`` on; fewer than ``count`` where the file ends."""
    file.seek(start)
    return file.read(count)


def blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes from ``start`` up to ``end`` or to the end of the file, in blocks."""
    while start < end:
        data = read_at(file, start, min(BLOCK, end - start))
        if not data:
            return
        start += len(data)
        yield data


def copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    """Append the bytes from ``start`` up to ``end`` of one file to another."""
    for data in blocks(source, start, end):
        target.write(data)


def content_digest(file: BinaryIO) -> str:
    """The SHA-256 digest of an open file's content, in hexadecimal digits."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


# Replacing a file. ----------------------------------------------------------------------------

Result = TypeVar("Result")

_IS_WINDOWS = os.name == "nt"  # where nobody else can remove a file that is open

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_PART = re.compile(r"\.harmonium-[0-9a-f]{16}\.part")


def replace_file(
    path: str | os.PathLike[str],
    produce: Callable[[BinaryIO, BinaryIO], Result],
    *,
    keep: Callable[[Result], object] | None = None,
    keep_times: bool = False,
) -> Result:
    """Let ``produce(old file, empty file)`` write a new file, and put it in the old one's place.

    Permissions, owner, group and extended attributes are kept, as far as the system lets us. A
    symbolic link stays one: what it leads to is replaced. ``keep`` is given what ``produce`` gave
    when all is ready, just before the new file takes the old one's place. Where ``produce`` or
    ``keep`` raise, the old file stays and nothing is left behind.

    Raises
    ------
    FileTagError
        where that cannot be done
    """
    place = Path(os.path.realpath(path))
    with ExitStack() as stack:
        with explained(path):
            _check_writable(place)
            _sweep(place.parent)
            old = stack.enter_context(place.open("rb"))
            status = os.fstat(old.fileno())
            part, new = stack.enter_context(_part(place))
            result = produce(old, new)
            new.flush()
            _copy_attributes(place, status, part, new, keep_times=keep_times)
            os.fsync(new.fileno())
        if keep is not None:
            keep(result)
        with explained(path):
            _check_unchanged(place, status)
            if not _is_at(part, new.fileno()):
                raise FileProblem("another program took away the new file meanwhile; try again")
            if _IS_WINDOWS:
                new.close()
                old.close()
            part.replace(place)
    _sync_folder(place.parent)
    return result


def _check_writable(place: Path) -> None:
    """A file that may not be written to could still be replaced, against its owner's will."""
    status = place.stat()
    if not place.is_file():
        raise FileProblem("it is not a file")
    if not status.st_mode & 0o222 or not os.access(place, os.W_OK):
        raise FileProblem("it is read-only; make it writable first (chmod u+w)")


@contextmanager
def _part(place: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """(path, file) of a new file beside another, which is removed where anything is raised.

    The name follows from that of the other file, so that no two programs write to it at once.
    """
    name = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
    part = place.with_name(f".harmonium-{name}.part")
    with os.fdopen(_create(part), "r+b") as file:
        try:
            yield part, file
        except BaseException:
            if _IS_WINDOWS:
                file.close()
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def _create(part: Path) -> int:
    """The descriptor of a new file, locked; it stays locked however the process ends.

    Whatever has the name already, a link above all, is neither opened nor followed: anybody who may
    write to the folder can foresee the name.
    """
    while True:
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        except FileExistsError:
            raise FileProblem(_what_is_in_the_way(part)) from None
        if _IS_WINDOWS:
            return descriptor
        try_lock(descriptor, wait=True)  # nobody but a sweep can have it, and lets go at once
        if _is_at(part, descriptor):
            return descriptor
        os.close(descriptor)  # swept away before it was locked


def _what_is_in_the_way(part: Path) -> str:
    if part.is_symlink() or (part.exists() and not part.is_file()):
        return f"something else has the new file's name; remove {part.name} beside it"
    return (
        "another program is writing tags to it; try again when it has ended, or, if there is none, "
        f"remove {part.name} beside it"
    )


def _is_at(part: Path, descriptor: int) -> bool:
    """Whether a path still leads to an open file, and not by a link."""
    try:
        return os.path.samestat(part.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove the files that processes that were killed have left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in list(entries):
            if _PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(part: Path) -> None:
    """Remove a file unless the process that writes to it is alive."""
    if _IS_WINDOWS:
        part.unlink()  # refused while another process has it open
        return
    descriptor = os.open(part, os.O_RDWR | os.O_NONBLOCK | _NO_FOLLOW)
    try:
        if try_lock(descriptor) and _is_at(part, descriptor):
            part.unlink()
    finally:
        os.close(descriptor)


def _copy_attributes(
    place: Path, status: os.stat_result, part: Path, new: BinaryIO, *, keep_times: bool
) -> None:
    """Owner first, since changing it may take permissions away."""
    # A descriptor cannot lead elsewhere. macOS has attributes that are set by path only.
    target = new.fileno() if sys.platform == "linux" else part
    if hasattr(os, "chown"):
        for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
            with suppress(OSError):
                os.chown(target, owner, group)
                break
    shutil.copystat(place, target)  # type: ignore[arg-type]  # takes descriptors too
    if not keep_times:
        os.utime(target)  # players look for what has changed by its time


def _check_unchanged(place: Path, before: os.stat_result) -> None:
    now = place.stat()
    told = [(status.st_ino, status.st_size, status.st_mtime_ns) for status in (before, now)]
    if told[0] != told[1]:
        raise FileProblem("another program changed it meanwhile; try again")


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk; some systems have no way to."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
