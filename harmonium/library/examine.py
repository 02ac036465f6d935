"""Reading music files: the digest of the sound, the tags, and why a file cannot be read."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from harmonium.audio.cache import SETTLED_NS, file_digest
from harmonium.audio.extraction import STOPPED, reason_of
from harmonium.engine import Runner
from harmonium.errors import FileTagError, readable
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store.database import batches
from harmonium.library.store.tracks import Track

Reader = Runner[str, Track]
READ_TOGETHER = 64  # files that are read at once, and whose tracks are stored in one transaction
UNREAD = "unread:"  # prefix of the sound digest of a file that cannot be opened
UNSETTLED = -1  # the time of a file that has just changed: another change might not show


def examine(path: str) -> Track:
    """Read a file: the digest of its sound, its tags, size and time; or why it cannot be read."""
    try:
        size, modified = _size_and_settled_time(path)
        try:
            tags = read_tags(path)
            sound = audio_digest(path)
        except FileTagError as error:  # a format whose tags are not supported
            return Track(
                path=path,
                sound=file_digest(path).hex(),
                size=size,
                modified=modified,
                obstacle=str(error).removeprefix(readable(path)).strip(" :."),
            )
        return Track(path=path, sound=sound, size=size, modified=modified, **tags.of_track)
    except OSError as error:
        return unread(path, f"cannot be read: {error.strerror or error}.")


def examine_all(paths: Iterable[str], reader: Reader) -> Iterator[Track]:
    """Read files in this order, several at once, in the reader's processes."""
    for batch in batches(paths, READ_TOGETHER):
        for path in batch:
            reader.submit(path)
        tracks: dict[str, Track] = {}
        for _ in batch:
            outcome = reader.next()
            path = outcome.task
            reason = reason_of(outcome)
            if outcome.result is not None:
                tracks[path] = outcome.result
            elif reason.startswith(STOPPED):
                tracks[path] = unread(path, reason)
            else:
                tracks[path] = unread(path, reason, *_size_and_settled_time(path))
        for path in batch:
            yield tracks[path]


def unread(path: str, reason: str, size: int = 0, modified: int = UNSETTLED) -> Track:
    """The track of a file that cannot be read."""
    # Each gets its own sound digest, so that no two of them count as copies.
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()
    return Track(
        path=path,
        sound=UNREAD + digest,
        size=size,
        modified=modified,
        state="unreadable",
        reason=reason,
    )


def size_and_time(path: str) -> tuple[int, int]:
    """A file's size and time of modification in nanoseconds, which show whether it has changed."""
    status = os.stat(path)  # noqa: PTH116
    return status.st_size, status.st_mtime_ns


def _size_and_settled_time(path: str) -> tuple[int, int]:
    """A file's size and time; `UNSETTLED` if it may still be changing."""
    with suppress(OSError):
        size, modified = size_and_time(path)
        settled = time.time_ns() - modified > SETTLED_NS
        return size, modified if settled else UNSETTLED
    return 0, UNSETTLED
