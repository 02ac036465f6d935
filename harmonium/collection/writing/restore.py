"""Undoing a change, with the files that it wrote to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from harmonium.collection.filetags import Undo, undo
from harmonium.collection.store.changes import Change, UndoReport, WrittenFile
from harmonium.collection.store.schema import change as change_table
from harmonium.collection.store.schema import written_file
from harmonium.collection.store.tracks import Track
from harmonium.collection.writing.recorded_files import Recorder
from harmonium.errors import FileTagError, LibraryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmonium.collection.library import Library

LONGEST_LOOK = 1000
"""Changes that are looked through for the last one."""


def last_change(library: Library) -> Change:
    """The last change that is not undone, and does not undo another."""
    for change in library.changes.list(LONGEST_LOOK):
        if change.undone_by is None and change.undoes is None:
            return change
    raise LibraryError("There is nothing to undo.")


def undo_change(
    library: Library,
    change_id: int,
    *,
    exact: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> UndoReport:
    """Undo a change: people's tags, and its files to the byte.

    Files that were changed since stay as they are, and the report says so. If it is interrupted,
    undoing the same change again goes on.

    Parameters
    ----------
    change_id : its number
    exact : False gives files that were changed since the former values of those fields that still
        have what was written
    progress : called with the number of files that are done and the number of all
    """
    work = _Restoring(library, exact)
    total = len(library.changes.files(change_id)) if progress is not None else 0
    done = 0

    def restore(file: WrittenFile, number: int) -> str | None:
        nonlocal done
        reason = work.restore(file, number)
        done += 1
        if progress is not None:
            progress(done, total)
        return reason

    try:
        return library.changes.undo(change_id, restore=restore)
    finally:
        work.recorder.finish()


class _Restoring:
    """Makes files what they were."""

    def __init__(self, library: Library, exact: bool) -> None:
        self._library, self._exact = library, exact
        self._number = 0
        self.recorder = Recorder(library, lambda: self._number)

    def restore(self, file: WrittenFile, number: int) -> str | None:
        """Why a file could not be restored, as part of the change of this number."""
        self._number = number
        track = _track(self._library, file)
        path = file.path if track is None else track.path
        if not Path(path).exists():
            return "the file is gone"
        try:
            record = Undo.from_bytes(file.record)
            self.recorder.write(
                track, path, lambda keep: undo(path, record, exact=self._exact, keep=keep)
            )
        except FileTagError as error:
            return self._reason(file, error)
        return None

    def _reason(self, file: WrittenFile, error: FileTagError) -> str:
        """Whose fault it is that a file is not as it was written."""
        if "was changed since" not in str(error):
            return str(error)
        later = _later_change(self._library, file)
        if later is not None:
            return f"change {later} wrote to it later; undo that one first"
        return "it was changed since; --fields-only restores the fields that were written"


def _track(library: Library, file: WrittenFile) -> Track | None:
    return None if file.track_id is None else library.tracks.get(file.track_id)


def _later_change(library: Library, file: WrittenFile) -> int | None:
    """The last change in force that wrote to the same track after this one."""
    query = (
        sa.select(sa.func.max(written_file.c.change_id))
        .join_from(written_file, change_table, change_table.c.id == written_file.c.change_id)
        .where(
            written_file.c.track_id == file.track_id,
            written_file.c.id > file.id,
            change_table.c.undone_by.is_(None),
            change_table.c.undoes.is_(None),
        )
    )
    with library.connect() as connection:
        return connection.scalar(query)
