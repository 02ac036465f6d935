"""How many users gave each tag to each item, and the labels made from that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triple_rows import ROWS, columns_of, triples_of

from harmonium.data import TagCounts
from harmonium.errors import DataError, DataWarning

COUNTS = st.lists(
    st.tuples(st.sampled_from("wxyz"), st.sampled_from("rst"), st.integers(0, 3)), max_size=30
)


def counts_of(rows, **options):
    return TagCounts.from_columns(*columns_of(rows, 2), [row[2] for row in rows], **options)


@given(ROWS)
@settings(deadline=None, max_examples=60)
def test_the_counts_of_triples_equal_a_loop(rows):
    counts = triples_of(rows).counts()
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            assert counts.matrix[i, j] == len({u for u, x, t in rows if (x, t) == (item, tag)})


@given(ROWS, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_the_top_tags_of_counts_are_those_of_the_triples(rows, n):
    triples = triples_of(rows)
    counts = triples.counts().top(n)
    top = triples.top_tags(n)
    assert counts.tags.to_list() == top.tags.to_list()
    np.testing.assert_array_equal(counts.matrix.toarray(), top.counts().matrix.toarray())
    assert counts.matrix.has_canonical_format


@given(COUNTS, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_labels_equal_a_loop(rows, min_count):
    counts = counts_of(rows)
    labels = counts.labels(min_count=min_count)
    assert labels.shape == (len(counts.items), len(counts.tags))
    assert counts.matrix.has_canonical_format
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            total = sum(n for x, t, n in rows if (x, t) == (item, tag))
            assert counts.matrix[i, j] == total
            expected = 0 if total == 0 else 1 if total >= min_count else np.nan
            np.testing.assert_equal(float(labels[i, j]), float(expected))


def test_counts_of_two_spellings_are_added_up():
    counts = counts_of([("x", "Hip-Hop", 1), ("x", "hip hop", 2), ("x", "rap", 4)])
    assert counts.tags.to_list() == ["hip hop", "rap"]
    assert counts.matrix.toarray().tolist() == [[3, 4]]


def test_counts_of_an_alias_are_added_up():
    merged = counts_of([("x", "Hip-Hop", 1), ("x", "rap", 4)], aliases={"rap": "hip hop"})
    assert merged.matrix.toarray().tolist() == [[5]]


@pytest.mark.parametrize("numbers", [[2.0, 3.0], ["2", " 3 "]], ids=["floats", "texts"])
def test_whole_numbers_in_other_forms(numbers):
    assert TagCounts.from_columns(["x", "x"], ["a", "a"], numbers).matrix.toarray() == [[5]]


def test_counts_that_are_too_large():
    with pytest.raises(DataError, match="add up to 4,000,000,000"):
        TagCounts.from_columns(["x", "x"], ["a", "a"], [2_000_000_000] * 2)


def test_a_count_of_0_keeps_the_item_with_the_tag():
    counts = counts_of([("x", "rock", 0), ("y", "pop", 1)])
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1]]
    assert counts.matrix.nnz == 1


def test_all_items_gives_the_rows():
    counts = counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["z", "y", "x"])
    assert counts.items.to_list() == ["z", "y", "x"]
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1], [2, 0]]


def test_an_item_that_is_not_among_all_items():
    with pytest.raises(DataError, match="'y'"):
        counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["x"])


def test_an_item_that_is_named_twice():
    with pytest.raises(DataError, match="'x'"):
        counts_of([("x", "rock", 2)], all_items=["x", "x"])


@pytest.mark.parametrize("bad", ["-1", "1.5", "many", "", "nan", "inf", "3000000000", "0x10"])
def test_bad_counts_are_left_out_with_a_warning(bad):
    with pytest.warns(DataWarning, match=r"1 of 2 rows .* \(position 1\)"):
        counts = TagCounts.from_columns(["x", "y"], ["a", "b"], ["2", bad])
    assert counts.items.to_list() == ["x"]
    assert counts.tags.to_list() == ["a"]


def test_counts_print_in_one_line():
    assert repr(counts_of([("x", "rock", 2)])) == "TagCounts(1 item × 1 tag)"
