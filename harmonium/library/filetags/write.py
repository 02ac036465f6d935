"""Writing tags to a file: the plan, the write, and its undo."""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, BinaryIO, Self, TypeAlias

from pydantic import TypeAdapter

from harmonium.errors import FileChangedError, FileTagError, readable
from harmonium.library.filetags.formats import (
    COMMENT,
    FIELDS,
    FileProblem,
    FileTags,
    Format,
    Id3Options,
    PathLike,
    Values,
    format_of,
    opened,
)
from harmonium.library.filetags.replace import (
    Steps,
    content_digest,
    difference,
    patch,
    replace_file,
)
from harmonium.library.filetags.rules import (
    GivenTags,
    Rules,
    UnwrittenTag,
    combine,
    combine_comment,
    fold,
    tags_in_comment,
)

_DEFAULT = Rules()
_MARK = b"HMU1"
_reader: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # making one takes milliseconds


@dataclass(frozen=True)
class FieldChange:
    """A field that changes."""

    field: str  # one of `FIELDS`, "harmonium_genre" … for scores, or an audio feature
    before: Values
    after: Values
    places: tuple[str, ...]  # such as "TCON"; written to the first, removed from the others

    @property
    def tags(self) -> tuple[Values, Values]:
        """Its tags before and after: the values, or the parts of a comment."""
        if self.field != COMMENT:
            return self.before, self.after
        return tags_in_comment(self.before), tags_in_comment(self.after)

    @property
    def added(self) -> Values:
        """Its tags that were not there."""
        before, after = self.tags
        return tuple(tag for tag in after if tag not in before)


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What writing would do to a file: the result of a dry run, and all that writing needs."""

    path: str
    format: str
    version: str | None  # the kind of tag that the file has
    fields: tuple[FieldChange, ...]  # those that change
    left_out: tuple[UnwrittenTag, ...] = ()  # tags that are not written, each with the reason
    id3: Id3Options = field(default_factory=Id3Options)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.fields)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"left_out": [one._asdict() for one in self.left_out]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, perhaps by way of JSON."""
        return _reader(cls).validate_python(data)


@dataclass(frozen=True, kw_only=True)
class UndoRecord:
    """How to undo a write: to the byte, or field by field."""

    change: FileChange
    before: str  # the SHA-256 digest of the file as it was, in hexadecimal digits
    after: str  # the same for the new file
    audio: str  # `audio_digest` of both
    steps: Steps
    literal: bytes  # what turns the new file into the old one (`difference`)

    def to_bytes(self) -> bytes:
        """Compressed bytes, for the store."""
        about = {name: getattr(self, name) for name in ("before", "after", "audio", "steps")}
        text = json.dumps({"change": self.change.to_dict(), **about}, separators=(",", ":"))
        head = text.encode()
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
    wanted, left_out = rules.sort(tags, spelt)
    with opened(path) as file:
        found, there = _read_for_writing(file, rules.id3)
    # Comments other than the first are somebody's texts, and stay.
    places = {**there.places, COMMENT: there.places[COMMENT][:1]}
    for name, tag in [(name, tag) for name, some in wanted.items() for tag in some]:
        reason = found.refusal(places[name][0], tag, there.version, rules.id3)
        if name == COMMENT and tags_in_comment((tag,)) != (tag,):
            reason = "a comment would take it for several tags"
        if reason:
            left_out.append(UnwrittenTag(tag, reason))
            del wanted[name][tag]
    before = {name: there.at(where) for name, where in places.items()}
    return FileChange(
        path=os.fspath(path),
        format=found.name,
        version=there.version,
        fields=tuple(changed_fields(before, wanted, features, rules, places)),
        left_out=tuple(left_out),
        id3=rules.id3,
    )


def changed_fields(
    there: Mapping[str, Values],
    wanted: Mapping[str, Mapping[str, float]],
    features: Mapping[str, float],
    rules: Rules,
    places: Mapping[str, Values] = {},
) -> list[FieldChange]:
    """The fields that change when tags and audio features are added to a file.

    ``there`` has its values by field, ``wanted`` is field → tag → score, and ``places`` has the
    fields' places. A genre or mood field with only words that are not tags counts as empty.
    """
    changes, scores = [list[tuple[str, Values, Values]]() for _ in range(2)]
    for name in FIELDS:
        if not (tags := wanted.get(name)):
            continue
        before = there.get(name, ())
        kept = () if name in ("genre", "mood") and rules.is_blank(before) else before
        join = combine_comment if name == COMMENT else combine
        changes.append((name, before, join(kept, tuple(tags), rules.mode)))
        if rules.scores:
            own = f"harmonium_{name}"
            written = {fold(value) for value in FieldChange(*changes[-1], ()).tags[1]}
            new = tuple(f"{tag}={p:.3f}" for tag, p in tags.items() if fold(tag) in written)
            scores.append((own, there.get(own, ()), new or there.get(own, ())))
    for name, value in features.items() if rules.features else ():
        before = there.get(name, ())
        keep = before and rules.mode != "overwrite"
        changes.append((name, before, before if keep else (f"{value:.2f}",)))
    changed = (one for one in changes + scores if one[1] != one[2])
    return [FieldChange(*one, places.get(one[0], ())) for one in changed]


def _read_for_writing(file: BinaryIO, options: Id3Options) -> tuple[Format, FileTags]:
    """A file's format and tags; raises `FileProblem` if it cannot be written to."""
    found = format_of(file)
    tags = found.read(file, options)
    if tags.obstacle:
        raise FileProblem(f"nothing can be written to it: {tags.obstacle}")
    return found, tags


def apply_change(change: FileChange, *, keep: KeepRecord | None = None) -> UndoRecord | None:
    """Write a change from `plan_write`; returns what undoes it, or None if nothing changes.

    The new file is written next to the old one, read back and compared: its fields must hold what
    was planned, and its sound must be the same. Only then does it replace the old file. If this
    process dies on the way, either the old or the new file is there. Just before the replacement,
    ``keep`` is called with what undoes it, to store that. A FileTagError says that the file cannot
    be written, or has changed since it was planned; the file is then left alone.
    """
    if not change:
        return None
    edits: dict[str, Values] = {}
    for one in change.fields:
        edits |= dict.fromkeys(one.places[1:], ()) | {one.places[0]: one.after}

    def produce(old: BinaryIO, new: BinaryIO, before: str) -> UndoRecord:
        found = format_of(old)
        _check_fields(found, old, change, after=False)
        found.write(old, new, edits, change.id3)
        again = format_of(new)
        if again.name != found.name:
            raise FileProblem("the new file is not what it should be; the file was left as it is")
        _check_fields(again, new, change, after=True)
        audio = found.sound_digest(old)
        if again.sound_digest(new) != audio:
            raise FileProblem("writing would have changed its sound; it was left as it is")
        return _record(change, audio, before, old, new)

    return replace_file(change.path, produce, keep=keep)


def _record(
    change: FileChange, audio: str, before: str, old: BinaryIO, new: BinaryIO
) -> UndoRecord:
    digests = {"before": before, "after": content_digest(new), "audio": audio}
    steps, literal = difference(old, new)
    return UndoRecord(change=change, steps=steps, literal=literal, **digests)


def _check_fields(found: Format, file: BinaryIO, change: FileChange, *, after: bool) -> None:
    """Check that the fields are as they were when planned, or already as they should be."""
    contents = found.read(file, change.id3)
    for one in change.fields:
        there = contents.at(one.places)
        if there != (one.after if after else one.before):
            unread = "the tags cannot be read back; it was left as it is"
            reason = unread if after else "it was changed since; plan again"
            raise FileProblem(f"{reason} ({one.field}: {', '.join(there)!r})")


def undo(
    path: PathLike, record: UndoRecord, *, exact: bool = True, keep: KeepRecord | None = None
) -> UndoRecord | None:
    """Restore a file to the byte; returns what undoes that, or None if there was nothing to undo.

    ``record`` comes from `apply_change` or `undo`, and ``keep`` is as in `apply_change`. A file
    that was changed since raises a FileChangedError. With ``exact=False``, fields that still hold
    what was written get their former values back, and everything else stays.
    """
    fields = tuple(replace(one, before=one.after, after=one.before) for one in record.change.fields)
    back = replace(record.change, path=os.fspath(path), fields=fields, left_out=())

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
        return replace_file(path, restore, keep=keep)
    except FileChangedError:
        if exact:
            raise
    with opened(path) as file:
        found, there = _read_for_writing(file, back.id3)
    fields = tuple(one for one in back.fields if there.at(one.places) == one.before)
    back = replace(back, format=found.name, version=there.version, fields=fields)
    return apply_change(back, keep=keep)
