"""Finding which track a file belongs to, and storing that."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from harmonium.library.indexing.examine import UNREAD, ExaminedFile, SizeAndTime
from harmonium.library.indexing.known_files import KnownFiles, KnownTrack
from harmonium.library.indexing.report import IndexReport
from harmonium.library.library import Library
from harmonium.library.store import features
from harmonium.library.store.schema import stored_path, track_copy
from harmonium.library.store.tracks import FORGOTTEN, TrackFile


@dataclass
class TrackUpdater:
    """Files as they are read, brought into the library.

    Each method takes a file and gives its track, or None where it is not one of its own.
    """

    library: Library
    extractor: str
    """The key of the extractor whose features are wanted."""
    report: IndexReport
    known: KnownFiles
    lacking: set[int]
    """Present tracks without features."""
    altered: list[ExaminedFile] = field(default_factory=list)
    """Files at known paths with another sound, to be decided when all others are."""

    def same_path(self, one: ExaminedFile) -> KnownTrack | None:
        """A file at a known path that is not what it was."""
        known = self.known.by_path[one.file.path]
        if one.reason is not None:
            now = SizeAndTime(one.file.size, one.file.modified)
            if known.state == "unreadable" and known.seen == now:  # which was tried once more
                self.report.still_unreadable[known.path] = one.reason
            else:
                self.unreadable(known, one.reason)
            return None
        if known.sound != one.file.sound:
            self.known.displaced.add(known.id)
            self.altered.append(one)
            return None
        if known.state == FORGOTTEN:
            self.report.forgotten.append(known.path)
            return None
        if known.state == "missing":
            self.report.back.append(known.path)
        elif self._says_otherwise(known, one.file):
            self.report.retagged.append(known.path)
        else:
            self.report.unchanged += 1
        self._replace(known, one.file)
        return known

    def new_path(self, one: ExaminedFile) -> KnownTrack | None:
        """A file at a path that is not known, or no longer anybody's."""
        owner = self.known.by_sound.get(one.file.sound)
        if owner is None:
            return self._add(one)
        if owner.state == FORGOTTEN:
            self._note_copy_of_forgotten(one.file, owner)
            return None
        if owner.path == one.file.path:  # found twice, by different ways to it
            self.report.unchanged += 1
            return owner
        if self.known.has_its_file(owner):
            self._note_copy(one.file, owner)
            return None
        self.report.moved.append((owner.path, one.file.path))
        self.known.move(owner, one.file.path)
        self._replace(owner, one.file)
        return owner

    def altered_path(self, one: ExaminedFile) -> KnownTrack | None:
        """A known path with another sound, when all files but these are decided."""
        former = self.known.by_path.get(one.file.path)
        if former is None or former.state == FORGOTTEN or one.file.sound in self.known.by_sound:
            return self.new_path(one)
        found = self.report.new if former.sound.startswith(UNREAD) else self.report.changed
        found.append(one.file.path)
        self._change_sound(former, one.file)
        return former

    def unreadable(self, known: KnownTrack, reason: str) -> None:
        """A track whose file cannot be read."""
        self.library.tracks.set_state([known.id], "unreadable", reason=reason)
        known.state = "unreadable"
        self.report.unreadable[known.path] = reason

    def bring_back(self, tracks: Iterable[KnownTrack]) -> None:
        """Tracks whose files are what they were: if they were missing, or are to be tried again."""
        back = [one for one in tracks if one.state != "present"]
        self.report.back += [one.path for one in back if one.state == "missing"]
        ids = [one.id for one in back]
        self.library.tracks.set_state(ids, "present")
        self.lacking |= self._without_features(ids)
        for one in back:
            one.state = "present"

    def drop_copies(self, paths: Iterable[str]) -> None:
        """Forget copies that are gone."""
        with self.library.begin() as connection:
            for path in paths:
                same = track_copy.c.path == stored_path(path)["path"]
                connection.execute(sa.delete(track_copy).where(same))

    def _add(self, one: ExaminedFile) -> KnownTrack:
        state = "present" if one.reason is None else "unreadable"
        (number,) = self.library.tracks.put([one.file], state=state, reason=one.reason)
        seen = SizeAndTime(one.file.size, one.file.modified)
        added = KnownTrack(number, one.file.path, one.file.sound, seen, state)
        self.known.add(added)
        if one.reason is None:
            self.report.new.append(one.file.path)
            self.lacking.add(number)
        else:
            self.report.unreadable[one.file.path] = one.reason
        return added

    def _replace(self, known: KnownTrack, file: TrackFile) -> None:
        """Store what a track's file is now."""
        self.library.tracks.replace(known.id, file)
        if file.path in self.known.copies:
            self.drop_copies([file.path])
        known.seen = SizeAndTime(file.size, file.modified)
        if known.state != "present":
            known.state = "present"
            self.lacking |= self._without_features([known.id])

    def _change_sound(self, known: KnownTrack, file: TrackFile) -> None:
        """Another sound in place of a track's: its features and predictions are void."""
        with self.library.begin() as connection:
            features.forget(connection, known.id)
            self.library.predictions.forget_tracks([known.id])
        del self.known.by_sound[known.sound]
        self.known.displaced.discard(known.id)
        known.sound = file.sound
        self.known.by_sound[file.sound] = known
        self._replace(known, file)
        self.lacking.add(known.id)

    def _note_copy(self, file: TrackFile, of: KnownTrack) -> None:
        self._keep_copy(file, of)
        self.report.copies.append((file.path, of.path))

    def _note_copy_of_forgotten(self, file: TrackFile, of: KnownTrack) -> None:
        if file.path != of.path:
            self._keep_copy(file, of)
        self.report.forgotten.append(file.path)

    def _keep_copy(self, file: TrackFile, of: KnownTrack) -> None:
        values = {"track_id": of.id, "size": file.size, "modified": file.modified}
        with self.library.begin() as connection:
            self.drop_copies([file.path])
            connection.execute(sa.insert(track_copy).values(values | stored_path(file.path)))

    def _says_otherwise(self, known: KnownTrack, file: TrackFile) -> bool:
        """Whether the tags of a file are not those that the library has."""
        track = self.library.tracks.get(known.id)
        tags = {name: [*values] for name, values in file.file_tags.items() if values}
        now = (file.title, file.artist, file.album, tags)
        return now != (track.title, track.artist, track.album, track.file_tags)

    def _without_features(self, ids: list[int]) -> set[int]:
        numbers = np.array(ids, np.int64)
        with self.library.connect() as connection:
            have = features.read(connection, numbers, self.extractor)[0]
        return set(ids) - set(have.tolist())
