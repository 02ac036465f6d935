"""One spelling per tag, by normalisation and alias tables; and one key per artist."""

import re
import unicodedata
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from harmonium.arrays import Codes
from harmonium.data.codes import encode
from harmonium.errors import DataError

# White space, underscores, and what Unicode calls dashes, with the minus sign.
_ASCII_SEPARATORS = r"[\s\x1c-\x1f_\-]+"
_SEPARATORS = re.compile(
    r"[\s\x1c-\x1f_\-\u058a\u05be\u1400\u1806\u2010-\u2015\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40"
    r"\u2e5d\u301c\u3030\u30a0\U00010ead]+"
)
# A guest begins with one of these words, in brackets or not, after at least one word of the name.
_GUESTS = re.compile(r"(?<=\S)\s*[\s(\[](?:feat|ft|featuring)(?:\.|\s).*$")
_AND = re.compile(r"\s*[&+]\s*")


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


def artist_key(name: str) -> str:
    """What the spellings of one artist's name have in common.

    Case, accents, punctuation, spaces, a leading or trailing "The", guests ("feat. …"), and the
    choice between "&", "+" and "and" make no difference: "The Prodigy", "Prodigy" and "Prodigy,
    The" are one; so are "Simon & Garfunkel" and "Simon and Garfunkel". It is for grouping, where
    taking two artists for one does no harm: letters that differ by an accent only count as equal.
    A name without any letter or digit ("!!!") stays as it is.
    """
    folded = unicodedata.normalize("NFKD", name).casefold().strip()
    words = _AND.sub(" and ", _GUESTS.sub("", folded)).strip()
    without = words.removeprefix("the ").removesuffix(", the")
    for text in (without, words, folded):
        key = "".join(letter for letter in text if letter.isalnum())
        if key:
            return key
    return folded


def artist_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal where two rows have an artist in common.

    Each column names the artist of a row in its own way, such as by name and by id; rows are of one
    artist if they agree in one of the columns, up to the spelling of `artist_key`, or if others
    link them.
    """
    keys = []
    for column in columns:
        names = column.unique()
        spelled = pl.Series([artist_key(name) for name in names], dtype=pl.String)
        keys.append(column.replace_strict(names, spelled, return_dtype=pl.String))
    return linked_groups(*keys)


def linked_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal where rows agree in a column or where others link them."""
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
