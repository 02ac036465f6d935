"""Names of tags and artists: one spelling for each, several tags in one text, and a genre tree.

One text may hold several tags, such as "Jazz; Blues", "Pop, Rock" or "Jazz/Vocal/Blues".
Semicolons, bars, NUL and line breaks always separate tags. Commas and slashes do so only if it is
safe: "Jazz/Blues" is two genres, "Pop/Rock" one and "AC/DC" none. A text is split at them if it is
not itself a known name, and if every part is

- a genre or a usual tag of the built-in tree,
- or a text that stands alone elsewhere,
- or a part of at least two different texts.

Ampersands, plus signs and "and" never separate tags, unless asked to. A text that stays whole may
still mean several tags: `possible_parts` returns these, so that they do not count as absent.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from harmonium.arrays import Codes
from harmonium.data.tables import encode
from harmonium.errors import DataError
from harmonium.files import read_toml

AUDIO_FEATURES = (
    *("energy", "valence", "danceability", "acousticness"),
    *("instrumentalness", "liveness", "speechiness"),
)
"""Tags of the built-in model without a threshold: their probability is a value from 0 to 1, and
they are not listed or written as tags."""

# White space, underscores, Unicode's dashes, and the minus sign.
_ASCII_SEPARATORS = r"[\s\x1c-\x1f_\-]+"
_SEPARATORS = re.compile(
    r"[\s\x1c-\x1f_\-\u058a\u05be\u1400\u1806\u2010-\u2015\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40"
    r"\u2e5d\u301c\u3030\u30a0\U00010ead]+"
)
# A guest begins with one of these words, in brackets or not, after at least one word of the name.
_GUESTS = re.compile(r"(?<=\S)\s*[\s(\[](?:feat|ft|featuring)(?:\.|\s).*$")
_AND = re.compile(r"\s*[&+]\s*")

_ALWAYS = re.compile(r"[;|\0\n\r]|\\\\")
_SOMETIMES = re.compile(r"[,/]")
_LISTED = re.compile(r"[,/;|\\]")
_JOINED = re.compile(r"[&+]| and | n |'n'", re.IGNORECASE)
_AROUND, _SLASH = re.compile(r"\s*([,/])\s*"), re.compile(r"\s*/\s*")

OWN = "own"  # the kind of a tag if nothing else is known
KINDS = ("genre", "mood", "instrument", "voice", "era", "sound", OWN)  # the kinds of tags
NO_TAG = "none"  # instead of a kind: for words that are not tags, see `not_tags.toml`
_NUMBER = re.compile(r"\(?\d+\)?")
_TREE_TABLES = {
    "kinds": "a table of genres and lists of their kinds",
    "aliases": "a table of names and genres",
    "compounds": "a list of names",
    "words": "a list of names",
}


def normalise_tag(tag: str) -> str:
    """The tag in lower case, with single spaces between words.

    Unicode's compatibility form (NFKC) makes full-width and decomposed letters plain, case is
    folded, and runs of white space, hyphens, dashes and underscores become one space, with none
    left at the ends: "Hip-Hop", "hip_hop " and "HIP  HOP" are all "hip hop".
    """
    folded = unicodedata.normalize("NFKC", tag).casefold()
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", folded)).strip(" ")


def normalise_names(names: pl.Series) -> pl.Series:
    """normalise_tag of each name, (n,)."""
    # For ASCII, NFKC changes nothing and folding is lower case: polars does all at once.
    normal = names.str.to_lowercase().str.replace_all(_ASCII_SEPARATORS, " ").str.strip_chars(" ")
    others = np.flatnonzero((names.str.len_bytes() != names.str.len_chars()).to_numpy())
    if len(others):
        normal = normal.scatter(others, [normalise_tag(name) for name in names.gather(others)])
    return normal


def speller(
    *, normalise: bool, aliases: Mapping[str, str] | None
) -> Callable[[pl.Series], pl.Series]:
    """A function from tags to their final spelling: normalised, then replaced by their alias."""
    table = resolve_aliases(aliases or {}, normalise=normalise)

    def spell(tags: pl.Series) -> pl.Series:
        if normalise:
            tags = normalise_names(tags)
        return tags.replace(list(table), list(table.values())) if table else tags

    return spell


def resolve_aliases(aliases: Mapping[str, str], *, normalise: bool) -> dict[str, str]:
    """The alias table, both sides normalised, with chains (a to b, b to c) followed to the end."""
    table: dict[str, str] = {}
    for spelling, tag in aliases.items():
        if normalise:
            spelling, tag = normalise_tag(spelling), normalise_tag(tag)
        if not spelling.strip() or not tag.strip():
            raise DataError(f"'aliases' has an empty tag: {spelling!r} -> {tag!r}. Leave it out.")
        if table.setdefault(spelling, tag) != tag:
            raise DataError(
                f"'aliases' gives {spelling!r} two meanings, {table[spelling]!r} and {tag!r}. "
                "Keep one of them."
            )
    resolved = {}
    for spelling, tag in table.items():
        seen = {spelling}
        while table.get(tag, tag) != tag:
            seen.add(tag)
            tag = table[tag]
            if tag in seen:
                raise DataError(f"'aliases' goes in a circle through {tag!r}. Break it there.")
        resolved[spelling] = tag
    return resolved


def artist_key(name: str) -> str:
    """A key that all spellings of an artist's name share.

    Case, accents, punctuation, spaces, a leading or trailing "The", guests ("feat. …"), and the
    choice between "&", "+" and "and" make no difference: "The Prodigy", "Prodigy" and "Prodigy,
    The" are one; so are "Simon & Garfunkel" and "Simon and Garfunkel". It is for grouping, where
    mixing up two artists does no harm: letters that differ only by an accent count as equal. A name
    without any letter or digit ("!!!") stays as it is.
    """
    folded = unicodedata.normalize("NFKD", name).casefold().strip()
    words = _AND.sub(" and ", _GUESTS.sub("", folded)).strip()
    without = words.removeprefix("the ").removesuffix(", the")
    keys = ("".join(filter(str.isalnum, text)) for text in (without, words, folded))
    return next(filter(None, keys), folded)


def artist_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal if two rows share an artist.

    Each column names a row's artist in its own way, such as by name and by id. Two rows share an
    artist if they agree in one of the columns, up to the spelling of `artist_key`, or if other rows
    link them.
    """
    keys = []
    for column in columns:
        names = column.unique()
        spelled = pl.Series([artist_key(name) for name in names], dtype=pl.String)
        keys.append(column.replace_strict(names, spelled, return_dtype=pl.String))
    return linked_groups(*keys)


def linked_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal if rows agree in a column or others link them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(columns[0])
    codes, size = [], n
    for column in columns:
        found, names = encode(column)
        codes.append(size + found.astype(np.int64))
        size += len(names)
    rows = np.tile(np.arange(n), len(columns))
    links = coo_array((np.ones(len(rows), np.int8), (rows, np.concatenate(codes))), (size, size))
    groups = connected_components(links, directed=False)[1][:n]
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


@dataclass(frozen=True)
class GenreTree:
    """Which genre is a kind of which, and which names mean the same; all names are normalised."""

    parents: Mapping[str, frozenset[str]] = field(default_factory=dict)  # genre → its parents
    aliases: Mapping[str, str] = field(default_factory=dict)  # another name → the genre
    spellings: Mapping[str, str] = field(default_factory=dict)  # normalised name → spelling
    compounds: frozenset[str] = frozenset()  # names that look like several genres but are one
    words: frozenset[str] = frozenset()  # other tags that are known

    def __bool__(self) -> bool:
        return bool(self.parents or self.aliases)

    def knows(self, name: str) -> bool:
        """Whether a normalised name is a genre or another known tag."""
        return any(name in names for names in (self.parents, self.aliases, self.words))

    def canonical(self, name: str) -> str:
        """The main name of a genre."""
        return self.aliases.get(name, name)

    def ancestors(self, name: str) -> list[str]:
        """A genre's ancestors, the nearest first."""
        found: dict[str, None] = {}
        level = [self.canonical(name)]
        while level:
            level = [one for child in level for one in sorted(self.parents.get(child, ()))]
            level = [one for one in level if one not in found]
            found |= dict.fromkeys(level)
        return list(found)

    def counts_for(self, name: str) -> set[str]:
        """The tags whose tracks count for a genre: its other names, and all its subgenres."""
        genre = self.canonical(name)
        names = {*self.parents, *self.aliases}
        return {one for one in names if genre in (self.canonical(one), *self.ancestors(one))}

    def in_list(self, name: str, allowed: Iterable[str]) -> str | None:
        """The nearest genre on a list that a tag means or descends from; normalised."""
        there = {self.canonical(one): one for one in map(normalise_tag, allowed)}
        chain = [self.canonical(name), *self.ancestors(name)]
        return next((there[one] for one in chain if one in there), None)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, and for `from_dict`."""
        kinds: dict[str, list[str]] = {}
        for child, parents in self.parents.items():
            kinds.setdefault(self.spellings[child], [])
            for parent in parents:
                kinds.setdefault(self.spellings[parent], []).append(self.spellings[child])
        return {
            "kinds": kinds,
            "aliases": {name: self.spellings[genre] for name, genre in self.aliases.items()},
            "compounds": sorted(self.compounds),
            "words": sorted(self.words),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "the tree of genres") -> Self:
        """From tables like those in `genres.toml`, checked."""
        for name, value in data.items():
            if name not in _TREE_TABLES:
                raise DataError(
                    f"There is no '{name}' in {source}; there are {', '.join(_TREE_TABLES)}."
                )
            if not _is_tree_table(name, value):
                raise DataError(
                    f"'{name}' must be {_TREE_TABLES[name]} in {source}, got {value!r}."
                )
        kinds, aliases = data.get("kinds", {}), data.get("aliases", {})
        parents: dict[str, set[str]] = {}
        spellings: dict[str, str] = {}
        for genre, children in [*kinds.items(), *((genre, ()) for genre in aliases.values())]:
            for name in (genre, *children):
                spellings.setdefault(normalise_tag(name), name.strip())
                parents.setdefault(normalise_tag(name), set())
            for child in children:
                parents[normalise_tag(child)].add(normalise_tag(genre))
        other_names = resolve_aliases(aliases, normalise=True)
        same = {name: genre for name, genre in other_names.items() if name != genre}
        for name in same:
            if parents.get(name):
                raise DataError(f"{source}: {name!r} is another name, so it can have no parents.")
        tree = cls(
            {name: frozenset(above) for name, above in parents.items() if name not in same},
            same,
            spellings,
            frozenset(map(normalise_tag, data.get("compounds", ()))),
            frozenset(map(normalise_tag, data.get("words", ()))),
        )
        for name in tree.parents:
            if name in tree.ancestors(name):
                raise DataError(f"{source}: {name!r} is a kind of itself. Break the circle.")
        return tree


def _is_tree_table(name: str, value: object) -> bool:
    if name == "kinds":
        return isinstance(value, Mapping) and all(map(_are_names, ([*value], *value.values())))
    if name == "aliases":
        return isinstance(value, Mapping) and _are_names([*value.values()])
    return _are_names(value)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and normalise_tag(v) for v in value)


def read_tree(path: Path) -> GenreTree:
    """A tree from a TOML file such as `genres.toml`."""
    return GenreTree.from_dict(read_toml(path, "The genres"), f"the genres '{path}'")


@cache
def builtin_tree() -> GenreTree:
    """The tree of `genres.toml`."""
    return read_tree(Path(__file__).with_name("genres.toml"))


@cache
def words_that_are_not_tags() -> frozenset[str]:
    """The words of `not_tags.toml`, normalised."""
    found = read_toml(Path(__file__).with_name("not_tags.toml"), "The words that are not tags")
    return frozenset(map(normalise_tag, found["words"]))


def kind_of(name: str, kinds: Mapping[str, str]) -> str:
    """The kind of a normalised tag, from ``kinds`` if known; `NO_TAG` for a bare number."""
    return kinds.get(name) or (NO_TAG if _NUMBER.fullmatch(name) else OWN)


class TagSplitter:
    """Splits texts into tags, given all the texts and how often each occurs.

    Tags may be ``known`` from elsewhere. Texts are split only at ``separators``, whatever the parts
    are; if that is empty, nowhere; by default (None) where it is safe.
    """

    def __init__(
        self,
        texts: Iterable[str],
        *,
        known: Iterable[str] = (),
        separators: Sequence[str] | None = None,
    ) -> None:
        self._separator: re.Pattern[str] | None = None
        if separators is not None:
            self._separator = re.compile("|".join(map(re.escape, separators)) or r"(?!)")
        pieces = {piece for text in set(texts) for piece in _ALWAYS.split(text)}
        alone = {_key(piece) for piece in pieces if not _SOMETIMES.search(piece)}
        wholes = {_key(piece) for piece in pieces if _SOMETIMES.search(piece)}
        shared = Counter(part for one in wholes for part in set(map(_key, _SOMETIMES.split(one))))
        recurring = {part for part, n in shared.items() if n > 1}
        elsewhere = {_key(name) for name in known if not _SOMETIMES.search(name)}
        self._known = {*alone, *recurring, *elsewhere} - {""}

    def split(self, text: str) -> tuple[str, ...]:
        """The tags in a text as spelt there, each once; may be empty."""
        if self._separator is not None:
            found = self._separator.split(text)
        else:
            found = [part for piece in _ALWAYS.split(text) for part in self._split_piece(piece)]
        spelled = {_key(part): " ".join(part.split()) for part in reversed(found)}
        return tuple(spelled[key] for key in dict.fromkeys(map(_key, found)) if key)

    def _split_piece(self, piece: str) -> list[str]:
        """The parts between commas and slashes; the whole text if a part is unknown."""
        if not _SOMETIMES.search(piece) or self._is_name(piece):
            return [_SLASH.sub("/", piece)]
        parts = []
        for listed in piece.split(","):
            words = listed.split("/")
            while words:  # the longest names first: International/Pop/Rock has Pop/Rock in it
                ends = range(len(words), 0, -1)
                end = next((n for n in ends if self._is_name("/".join(words[:n]))), 0)
                if not end:
                    return [piece]
                parts.append(_SLASH.sub("/", "/".join(words[:end])))
                words = words[end:]
        return parts

    def _is_name(self, text: str) -> bool:
        """Whether a text as a whole is a name, although it contains a separator."""
        key = _key(text)
        tree = builtin_tree()
        return not key or key in tree.compounds or key in self._known or tree.knows(key)


def possible_parts(tag: str) -> frozenset[str]:
    """The normalised tags that an unsplit text may mean; none if it is plainly one tag."""
    listed = _LISTED.split(tag)
    parts = {normalise_tag(part) for one in listed for part in (one, *_JOINED.split(one))}
    return frozenset(parts - {"", normalise_tag(tag)})


def _key(text: str) -> str:
    """A normalised text, without space around commas and slashes."""
    return normalise_tag(_AROUND.sub(r"\1", text))
