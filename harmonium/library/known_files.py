"""What a library knows of its files, to compare them with what is on the disk."""

import os
from contextlib import suppress
from dataclasses import replace
from enum import Enum

import sqlalchemy as sa

from harmonium.library.examine import UNREAD, size_and_time
from harmonium.library.store.schema import track, track_copy
from harmonium.library.store.tracks import FORGOTTEN, Track
from harmonium.library.store.values import loaded_path


class FileKind(Enum):
    """What to do with a file that was found."""

    UNCHANGED = "a track's file as it was last read"
    UNREADABLE = "unreadable, and has not changed since"
    FORGOTTEN = "of a track that a person took out of the library"
    COPY = "a known copy of a track's file"
    CHANGED = "at a known path, but changed: to be read"
    NEW = "at an unknown path: to be read"


def same_file(track: Track, other: Track) -> bool:
    """Whether size and time are the same: the file counts as unchanged."""
    return (track.size, track.modified) == (other.size, other.modified)


class KnownFiles:
    """A library's tracks by path, sound and number, and the copies of their files.

    These tracks lack the files' tags, which take long to read for a whole library.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.by_path: dict[str, Track] = {}
        self.by_sound: dict[str, Track] = {}
        self.by_id: dict[int, Track] = {}
        self.copies: dict[str, Track] = {}
        """Path → another file with a track's sound; it has the track's number."""
        self.displaced: set[int] = set()  # tracks whose path has another sound now
        names = ("id", "path", "path_bytes", "sound", "size", "modified", "state")
        for row in connection.execute(sa.select(*(track.c[name] for name in names))):
            self.put(
                Track(
                    path=loaded_path(row),
                    sound=row.sound,
                    size=row.size,
                    modified=row.modified,
                    id=row.id,
                    state=row.state,
                )
            )
        for row in connection.execute(sa.select(track_copy)):
            path = loaded_path(row)
            self.copies[path] = Track(
                path=path,
                sound=self.by_id[row.track_id].sound,
                size=row.size,
                modified=row.modified,
                id=row.track_id,
            )

    def put(self, new: Track) -> None:
        """Add or update a track."""
        former = self.by_id.get(new.id)
        if former is None:
            at_path = self.by_path.get(new.path)
            # Two tracks can have had one path in turn; the file belongs to the present one.
            takes_path = at_path is None or at_path.state != "present"
        else:
            had_path = self.by_path.get(former.path) is former
            takes_path = had_path or former.path != new.path
            if had_path:
                del self.by_path[former.path]
            if former.sound != new.sound:
                del self.by_sound[former.sound]
        if takes_path:
            self.by_path[new.path] = new
        self.by_sound[new.sound] = new
        self.by_id[new.id] = new

    def has_its_file(self, owner: Track) -> bool:
        """Whether a track's file seems to be in place, with the same sound."""
        if owner.id in self.displaced or owner.state == "missing":
            return False
        return not owner.sound.startswith(UNREAD) and os.path.exists(owner.path)  # noqa: PTH110

    def kind(self, path: str, *, retry: bool) -> FileKind:
        """What to do with a file; ``retry`` reads unreadable ones again."""
        known = self.by_path.get(path)
        with suppress(OSError):  # if it cannot be opened, reading it will say why
            now = _now(path)
            if known is not None and same_file(known, now):
                return _kind_of_unchanged(known, retry=retry)
            if known is None or known.state == "missing":
                of_copy = self._kind_of_copy(path, now)
                if of_copy is not None:
                    return of_copy
        return FileKind.NEW if known is None else FileKind.CHANGED

    def _kind_of_copy(self, path: str, now: Track) -> FileKind | None:
        """The kind of a known copy that has not changed; None of any other file."""
        copy = self.copies.get(path)
        if copy is None or not same_file(copy, now):
            return None
        owner = self.by_id[copy.id]
        if owner.state == FORGOTTEN:
            return FileKind.FORGOTTEN
        if self.has_its_file(owner) and same_file(owner, _now(owner.path)):
            return FileKind.COPY
        return None

    def set_present(self, returned: Track) -> None:
        """Note that a track's file is back."""
        self.put(replace(returned, state="present"))


def _kind_of_unchanged(known: Track, *, retry: bool) -> FileKind:
    if known.state == FORGOTTEN:
        return FileKind.FORGOTTEN
    if known.state == "unreadable":
        return FileKind.CHANGED if retry else FileKind.UNREADABLE
    if known.sound.startswith(UNREAD):
        return FileKind.CHANGED
    return FileKind.UNCHANGED


def _now(path: str) -> Track:
    """A file as it is on the disk; OSError if its size and time cannot be read."""
    size, modified = size_and_time(path)
    return Track(path=path, sound="", size=size, modified=modified)
