"""Undoing a change: people's tags, and its files to the byte.

Each file of the change is found first. Then one rule applies:

- It is as it was written, at its path or where it was moved: it is restored.
- It is as it was before, since an undo or another program restored it: nothing is left to do.
- It was changed since: it is refused, or its fields are restored if that is asked for.
- It is gone: it is refused.

Files at their own paths come first, so that no copy is taken for a file that was moved.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from harmonium import stopping
from harmonium.errors import (
    FileChangedError,
    FileTagError,
    LibraryError,
    LibraryReadOnlyError,
    LibraryUnavailableError,
)
from harmonium.library import filetags
from harmonium.library.filetags import FileState, UndoRecord
from harmonium.library.store.changes import Change, RestoredFiles, UndoReport, WrittenFile
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import written_file
from harmonium.library.store.values import stored_path
from harmonium.library.writing.undoable import UndoableWrites, settle_writes

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress
    from harmonium.library.store.tracks import Track


def last_change(library: Library) -> Change:
    """The last change that is not undone and does not undo another.

    Changes that were undone in part are skipped: their rest could not be undone. But an undo that
    was interrupted is resumed, and one that could do nothing is tried again.
    """
    skipped = []
    for change in library.changes.list():
        if change.undone_by is None and change.undoes is None:
            if not change.left:
                return change
            skipped.append(change.id)
    hint = f" To try change {skipped[0]} again: harmonium undo {skipped[0]}" if skipped else ""
    raise LibraryError(f"There is nothing to undo.{hint}")


@stopping.stoppable
def undo_change(
    library: Library, change_id: int, *, exact: bool = True, progress: Progress | None = None
) -> UndoReport:
    """Undo a change: people's tags, and its files to the byte.

    Files that were changed since stay as they are, and the report says so; with ``exact=False``,
    their fields that still have what was written get their former values back. If it is
    interrupted, undoing the same change again resumes it.
    """
    settle_writes(library)

    def restore(files: Sequence[WrittenFile], number: int) -> RestoredFiles:
        restoration = _Restoration(library, number, exact=exact)
        try:
            return restoration.restore(files, progress)
        finally:
            with stopping.shielded():
                restoration.writes.finish()

    return library.changes.undo(change_id, restore=restore)


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file that a change wrote to, and how to restore it."""

    written: WrittenFile
    record: UndoRecord

    @property
    def path(self) -> str:
        """Where it was when it was written."""
        return self.written.path


class _LaterWrite(NamedTuple):
    """A later write to the same path."""

    change_id: int
    track_id: int | None
    made_as_before: bool  # whether it made the file as it was before the write in question
    undoes: int | None  # the change that its change undoes, if any
    is_undone: bool


class _Restoration:
    """Restores the files of a change, as part of the change that undoes it."""

    def __init__(self, library: Library, number: int, *, exact: bool) -> None:
        self.writes = UndoableWrites(library, change=number)
        self._library = library
        self._exact = exact
        self._taken: set[str] = set()  # paths that were found to be one of the files

    def restore(self, files: Sequence[WrittenFile], progress: Progress | None) -> RestoredFiles:
        """Restore the files; what could not be restored is listed with the reason."""
        result = RestoredFiles()
        elsewhere = []
        for n_done, written in enumerate(files, 1):
            stopping.check()
            try:
                file = _File(written=written, record=UndoRecord.from_bytes(written.record))
                restored = self._restore_in_place(file)
                if restored is None:
                    elsewhere.append(file)
                else:
                    result.note(written.path, restored=restored)
            except FileTagError as error:
                result.left[written.path] = str(error)
            except (LibraryUnavailableError, LibraryReadOnlyError) as error:
                return self._stopped(result, files[n_done - 1 :], error)
            if progress is not None:
                progress(n_done, len(files))
        for n_done, file in enumerate(elsewhere):
            stopping.check()
            if file.path in result.done:
                continue
            try:
                result.note(file.path, restored=self._restore_elsewhere(file))
            except FileTagError as error:
                result.left[file.path] = str(error)
            except (LibraryUnavailableError, LibraryReadOnlyError) as error:
                rest = [other.written for other in elsewhere[n_done:]]
                return self._stopped(result, rest, error)
        return result

    def _stopped(
        self, result: RestoredFiles, rest: Sequence[WrittenFile], error: LibraryError
    ) -> RestoredFiles:
        """The result if the library cannot store more, with the rest of the files as left."""
        if not result.n_restored:
            raise error
        for written in rest:
            result.left[written.path] = f"It was not restored. {error}"
        return result

    def _restore_in_place(self, file: _File) -> bool | None:
        """Restore a file at its own path; whether it changed. None: it must be looked for."""
        path = file.path
        if not self._is_free(path):
            return None
        track = self._known_files(file).get(path)
        try:
            restored = self._restore_exactly(file, path, track)
        except FileChangedError:
            return None
        except FileTagError:
            if _state_of(path, file) is FileState.WRITTEN:
                raise  # read-only, say; no copy of it is restored instead
            return None
        if not restored and not self._was_undone_at(file, path):
            return None  # as before, but no undo of the change made it so: perhaps another file
        self._taken.add(path)
        return restored

    def _restore_elsewhere(self, file: _File) -> bool:
        """Restore a file that is not as written at its own path; whether it changed."""
        known = self._known_files(file)
        states = self._states_of(file, [file.path, *known])
        for path in self._moved_to(file, states):
            try:
                restored = self._restore_exactly(file, path, known.get(path))
            except FileChangedError:
                states[path] = FileState.CHANGED  # meanwhile
                continue
            self._taken.add(path)
            return restored
        as_before = self._restored_at(file, known, states)
        if as_before is not None:
            self._taken.add(as_before)
            return False
        for path in (file.path, *known):
            if path not in states and self._is_free(path):
                filetags.state_of(path, file.record)  # raises why it cannot be read
        path = self._changed_at(file, known, states)
        if self._exact:
            raise FileTagError(self._why_changed(file))
        self._taken.add(path)
        work = partial(filetags.undo, path, file.record, exact=False)
        return self.writes.write(known.get(path), path, work)

    def _restore_exactly(self, file: _File, path: str, track: Track | None) -> bool:
        """Restore a file if it is as written; whether it changed. False: it is as before.

        Raises a FileChangedError if it is neither.
        """
        return self.writes.write(track, path, partial(filetags.undo, path, file.record))

    def _known_files(self, file: _File) -> dict[str, Track]:
        """Path → track, of the files that have its sound or are those of its track."""
        tracks = self._library.tracks.with_sound(file.record.audio)
        track_id = file.written.track_id
        if track_id is not None and track_id not in [track.id for track in tracks]:
            tracks.append(self._library.tracks.get(track_id))
        copies = self._library.tracks.copies([track.id for track in tracks])
        known = {}
        for track in tracks:
            for path in (track.path, *copies.get(track.id, [])):
                known[path] = track
        return known

    def _is_free(self, path: str) -> bool:
        """Whether there is a file that has not been found to be another one."""
        return path not in self._taken and os.path.lexists(path)

    def _states_of(self, file: _File, paths: Sequence[str]) -> dict[str, FileState]:
        """Path → the state of the file there, if there is a free one that can be read."""
        states = {}
        for path in dict.fromkeys(paths):
            if self._is_free(path):
                state = _state_of(path, file)
                if state is not None:
                    states[path] = state
        return states

    def _moved_to(self, file: _File, states: dict[str, FileState]) -> list[str]:
        """Where the file may have been moved to; first the one that is the same on the disk."""
        written = [path for path, state in states.items() if state is FileState.WRITTEN]
        return sorted(written, key=lambda path: not filetags.is_same_file(path, file.record))

    def _restored_at(
        self, file: _File, known: dict[str, Track], states: dict[str, FileState]
    ) -> str | None:
        """Where the file is that was restored already, by an undo or by another program."""
        as_before = [path for path, state in states.items() if state is FileState.BEFORE]
        for path in as_before:
            if self._was_undone_at(file, path):
                return path
        if file.path in as_before:
            return file.path
        if any(states.get(path) is FileState.CHANGED for path in known):
            return None  # it may be that one; the rest sound different
        # Perhaps it was restored at its own path, and moved after that.
        is_restored = self._last_write(file, file.path) is not None
        for path in as_before:
            if is_restored or self._last_write(file, path) is not None:
                return path
        return None

    def _changed_at(
        self, file: _File, known: dict[str, Track], states: dict[str, FileState]
    ) -> str:
        """Where the file is that was changed since; a FileTagError if it is gone."""
        # One of several copies that are not as written need not be this file.
        path = next(iter(known)) if len(known) == 1 else file.path
        if states.get(path) is not FileState.CHANGED or (known and path not in known):
            raise FileTagError(
                "the file is gone. If it was moved, 'harmonium index' with its new folder finds "
                f"it; then: harmonium undo {file.written.change_id}"
            )
        return path

    def _why_changed(self, file: _File) -> str:
        """What changed a file since it was written."""
        for write in self._later_writes(file, file.path):
            is_of_track = write.track_id == file.written.track_id
            if is_of_track and not write.is_undone and write.undoes is None:
                return f"change {write.change_id} wrote to it later; undo that one first"
        return "it was changed since; --fields-only restores the fields that were written"

    def _was_undone_at(self, file: _File, path: str) -> bool:
        """Whether an undo of the file's change wrote last to a path."""
        write = self._last_write(file, path)
        return write is not None and write.undoes == file.written.change_id

    def _last_write(self, file: _File, path: str) -> _LaterWrite | None:
        """The last of the later writes to a path, if it made the file as it was before."""
        for write in self._later_writes(file, path):
            return write if write.made_as_before else None
        return None

    def _later_writes(self, file: _File, path: str) -> list[_LaterWrite]:
        """The later writes to a path, the last first."""
        query = (
            sa.select(written_file, change_table.c.undoes, change_table.c.undone_by)
            .join_from(written_file, change_table, change_table.c.id == written_file.c.change_id)
            .where(
                written_file.c.path == stored_path(path)["path"],
                written_file.c.id > file.written.id,
            )
            .order_by(written_file.c.id.desc())
        )
        writes = []
        for row in self._library.fetch(query):
            record = UndoRecord.from_bytes(bytes(row.record))
            writes.append(
                _LaterWrite(
                    change_id=row.change_id,
                    track_id=row.track_id,
                    made_as_before=record.after == file.record.before,
                    undoes=row.undoes,
                    is_undone=row.undone_by is not None,
                )
            )
        return writes


def _state_of(path: str, file: _File) -> FileState | None:
    """The state of a file; None if it cannot be read."""
    try:
        return filetags.state_of(path, file.record)
    except FileTagError:
        return None
