"""Names as codes, against plain Python."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data.coded import distinct_rows, encode, most_frequent

SETTINGS = settings(deadline=None, max_examples=60)


@given(st.lists(st.text(max_size=3), max_size=60))
@SETTINGS
def test_names_are_numbered_by_first_appearance(values):
    codes, names = encode(pl.Series(values, dtype=pl.String))
    assert names.to_list() == list(dict.fromkeys(values))
    assert [names[int(code)] for code in codes] == values


@pytest.mark.parametrize("most", [3, 2**31 - 1])  # packed into 63 bits, and too wide for that
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=40))
@SETTINGS
def test_distinct_rows_are_the_sorted_set(most, rows):
    rows = [(most, most, most), *rows]
    columns = [np.array([row[i] for row in rows], np.int32) for i in range(3)]
    distinct = distinct_rows(*columns)
    assert list(zip(*(column.tolist() for column in distinct), strict=True)) == sorted(set(rows))


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 25))
@SETTINGS
def test_most_frequent_breaks_ties_by_the_alphabet(totals, n):
    names = [f"tag{(7 * i) % 20:02d}" for i in range(len(totals))]
    expected = sorted(range(len(totals)), key=lambda i: (-totals[i], names[i]))[:n]
    found = most_frequent(np.array(totals, np.int64), pl.Series(names, dtype=pl.String), n)
    assert found.tolist() == expected
