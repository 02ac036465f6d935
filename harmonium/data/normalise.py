"""One spelling per tag."""

import re
import unicodedata
from collections.abc import Mapping

import polars as pl

from harmonium.errors import DataError

# White space, underscores, and every dash of Unicode (category Pd).
_SEPARATORS = re.compile(
    r"[\s_\-\u058a\u05be\u1400\u1806\u2010-\u2015\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030"
    r"\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d\U00010ead]+"
)


def normalise_tag(tag: str) -> str:
    """The tag in lower case, with its words set apart by single spaces.

    Unicode's compatibility form (NFKC) makes full-width and composed letters plain, case is folded,
    and runs of white space, hyphens, dashes and underscores become one space; none is left at the
    ends. "Hip-Hop", "hip_hop " and "HIP  HOP" are all "hip hop".
    """
    folded = unicodedata.normalize("NFKC", tag).casefold()
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", folded)).strip()


def normalise_names(names: pl.Series) -> pl.Series:
    """normalise_tag of each name, (n,)."""
    return pl.Series(names.name, [normalise_tag(name) for name in names], dtype=pl.String)


def resolve_aliases(aliases: Mapping[str, str], *, normalise: bool) -> dict[str, str]:
    """The alias table, both sides normalised, with chains (a to b, b to c) followed to the end."""
    table: dict[str, str] = {}
    for spelling, name in aliases.items():
        if normalise:
            spelling, name = normalise_tag(spelling), normalise_tag(name)
        if not spelling or not name:
            raise DataError(f"'aliases' has an empty tag: {spelling!r} -> {name!r}. Leave it out.")
        if table.setdefault(spelling, name) != name:
            raise DataError(
                f"'aliases' gives {spelling!r} two meanings: {table[spelling]!r} and {name!r}. "
                "Keep one of them."
            )
    return {spelling: _end_of_chain(table, spelling) for spelling in table}


def _end_of_chain(table: Mapping[str, str], spelling: str) -> str:
    seen = {spelling}
    while (name := table.get(spelling, spelling)) != spelling:
        if name in seen:
            raise DataError(f"'aliases' goes in a circle through {name!r}. Break it at one entry.")
        seen.add(name)
        spelling = name
    return spelling


def canonical_names(
    names: pl.Series, *, normalise: bool, aliases: Mapping[str, str] | None
) -> pl.Series:
    """Each name's final spelling, (n,): normalised, then replaced by what it is an alias of."""
    if normalise:
        names = normalise_names(names)
    if aliases:
        table = resolve_aliases(aliases, normalise=normalise)
        names = names.replace(list(table), list(table.values()))
    return names
