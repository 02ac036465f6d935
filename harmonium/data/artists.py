"""Names of artists: one key for all spellings, and groups of rows by artist."""

import re
import unicodedata

import numpy as np
import polars as pl

from harmonium.arrays import Codes
from harmonium.data.coded import encode

# A guest begins with one of these words, in brackets or not, after at least one word of the name.
_GUESTS = re.compile(r"(?<=\S)\s*[\s(\[](?:feat|ft|featuring)(?:\.|\s).*$")
_AND = re.compile(r"\s*[&+]\s*")


def artist_key(name: str) -> str:
    """A key that all spellings of an artist's name share.

    Case, accents, punctuation, spaces, a leading or trailing "The", guests ("feat. …"), and the
    choice between "&", "+" and "and" make no difference: "The Prodigy", "Prodigy" and "Prodigy,
    The" are one; so are "Simon & Garfunkel" and "Simon and Garfunkel". It is for grouping, where
    mixing up two artists does no harm: letters that differ only by an accent count as equal. A name
    without any letter or digit ("!!!") stays as it is.
    """
    folded = unicodedata.normalize("NFKD", name).casefold().strip()
    words = _AND.sub(" and ", _GUESTS.sub("", folded)).strip()
    without_article = words.removeprefix("the ").removesuffix(", the")
    for text in (without_article, words, folded):
        key = "".join(filter(str.isalnum, text))
        if key:
            return key
    return folded


def artist_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal if two rows share an artist.

    Each column names a row's artist in its own way, such as by name and by id. Two rows share an
    artist if they agree in one of the columns, up to the spelling of `artist_key`, or if other rows
    link them.
    """
    keys = []
    for column in columns:
        names = column.unique()
        spelled = pl.Series([artist_key(name) for name in names], dtype=pl.String)
        keys.append(column.replace_strict(names, spelled, return_dtype=pl.String))
    return linked_groups(*keys)


def linked_groups(*columns: pl.Series) -> Codes:
    """(n,) a number for each row, equal if rows agree in a column or others link them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # A graph whose nodes are the rows, then the names of each column.
    n_rows = len(columns[0])
    n_nodes = n_rows
    nodes_of_names = []
    for column in columns:
        coded = encode(column)
        nodes_of_names.append(n_nodes + coded.codes.astype(np.int64))
        n_nodes += len(coded.names)
    rows = np.tile(np.arange(n_rows), len(columns))
    ones = np.ones(len(rows), np.int8)
    links = coo_array((ones, (rows, np.concatenate(nodes_of_names))), (n_nodes, n_nodes))
    _, component = connected_components(links, directed=False)
    _, group = np.unique(component[:n_rows], return_inverse=True)
    return group.astype(np.int32)
