"""Counts from columns, and ternary labels."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import TagCounts
from harmonium.errors import DataError, DataWarning

ROWS = st.lists(
    st.tuples(st.sampled_from("wxyz"), st.sampled_from("rst"), st.integers(0, 3)), max_size=30
)


def counts_of(rows, **options):
    items, tags, counts = ([row[i] for row in rows] for i in range(3))
    return TagCounts.from_columns(
        pl.Series(items, dtype=pl.String), pl.Series(tags, dtype=pl.String), counts, **options
    )


def test_labels_are_ternary():
    counts = counts_of([("x", "rock", 1), ("x", "pop", 2), ("y", "pop", 3)])
    np.testing.assert_array_equal(counts.labels(min_count=2), [[np.nan, 1], [0, 1]])
    np.testing.assert_array_equal(counts.labels(min_count=1), [[1, 1], [0, 1]])
    np.testing.assert_array_equal(counts.labels(min_count=3), [[np.nan, np.nan], [0, 1]])


@given(ROWS, st.integers(1, 4))
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
            if total == 0:
                assert labels[i, j] == 0
            elif total >= min_count:
                assert labels[i, j] == 1
            else:
                assert np.isnan(labels[i, j])


def test_counts_of_two_spellings_are_added_up():
    counts = counts_of([("x", "Hip-Hop", 1), ("x", "hip hop", 2), ("x", "rap", 4)])
    assert counts.tags.to_list() == ["hip hop", "rap"]
    assert counts.matrix.toarray().tolist() == [[3, 4]]
    merged = counts_of([("x", "Hip-Hop", 1), ("x", "rap", 4)], aliases={"rap": "hip hop"})
    assert merged.matrix.toarray().tolist() == [[5]]


def test_zero_counts_keep_the_item_and_the_tag():
    counts = counts_of([("x", "rock", 0), ("y", "pop", 1)])
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1]]
    assert counts.matrix.nnz == 1


def test_all_items_gives_the_rows():
    counts = counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["z", "y", "x"])
    assert counts.items.to_list() == ["z", "y", "x"]
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1], [2, 0]]
    with pytest.raises(DataError, match="not among the 1 known: 'y'"):
        counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["x"])
    with pytest.raises(DataError, match="name each item once, got 'x' again"):
        counts_of([("x", "rock", 2)], all_items=["x", "x"])


def test_top_orders_by_total_then_alphabet():
    rows = [("x", "b", 2), ("y", "a", 1), ("z", "a", 1), ("x", "c", 5), ("x", "d", 1)]
    top = counts_of(rows).top(3)
    assert top.tags.to_list() == ["c", "a", "b"]
    assert top.matrix.toarray().tolist() == [[5, 0, 2], [0, 1, 0], [0, 1, 0]]
    assert top.matrix.has_canonical_format
    assert counts_of(rows).top(99).tags.to_list() == ["c", "a", "b", "d"]


def test_labels_by_share_of_the_listeners():
    counts = counts_of([("x", "rock", 1), ("x", "pop", 2), ("y", "pop", 3)])
    labels = counts.share_labels(min_share=0.5, listeners=np.array([4, 7]))
    np.testing.assert_array_equal(labels, [[0, 1], [0, 0]])
    with pytest.raises(DataError, match="'min_share' must be above 0 and at most 1, got 0"):
        counts.share_labels(min_share=0, listeners=np.array([4, 7]))


@pytest.mark.parametrize("bad", ["-1", "1.5", "many", "", "nan", "inf", "3000000000", "0x10"])
def test_counts_that_are_none_are_left_out_with_a_warning(bad):
    reason = "an empty count" if not bad else "a count that is not a whole number from 0 on"
    with pytest.warns(DataWarning, match=rf"1 of 2 rows .* 1 with {reason} \(position 1\)"):
        counts = TagCounts.from_columns(["x", "y"], ["a", "b"], ["2", bad])
    assert counts.items.to_list() == ["x"]
    assert counts.tags.to_list() == ["a"]


def test_counts_may_be_written_as_whole_floats():
    counts = TagCounts.from_columns(["x", "y"], ["a", "a"], np.array([2.0, 3.0]))
    assert counts.matrix.toarray().tolist() == [[2], [3]]
    assert TagCounts.from_columns(["x"], ["a"], [" 4 "]).matrix.toarray().tolist() == [[4]]


def test_fractions_are_no_counts():
    with pytest.raises(DataError, match=r"None of the 2 rows .* not a whole number from 0 on"):
        TagCounts.from_columns(["x", "y"], ["a", "b"], [0.5, 0.25])


def test_sums_that_do_not_fit_are_an_error():
    with pytest.raises(DataError, match="add up to 4,000,000,000"):
        TagCounts.from_columns(["x", "x"], ["a", "a"], [2_000_000_000] * 2)


def test_min_count_below_one_is_refused():
    with pytest.raises(DataError, match="'min_count' must be at least 1, got 0"):
        counts_of([("x", "a", 1)]).labels(min_count=0)
