"""Undoing a change, with the files that it wrote to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from harmonium.collection.filetags import UndoRecord, undo
from harmonium.collection.store.changes import Change, UndoReport, WrittenFile
from harmonium.collection.store.schema import change as change_table
from harmonium.collection.store.schema import written_file
from harmonium.collection.writing.undoable_writer import UndoableWriter
from harmonium.errors import FileChangedError, FileTagError, LibraryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harmonium.collection.library import Library


def last_change(library: Library) -> Change:
    """The last change that is not undone, and does not undo another."""
    for change in library.changes.list():
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
    exact : with False, files that were changed since get back the former values of those fields
        that still have what was written
    progress : called with the number of files that are done and the number of all
    """
    total = 0 if progress is None else len(library.changes.files(change_id))
    restorer = _Restorer(library, exact, lambda done: progress and progress(done, total))
    try:
        report = library.changes.undo(change_id, restore=restorer.restore)
    finally:
        restorer.writer.finish()
    return replace(report, files_restored=restorer.n_restored)


class _Restorer:
    """Makes files what they were, one after the other."""

    def __init__(self, library: Library, exact: bool, progress: Callable[[int], object]) -> None:
        self._library, self._exact, self._progress = library, exact, progress
        self._number = self._done = 0
        self.n_restored = 0
        """Files that changed; those that were restored before do not."""
        self.writer = UndoableWriter(library, lambda: self._number)

    def restore(self, file: WrittenFile, number: int) -> str | None:
        """Why a file could not be restored, as part of the change of this number."""
        self._number = number
        reason = self._restore(file)
        self._done += 1
        self._progress(self._done)
        return reason

    def _restore(self, file: WrittenFile) -> str | None:
        track = None if file.track_id is None else self._library.tracks.get(file.track_id)
        path = file.path if track is None else track.path
        if not Path(path).exists():
            return "the file is gone"
        try:
            record = UndoRecord.from_bytes(file.record)
            self.n_restored += self.writer.write(
                track, path, partial(undo, path, record, exact=self._exact)
            )
        except FileChangedError:
            later = _later_change(self._library, file)
            if later is not None:
                return f"change {later} wrote to it later; undo that one first"
            return "it was changed since; --fields-only restores the fields that were written"
        except FileTagError as error:
            return str(error)
        return None


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
