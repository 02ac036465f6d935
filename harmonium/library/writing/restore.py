"""Undoing a change, with the files that it wrote to."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from harmonium.errors import FileChangedError, FileTagError, LibraryError
from harmonium.library.filetags import UndoRecord, undo
from harmonium.library.library import Library
from harmonium.library.store.changes import Change, UndoReport, WrittenFile
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import stored_path, written_file
from harmonium.library.writing.undoable_writer import UndoableWriter


def last_change(library: Library) -> Change:
    """The last change that is not undone, and does not undo another.

    One that was undone in part is passed over: the rest of it is what could not be undone. But an
    undo that was interrupted goes on.
    """
    passed = []
    for change in library.changes.list():
        if change.undone_by is None and change.undoes is None:
            if not change.left:
                return change
            passed.append(change.id)
    hint = f" To try change {passed[0]} again: harmonium undo {passed[0]}" if passed else ""
    raise LibraryError(f"There is nothing to undo.{hint}")


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
    numbers: list[int] = []  # of the change that undoes, once for each file
    writer = UndoableWriter(library, lambda: numbers[-1])
    n_restored = 0  # files that changed; those that were restored before do not
    total = 0 if progress is None else len(library.changes.files(change_id))

    def restore(file: WrittenFile, number: int) -> str | None:
        nonlocal n_restored
        numbers.append(number)
        try:
            n_restored += _restore(library, writer, file, exact)
            reason = None
        except FileTagError as error:
            reason = str(error)
        if progress is not None:
            progress(len(numbers), total)
        return reason

    try:
        report = library.changes.undo(change_id, restore=restore)
    finally:
        writer.finish()
    return replace(report, files_restored=n_restored)


def _restore(library: Library, writer: UndoableWriter, file: WrittenFile, exact: bool) -> bool:
    """Make a file what it was; whether it changed. A FileTagError says why it cannot be done."""
    track = None if file.track_id is None else library.tracks.get(file.track_id)
    path = file.path
    if track is not None and path not in library.tracks.copies([track.id]).get(track.id, []):
        path = track.path  # wherever it is now
    if not Path(path).exists():
        raise FileTagError(
            "the file is gone. If it was moved, 'harmonium index' with its new folder finds it; "
            f"then: harmonium undo {file.change_id}"
        )
    record = UndoRecord.from_bytes(file.record)
    try:
        return writer.write(track, path, partial(undo, path, record, exact=exact))
    except FileChangedError:
        if (later := _later_change(library, file)) is not None:
            raise FileTagError(f"change {later} wrote to it later; undo that one first") from None
        raise FileTagError(
            "it was changed since; --fields-only restores the fields that were written"
        ) from None


def _later_change(library: Library, file: WrittenFile) -> int | None:
    """The last change in force that wrote to the same track after this one."""
    query = (
        sa.select(sa.func.max(written_file.c.change_id))
        .join_from(written_file, change_table, change_table.c.id == written_file.c.change_id)
        .where(
            written_file.c.track_id == file.track_id,
            written_file.c.id > file.id,
            written_file.c.path == stored_path(file.path)["path"],
            change_table.c.undone_by.is_(None),
            change_table.c.undoes.is_(None),
        )
    )
    found: int | None = library.fetch(query)[0][0]
    return found
