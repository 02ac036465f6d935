"""One spelling per tag: normalisation and alias tables."""

import re
import unicodedata
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from harmonium.errors import DataError

# White space, underscores, and what Unicode calls dashes, with the minus sign.
_ASCII_SEPARATORS = r"[\s\x1c-\x1f_\-]+"
_SEPARATORS = re.compile(
    r"[\s\x1c-\x1f_\-\u058a\u05be\u1400\u1806\u2010-\u2015\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40"
    r"\u2e5d\u301c\u3030\u30a0\U00010ead]+"
)


def normalise_tag(tag: str) -> str:
    """The tag in lower case, its words set apart by single spaces.

    Unicode's compatibility form (NFKC) makes full-width and decomposed letters plain, case is
    folded, and runs of white space, hyphens, dashes and underscores become one space, with none
    left at the ends: "Hip-Hop", "hip_hop " and "HIP  HOP" are all "hip hop".
    """
    folded = unicodedata.normalize("NFKC", tag).casefold()
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", folded)).strip(" ")


def normalise_names(names: pl.Series) -> pl.Series:
    """normalise_tag of each name, (n,)."""
    # ASCII is its own NFKC, and its lower case is its folded case: polars does these all at once.
    normal = names.str.to_lowercase().str.replace_all(_ASCII_SEPARATORS, " ").str.strip_chars(" ")
    others = np.flatnonzero((names.str.len_bytes() != names.str.len_chars()).to_numpy())
    if len(others):
        normal = normal.scatter(others, [normalise_tag(name) for name in names.gather(others)])
    return normal


def speller(
    *, normalise: bool, aliases: Mapping[str, str] | None
) -> Callable[[pl.Series], pl.Series]:
    """A function from tags to their final spelling: normalised, then replaced by their alias."""
    table = resolve_aliases(aliases, normalise=normalise) if aliases else {}

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
    return {spelling: _end_of_chain(table, spelling) for spelling in table}


def _end_of_chain(table: Mapping[str, str], spelling: str) -> str:
    seen = {spelling}
    while (tag := table.get(spelling, spelling)) != spelling:
        if tag in seen:
            raise DataError(f"'aliases' goes in a circle through {tag!r}. Break it at one entry.")
        seen.add(tag)
        spelling = tag
    return spelling
