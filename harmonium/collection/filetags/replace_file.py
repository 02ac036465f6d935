"""Putting a new file in the place of an old one, so that there is always one of the two.

The new file is written beside the old one under a name that tells what it is, brought to the disk,
and renamed over the old one. A process that is killed before that leaves the part it has written,
which the next write in that folder removes: the writer holds a lock on it while it lives.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from harmonium.collection.filetags.file_errors import explained
from harmonium.collection.filetags.formats.base import Damaged

try:
    import fcntl
except ImportError:  # Windows, which does not let others remove a file that is open
    fcntl = None  # type: ignore[assignment]

Result = TypeVar("Result")

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
            _copy_attributes(place, part, status, keep_times=keep_times)
            os.fsync(new.fileno())
        if keep is not None:
            keep(result)
        with explained(path):
            _check_unchanged(place, status)
            if fcntl is None:
                new.close()
                old.close()
            part.replace(place)
    _sync_folder(place.parent)
    return result


def _check_writable(place: Path) -> None:
    """A file that may not be written to could still be replaced, against its owner's will."""
    status = place.stat()
    if not place.is_file():
        raise Damaged("it is not a file")
    if not status.st_mode & 0o222 or not os.access(place, os.W_OK):
        raise Damaged("it is read-only; make it writable first (chmod u+w)")


@contextmanager
def _part(place: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """(path, file) of an empty file beside another, which is removed where anything is raised.

    The name follows from that of the other file, so that no two programs write to it at once.
    """
    name = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
    part = place.with_name(f".harmonium-{name}.part")
    with _locked(part) as file:
        try:
            yield part, file
        except BaseException:
            _remove(part)
            raise


@contextmanager
def _locked(part: Path) -> Iterator[BinaryIO]:
    """The file, empty and locked."""
    while True:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if not _lock(descriptor):
                raise Damaged("another program is writing tags to it; try again when it has ended")
            if not _is_at(part, descriptor):
                continue  # swept away between opening and locking
            file.truncate(0)
            yield file
            return


def _lock(descriptor: int) -> bool:
    """Whether the file is ours now; it is until it is closed, however the process ends."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _is_at(part: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(part.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if _PART.fullmatch(entry.name)]
        for part in left:
            with suppress(OSError):
                descriptor = os.open(part, os.O_RDWR)
                try:
                    if _lock(descriptor):
                        _remove(part)
                finally:
                    os.close(descriptor)


def _remove(part: Path) -> None:
    with suppress(OSError):
        part.unlink(missing_ok=True)


def _copy_attributes(place: Path, part: Path, status: os.stat_result, *, keep_times: bool) -> None:
    """Owner first, since changing it may take permissions away."""
    if hasattr(os, "chown"):
        for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
            with suppress(OSError):
                os.chown(part, owner, group)
                break
    shutil.copystat(place, part)
    if not keep_times:
        os.utime(part)  # players look for what has changed by its time


def _check_unchanged(place: Path, before: os.stat_result) -> None:
    now = place.stat()
    told = [(status.st_ino, status.st_size, status.st_mtime_ns) for status in (before, now)]
    if told[0] != told[1]:
        raise Damaged("another program changed it meanwhile; try again")


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk; some systems have no way to."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
