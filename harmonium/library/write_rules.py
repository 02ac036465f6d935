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
from collections.abc import Iterable, Mapping, Sequence
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


def read_rules(path: Path) -> dict[str, Any]:
    """What a TOML file says, checked; a part of the rules."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"The rules '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"The rules '{path}' are not TOML: {error}.") from None
    try:
        make_rules([said])
    except DataError as error:
        raise DataError(f"The rules '{path}' cannot be used: {error}") from None
    return said


def make_rules(layers: Sequence[Mapping[str, Any]]) -> Rules:
    """Rules made of several layers: later ones win, tables are united, tags to ignore add up."""
    whole = join_layers(layers)
    for name in whole.keys() - set(RULE_NAMES):
        raise DataError(f"There is no rule '{name}'. There are {', '.join(RULE_NAMES)}.")
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
            before = whole.get(name)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                value = {**before, **value}
            elif name == "ignore" and isinstance(value, list | tuple):
                both = [*(before or ()), *value]
                value = [tag for i, tag in enumerate(both) if tag not in both[:i]]
            whole[name] = value
    return whole


def library_rules(
    library: Library, layers: Sequence[Mapping[str, Any]], tags: Iterable[str]
) -> Rules:
    """Rules made of layers; with a tree of genres, kinds of a genre on the whitelist become it.

    ``tags`` are all that tracks may have.
    """
    whole = join_layers(layers)
    tree, whitelist = library.genres(), whole.get("whitelist")
    if not tree or not whitelist:
        return make_rules([whole])
    spellings = library.spellings()
    nearest = {tag: tree.in_list(tag, whitelist) or tag for tag in tags}
    aliases = {tag: spellings.get(name, name) for tag, name in nearest.items() if tag != name}
    return make_rules([{"aliases": aliases}, whole])


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """TAG=VALUE, each once."""
    found = {}
    for pair in pairs:
        tag, equals, value = pair.rpartition("=")
        if not equals or not tag.strip() or not value.strip():
            raise DataError(f"{option} takes TAG=VALUE, got '{pair}'.")
        found[tag.strip()] = value.strip()
    return found
