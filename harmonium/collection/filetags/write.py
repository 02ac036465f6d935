"""Writing what was planned, and undoing it."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from harmonium.collection.filetags.delta import difference, patch
from harmonium.collection.filetags.file_errors import PathLike, opened, readable
from harmonium.collection.filetags.formats.base import Damaged, Format, Values
from harmonium.collection.filetags.formats.detect import format_of
from harmonium.collection.filetags.plan import read_for_writing
from harmonium.collection.filetags.read import sound_digest
from harmonium.collection.filetags.records import Change, FieldChange
from harmonium.collection.filetags.replace_file import replace_file
from harmonium.collection.filetags.streams import digest_of
from harmonium.collection.filetags.undo import Undo
from harmonium.errors import FileChangedError

Keep = Callable[[Undo], object]


def apply_change(
    change: Change, *, keep: Keep | None = None, keep_times: bool = False
) -> Undo | None:
    """Write a change that `plan_write` gave.

    The new file is written beside the old one, read again and compared: its fields must hold what
    was planned, and its sound must be the same. Only then does it take the old one's place. When
    this process dies on the way, there is the old file or the new one.

    Parameters
    ----------
    change : what to write
    keep : given what undoes the change, just before it takes place: whoever stores that here can
        undo the change even if the process dies right after
    keep_times : whether the file keeps its time of modification; players would not notice

    Returns
    -------
    what undoes it; None where nothing changes and nothing was written

    Raises
    ------
    FileTagError
        where the file cannot be written, or is not as it was when the change was planned; it is
        then as it was
    """
    if not change:
        return None

    def produce(old: BinaryIO, new: BinaryIO) -> Undo:
        found = format_of(old)
        _check_fields(found, old, change, "before", "it was changed since; plan again")
        found.write(old, new, _edits(change), change.id3)
        return _checked_undo(found, old, new, change)

    return replace_file(change.path, produce, keep=keep, keep_times=keep_times)


def undo(
    path: PathLike,
    record: Undo,
    *,
    exact: bool = True,
    keep: Keep | None = None,
    keep_times: bool = False,
) -> Undo | None:
    """Make a file what it was before a change, to the byte.

    Parameters
    ----------
    path : where the file is now
    record : what `apply_change` or `undo` gave
    exact : False lets a file that was changed since through: of its fields, those that still have
        the values that were written get back the former ones, and all else stays
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
        now = digest_of(file)
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


def _restore(path: PathLike, record: Undo, old: BinaryIO, new: BinaryIO) -> Undo:
    """Write the file as it was."""
    patch(record.delta, old, new)
    if digest_of(new) != record.before:
        raise Damaged("the record of its change does not lead back; nothing was undone")
    return Undo(
        change=_reversed(path, record.change),
        before=record.after,
        after=record.before,
        audio=record.audio,
        delta=difference(old, new),
    )


def _way_back(path: PathLike, record: Undo) -> Change:
    """The former values of the fields that are still as they were written."""
    back = _reversed(path, record.change)
    with opened(path) as file:
        found, contents = read_for_writing(file, back.id3)
    fields = tuple(one for one in back.fields if contents.at(one.places) == one.before)
    return replace(back, format=found.name, version=contents.version, fields=fields)


def _reversed(path: PathLike, change: Change) -> Change:
    fields = tuple(one.reversed() for one in change.fields)
    return replace(change, path=os.fspath(path), fields=fields, left_out=())


def _edits(change: Change) -> dict[str, Values]:
    """Place → what is to be there."""
    edits: dict[str, Values] = {}
    for one in change.fields:
        edits |= dict.fromkeys(one.places[1:], ()) | {one.places[0]: one.after}
    return edits


def _checked_undo(found: Format, old: BinaryIO, new: BinaryIO, change: Change) -> Undo:
    """What undoes a change, if it turned out as it was planned."""
    again = format_of(new)
    if again.name != found.name:
        raise Damaged("the written file is not what it should be; the file was left as it is")
    _check_fields(again, new, change, "after", "the tags cannot be read back; it was left as it is")
    audio = sound_digest(found, old)
    if sound_digest(again, new) != audio:
        raise Damaged("writing would have changed its sound; it was left as it is")
    return Undo(
        change=change,
        before=digest_of(old),
        after=digest_of(new),
        audio=audio,
        delta=difference(old, new),
    )


def _check_fields(found: Format, file: BinaryIO, change: Change, when: str, otherwise: str) -> None:
    contents = found.read(file, change.id3)
    for one in change.fields:
        if contents.at(one.places) != _expected(one, when):
            raise Damaged(f"{otherwise} ({one.field}: {', '.join(contents.at(one.places))!r})")


def _expected(one: FieldChange, when: str) -> Values:
    return one.before if when == "before" else one.after
