"""What becomes of the tags that are wanted in one file.

Pure: everything follows from what the file holds, the wanted tags, the rules, and the names that
the library knows. The plan of a write gives it what was read from the file, the outline what the
library remembers of it, and the plugin for beets the fields of its item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from harmonium.data.splitting import possible_parts
from harmonium.data.tag_names import normalise_tag
from harmonium.library.filetags import LIST_FIELDS, FileChange, FilePlan, FileTags, Rules, Values
from harmonium.library.filetags.rules import PlacedTag, fold
from harmonium.library.writing.wanted import WantedTags, has_part

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

NO_FEATURES: Mapping[str, float] = {}


@dataclass(frozen=True, kw_only=True)
class TagNames:
    """What a library knows about the names of tags."""

    spellings: Mapping[str, str] = field(default_factory=dict)
    """Tag → how it is shown and written, if not by its name."""
    synonyms: Mapping[str, str] = field(default_factory=dict)  # another word → the tag it means

    @classmethod
    def of(cls, snapshot: Snapshot) -> TagNames:
        """The names that a library knows now."""
        return cls(spellings=snapshot.tags.facts.spellings, synonyms=snapshot.tags.synonyms)

    def shown(self, tag: str) -> str:
        """How the library spells a tag."""
        return self.spellings.get(tag, tag)

    def meaning(self, tag: str) -> str:
        """The tag that stands for all its synonyms."""
        return self.synonyms.get(tag, tag)


class Fate(NamedTuple):
    """What becomes of one wanted tag in a file."""

    placed: PlacedTag | None  # where it goes or why it is refused; None: the file has it already
    name: str  # as it is written
    is_new: bool  # whether it is written to a field that lacks it
    is_refused_by_rules: bool  # whether it is not, and only because of the rules
    key: tuple[str, str] | None
    """Its field and its folded name: of several tags with one key, only the first is written. None
    if it is not written."""


class AddedTag(NamedTuple):
    """A tag that a write adds to a file."""

    tag: str
    name: str  # as written
    probability: float | None  # the model's; None if people say so


class Additions(NamedTuple):
    """Which of the wanted tags a write adds to a file."""

    added: tuple[AddedTag, ...]
    refused: tuple[str, ...]  # tags that only the rules keep from the file


class FilePlanner:
    """What becomes of tags in one file, or in all files that hold the same."""

    def __init__(self, file: FileTags, rules: Rules, names: TagNames) -> None:
        self._names = names
        self._rules = rules
        self._plan = FilePlan(file, rules)
        self._fates: dict[tuple[str, bool], Fate] = {}
        values = tuple(value for name in LIST_FIELDS for value in file.values_of(name))
        self._spelt, self._inside = _tags_in(values)
        self._meanings: dict[str, set[str]] = {}
        for tag in self._spelt:
            self._meanings.setdefault(names.meaning(tag), set()).add(tag)

    def fate(self, tag: str, said: bool) -> Fate:
        """What becomes of a tag that people say, or that the model predicts."""
        fate = self._fates.get((tag, said))
        if fate is None:
            fate = self._fates[tag, said] = self._decide(tag, said)
        return fate

    def _decide(self, tag: str, said: bool) -> Fate:
        spelling = self._names.shown(tag)
        if self._rules.mode == "merge":
            if self._has(tag, said):
                return Fate(
                    placed=None, name=spelling, is_new=False, is_refused_by_rules=False, key=None
                )
            spelling = self._spelt.get(tag, spelling)  # Hip-Hop for hip hop
        placed = self._plan.place(tag, spelling)
        is_missing = placed.field is None or self._plan.is_new(placed)
        by_rules = self._rules.place(tag, spelling)
        key = None
        if placed.field is not None and not placed.refused:
            key = (placed.field, fold(placed.name))
        return Fate(
            placed=placed,
            name=placed.name,
            is_new=is_missing and not placed.refused,
            is_refused_by_rules=is_missing and bool(by_rules.refused),
            key=key,
        )

    def _has(self, tag: str, said: bool) -> bool:
        """Whether the file has a tag, but not by its name.

        It may have it inside a longer text, such as jazz in "Jazz; Blues", as a synonym or, if the
        tag is predicted, in part.
        """
        if tag in self._inside:
            return True
        if self._meanings.get(self._names.meaning(tag), set()) - {tag}:
            return True
        return not said and has_part(tag, self._spelt)

    def additions(self, wanted: WantedTags) -> Additions:
        """Which of the wanted tags a write adds, and which it would add but for the rules."""
        added = []
        refused = []
        seen = set()
        for tag, said in wanted.each():
            fate = self.fate(tag, said)
            if fate.is_refused_by_rules:
                refused.append(tag)
            elif fate.is_new and fate.key not in seen:
                probability = None if said else wanted.predicted[tag]
                added.append(AddedTag(tag=tag, name=fate.name, probability=probability))
            seen.add(fate.key)
        return Additions(added=tuple(added), refused=tuple(refused))

    def changes_more(self, wanted: WantedTags, features: Mapping[str, float] = NO_FEATURES) -> bool:
        """Whether a write that adds no tag still changes something.

        It may replace other values, or write scores or audio features.
        """
        if self._rules.mode != "overwrite" and not self._rules.scores and not features:
            return False
        return bool(self._plan.changes(self._placed(wanted), wanted.scores, features))

    def file_change(
        self, path: str, wanted: WantedTags, features: Mapping[str, float] = NO_FEATURES
    ) -> FileChange:
        """All that a write changes in the file with this path."""
        return self._plan.file_change(path, self._placed(wanted), wanted.scores, features)

    def _placed(self, wanted: WantedTags) -> list[PlacedTag]:
        fates = (self.fate(tag, said) for tag, said in wanted.each())
        return [fate.placed for fate in fates if fate.placed is not None]


@lru_cache(maxsize=100_000)
def _tags_in(values: Values) -> tuple[dict[str, str], frozenset[str]]:
    """Tag → its spelling among a file's values; and the tags inside longer texts."""
    spelt = {normalise_tag(value): value for value in values}
    parts = {part for value in values for part in possible_parts(value)}
    return spelt, frozenset(parts)
