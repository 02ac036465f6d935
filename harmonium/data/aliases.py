"""Aliases: other spellings of tags, and the tags that they stand for."""

from collections.abc import Callable, Mapping

import polars as pl

from harmonium.data.tables import read_rows
from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import DataError
from harmonium.files import PathLike


def speller(
    *, normalise: bool, aliases: Mapping[str, str] | None
) -> Callable[[pl.Series], pl.Series]:
    """A function from tags to their final spelling: normalised, then replaced by their alias."""
    table = resolve_aliases(aliases or {}, normalise=normalise)

    def spell(tags: pl.Series) -> pl.Series:
        if normalise:
            tags = normalise_names(tags)
        if table:
            tags = tags.replace(list(table), list(table.values()))
        return tags

    return spell


def resolve_aliases(aliases: Mapping[str, str], *, normalise: bool) -> dict[str, str]:
    """The alias table, both sides normalised, with chains (a to b, b to c) followed to the end."""
    table: dict[str, str] = {}
    for spelling, tag in aliases.items():
        if normalise:
            spelling = normalise_tag(spelling)
            tag = normalise_tag(tag)
        if not spelling.strip() or not tag.strip():
            raise DataError(f"'aliases' has an empty tag: {spelling!r} -> {tag!r}. Leave it out.")
        if table.setdefault(spelling, tag) != tag:
            raise DataError(
                f"'aliases' gives {spelling!r} two meanings, {table[spelling]!r} and {tag!r}. "
                "Keep one of them."
            )
    return {spelling: _end_of_chain(table, spelling) for spelling in table}


def _end_of_chain(table: Mapping[str, str], spelling: str) -> str:
    """The tag that a spelling means, by way of others."""
    seen = {spelling}
    tag = table[spelling]
    while table.get(tag, tag) != tag:
        seen.add(tag)
        tag = table[tag]
        if tag in seen:
            raise DataError(f"'aliases' goes in a circle through {tag!r}. Break it there.")
    return tag


def read_aliases(
    path: PathLike,
    *,
    alias: str | int = "alias",
    tag: str | int = "tag",
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> dict[str, str]:
    """An alias table, spelling -> tag, from a file with the columns alias and tag.

    `header`, `delimiter`, `quote` and `encoding` are those of a text file, as in
    `tables.read_rows`.
    """
    rows = read_rows(
        path,
        {"alias": alias, "tag": tag},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    return rows.usable().mapping("alias", "tag")


def read_alias_table(
    aliases: Mapping[str, str] | PathLike | None,
) -> Mapping[str, str] | None:
    """An alias table that was given as such or as a file."""
    if aliases is None or isinstance(aliases, Mapping):
        return aliases
    return read_aliases(aliases)
