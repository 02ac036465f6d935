"""Any triples of a few names, for tests that compare with a loop."""

import polars as pl
from hypothesis import strategies as st

from harmonium.data import Triples

ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from("rst")), max_size=60
)


def columns_of(table, n):
    return [pl.Series([row[i] for row in table], dtype=pl.String) for i in range(n)]


def triples_of(rows):
    return Triples.from_columns(*columns_of(rows, 3))
