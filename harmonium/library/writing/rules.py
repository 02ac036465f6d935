"""A library's rules for writing: what it remembers, on top of the default field of each kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harmonium.data.tag_names import KINDS, NO_TAG
from harmonium.library.filetags import Rules
from harmonium.library.filetags.rules import KIND_FIELDS, NOWHERE, fold, join_layers, make_rules

if TYPE_CHECKING:
    from harmonium.library.library import Library

RULES_SETTING = "write_rules"  # where a library remembers its rules for writing


def remembered_rules(library: Library) -> dict[str, Any]:
    """The layer of rules that a library remembers."""
    return library.settings.get(RULES_SETTING, {})


def library_rules(library: Library, layers: Sequence[Mapping[str, Any]]) -> Rules:
    """Rules made from layers, on top of the default fields of each kind of tag.

    With a genre tree, genres below one on the whitelist are written as that one. If
    ``default_field`` is set, all tags that no rule names go there.
    """
    whole = join_layers(layers)
    tags = library.snapshot().tags
    for option in ("whitelist", "ignore"):
        if option in whole and not isinstance(whole[option], str):
            whole[option] = [tags.name(tag) for tag in whole[option]]
    usual = {
        "fields": {} if "default_field" in whole else KIND_FIELDS,
        "kinds": library.tags.kinds(),
        "aliases": _genres_on_list(library, tags.names, whole.get("whitelist") or ()),
    }
    return make_rules([usual, whole])


def _genres_on_list(
    library: Library, tags: Iterable[str], whitelist: Collection[str]
) -> dict[str, str]:
    """Tag → the spelling of the genre on the whitelist that is nearest above it in the tree."""
    tree = library.genres()
    if not tree or not whitelist:
        return {}
    spellings = library.tags.spellings()
    nearest = {}
    for tag in tags:
        genre = tree.in_list(tag, whitelist)
        if genre is not None and genre != tag:
            nearest[tag] = spellings.get(genre, genre)
    return nearest


def write_fields(library: Library) -> dict[str, str]:
    """Kind or tag → its field, as the library remembers."""
    rules = library_rules(library, [remembered_rules(library)])
    fields = dict.fromkeys(KINDS, rules.default_field or NOWHERE) | dict(rules.fields)
    return {name: field for name, field in fields.items() if name != NO_TAG}


def remember_fields(library: Library, changed: Mapping[str, str | None]) -> None:
    """Remember the fields of kinds or tags; None restores the default field."""
    kept = remembered_rules(library)
    fields = {fold(name): field for name, field in kept.get("fields", {}).items()}
    for name, field in changed.items():
        if field is None:
            fields.pop(fold(name), None)
        else:
            fields[fold(name)] = field
    kept["fields"] = fields
    library_rules(library, [kept])  # raises a DataError if a field is invalid
    library.settings.set(RULES_SETTING, kept)
