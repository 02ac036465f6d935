"""Writing files as one change that can be undone, however the process ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harmonium.errors import FileTagError, counted, readable
from harmonium.library.filetags import UndoRecord, is_as_before, read_tags
from harmonium.library.store.tracks import FORGOTTEN, Track

if TYPE_CHECKING:
    from harmonium.library.library import Library


class FileWork(Protocol):
    """Work that changes a file: `apply_change` or `undo` with all their other arguments given."""

    def __call__(
        self, *, keep: Callable[[UndoRecord], object], swept: set[Path]
    ) -> UndoRecord | None:
        """Change the file; ``keep`` gets what undoes it just before that."""


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A file that was written, which the library does not know yet."""

    record: int  # the number of the record that undoes it
    path: str
    track: Track | None  # whose row gets the file's new state
    status: os.stat_result | None


class UndoableWrites:
    """Writes files as one change.

    Each file costs one transaction: how to undo it is stored just before it changes, together with
    the new state of the file before it. If the process dies in between, `index` reads that one
    file again.
    """

    def __init__(self, library: Library, *, change: int | None = None, n_files: int = 0) -> None:
        """Begin a change with the first of ``n_files`` files, or add to this ``change``."""
        self.change = change
        self._library = library
        self._n_files = n_files
        self._n_kept = 0
        self._written: _Written | None = None
        self._swept: set[Path] = set()  # folders without leftovers of killed processes

    def write(self, track: Track | None, path: str, work: FileWork) -> bool:
        """Do work that changes a file, and store how to undo it; whether the file changed."""
        records: list[int] = []

        def keep(record: UndoRecord) -> None:
            records.append(self._keep(track, path, record))

        try:
            done = work(keep=keep, swept=self._swept)
        except FileTagError:
            for number in records:
                self._library.changes.forget_file(number)
            raise
        if done is None:
            return False
        status = None
        with suppress(OSError):  # now: what another program makes of it is for `index` to see
            status = Path(path).stat()
        has_sound = track is not None and done.audio == track.sound
        self._written = _Written(
            record=records[-1], path=path, track=track if has_sound else None, status=status
        )
        return True

    def _keep(self, track: Track | None, path: str, record: UndoRecord) -> int:
        """Store how to undo a write that is about to happen; the record's number."""
        if self._n_files and track is not None and record.audio != track.sound:
            raise FileTagError(f"{readable(path)} has another sound now. Run `harmonium index`.")
        changes = self._library.changes
        with self._library.begin():
            change = self.change or changes.begin("write", "")
            changes.check_open(change)
            if self._n_files:  # true if the process ends here
                self._n_kept += 1
                done = f"tags written to {self._n_kept:,} of {counted(self._n_files, 'file')}"
                changes.describe(change, done)
            self.finish()
            track_id = None if track is None else track.id
            number = changes.keep_file(change, track_id, path, record.to_bytes())
        self.change = change
        return number

    def finish(self) -> None:
        """Store that the last file was written, and its new state."""
        if self._written is None:
            return
        written = self._written
        self._written = None
        with self._library.begin():
            self._library.changes.confirm_file(written.record)
            if written.track is not None and written.status is not None:
                self._store_state(written.track.id, written.path, written.status)

    def _store_state(self, track_id: int, path: str, status: os.stat_result) -> None:
        try:
            about = read_tags(path).of_track
        except (FileTagError, OSError):
            return  # gone meanwhile; `index` will notice
        tracks = self._library.tracks
        track = tracks.get(track_id)  # as it is by now
        now = replace(track, path=path, size=status.st_size, modified=status.st_mtime_ns, **about)
        if track.duration is not None:
            now = replace(now, duration=track.duration)
        if path in tracks.copies([track.id]).get(track.id, []):
            tracks.put_copy(now)
        elif path == track.path and track.state != FORGOTTEN:
            tracks.replace(replace(now, state="present", reason=None))


def settle_writes(library: Library) -> None:
    """Find out which writes have happened that killed processes began; forget the others.

    A process stores how to undo a write just before the file changes, and may die in between.
    """
    for file in library.changes.pending_files():
        try:
            record = UndoRecord.from_bytes(file.record)
            happened = not is_as_before(file.path, record)
        except FileTagError:
            continue  # gone, or not readable now
        if happened:
            library.changes.confirm_file(file.id)
        else:
            library.changes.forget_file(file.id)
            _describe_stopped(library, file.change_id)


def _describe_stopped(library: Library, change_id: int) -> None:
    """Correct the summary of a write that was stopped: it counts the file that was forgotten."""
    with library.begin():
        if library.changes.get(change_id).command == "write":
            n_files = counted(len(library.changes.files(change_id)), "file")
            library.changes.describe(change_id, f"tags written to {n_files}, then stopped")
