"""A tree of genres: which is a kind of which, and which names mean the same."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from harmonium.data.normalise import normalise_tag, resolve_aliases
from harmonium.errors import DataError

OWN = Path(__file__).with_name("genres.toml")
"""The tree that comes with Harmonium."""
_TABLES, _LISTS = ("kinds", "aliases"), ("compounds", "words")


@dataclass(frozen=True)
class GenreTree:
    """Genres by their normalised names.

    Without any genre, every tag is its own and only name, and of no kind.
    """

    parents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Genre → those that it is a kind of."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Another name → the genre."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Normalised name → how it is written."""
    compounds: frozenset[str] = frozenset()
    """Names that look like several genres and are one."""
    words: frozenset[str] = frozenset()
    """Other tags that are known."""

    def __bool__(self) -> bool:
        return bool(self.parents or self.aliases)

    def knows(self, name: str) -> bool:
        """Whether a normalised name is that of a genre, or another known tag."""
        return any(name in names for names in (self.parents, self.aliases, self.words))

    def canonical(self, name: str) -> str:
        """The one name of a genre."""
        return self.aliases.get(name, name)

    def ancestors(self, name: str) -> list[str]:
        """What a genre is a kind of, the nearest first."""
        found: dict[str, None] = {}
        level = [self.canonical(name)]
        while level:
            level = [one for child in level for one in sorted(self.parents.get(child, ()))]
            level = [one for one in level if one not in found]
            found |= dict.fromkeys(level)
        return list(found)

    def counts_for(self, name: str) -> set[str]:
        """The tags whose tracks count for a genre: its other names, and all its kinds."""
        genre = self.canonical(name)
        names = {*self.parents, *self.aliases}
        return {one for one in names if genre in (self.canonical(one), *self.ancestors(one))}

    def in_list(self, name: str, allowed: Iterable[str]) -> str | None:
        """The nearest genre on a list that a tag means, or that it is a kind of; normalised."""
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
    def from_dict(cls, data: Mapping[str, Any], source: str = "the tree of genres") -> GenreTree:
        """From tables as those of `genres.toml`, checked."""
        _check(data, source)
        kinds, aliases = data.get("kinds", {}), data.get("aliases", {})
        parents: dict[str, set[str]] = {}
        spellings: dict[str, str] = {}
        for genre, children in kinds.items():
            for name in (genre, *children):
                spellings.setdefault(normalise_tag(name), name.strip())
                parents.setdefault(normalise_tag(name), set())
            for child in children:
                parents[normalise_tag(child)].add(normalise_tag(genre))
        other_names = resolve_aliases(aliases, normalise=True)
        for genre in aliases.values():
            spellings.setdefault(normalise_tag(genre), genre.strip())
            parents.setdefault(normalise_tag(genre), set())
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


def read_tree(path: Path) -> GenreTree:
    """A tree from a TOML file such as `genres.toml`."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"The genres '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"The genres '{path}' are not TOML: {error}.") from None
    return GenreTree.from_dict(data, f"the genres '{path}'")


@cache
def own_tree() -> GenreTree:
    """The tree that comes with Harmonium."""
    return read_tree(OWN)


def _check(data: Mapping[str, Any], source: str) -> None:
    for name, value in data.items():
        if name not in (*_TABLES, *_LISTS):
            raise DataError(
                f"There is no '{name}' in {source}; there are {', '.join((*_TABLES, *_LISTS))}."
            )
        if name == "kinds":
            right = isinstance(value, Mapping) and all(map(_is_texts, ([*value], *value.values())))
            wanted = "a table of genres and lists of their kinds"
        elif name == "aliases":
            right = isinstance(value, Mapping) and _is_texts(list(value.values()))
            wanted = "a table of names and genres"
        else:
            right, wanted = _is_texts(value), "a list of names"
        if not right:
            raise DataError(f"'{name}' must be {wanted} in {source}, got {value!r}.")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and normalise_tag(v) for v in value)
