"""The rules of writing in layers: what the library remembers, a file, options.

A file of rules is TOML with the names of `filetags.Rules`::

    mode = "merge"
    default_field = "grouping"      # or "none": tags without a field are left out
    ignore = ["seen live"]

    [fields]
    mellow = "mood"

    [aliases]
    "hip hop" = "Hip-Hop"
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from harmonium.errors import DataError
from harmonium.library.filetags import Rules
from harmonium.library.library import Library

RULES_SETTING = "write_rules"
"""Where a library remembers them."""
NOT_WRITTEN = "none"
"""The default field of rules that leave out tags without a field."""
RULE_NAMES = tuple(one.name for one in fields(Rules))
_MAPPINGS, _LISTS = ("fields", "aliases"), ("ignore", "whitelist")


def read_rules(path: Path) -> dict[str, Any]:
    """What a TOML file says, checked; a part of the rules."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"The rules '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"The rules '{path}' are not TOML: {error}.") from None
    make_rules([said], source=f"the rules '{path}'")
    return said


def make_rules(layers: Sequence[Mapping[str, Any]], *, source: str = "the rules") -> Rules:
    """Rules made of several layers: later ones win, tables are united, tags to ignore add up."""
    for layer in layers:
        _check({name: value for name, value in layer.items() if value is not None}, source)
    whole = join_layers(layers)
    if whole.get("default_field") == NOT_WRITTEN:
        whole["default_field"] = None
    return Rules(**whole)


def join_layers(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One layer made of several; None in a layer means that it says nothing."""
    whole: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if value is None:
                continue
            if name in _MAPPINGS and isinstance(value, Mapping):
                whole[name] = {**whole.get(name, {}), **value}
            elif name == "ignore" and isinstance(value, list | tuple):
                whole[name] = list(dict.fromkeys([*whole.get(name, []), *value]))
            else:
                whole[name] = value
    return whole


def library_rules(
    library: Library, layers: Sequence[Mapping[str, Any]], tags: Iterable[str]
) -> Rules:
    """Rules made of layers; with a tree of genres, kinds of a genre on the whitelist become it.

    ``tags`` are all that tracks may have.
    """
    whole = join_layers(layers)
    return make_rules([{"aliases": _on_list(library, whole.get("whitelist"), tags)}, whole])


def _on_list(
    library: Library, whitelist: Collection[str] | None, tags: Iterable[str]
) -> dict[str, str]:
    """Tag → the genre on the whitelist that it is a kind of, by the library's tree of genres."""
    tree, spellings = library.genres(), library.spellings()
    if not tree or not whitelist:
        return {}
    nearest = {tag: tree.in_list(tag, whitelist) or tag for tag in tags}
    return {tag: spellings.get(name, name) for tag, name in nearest.items() if tag != name}


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """TAG=VALUE, each once."""
    found = {}
    for pair in pairs:
        tag, equals, value = pair.rpartition("=")
        if not equals or not tag.strip() or not value.strip():
            raise DataError(f"{option} takes TAG=VALUE, got '{pair}'.")
        found[tag.strip()] = value.strip()
    return found


def _check(said: Mapping[str, Any], source: str) -> None:
    """That the values are of the kinds that `Rules` takes; it checks the rest itself."""
    for name, value in said.items():
        if name not in RULE_NAMES:
            raise DataError(
                f"There is no rule '{name}', which {source} name. "
                f"There are {', '.join(RULE_NAMES)}."
            )
        if name in _MAPPINGS:
            right = isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values())
            wanted = "a table of tags and texts"
        elif name in _LISTS:
            right = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
            wanted = "a list of tags"
        elif name == "scores":
            right, wanted = isinstance(value, bool), "true or false"
        elif name == "id3_version":
            right, wanted = type(value) is int, "3 or 4"
        else:
            right, wanted = isinstance(value, str), "a text"
        if not right:
            raise DataError(f"'{name}' must be {wanted} in {source}, got {value!r}.")
