"""Replacing a music file safely, and the difference that restores the old one.

The new file is written next to the old one under a name that says what it is, flushed to disk, and
renamed over the old one: one of the two always exists. A process that is killed before that leaves
a partial file, which the next write in that folder removes: a living writer holds a lock on its
file.

Changing a tag leaves nearly all of a file as it is, but moves it, and some formats then renumber
everything after it (Ogg's pages, MP4's chunk offsets). Comparing the bytes of both files handles
all of these alike, without knowing any format.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import numpy as np

from harmonium.files import open_file, try_lock
from harmonium.library.filetags.binary import (
    FileProblem,
    PathLike,
    as_file_tag_error,
    copy,
    explained,
    read_at,
    size_of,
)

Result = TypeVar("Result")

_IS_WINDOWS = os.name == "nt"  # where nobody can remove an open file
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_OF_CONTENT = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
_PART = re.compile(r"\.harmonium-[0-9a-f]{16}\.part")
_CHUNK = 500  # files whose access is checked at a time
_SLOW = 0.1  # seconds for these after which several threads check the others
_THREADS = 16
WAIT_SECONDS = 30.0  # how long to wait for another process that writes to the same file


def content_digest(file: BinaryIO | FileIO) -> str:
    """The SHA-256 digest of an open file's content, in hexadecimal digits."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def replace_file(
    path: PathLike,
    produce: Callable[[BinaryIO, BinaryIO, str], Result | None],
    *,
    keep: Callable[[Result], object] | None = None,
    swept: set[Path] | None = None,
) -> Result | None:
    """Let ``produce(old file, empty file, digest of the old)`` write a new file in its place.

    Permissions, owner, group and extended attributes are kept, as far as the system lets us. A
    symbolic link stays a link: its target is replaced. ``keep`` gets what ``produce`` returned when
    all is ready, just before the new file replaces the old one. If ``produce`` returns None, or
    either raises, the old file stays and nothing is left behind. A FileTagError says why it cannot
    be done. What killed processes have left in the folder is removed first, unless the folder is
    among those ``swept`` before, to which it is added.
    """
    place = Path(os.path.realpath(path))
    with ExitStack() as stack:
        with explained(path):
            FileAccess().check_replaceable(place)
            known = set() if swept is None else swept
            part, new = stack.enter_context(_part(place, known))  # now nobody else replaces it
            old = stack.enter_context(open_file(place))
            status = os.fstat(old.fileno())
            before = content_digest(old)
            result = produce(old, new, before)
            if result is None:
                _discard(part, new)
                return None
            new.flush()
            _copy_attributes(place, status, part, new)
            os.fsync(new.fileno())
        if keep is not None:
            keep(result)
        with explained(path):
            now = place.stat()
            same = all(getattr(now, name) == getattr(status, name) for name in _OF_CONTENT)
            if not same or content_digest(old.raw) != before:  # type: ignore[attr-defined]
                raise FileProblem("another program changed it during the write; try again")
            if not _is_at(part, new.fileno()):
                raise FileProblem("another program removed the new file; try again")
            if _IS_WINDOWS:
                new.close()
                old.close()
            part.replace(place)
    with suppress(OSError), _descriptor(place.parent, os.O_RDONLY) as folder:
        os.fsync(folder)  # flushes the new name to disk; some systems cannot
    return result


class FileAccess:
    """Whether files may be read and replaced, by what the system says; folders are asked once."""

    def __init__(self) -> None:
        self._folders: dict[str, bool] = {}  # folder → whether new files can be made in it

    def check_readable(self, path: PathLike) -> None:
        """Raise an OSError if a file is missing or cannot be read."""
        os.stat(path)  # noqa: PTH116
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))

    def check_replaceable(self, path: PathLike) -> None:
        """Raise a FileProblem if a file or its folder is read-only, an OSError if it is missing."""
        place = os.fspath(path)
        status = os.lstat(place)
        if stat.S_ISLNK(status.st_mode):
            place = os.path.realpath(path)
            status = os.stat(place)  # noqa: PTH116
        # A read-only file could be replaced, but against its owner's will.
        if not status.st_mode & 0o222 or not os.access(place, os.W_OK):
            raise FileProblem("it is read-only; make it writable first (chmod u+w)")
        folder = os.path.dirname(place) or os.curdir  # noqa: PTH120
        if folder not in self._folders:
            self._folders[folder] = os.access(folder, os.W_OK)
        if not self._folders[folder]:
            raise FileProblem("its folder is read-only; make that writable first")


def problems_of(paths: Sequence[str], check: Callable[[str], None]) -> dict[str, str]:
    """Path → what is wrong with the file, for those that a check of `FileAccess` refuses."""

    def look(some: Sequence[str]) -> dict[str, str]:
        problems = {}
        for path in some:
            try:
                check(path)
            except (FileProblem, OSError) as error:
                problems[path] = str(as_file_tag_error(path, error))
        return problems

    start = time.monotonic()
    problems = look(paths[:_CHUNK])
    if time.monotonic() - start < _SLOW:
        return problems | look(paths[_CHUNK:])
    # A network drive takes a millisecond for each file, but can answer many questions at once.
    chunks = [paths[first : first + _CHUNK] for first in range(_CHUNK, len(paths), _CHUNK)]
    with ThreadPoolExecutor(_THREADS) as pool:
        for its_problems in pool.map(look, chunks):
            problems |= its_problems
    return problems


@contextmanager
def _descriptor(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _part(place: Path, swept: set[Path]) -> Iterator[tuple[Path, BinaryIO]]:
    """(path, file) of a new file next to another; removed unless it has replaced the other."""
    # Its name follows from the other file's, so that no two programs write to it at once.
    name = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
    part = place.with_name(f".harmonium-{name}.part")
    if part.parent not in swept:
        _sweep(part.parent)
        swept.add(part.parent)
    file = os.fdopen(_create(part), "r+b")
    try:
        yield part, file
    except BaseException:
        _discard(part, file)
        raise
    finally:
        # Closing writes what is still buffered. What had to be on the disk is there already, and
        # the error of a full disk must not take the place of another one.
        with suppress(OSError):
            file.close()


def _discard(part: Path, file: BinaryIO) -> None:
    if _IS_WINDOWS:
        with suppress(OSError):
            file.close()
    with suppress(OSError):
        part.unlink(missing_ok=True)


def _create(part: Path) -> int:
    """The descriptor of a new file, locked until it is closed or the process ends.

    Whatever has the name already, a link above all, is neither opened nor followed: anybody who may
    write to the folder can predict the name. If another process is writing to it, we wait.
    """
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        except FileExistsError:
            _wait_for(part, end)
            continue
        if _IS_WINDOWS:
            return descriptor
        try_lock(descriptor, wait=True)  # only a sweep can hold it, and lets go at once
        if _is_at(part, descriptor):
            return descriptor
        os.close(descriptor)  # swept away before it was locked


def _wait_for(part: Path, end: float) -> None:
    """Wait a moment for whoever has the name of a new file; a FileProblem if that is in vain."""
    try:
        status = part.lstat()
    except FileNotFoundError:
        return  # the other process has just finished
    if not stat.S_ISREG(status.st_mode):
        raise FileProblem(f"the new file's name is taken; remove {part.name} from its folder")
    _remove_abandoned(part)
    if not os.path.lexists(part):
        return
    if time.monotonic() >= end:
        raise FileProblem(
            "another program is writing tags to it; try again when it is done, or, if no program "
            f"is, remove {part.name} from its folder"
        )
    time.sleep(0.02)


def _is_at(part: Path, descriptor: int) -> bool:
    """Whether a path still leads to an open file, and not by a link."""
    try:
        return os.path.samestat(part.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove the files that killed processes have left in a folder."""
    parts: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        parts = [Path(entry.path) for entry in entries if _PART.fullmatch(entry.name)]
    for part in parts:
        _remove_abandoned(part)


def _remove_abandoned(part: Path) -> None:
    """Remove a new file that no living process is writing."""
    if part.is_symlink() or not part.is_file():
        return
    with suppress(OSError):
        if _IS_WINDOWS:
            part.unlink()  # fails while another process has it open
            return
        # A living writer holds a lock on its file.
        with _descriptor(part, os.O_RDWR | os.O_NONBLOCK | _NO_FOLLOW) as descriptor:
            if try_lock(descriptor) and _is_at(part, descriptor):
                part.unlink()


def _copy_attributes(place: Path, status: os.stat_result, part: Path, new: BinaryIO) -> None:
    """Copy the attributes; the owner first, since changing it may drop permissions."""
    # A descriptor cannot lead elsewhere. On macOS, some attributes can only be set by path.
    target = new.fileno() if sys.platform == "linux" else part
    if hasattr(os, "chown"):
        for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
            with suppress(OSError):
                os.chown(target, owner, group)
                break
    shutil.copystat(place, target)  # type: ignore[arg-type]  # takes descriptors too
    os.utime(target)  # players notice changed files by their time


WORD = 32  # bytes in a row that must agree for two places to count as the same
WINDOW = 1 << 18  # bytes before and after this place in which a moved part is looked for
NEAR = 64  # bytes within which two files that differ are first expected to agree again
STRIDE = 1 << 16  # bytes that are compared at a time
LITERAL = -1

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""(start, length): bytes of the new file; (LITERAL, length): the next bytes that it lacks."""


def difference(old: BinaryIO, new: BinaryIO) -> tuple[Steps, bytes]:
    """(steps, the bytes that ``new`` lacks) with which `patch` writes ``old``, given ``new``."""
    n_old = size_of(old)
    n_new = size_of(new)
    tail = _agreeing(old, n_old, new, n_new, min(n_old, n_new), back=True)
    n_old = n_old - tail
    n_new = n_new - tail
    steps: list[tuple[int, int]] = []
    literal = bytearray()

    @lru_cache(maxsize=1)
    def words(part: int) -> dict[bytes, int]:
        """Where each word around a part of the new file is; a part is half a window."""
        first = max(0, part * WINDOW // 2 - WINDOW)
        data = read_at(new, first, min(first + 5 * WINDOW // 2, n_new) - first)
        places: dict[bytes, int] = {}
        for start in range(0, len(data) - WORD + 1, WORD):
            word = data[start : start + WORD]
            # Padding is everywhere and marks no place; it costs nothing once compressed.
            if word.count(word[0]) < WORD:
                places.setdefault(word, first + start)
        return places

    def meet_again(here: int, there: int) -> tuple[int, int]:
        """(bytes of the old file that the new one lacks, the place in the new one after them)"""
        ahead = read_at(old, here, min(NEAR + WORD, n_old - here))
        beside = read_at(new, there, min(NEAR + WORD, n_new - there))
        for k in range(1, min(len(ahead), len(beside)) - WORD + 1):
            if ahead[k : k + WORD] == beside[k : k + WORD]:
                return k, there + k
        ahead = read_at(old, here, min(WINDOW, n_old - here))
        around = words(2 * there // WINDOW)
        for k in range(len(ahead) - WORD + 1):
            place = around.get(ahead[k : k + WORD])
            if place is not None:
                return k, place
        return len(ahead), there

    here = there = 0
    while here < n_old:
        same = _agreeing(old, here, new, there, min(n_old - here, n_new - there))
        steps += [(there, same)] if same else []
        here = here + same
        there = there + same
        if here < n_old:
            skipped, there = meet_again(here, there)
            literal += read_at(old, here, skipped)
            here += skipped
            if steps and steps[-1][0] == LITERAL:
                skipped += steps.pop()[1]
            steps.append((LITERAL, skipped))
    steps += [(n_new, tail)] if tail else []
    return tuple(steps), bytes(literal)


def patch(steps: Steps, literal: bytes, new: BinaryIO, old: BinaryIO) -> None:
    """Write the old file; ``new`` must be what the `difference` was made with."""
    used = 0
    for start, length in steps:
        if start == LITERAL:
            old.write(literal[used : used + length])
            used += length
        else:
            copy(new, old, start, start + length)


def _agreeing(
    old: BinaryIO, here: int, new: BinaryIO, there: int, most: int, *, back: bool = False
) -> int:
    """How many bytes agree from two places on, or back from them."""
    for start in range(0, most, STRIDE):
        count = min(STRIDE, most - start)
        offset = -start - count if back else start
        a, b = (
            np.frombuffer(read_at(file, at + offset, count), np.uint8)
            for file, at in ((old, here), (new, there))
        )
        if len(different := np.flatnonzero((a != b)[:: -1 if back else 1])):
            return start + int(different[0])
    return most
