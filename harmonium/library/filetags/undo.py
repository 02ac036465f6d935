"""Making a file what it was before tags were written to it."""

import os
from dataclasses import replace
from typing import BinaryIO

from harmonium.errors import FileChangedError
from harmonium.files import readable
from harmonium.library.filetags.delta import difference, patch
from harmonium.library.filetags.music_file import (
    FileProblem,
    PathLike,
    content_digest,
    opened,
)
from harmonium.library.filetags.plan import FileChange, read_for_writing
from harmonium.library.filetags.replace_file import replace_file
from harmonium.library.filetags.write import KeepRecord, UndoRecord, apply_change


def undo(
    path: PathLike,
    record: UndoRecord,
    *,
    exact: bool = True,
    keep: KeepRecord | None = None,
    keep_times: bool = False,
) -> UndoRecord | None:
    """Make a file what it was before a change, to the byte.

    Parameters
    ----------
    path : where the file is now
    record : what `apply_change` or `undo` gave
    exact : with False, a file that was changed since is not refused: its fields that still have
        what was written get back their former values, and all else stays
    keep, keep_times : as in `apply_change`

    Returns
    -------
    what undoes the undoing; None where there was nothing to undo

    Raises
    ------
    FileTagError
        where the file cannot be written; it then stays as it is
    FileChangedError
        where it was changed since, and ``exact`` is True
    """
    with opened(path) as file:
        now = content_digest(file)
    if now == record.before:
        return None
    if now == record.after:
        return replace_file(
            path,
            lambda old, new: _restore(path, record, old, new),
            keep=keep,
            keep_times=keep_times,
        )
    if exact:
        raise FileChangedError(
            f"{readable(path)} was changed since tags were written to it, and cannot be made "
            "exactly what it was. With exact=False the fields that were written get back their "
            "former values."
        )
    return apply_change(_way_back(path, record), keep=keep, keep_times=keep_times)


def _restore(path: PathLike, record: UndoRecord, old: BinaryIO, new: BinaryIO) -> UndoRecord:
    """Write the file as it was."""
    patch(record.delta, old, new)
    if content_digest(new) != record.before:
        raise FileProblem("the record of its change does not lead back; nothing was undone")
    return UndoRecord(
        change=_reversed(path, record.change),
        before=record.after,
        after=record.before,
        audio=record.audio,
        delta=difference(old, new),
    )


def _way_back(path: PathLike, record: UndoRecord) -> FileChange:
    """The former values of the fields that are still as they were written."""
    back = _reversed(path, record.change)
    with opened(path) as file:
        found, contents = read_for_writing(file, back.id3)
    fields = tuple(one for one in back.fields if contents.at(one.places) == one.before)
    return replace(back, format=found.name, version=contents.version, fields=fields)


def _reversed(path: PathLike, change: FileChange) -> FileChange:
    fields = tuple(replace(one, before=one.after, after=one.before) for one in change.fields)
    return replace(change, path=os.fspath(path), fields=fields, left_out=())
