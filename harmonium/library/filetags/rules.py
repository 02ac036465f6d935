"""Which tags go to which fields, and what happens to existing values.

Rules come in layers: what a library remembers, a TOML file with the names of `Rules`, and options.
docs/library.md has an example.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from harmonium.data.tag_names import AUDIO_FEATURES, KINDS, NO_TAG, kind_of, normalise_tag
from harmonium.errors import DataError
from harmonium.files import read_toml
from harmonium.library.filetags.contents import (
    COMMENT,
    FIELDS,
    GIVEN,
    GROUPING_FRAMES,
    SCORE_FIELDS,
    Id3Options,
    Values,
)

Mode: TypeAlias = Literal["merge", "append", "overwrite", "only-if-empty"]
GivenTags: TypeAlias = Mapping[str, float] | Iterable[str]

MODES: tuple[str, ...] = get_args(Mode)
NOWHERE = "none"  # in place of a field: not written
KIND_FIELDS = {
    **dict.fromkeys(KINDS, "grouping"),
    **{"genre": "genre", "mood": "mood", NO_TAG: NOWHERE},
}
"""Kind of tags → the default field for it."""
_IN_COMMENT = re.compile("[,;\n]")  # what separates tags in a comment


class UnwrittenTag(NamedTuple):
    """A tag that is not written."""

    tag: str
    reason: str


class PlacedTag(NamedTuple):
    """Where a tag goes."""

    tag: str
    name: str  # what is written
    field: str | None  # None: it has no field
    refused: str  # why it is not written, or ""


@dataclass(frozen=True, kw_only=True)
class _FoldedRules:
    """The rules about single tags, each tag by its folded name."""

    aliases: Mapping[str, str]
    fields: Mapping[str, str]
    kinds: Mapping[str, str]
    ignored: Collection[str]
    allowed: Collection[str] | None  # None: all

    def refusal(self, names: Sequence[str], field: str | None) -> str:
        """Why a tag of these names is not written to a field; "" if it is."""
        if any(name in self.ignored for name in names):
            return "on the ignore list"
        if self.allowed is not None and not any(name in self.allowed for name in names):
            return "not among the tags to write"
        return "it has no field" if field is None else ""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How tags become values in a file's fields; raises a DataError if a rule is invalid.

    Tags are compared in any spelling (`normalise_tag`), by their own name and by their alias:
    either may be in a list.

    Parameters
    ----------
    mode : "merge": existing values, then the tags missing among them in any spelling;
        "append": existing values, then the tags missing letter for letter;
        "overwrite": only the tags;
        "only-if-empty": the tags, if the field was empty.
        A field without tags to write is left alone in every mode.
    fields : tag, or kind of tags → "genre", "mood", "grouping", "comment", or "none", which leaves
        them out. The comment is a text: tags are added after the existing text, with "; " between
        them
    default_field : the field for tags that ``fields`` does not name; None leaves them out
    kinds : tag → its kind, one of `KINDS`; a library knows its tags' kinds
    whitelist : if given, only these tags are written
    ignore : tags that are not written
    aliases : tag → the name that is written instead
    scores : whether the tags' scores are written too
    features : whether audio features are written; the mode "overwrite" replaces existing ones
    id3_version : 4 or 3, for files without an ID3 tag; others keep their version
    grouping_frame : "TIT1" or "GRP1" (iTunes), the ID3 frame for grouping
    separator : what separates values in ID3 tags before version 2.4
    """

    mode: Mode = "merge"
    fields: Mapping[str, str] = field(default_factory=dict)
    default_field: str | None = "genre"
    kinds: Mapping[str, str] = field(default_factory=dict)
    whitelist: Collection[str] | None = None
    ignore: Collection[str] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    scores: bool = False
    features: bool = False
    id3_version: int = 4
    grouping_frame: str = "TIT1"
    separator: str = "; "

    def __post_init__(self) -> None:
        _check("mode", self.mode, MODES)
        _check("id3_version", self.id3_version, (3, 4))
        _check("grouping_frame", self.grouping_frame, GROUPING_FRAMES)
        _check("default_field", self.default_field, (*FIELDS, None))
        _check("scores", self.scores, (True, False))
        _check("features", self.features, (True, False))
        for option in ("fields", "kinds", "aliases"):
            if not isinstance(getattr(self, option), Mapping):
                raise DataError(f"'{option}' must be a table of tags and texts.")
        for option in ("whitelist", "ignore"):
            given = getattr(self, option)
            if isinstance(given, str | Mapping) or not isinstance(given, Collection | None):
                raise DataError(f"'{option}' must be a list of tags, got {given!r}.")
            for tag in given or ():
                _checked_name(tag, option)
        for tag, name in self.fields.items():
            _check(f"fields.{tag}", name, (*FIELDS, NOWHERE))
        for tag, kind in self.kinds.items():
            _check(f"kinds.{tag}", kind, (*KINDS, NO_TAG))
        for name in self.aliases.values():
            _checked_name(name, "aliases")
        if not isinstance(self.separator, str) or not self.separator or "\0" in self.separator:
            raise DataError(
                f"'separator' must be text without NUL, such as '; ' or '/', got {self.separator!r}"
            )

    @property
    def id3(self) -> Id3Options:
        """The rules about ID3."""
        return Id3Options(
            version=self.id3_version, grouping=self.grouping_frame, separator=self.separator
        )

    def place(self, tag: str, spelling: str | None = None) -> PlacedTag:
        """Where a tag goes, and its name there: its alias, else ``spelling``, else the tag."""
        rules = self._folded
        name = rules.aliases.get(fold(tag)) or spelling or tag
        names = (fold(tag), fold(name))
        field = self._field(names)
        return PlacedTag(tag=tag, name=name, field=field, refused=rules.refusal(names, field))

    def _field(self, names: tuple[str, str]) -> str | None:
        """The field for a tag of these names, or else for its kind; None: it has no field."""
        rules = self._folded
        name_of_kind = names[0] if names[0] in rules.kinds else names[1]
        field = self.default_field
        for key in (*names, kind_of(name_of_kind, rules.kinds)):
            if key in rules.fields:
                field = rules.fields[key]
                break
        return None if field == NOWHERE else field

    @property
    def unused_fields(self) -> set[str]:
        """The fields of files that make no difference to what is written."""
        unused = {GIVEN}
        if COMMENT not in (self.default_field, *self.fields.values()):
            unused.add(COMMENT)
        if not self.scores:
            unused |= {*SCORE_FIELDS}
        if not self.features:
            unused |= {*AUDIO_FEATURES}
        return unused

    def is_blank(self, values: Values) -> bool:
        """Whether all these values are words that are not tags, such as Other."""
        kinds = self._folded.kinds
        return all(kind_of(fold(value), kinds) == NO_TAG for value in values)

    @cached_property
    def _folded(self) -> _FoldedRules:
        return _FoldedRules(
            aliases={fold(tag): name.strip() for tag, name in self.aliases.items()},
            fields={fold(tag): name for tag, name in self.fields.items()},
            kinds={fold(tag): kind for tag, kind in self.kinds.items()},
            ignored={fold(tag) for tag in self.ignore},
            allowed=None if self.whitelist is None else {fold(tag) for tag in self.whitelist},
        )


RULE_NAMES = tuple(rule.name for rule in fields(Rules))


def read_rules(path: Path) -> dict[str, Any]:
    """What a TOML file says, checked; a part of the rules."""
    layer = read_toml(path, "The rules")
    try:
        make_rules([layer])
    except DataError as error:
        raise DataError(f"The rules '{path}' cannot be used: {error}") from None
    return layer


def make_rules(layers: Sequence[Mapping[str, Any]]) -> Rules:
    """Rules from several layers: later ones win, tables are merged, tags to ignore add up."""
    whole = join_layers(layers)
    for name in whole.keys() - set(RULE_NAMES):
        raise DataError(f"There is no rule '{name}'. The rules are {', '.join(RULE_NAMES)}.")
    if whole.get("default_field") == NOWHERE:
        whole["default_field"] = None
    return Rules(**whole)


def join_layers(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One layer made of several; None in a layer means not set."""
    whole: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if value is None:
                continue
            before = whole.get(name)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                value = {**before, **value}
            elif name == "ignore" and isinstance(value, list | tuple):
                both = [*(before or ()), *value]
                value = [tag for i, tag in enumerate(both) if tag not in both[:i]]
            whole[name] = value
    return whole


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """TAG=VALUE, each once."""
    values = {}
    for pair in pairs:
        tag, equals, value = pair.rpartition("=")
        if not equals or not tag.strip() or not value.strip():
            raise DataError(f"{option} takes TAG=VALUE, got '{pair}'.")
        values[tag.strip()] = value.strip()
    return values


def is_missing(value: str, before: Values, mode: Mode) -> bool:
    """Whether adding a value to a field with these values would add something."""
    if mode == "merge":
        return fold(value) not in map(fold, before)
    if mode == "only-if-empty":
        return not before
    return value not in before


def combine(before: Values, new: Values, mode: Mode) -> Values:
    """A field's values after adding new ones."""
    if not new or (mode == "only-if-empty" and before):
        return before
    if mode == "overwrite":
        return new
    return (*before, *(value for value in new if is_missing(value, before, mode)))


def combine_comment(before: Values, new: Values, mode: Mode) -> Values:
    """The comment after adding tags: one text, which begins with the old one."""
    parts = tags_in_comment(before)
    after = combine(parts, new, mode)
    if after == parts:
        return before
    if mode in ("merge", "append"):
        after = (*before, *after[len(parts) :])
    return ("; ".join(after),)


def tags_in_comment(texts: Values) -> Values:
    """The parts of comments, each of which may be a tag."""
    parts = (part.strip() for text in texts for part in _IN_COMMENT.split(text))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=100_000)
def fold(tag: str) -> str:
    """What two spellings of a tag have in common: its normalised name, or itself if it has none."""
    return normalise_tag(tag) or tag.strip()


def checked_tags(tags: GivenTags, *, scores_needed: bool) -> dict[str, float]:
    """Tag → its score, NaN if it has none; raises a DataError for what cannot be written."""
    if isinstance(tags, str):
        raise DataError(f"'tags' must be names or a mapping of names to scores, got {tags!r}.")
    scores = {}
    if isinstance(tags, Mapping):
        for tag, score in tags.items():
            scores[_checked_name(tag, "tags")] = float(score)
    else:
        for tag in tags:
            scores[_checked_name(tag, "tags")] = math.nan
    if scores_needed and any(map(math.isnan, scores.values())):
        raise DataError(
            "With scores=True, 'tags' must map names to scores. Pass such a mapping, or omit "
            "scores."
        )
    return scores


def _checked_name(tag: str, argument: str) -> str:
    """The tag without white space around it, if it can be written to a file."""
    if not isinstance(tag, str) or not tag.strip():
        raise DataError(f"'{argument}' must hold names, got {tag!r}.")
    if problem := name_problem(tag):
        raise DataError(f"A tag in '{argument}' {problem}: {tag!r}. Rename it with an alias.")
    return tag.strip()


def name_problem(name: str) -> str:
    """Why no file can hold a name, or ""."""
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in name.strip()):
        return "has a control character or one that is not valid Unicode"
    return ""


def _check(argument: str, value: object, allowed: Collection[object]) -> None:
    for choice in allowed:
        if type(value) is type(choice) and value == choice:
            return
    choices = ", ".join(repr(choice) for choice in allowed)
    raise DataError(f"'{argument}' must be one of {choices}, got {value!r}.")
