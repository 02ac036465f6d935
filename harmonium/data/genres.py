"""The tree of genres: which genre is a kind of which, and which names mean the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from harmonium.data.aliases import resolve_aliases
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError
from harmonium.files import read_toml

_TABLES = {
    "kinds": "a table of genres and lists of their kinds",
    "aliases": "a table of names and genres",
    "compounds": "a list of names",
    "words": "a list of names",
}


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
        ancestors: dict[str, None] = {}
        level = [self.canonical(name)]
        while level:
            parents = [parent for child in level for parent in sorted(self.parents.get(child, ()))]
            level = [parent for parent in parents if parent not in ancestors]
            ancestors |= dict.fromkeys(level)
        return list(ancestors)

    def counts_for(self, name: str) -> set[str]:
        """The tags whose tracks count for a genre: its other names, and all its subgenres."""
        genre = self.canonical(name)
        tags = set()
        for other in (*self.parents, *self.aliases):
            if genre == self.canonical(other) or genre in self.ancestors(other):
                tags.add(other)
        return tags

    def in_list(self, name: str, allowed: Iterable[str]) -> str | None:
        """The nearest genre on a list that a tag means or descends from; normalised."""
        allowed_names = {self.canonical(tag): tag for tag in map(normalise_tag, allowed)}
        for genre in (self.canonical(name), *self.ancestors(name)):
            if genre in allowed_names:
                return allowed_names[genre]
        return None

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
        _check_tables(data, source)
        parents: dict[str, set[str]] = {}
        spellings: dict[str, str] = {}

        def add(name: str) -> str:
            """The normalised name of a genre, which is in the tree from now on."""
            normal = normalise_tag(name)
            spellings.setdefault(normal, name.strip())
            parents.setdefault(normal, set())
            return normal

        for genre, children in data.get("kinds", {}).items():
            parent = add(genre)
            for child in children:
                parents[add(child)].add(parent)
        for genre in data.get("aliases", {}).values():
            add(genre)

        resolved = resolve_aliases(data.get("aliases", {}), normalise=True)
        aliases = {name: genre for name, genre in resolved.items() if name != genre}
        for name in aliases:
            if parents.pop(name, None):
                raise DataError(f"{source}: {name!r} is another name, so it can have no parents.")
        tree = cls(
            parents={name: frozenset(own_parents) for name, own_parents in parents.items()},
            aliases=aliases,
            spellings=spellings,
            compounds=frozenset(map(normalise_tag, data.get("compounds", ()))),
            words=frozenset(map(normalise_tag, data.get("words", ()))),
        )
        for name in tree.parents:
            if name in tree.ancestors(name):
                raise DataError(f"{source}: {name!r} is a kind of itself. Break the circle.")
        return tree


def _check_tables(data: Mapping[str, Any], source: str) -> None:
    """Whether there are only tables of a tree, each of the right form."""
    for name, value in data.items():
        if name not in _TABLES:
            raise DataError(f"There is no '{name}' in {source}; there are {', '.join(_TABLES)}.")
        if not _has_right_form(name, value):
            raise DataError(f"'{name}' must be {_TABLES[name]} in {source}, got {value!r}.")


def _has_right_form(name: str, value: object) -> bool:
    if name == "kinds":
        if not isinstance(value, Mapping):
            return False
        return _are_names([*value]) and all(_are_names(children) for children in value.values())
    if name == "aliases":
        return isinstance(value, Mapping) and _are_names([*value.values()])
    return _are_names(value)


def _are_names(values: object) -> bool:
    if not isinstance(values, list):
        return False
    return all(isinstance(value, str) and normalise_tag(value) for value in values)


def read_tree(path: Path) -> GenreTree:
    """A tree from a TOML file such as `genres.toml`."""
    return GenreTree.from_dict(read_toml(path, "The genres"), f"the genres '{path}'")


@cache
def builtin_tree() -> GenreTree:
    """The tree of `genres.toml`."""
    return read_tree(Path(__file__).with_name("genres.toml"))
