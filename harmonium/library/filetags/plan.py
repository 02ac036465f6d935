"""What writing tags would change in a file, from what the file holds and the rules.

Nothing here reads or writes a file. `FilePlan` takes what a file holds (`FileTags`) from the file
itself, from a library that remembers it, or from another program's fields.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter

from harmonium.library.filetags.binary import PathLike
from harmonium.library.filetags.contents import COMMENT, FIELDS, FileTags, Id3Options, Values
from harmonium.library.filetags.rules import (
    PlacedTag,
    Rules,
    UnwrittenTag,
    combine,
    combine_comment,
    fold,
    is_missing,
    name_problem,
    tags_in_comment,
)


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
    format: str | None  # None: the fields are another program's
    version: str | None  # the kind of tag that the file has
    fields: tuple[FieldChange, ...]  # those that change
    left_out: tuple[UnwrittenTag, ...] = ()  # tags that are not written, each with the reason
    id3: Id3Options = field(default_factory=Id3Options)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.fields)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"left_out": [tag._asdict() for tag in self.left_out]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, perhaps by way of JSON."""
        return _file_change_adapter().validate_python(data)


@cache
def _file_change_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(FileChange)  # making one takes milliseconds


class FilePlan:
    """Where tags go in one file, which of them are new to it, and how its fields change.

    Whether a tag is new to a file depends on what the file holds and on the rules, and not on the
    other tags that are written with it, as long as no two of them are written as the same name.
    """

    def __init__(self, file: FileTags, rules: Rules) -> None:
        self.file = file
        self.rules = rules
        self._kept_values: dict[str, Values] = {}

    def _before(self, name: str) -> Values:
        """The values of a field that a write would replace."""
        return self.file.at(self.file.targets[name])

    def _tags(self, name: str) -> Values:
        """The tags in a field: its values, or the parts of a comment."""
        before = self._before(name)
        return tags_in_comment(before) if name == COMMENT else before

    def _kept(self, name: str) -> Values:
        """The same; none if a genre or mood field has only words that are not tags."""
        if name not in self._kept_values:
            tags = self._tags(name)
            if name in ("genre", "mood") and self.rules.is_blank(tags):
                tags = ()
            self._kept_values[name] = tags
        return self._kept_values[name]

    def place(self, tag: str, spelling: str | None = None) -> PlacedTag:
        """Where a tag goes in this file, spelt by its alias or as given, or why it is refused."""
        placed = self.rules.place(tag, spelling)
        if placed.refused or placed.field is None:
            return placed
        if reason := self._refusal(placed.field, placed.name):
            return placed._replace(refused=reason)
        return placed

    def _refusal(self, field: str, name: str) -> str:
        """Why a field of this file cannot hold a name, or ""."""
        if problem := name_problem(name):
            return f"it {problem}; rename it with an alias"
        if field == COMMENT and tags_in_comment((name,)) != (name,):
            return "a comment would take it for several tags"
        place = self.file.targets[field][0]
        return self.file.layout.refusal(place, name, self.file.version, self.rules.id3)

    def is_new(self, placed: PlacedTag) -> bool:
        """Whether writing a tag by itself would add it to its field, if nothing refused it."""
        if placed.field is None:
            return False
        missing = is_missing(placed.name, self._kept(placed.field), self.rules.mode)
        return missing and placed.name not in self._tags(placed.field)

    def changes(
        self,
        tags: Iterable[PlacedTag],
        scores: Mapping[str, float] | None = None,
        features: Mapping[str, float] | None = None,
    ) -> tuple[FieldChange, ...]:
        """The fields that change when these tags and audio features are added.

        ``scores`` has a score for each tag, which is written if the rules say so. A genre or mood
        field with only words that are not tags counts as empty.
        """
        by_field = _by_field(tags)
        of_tags = [self._field_change(name, by_field[name]) for name in FIELDS if name in by_field]
        changes = list(of_tags)
        if self.rules.features:
            for name, value in (features or {}).items():
                changes.append(self._feature_change(name, value))
        if self.rules.scores:
            for change in of_tags:
                changes.append(self._score_change(change, by_field[change.field], scores or {}))
        return tuple(change for change in changes if change.before != change.after)

    def file_change(
        self,
        path: PathLike,
        tags: Sequence[PlacedTag],
        scores: Mapping[str, float] | None = None,
        features: Mapping[str, float] | None = None,
    ) -> FileChange:
        """All that changes in the file with this path, as `changes` says, and what is left out."""
        left_out = [UnwrittenTag(tag=tag.tag, reason=tag.refused) for tag in tags if tag.refused]
        return FileChange(
            path=os.fspath(path),
            format=self.file.format,
            version=self.file.version,
            fields=self.changes(tags, scores, features),
            left_out=tuple(left_out),
            id3=self.rules.id3,
        )

    def _field_change(self, name: str, tags: Mapping[str, list[PlacedTag]]) -> FieldChange:
        new = tuple(same[0].name for same in tags.values())
        before = self._before(name)
        if name == COMMENT:
            after = combine_comment(before, new, self.rules.mode)
        else:
            after = combine(self._kept(name), new, self.rules.mode)
        return FieldChange(field=name, before=before, after=after, places=self.file.targets[name])

    def _score_change(
        self,
        change: FieldChange,
        tags: Mapping[str, list[PlacedTag]],
        scores: Mapping[str, float],
    ) -> FieldChange:
        """The scores of those tags that are in the field afterwards."""
        name = f"harmonium_{change.field}"
        before = self._before(name)
        in_field = {fold(value) for value in change.tags[1]}
        after = []
        for folded, same in tags.items():
            if folded in in_field:
                score = max(scores[placed.tag] for placed in same)
                after.append(f"{same[0].name}={score:.3f}")
        return FieldChange(
            field=name,
            before=before,
            after=tuple(after) or before,
            places=self.file.targets[name],
        )

    def _feature_change(self, name: str, value: float) -> FieldChange:
        before = self._before(name)
        after: Values = (f"{value:.2f}",)
        if before and self.rules.mode != "overwrite":
            after = before
        return FieldChange(field=name, before=before, after=after, places=self.file.targets[name])


def _by_field(tags: Iterable[PlacedTag]) -> dict[str, dict[str, list[PlacedTag]]]:
    """Field → folded name → the tags that are written as it; the first one decides the spelling."""
    by_field: dict[str, dict[str, list[PlacedTag]]] = {}
    for placed in tags:
        if placed.field is not None and not placed.refused:
            same_field = by_field.setdefault(placed.field, {})
            same_field.setdefault(fold(placed.name), []).append(placed)
    return by_field
