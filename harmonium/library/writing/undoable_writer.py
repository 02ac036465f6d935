"""Writing to files as part of a change, with what undoes it kept beforehand."""

from collections.abc import Callable
from pathlib import Path

from harmonium.errors import FileTagError
from harmonium.library.filetags import UndoRecord, read_tags
from harmonium.library.library import Library
from harmonium.library.store.tracks import Track, TrackFile


class UndoableWriter:
    """Writes files under one change.

    Each file costs one transaction: what undoes it is stored just before it changes, together with
    what the file before it has become. When the process dies in between, `index` reads that one
    file again.
    """

    def __init__(self, library: Library, begin: Callable[[], int]) -> None:
        """``begin`` gives the number of the change, in the transaction of the first file."""
        self.change: int | None = None
        self._library = library
        self._begin = begin
        self._written: tuple[Track, str] | None = None  # whose row is not up to date yet

    def write(self, track: Track | None, path: str, work: Callable[..., UndoRecord | None]) -> bool:
        """Do work that changes a file, and keep what undoes it; whether it changed.

        ``work(keep=...)`` is `apply_change` or `undo`, given all else that they need.

        Raises
        ------
        FileTagError
            where it could not be done; the file is as it was
        """
        kept: list[int] = []
        try:
            done = work(keep=lambda record: kept.append(self._keep(track, path, record)))
        except FileTagError:
            for number in kept:
                self._library.changes.forget_file(number)
            raise
        if done is not None and track is not None:
            self._written = (track, path)
        return done is not None

    def finish(self) -> None:
        """Bring the library up to date on the last file that was written."""
        if self._written is None:
            return
        (track, path), self._written = self._written, None
        try:
            status, about = Path(path).stat(), read_tags(path).of_track
        except (FileTagError, OSError):
            return  # gone meanwhile; `index` will notice
        if path in self._library.tracks.copies([track.id]).get(track.id, []):
            self._library.tracks.see_copy(path, status.st_size, status.st_mtime_ns)
            return
        if track.duration is not None:
            about["duration"] = track.duration
        file = TrackFile(path, track.sound, status.st_size, status.st_mtime_ns, **about)
        self._library.tracks.replace(track.id, file)

    def _keep(self, track: Track | None, path: str, record: UndoRecord) -> int:
        with self._library.begin():
            if self.change is None:
                self.change = self._begin()
            self.finish()
            track_id = None if track is None else track.id
            return self._library.changes.keep_file(self.change, track_id, path, record.to_bytes())
