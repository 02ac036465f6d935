"""What a library knows of files, compared with the files that are there."""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa

from harmonium.library.indexing.examine import UNREAD, SizeAndTime
from harmonium.library.store.schema import loaded_path, track, track_copy
from harmonium.library.store.tracks import FORGOTTEN


@dataclass
class KnownTrack:
    """A track as the library has it."""

    id: int
    path: str
    sound: str
    seen: SizeAndTime
    """What the file was when it was last read."""
    state: str


@dataclass
class KnownFiles:
    """The tracks of a library, by path and by sound; and the copies of their files."""

    by_path: dict[str, KnownTrack] = field(default_factory=dict)
    by_sound: dict[str, KnownTrack] = field(default_factory=dict)
    by_id: dict[int, KnownTrack] = field(default_factory=dict)
    copies: dict[str, tuple[int, SizeAndTime]] = field(default_factory=dict)
    """Path → the track whose sound is there too, and what the file was."""
    displaced: set[int] = field(default_factory=set)
    """Tracks at whose path there is another sound now."""

    @classmethod
    def load(cls, connection: sa.Connection) -> "KnownFiles":
        """From the tables."""
        known = cls()
        columns = ("id", "path", "path_bytes", "sound", "size", "modified", "state")
        for row in connection.execute(sa.select(*(track.c[name] for name in columns))):
            seen = SizeAndTime(row.size, row.modified)
            known.add(KnownTrack(row.id, loaded_path(row), row.sound, seen, row.state))
        for row in connection.execute(sa.select(track_copy)):
            known.copies[loaded_path(row)] = (row.track_id, SizeAndTime(row.size, row.modified))
        return known

    def add(self, one: KnownTrack) -> None:
        """A track that is there from now on, or has become another."""
        former = self.by_path.get(one.path)
        # Two tracks can have had one path, one after the other; the file is the present one's.
        if former is None or former.id == one.id or former.state != "present":
            self.by_path[one.path] = one
        self.by_sound[one.sound] = one
        self.by_id[one.id] = one

    def move(self, one: KnownTrack, path: str) -> None:
        """The file of a track is elsewhere now."""
        if self.by_path.get(one.path) is one:
            del self.by_path[one.path]
        one.path, one.state = path, "present"
        self.by_path[path] = one
        self.displaced.discard(one.id)

    def has_its_file(self, one: KnownTrack) -> bool:
        """Whether the file of a track is where it was and has its sound, as far as one can tell."""
        if one.id in self.displaced or one.state == "missing" or one.sound.startswith(UNREAD):
            return False
        return os.path.exists(one.path)  # noqa: PTH110

    def sort(self, paths: Iterable[str], *, retry: bool = False) -> "SortedFiles":
        """What is to be done for each of the files."""
        result = SortedFiles()
        for path in paths:
            self._sort(path, result, retry)
        return result

    def _sort(self, path: str, result: "SortedFiles", retry: bool) -> None:
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:
            # Reading it finds the words for what is wrong.
            (result.changed if path in self.by_path else result.new).append(path)
            return
        now = SizeAndTime(status.st_size, status.st_mtime_ns)
        known = self.by_path.get(path)
        if known is not None and known.state == FORGOTTEN and known.seen == now:
            result.forgotten.append(path)
        elif known is None or (known.state == "missing" and known.seen != now):
            self._sort_unknown(path, now, result)
        elif known.seen != now or known.sound.startswith(UNREAD):
            result.changed.append(path)
        elif known.state == "unreadable" and not retry:
            result.unreadable.append(known)
        else:
            result.unchanged.append(known)

    def _sort_unknown(self, path: str, now: SizeAndTime, result: "SortedFiles") -> None:
        track_id, before = self.copies.get(path, (None, None))
        if track_id is not None and before == now and self.by_id[track_id].state == FORGOTTEN:
            result.forgotten.append(path)
        elif track_id is not None and before == now and self.has_its_file(self.by_id[track_id]):
            result.copies.append((path, self.by_id[track_id]))
        elif path in self.by_path:
            result.changed.append(path)
        else:
            result.new.append(path)

    def vanished(
        self, searched: Collection[str], unlisted: Collection[str]
    ) -> Iterator[KnownTrack]:
        """Tracks that were at these places and are not there any more.

        searched : folders, to the bottom, and files; unlisted : folders that could not be searched
        """
        for one in self.by_id.values():
            expected = is_below(one.path, searched) or one.path in searched
            if one.state in ("missing", FORGOTTEN) or not expected or is_below(one.path, unlisted):
                continue
            if one.id in self.displaced or not os.path.lexists(one.path):
                yield one


@dataclass
class SortedFiles:
    """Files by what is to be done for them."""

    unchanged: list[KnownTrack] = field(default_factory=list)
    unreadable: list[KnownTrack] = field(default_factory=list)
    """Could not be used before, and are what they were."""
    changed: list[str] = field(default_factory=list)
    """KnownTrack paths whose files are not what they were."""
    copies: list[tuple[str, KnownTrack]] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    """With the sound of a track that was taken out of the library."""


def is_below(path: str, folders: Collection[str]) -> bool:
    """Whether a path is inside one of these folders."""
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
