"""One artist in several spellings: whose clips must not be parted between folds."""

import re
import unicodedata

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from harmonium.data.codes import encode

# A guest begins with one of these words, in brackets or not, after at least one word of the name.
_GUESTS = re.compile(r"(?<=\S)\s*[\s(\[](?:feat|ft|featuring)(?:\.|\s).*$")
_AND = re.compile(r"\s*[&+]\s*")


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


def artist_groups(*columns: pl.Series) -> NDArray[np.int32]:
    """(n,) a number for each row, equal where two rows have an artist in common.

    Each column names the artist of a row in its own way, such as by name and by id; rows are of one
    artist if they agree in one of the columns, up to the spelling of `artist_key`, or if others
    link them.
    """
    n = len(columns[0])
    codes, start = [], n
    for column in columns:
        names = column.unique()
        keys = [artist_key(name) for name in names]
        found, different = encode(
            column.replace_strict(names, pl.Series(keys), return_dtype=pl.String)
        )
        codes.append(start + found.astype(np.int64))
        start += len(different)
    rows = np.tile(np.arange(n), len(columns))
    links = coo_array((np.ones(len(rows), np.int8), (rows, np.concatenate(codes))), (start, start))
    groups = connected_components(links, directed=False)[1][:n]
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)
