"""Names to codes, and distinct rows, against plain Python."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import codes as codes_module
from harmonium.data.codes import distinct_rows, encode, encode_batches, first_equal, most_frequent

SETTINGS = settings(deadline=None, max_examples=60)


def assert_encodes(values):
    codes, names = encode(pl.Series(values, dtype=pl.String))
    assert codes.dtype == np.int32
    assert names.to_list() == list(dict.fromkeys(values))
    assert [names[int(code)] for code in codes] == values


@given(st.lists(st.text(max_size=3), max_size=80))
@SETTINGS
def test_encode_numbers_the_names_by_first_appearance(values):
    assert_encodes(values)


@given(st.lists(st.text("ab", max_size=4), max_size=60), st.integers(1, 20))
@SETTINGS
def test_batches_make_no_difference(values, size):
    batches = [
        {"a": pl.Series(values[i : i + size], dtype=pl.String)} for i in range(0, len(values), size)
    ]
    codes, names = encode_batches(lambda: batches, ["a"])["a"]
    whole = encode(pl.Series(values, dtype=pl.String))
    assert codes.tolist() == whole.codes.tolist()
    assert names.to_list() == whole.names.to_list()


def test_more_names_than_a_block_and_a_table_hold(monkeypatch):
    monkeypatch.setattr(codes_module, "_BLOCK", 16)
    rng = np.random.default_rng(0)
    assert_encodes([f"name {i}" for i in rng.integers(0, 900, 3000)])


def test_names_that_share_a_hash_are_told_apart(monkeypatch):
    seeds = []

    def colliding(values, seed):
        seeds.append(seed)
        if seed == 0:  # the first try: only the length counts
            return values.str.len_bytes().to_numpy().astype(np.uint64) << np.uint64(60)
        return values.hash(seed=seed).to_numpy()

    monkeypatch.setattr(codes_module, "_hashes", colliding)
    assert_encodes(["rock", "jazz", "pop", "rock", "jazz", "soul"])
    assert {0, 2} <= set(seeds)


@given(st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 7]), max_size=40))
@SETTINGS
def test_first_equal_is_the_index_of_the_first(keys):
    assert first_equal(np.array(keys, np.uint64)).tolist() == [keys.index(key) for key in keys]


@pytest.mark.parametrize("size", [4, 2**31])  # packed into 63 bits, and too wide for that
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=40))
@SETTINGS
def test_distinct_rows_are_the_sorted_set(size, rows):
    columns = [np.array([row[i] for row in rows], np.int32) for i in range(3)]
    distinct = distinct_rows(*((column, size) for column in columns))
    assert list(zip(*(column.tolist() for column in distinct), strict=True)) == sorted(set(rows))


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 25))
@SETTINGS
def test_most_frequent_breaks_ties_by_the_alphabet(totals, n):
    names = [f"tag{(7 * i) % 20:02d}" for i in range(len(totals))]
    expected = sorted(range(len(totals)), key=lambda i: (-totals[i], names[i]))[:n]
    found = most_frequent(np.array(totals, np.int64), pl.Series(names, dtype=pl.String), n)
    assert found.tolist() == expected
