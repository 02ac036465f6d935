"""Which track a file belongs to: the files that are there, compared with what a library knows."""

import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import sqlalchemy as sa

from harmonium.audio.cache import SETTLED_NS, file_digest
from harmonium.errors import FileTagError
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store.schema import loaded_path, track, track_copy
from harmonium.library.store.tracks import FORGOTTEN, Track

UNREAD = "unread:"
"""Prefix of the sound of a file that could not be opened, so that its sound is unknown."""
UNSETTLED = -1
"""The time of a file that was changed just now: a further change might not show in it."""


def examine(path: str) -> Track:
    """Read a file: the digest of its sound, its tags, size and time; or why it cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            return _unread(path, "is not a file.")
        settled = time.time_ns() - status.st_mtime_ns > SETTLED_NS
        seen = (status.st_size, status.st_mtime_ns if settled else UNSETTLED)
        try:
            tags, sound = read_tags(path), audio_digest(path)
        except FileTagError:  # a format whose tags are not known
            return Track(path, file_digest(path).hex(), *seen)
        return Track(path, sound, *seen, **tags.of_track)
    except OSError as error:
        return _unread(path, f"cannot be read: {error.strerror or error}.")


def examine_all(paths: Iterable[str], *, threads: int) -> Iterator[Track]:
    """Read files in this order, several at once: most of the work is outside Python's lock."""
    if threads <= 1:
        yield from map(examine, paths)
        return
    pool = ThreadPoolExecutor(threads)
    under_way: deque[Future[Track]] = deque()
    try:
        for path in paths:
            under_way.append(pool.submit(examine, path))
            if len(under_way) == 2 * threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _unread(path: str, reason: str) -> Track:
    # Each has a sound of its own, so that no two of them are taken for copies.
    sound = UNREAD + hashlib.sha256(os.fsencode(path)).hexdigest()
    return Track(path, sound, modified=UNSETTLED, state="unreadable", reason=reason)


def is_below(path: str, folders: Collection[str]) -> bool:
    """Whether a path is inside one of these folders."""
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def same_file(one: Track, other: Track) -> bool:
    """Whether size and time are the same, so that the file counts as unchanged."""
    return (one.size, one.modified) == (other.size, other.modified)


class KnownFiles:
    """The tracks of a library, by path, sound and number; and the copies of their files.

    The tracks here lack what the files say, which takes long to read for a whole library.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.by_path: dict[str, Track] = {}
        self.by_sound: dict[str, Track] = {}
        self.by_id: dict[int, Track] = {}
        self.copies: dict[str, Track] = {}
        """Path → another file with the sound of the track whose number it has."""
        self.displaced: set[int] = set()
        """Tracks at whose path there is another sound now."""
        columns = ("id", "path", "path_bytes", "sound", "size", "modified", "state")
        for row in connection.execute(sa.select(*(track.c[name] for name in columns))):
            about = {name: getattr(row, name) for name in ("id", "sound", "size", "modified")}
            self.put(Track(loaded_path(row), state=row.state, **about))
        for row in connection.execute(sa.select(track_copy)):
            path, sound = loaded_path(row), self.by_id[row.track_id].sound
            self.copies[path] = Track(path, sound, row.size, row.modified, id=row.track_id)

    def put(self, one: Track) -> None:
        """Add a track, or note what one has become."""
        former, there = self.by_id.get(one.id), self.by_path.get(one.path)
        if former is None:
            # Two tracks can have had one path, one after the other; the file is the present one's.
            takes_path = there is None or there.state != "present"
        else:
            had_path = self.by_path.get(former.path) is former
            takes_path = had_path or former.path != one.path
            if had_path:
                del self.by_path[former.path]
            if former.sound != one.sound:
                del self.by_sound[former.sound]
        if takes_path:
            self.by_path[one.path] = one
        self.by_sound[one.sound] = self.by_id[one.id] = one

    def has_its_file(self, one: Track) -> bool:
        """Whether the file of a track is where it was and has its sound, as far as one can tell."""
        if one.id in self.displaced or one.state == "missing" or one.sound.startswith(UNREAD):
            return False
        return os.path.exists(one.path)  # noqa: PTH110

    def sort(self, paths: Iterable[str], *, retry: bool = False) -> dict[str, list[str]]:
        """The files by what is to be done for them.

        "unchanged", "unreadable" (as before), "forgotten" and "copies" need not be read; "changed"
        are at known paths and are not what they were; all others are "new".
        """
        kinds = ("unchanged", "unreadable", "forgotten", "copies", "changed", "new")
        result: dict[str, list[str]] = {kind: [] for kind in kinds}
        for path in paths:
            result[self._kind(path, retry)].append(path)
        return result

    def _kind(self, path: str, retry: bool) -> str:
        known = self.by_path.get(path)
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:  # reading it finds the words for what is wrong
            return "new" if known is None else "changed"
        now = Track(path, "", status.st_size, status.st_mtime_ns)
        if known is not None and known.state == FORGOTTEN and same_file(known, now):
            return "forgotten"
        if known is None or (known.state == "missing" and not same_file(known, now)):
            return self._kind_of_unknown(now, known)
        if not same_file(known, now) or known.sound.startswith(UNREAD):
            return "changed"
        return "unreadable" if known.state == "unreadable" and not retry else "unchanged"

    def _kind_of_unknown(self, now: Track, known: Track | None) -> str:
        copy = self.copies.get(now.path)
        if copy is not None and same_file(copy, now):
            owner = self.by_id[copy.id]
            if owner.state == FORGOTTEN:
                return "forgotten"
            if self.has_its_file(owner):
                return "copies"
        return "new" if known is None else "changed"

    def vanished(self, searched: Collection[str], unlisted: Collection[str]) -> Iterator[Track]:
        """Tracks that were at these places and are not there any more.

        searched : folders, to the bottom, and files; unlisted : folders that could not be searched
        """
        for one in self.by_id.values():
            expected = is_below(one.path, searched) or one.path in searched
            if one.state in ("missing", FORGOTTEN) or not expected or is_below(one.path, unlisted):
                continue
            if one.id in self.displaced or not os.path.lexists(one.path):
                yield one
