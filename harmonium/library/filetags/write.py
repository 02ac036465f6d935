"""Writing tags to a file: the plan, the write, and its undo."""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias

from pydantic import TypeAdapter

from harmonium.errors import FileChangedError, FileTagError, readable
from harmonium.library.filetags.binary import FileProblem, PathLike, opened
from harmonium.library.filetags.contents import FileTags, Id3Options, Values
from harmonium.library.filetags.format import Format
from harmonium.library.filetags.formats import format_of
from harmonium.library.filetags.plan import FileChange, FilePlan
from harmonium.library.filetags.replace import (
    Steps,
    content_digest,
    difference,
    patch,
    replace_file,
)
from harmonium.library.filetags.rules import GivenTags, Rules, checked_tags

_DEFAULT = Rules()
_MARK = b"HMU1"
_reader: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # making one takes milliseconds


@dataclass(frozen=True, kw_only=True)
class UndoRecord:
    """How to undo a write: to the byte, or field by field."""

    change: FileChange
    before: str  # the SHA-256 digest of the file as it was, in hexadecimal digits
    after: str  # the same for the new file
    audio: str  # `audio_digest` of both
    steps: Steps
    literal: bytes  # what turns the new file into the old one (`difference`)
    inode: int | None = None  # of the new file; None if an older version made the record

    def to_bytes(self) -> bytes:
        """Compressed bytes, for the store."""
        about = {
            "change": self.change.to_dict(),
            "before": self.before,
            "after": self.after,
            "audio": self.audio,
            "steps": self.steps,
            "inode": self.inode,
        }
        head = json.dumps(about, separators=(",", ":")).encode()
        return _MARK + zlib.compress(len(head).to_bytes(4) + head + self.literal, 9)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """From the bytes of `to_bytes`; raises a FileTagError for others."""
        if not data.startswith(_MARK):
            raise FileTagError("This is not a record of changed tags, or is from a newer version.")
        try:
            plain = zlib.decompress(data[len(_MARK) :])
            end = 4 + int.from_bytes(plain[:4])
            head: dict[str, Any] = json.loads(plain[4:end])
            return _reader(cls).validate_python(head | {"literal": plain[end:]})
        except (zlib.error, ValueError, TypeError) as error:
            raise FileTagError(f"The record of changed tags is damaged: {error}.") from error


class FileState(Enum):
    """What a file is, compared with what a write made of it."""

    WRITTEN = "as written"
    BEFORE = "as it was before"
    CHANGED = "something else"


def state_of(path: PathLike, record: UndoRecord) -> FileState:
    """Whether a file is as it was written, as before, or something else."""
    with opened(path) as file:
        digest = content_digest(file)
    if digest == record.after:
        return FileState.WRITTEN
    if digest == record.before:
        return FileState.BEFORE
    return FileState.CHANGED


def is_as_before(path: PathLike, record: UndoRecord) -> bool:
    """Whether a file is as it was before it was written, once no process is writing to it."""

    def look(old: BinaryIO, new: BinaryIO, digest: str) -> UndoRecord | None:
        digests.append(digest)
        return None

    digests: list[str] = []
    replace_file(path, look)
    return digests == [record.before]


def is_same_file(path: PathLike, record: UndoRecord) -> bool:
    """Whether a file seems to be the one that was written, under whatever name it has now.

    Moving a file within a disk keeps its inode, and a copy gets another one.
    """
    with suppress(OSError):
        return os.stat(path).st_ino == record.inode  # noqa: PTH116
    return False


KeepRecord: TypeAlias = Callable[[UndoRecord], object]


def plan_write(
    path: PathLike,
    tags: GivenTags,
    rules: Rules = _DEFAULT,
    features: Mapping[str, float] = {},
    spelt: Mapping[str, str] = {},
) -> FileChange:
    """What writing these tags would change in a file; nothing is written.

    ``tags`` are names, or a mapping of names to scores; they are written in this order, ``spelt``
    differently if asked. ``features`` are audio features and their values, which are written if the
    rules say so. A FileTagError says why a file cannot be read or written to, and a DataError why a
    tag cannot be written to any file.
    """
    scores = checked_tags(tags, scores_needed=rules.scores)
    plan = FilePlan(read_for_writing(path, rules.id3), rules)
    placed = [plan.place(tag, spelt.get(tag)) for tag in scores]
    return plan.file_change(path, placed, scores, features)


def read_for_writing(path: PathLike, options: Id3Options) -> FileTags:
    """What a file holds; raises a FileTagError if nothing can be written to it."""
    with opened(path) as file:
        tags = format_of(file).read(file, options)
        check_obstacle(tags.obstacle)
    return tags


def check_obstacle(obstacle: str | None) -> None:
    """Raise a FileProblem if there is something that keeps tags out of a file."""
    if obstacle:
        raise FileProblem(f"nothing can be written to it: {obstacle}")


def apply_change(
    change: FileChange, *, keep: KeepRecord | None = None, swept: set[Path] | None = None
) -> UndoRecord | None:
    """Write a change from `plan_write`; returns what undoes it, or None if nothing changes.

    The new file is written next to the old one, read back and compared: its fields must hold what
    was planned, and its sound must be the same. Only then does it replace the old file. If this
    process dies on the way, either the old or the new file is there. Just before the replacement,
    ``keep`` is called with what undoes it, to store that. A FileTagError says that the file cannot
    be written, or has changed since it was planned; the file is then left alone. ``swept`` is as in
    `replace_file`.
    """
    if not change:
        return None
    edits: dict[str, Values] = {}
    for field in change.fields:
        place, *other_places = field.places
        edits[place] = field.after
        edits |= dict.fromkeys(other_places, ())

    def produce(old: BinaryIO, new: BinaryIO, before: str) -> UndoRecord:
        old_format = format_of(old)
        _check_fields(old_format, old, change, after=False)
        old_format.write(old, new, edits, change.id3)
        new_format = format_of(new)
        if new_format.name != old_format.name:
            raise FileProblem("the new file is not what it should be; the file was left as it is")
        _check_fields(new_format, new, change, after=True)
        audio = old_format.sound_digest(old)
        if new_format.sound_digest(new) != audio:
            raise FileProblem("writing would have changed its sound; it was left as it is")
        return _record(change, audio, before, old, new)

    return replace_file(change.path, produce, keep=keep, swept=swept)


def _record(
    change: FileChange, audio: str, before: str, old: BinaryIO, new: BinaryIO
) -> UndoRecord:
    steps, literal = difference(old, new)
    return UndoRecord(
        change=change,
        before=before,
        after=content_digest(new),
        audio=audio,
        steps=steps,
        literal=literal,
        inode=os.fstat(new.fileno()).st_ino,
    )


def _check_fields(format: Format, file: BinaryIO, change: FileChange, *, after: bool) -> None:
    """Check that the fields are as they were when planned, or already as they should be."""
    contents = format.read(file, change.id3)
    if after:
        reason = "the tags cannot be read back; it was left as it is"
    else:
        reason = "it was changed since; plan again"
    for field in change.fields:
        expected = field.after if after else field.before
        values = contents.at(field.places)
        if values != expected:
            raise FileProblem(f"{reason} ({field.field}: {', '.join(values)!r})")


def undo(
    path: PathLike,
    record: UndoRecord,
    *,
    exact: bool = True,
    keep: KeepRecord | None = None,
    swept: set[Path] | None = None,
) -> UndoRecord | None:
    """Restore a file to the byte; returns what undoes that, or None if there was nothing to undo.

    ``record`` comes from `apply_change` or `undo`; ``keep`` and ``swept`` are as there. A file that
    was changed since raises a FileChangedError. With ``exact=False``, fields that still hold
    what was written get their former values back, and everything else stays.
    """
    reversed_fields = tuple(
        replace(field, before=field.after, after=field.before) for field in record.change.fields
    )
    back = replace(record.change, path=os.fspath(path), fields=reversed_fields, left_out=())

    def restore(old: BinaryIO, new: BinaryIO, now: str) -> UndoRecord | None:
        if now == record.before:
            return None
        if now != record.after:
            raise FileChangedError(
                f"{readable(path)} was changed after tags were written to it, and cannot be "
                "restored exactly. With exact=False, the fields that were written get their "
                "former values."
            )
        patch(record.steps, record.literal, old, new)
        if content_digest(new) != record.before:
            raise FileProblem("the record of its change is inconsistent; nothing was undone")
        return _record(back, record.audio, now, old, new)

    try:
        return replace_file(path, restore, keep=keep, swept=swept)
    except FileChangedError:
        if exact:
            raise
    now = read_for_writing(path, back.id3)
    as_written = tuple(field for field in back.fields if now.at(field.places) == field.before)
    back = replace(back, format=now.format, version=now.version, fields=as_written)
    return apply_change(back, keep=keep, swept=swept)
