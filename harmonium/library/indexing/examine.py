"""What a file is: its sound, its tags, its size and its time."""

import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from harmonium.audio.cache import SETTLED_NS, file_digest
from harmonium.errors import FileTagError
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store.tracks import TrackFile

UNREAD = "unread:"
"""How the sound of a file begins that could not be opened: it is not known."""
UNSETTLED = -1
"""The time of a file that was changed just now: a further change might not show in it."""


@dataclass(frozen=True)
class SizeAndTime:
    """A file's size and when it was changed; while both stay the same, it counts as unchanged."""

    size: int
    modified: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True)
class ExaminedFile:
    """A file that was read."""

    file: TrackFile
    reason: str | None = None
    """Why it could not be read, if so; the sound is then none."""


def examine(path: str) -> ExaminedFile:
    """Read a file: the digest of its sound, its tags, size and time."""
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            return _unread(path, "is not a file.")
        return ExaminedFile(_read(path, status))
    except OSError as error:
        return _unread(path, f"cannot be read: {error.strerror or error}.")


def examine_all(paths: Iterable[str], *, threads: int) -> Iterator[ExaminedFile]:
    """Read files in this order, several at once: most of the work is outside Python's lock."""
    if threads <= 1:
        yield from map(examine, paths)
        return
    pool = ThreadPoolExecutor(threads)
    under_way: deque[Future[ExaminedFile]] = deque()
    try:
        for path in paths:
            under_way.append(pool.submit(examine, path))
            if len(under_way) == 2 * threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _read(path: str, status: os.stat_result) -> TrackFile:
    settled = time.time_ns() - status.st_mtime_ns > SETTLED_NS
    seen = (status.st_size, status.st_mtime_ns if settled else UNSETTLED)
    try:
        tags, sound = read_tags(path), audio_digest(path)
    except FileTagError:  # a format whose tags are not known
        return TrackFile(path, file_digest(path).hex(), *seen)
    return TrackFile(path, sound, *seen, **tags.of_track)


def _unread(path: str, reason: str) -> ExaminedFile:
    # Each has a sound of its own, so that no two of them are taken for copies.
    sound = UNREAD + hashlib.sha256(os.fsencode(path)).hexdigest()
    return ExaminedFile(TrackFile(path, sound, modified=UNSETTLED), reason)
