"""Folds: a partition that keeps groups whole, tags everywhere and sizes equal."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from harmonium.errors import DataError
from harmonium.evaluation import GroupedTagKFold, fold_report, grouped_folds, nested_folds
from harmonium.evaluation import folds as search

NAN = float("nan")


@st.composite
def collections(draw):
    """(groups, Y, n_folds, seed) of a few groups of uneven size, with unknown labels."""
    n_folds = draw(st.integers(2, 5))
    sizes = draw(st.lists(st.integers(1, 9), min_size=n_folds, max_size=25))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y = (rng.random((len(groups), 3)) < draw(st.sampled_from([0.0, 0.1, 0.5]))).astype(float)
    Y[rng.random(Y.shape) < draw(st.sampled_from([0.0, 0.5, 1.0]))] = NAN
    return groups, Y, n_folds, draw(st.integers(0, 3))


@given(collections())
@settings(deadline=None, max_examples=150)
def test_folds_are_a_partition_by_groups_of_near_equal_size(case):
    groups, Y, n_folds, seed = case
    folds = grouped_folds(groups, Y, n_folds=n_folds, seed=seed)
    assert folds.shape == (len(groups),)
    assert set(folds.tolist()) == set(range(n_folds))
    assert all(len(set(folds[groups == group].tolist())) == 1 for group in set(groups.tolist()))
    sizes, largest = np.bincount(folds), np.bincount(groups).max()
    assert sizes.max() - sizes.min() <= max(2 * largest, 2)
    np.testing.assert_array_equal(folds, grouped_folds(groups, Y, n_folds=n_folds, seed=seed))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
@settings(deadline=None, max_examples=50)
def test_a_tag_that_can_be_in_every_fold_is(seed, n_unknown):
    """Each of 8 tags has a positive in 10 of 60 groups, twice as many as there are folds."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), rng.integers(1, 5, size=60))
    Y = np.zeros((len(groups), 8))
    for tag in range(8):
        for group in rng.choice(60, size=10, replace=False):
            Y[rng.choice(np.flatnonzero(groups == group)), tag] = 1
    Y[rng.choice(len(groups), size=n_unknown, replace=False)] = NAN
    folds = grouped_folds(groups, Y)
    assert fold_report(folds, groups, Y).incomplete == {}


@given(collections())
@settings(deadline=None, max_examples=30)
def test_sparse_labels_give_the_same_folds(case):
    groups, Y, n_folds, seed = case
    stored = sparse.csr_array(Y)  # absent labels are not stored, unknown ones are
    before = stored.copy()
    folds = grouped_folds(groups, stored, n_folds=n_folds, seed=seed)
    np.testing.assert_array_equal(folds, grouped_folds(groups, Y, n_folds=n_folds, seed=seed))
    np.testing.assert_array_equal(stored.toarray(), before.toarray())
    dense, spare = fold_report(folds, groups, Y), fold_report(folds, groups, stored)
    np.testing.assert_array_equal(dense.negatives, spare.negatives)
    assert dense.incomplete == spare.incomplete


def test_with_many_tags_scarce_negatives_are_spread(monkeypatch):
    """Where only negatives that few groups have are counted, the others are in every fold, too."""
    monkeypatch.setattr(search, "_MANY_LABELS", 0)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 100, size=300)
    Y = (rng.random((300, 12)) < np.linspace(0.1, 0.9, 12)).astype(float)
    Y[rng.random(Y.shape) < 0.1] = NAN
    assert fold_report(grouped_folds(groups, Y), groups, Y).incomplete == {}


def test_scarce_negatives_are_spread():
    Y = np.ones((50, 1))
    Y[:5] = 0
    report = fold_report(grouped_folds(np.arange(50), Y), np.arange(50), Y)
    assert report.negatives[:, 0].tolist() == [1, 1, 1, 1, 1]


def test_positives_are_in_proportion():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 800, size=2000)
    Y = (rng.random((2000, 20)) < np.linspace(0.05, 0.5, 20)).astype(float)
    report = fold_report(grouped_folds(groups, Y), groups, Y)
    shares = report.positives / report.positives.sum(axis=0)
    assert np.abs(shares - 1 / 5).max() < 0.04  # at random, 0.06 to 0.09
    assert report.sizes.max() - report.sizes.min() <= 1


@pytest.fixture
def report():
    """Of tags that are in 3 groups, unknown, balanced and always positive."""
    groups = np.repeat(np.arange(10), 2)
    Y = np.zeros((20, 4))
    Y[[0, 1, 2, 4], 0] = 1  # groups 0, 1, 2
    Y[:, 1] = NAN
    Y[::2, 2] = 1
    Y[:, 3] = 1
    return fold_report(grouped_folds(groups, Y), groups, Y)


def test_the_report_says_what_is_missing(report):
    assert report.incomplete == {
        0: "positive in 3 of 5 folds (3 groups have one)",
        1: "positive in 0 of 5 folds (0 groups have one); "
        "negative in 0 of 5 folds (0 groups have one)",
        3: "negative in 0 of 5 folds (0 groups have one)",
    }


def test_the_report_counts(report):
    assert report.sizes.tolist() == [4] * 5
    assert report.n_groups.tolist() == [2] * 5
    assert report.positives.sum(axis=0).tolist() == [4, 0, 10, 20]
    assert report.negatives.sum(axis=0).tolist() == [16, 0, 10, 0]


def test_a_group_larger_than_a_fold_has_its_own():
    groups = np.array([0] * 300 + list(range(1, 401)))
    Y = (np.random.default_rng(0).random((700, 5)) < 0.3).astype(float)
    folds = grouped_folds(groups, Y)
    assert sorted(np.bincount(folds).tolist()) == [100, 100, 100, 100, 300]
    assert fold_report(folds, groups, Y).incomplete == {}


def test_large_groups_leave_folds_of_equal_size():
    sizes = [70, 60, 50, 45, 40, 35, 30, 20] + [1] * 50
    groups = np.repeat(np.arange(len(sizes)), sizes)
    Y = (np.random.default_rng(0).random((400, 5)) < 0.2).astype(float)
    report = fold_report(grouped_folds(groups, Y), groups, Y)
    assert report.sizes.max() - report.sizes.min() <= 1
    assert report.incomplete == {}


@pytest.fixture
def numbered():
    """Groups by number, and labels."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(100, 160, size=300)
    Y = (rng.random((300, 4)) < 0.2).astype(float)
    return numbers, Y


@pytest.mark.parametrize(
    "kind",
    [list, pd.Series, pl.Series, partial(np.array, dtype=object)],
    ids=["list", "pandas", "polars", "numpy"],
)
def test_the_kind_of_group_name_does_not_matter(numbered, kind):
    numbers, Y = numbered
    names = kind([f"artist {number}" for number in numbers])
    np.testing.assert_array_equal(grouped_folds(names, Y), grouped_folds(numbers, Y))


def test_the_seed_matters(numbered):
    numbers, Y = numbered
    assert (grouped_folds(numbers, Y, seed=1) != grouped_folds(numbers, Y)).any()


def test_nested_folds_follow_the_papers_protocol():
    folds = np.arange(100) % 5
    splits = list(nested_folds(folds))
    assert len(splits) == len({(split.test_fold, split.valid_fold) for split in splits}) == 20
    for split in splits:
        assert split.test_fold != split.valid_fold
        assert set(folds[split.test].tolist()) == {split.test_fold}
        assert set(folds[split.valid].tolist()) == {split.valid_fold}
        everything = np.concatenate([split.train, split.valid, split.test])
        np.testing.assert_array_equal(np.sort(everything), np.arange(100))


class Constant(BaseEstimator):
    """Predicts nothing; its score is its parameter less the number of clips it was fitted on."""

    def __init__(self, level=0):
        self.level = level

    def fit(self, X, Y):
        self.n_clips_ = len(X)
        return self

    def score(self, X, Y):
        return self.level - self.n_clips_


class TestSplitter:
    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = rng.random((90, 2))
        groups = rng.integers(0, 30, size=90)
        Y = (rng.random((90, 3)) < 0.3).astype(float)
        Y[rng.random(Y.shape) < 0.2] = NAN
        return X, Y, groups

    @pytest.fixture
    def splitter(self):
        return GroupedTagKFold(n_splits=3, random_state=7)

    @pytest.fixture
    def folds(self, data):
        _, Y, groups = data
        return grouped_folds(groups, Y, n_folds=3, seed=7)

    def test_it_gives_grouped_folds(self, data, splitter, folds):
        X, Y, groups = data
        splits = list(splitter.split(X, Y, groups))
        assert len(splits) == splitter.get_n_splits(X, Y, groups) == 3
        for fold, (train, test) in enumerate(splits):
            np.testing.assert_array_equal(test, np.flatnonzero(folds == fold))
            np.testing.assert_array_equal(train, np.flatnonzero(folds != fold))

    def test_labels_of_one_tag(self, data, splitter):
        X, Y, groups = data
        assert len(list(splitter.split(X, np.nan_to_num(Y[:, 0]), groups))) == 3

    def test_in_a_grid_search(self, data, splitter):
        X, Y, groups = data
        search = GridSearchCV(Constant(), {"level": [0, 1]}, cv=splitter)
        assert search.fit(X, Y, groups=groups).best_params_ == {"level": 1}

    def test_with_metadata_routing(self, data, splitter, folds):
        X, Y, groups = data
        with sklearn.config_context(enable_metadata_routing=True):
            scores = cross_val_score(Constant(), X, Y, cv=splitter, params={"groups": groups})
        assert scores.tolist() == [-np.sum(folds != fold) for fold in range(3)]


ONES = np.ones((4, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grouped_folds([1, 2, 3], ONES), r"groups must have one entry per clip.*\(3,\)"),
        (lambda: grouped_folds([1, 1, 2, 2], ONES), r"at least n_folds=5 different.*Got 2"),
        (lambda: grouped_folds([1, 2, 3, 4], ONES, n_folds=1), r"n_folds must be .* 2. Got 1"),
        (lambda: grouped_folds([1, 2, 3, 4], ONES, n_folds=2.5), r"n_folds must be .* Got 2.5"),
        (lambda: grouped_folds(["a", None, "b", None], ONES), r"Got 2 without one.*clip 1"),
        (lambda: grouped_folds([1.0, 2.0, NAN, 3.0], ONES), r"Got 1 without one.*clip 2"),
        (lambda: grouped_folds(np.array([1, "a", 2, 3], object), ONES), r"do not compare"),
        (lambda: grouped_folds(pd.array([1, 2, 3, pd.NA]), ONES), r"groups must"),
        (lambda: grouped_folds([1, 2, 3, 4], 3 * ONES), r"Y must hold 0, 1 and NaN"),
        (lambda: nested_folds([0, 1, 0, 1]), r"at least 3. Got \[0 1\]"),
        (lambda: nested_folds([0, 2, 3, 3]), r"numbered from 0 without a gap.*\[0 2 3\]"),
        (lambda: nested_folds([0.0, 1.0, 2.0]), r"one integer per clip"),
        (lambda: fold_report([0, 1], [1, 2, 3, 4], ONES), r"one entry per clip of Y, 4. Got 2"),
        (lambda: list(GroupedTagKFold().split(ONES, ONES)), r"needs groups.*fit\(X, Y, groups="),
        (lambda: list(GroupedTagKFold().split(ONES, None, [1] * 4)), r"needs y"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


def folds_of(sizes, columns, fold):
    """Groups of these sizes with these columns (a string of digits for each), placed so."""
    n_columns = 1 + max((int(digit) for digits in columns for digit in digits), default=0)
    counts = np.zeros((len(sizes), n_columns), np.int64)
    for group, digits in enumerate(columns):
        for digit in digits:
            counts[group, int(digit)] = sizes[group]
    folds = search.Folds(np.array(sizes), sparse.csr_array(counts), max(fold) + 1)
    for group, where in enumerate(fold):
        folds.place(group, where)
    return folds


@pytest.mark.parametrize(
    ("sizes", "columns", "fold", "evened"),
    [
        ([1] * 8, [""] * 8, [0, 0, 0, 0, 0, 0, 0, 1], [4, 4]),  # by moves
        ([5, 5, 3, 3], [""] * 4, [0, 0, 1, 1], [8, 8]),  # no group fits the gap, but 5 for 3 does
        ([3, 1, 1], ["0", "01", "0"], [0, 0, 1], [3, 2]),  # but not at the cost of a gap
    ],
)
def test_sizes_are_evened_out(sizes, columns, fold, evened):
    folds = folds_of(sizes, columns, fold)
    gaps = folds.lacks.sum()
    folds.even_out()
    assert folds.size.tolist() == evened
    assert folds.lacks.sum() == gaps


@pytest.mark.parametrize(("size", "fold", "after"), [(10, "0011", [20, 20]), (1, "00011", [2, 3])])
def test_a_gap_is_closed_by_an_exchange_or_where_the_sizes_allow_it_by_a_move(size, fold, after):
    """Column 1 is in two groups of fold 0; fold 1 may have to give one of the same size."""
    folds = folds_of(
        [size] * len(fold), ["01", "01", "0", "0", "0"][: len(fold)], [*map(int, fold)]
    )
    assert folds.lacks[1, 1]
    assert folds.keeps_balance(np.array(size), 0, 1) == (size == 1)
    folds.close_gaps(np.random.default_rng(0))
    assert not folds.lacks.any()
    assert sorted(folds.size.tolist()) == after


def test_of_the_exchanges_only_those_are_made_that_keep_the_sizes():
    """A group of 30 would close more gaps, but would upset the sizes."""
    folds = folds_of([10, 10, 20, 10, 30], ["01", "01", "0", "0", "02"], [0, 0, 0, 1, 1])
    swaps = [change.moves for change in folds._changes(1, 1) if len(change.moves) == 2]
    assert swaps
    for there, back in swaps:
        assert (there.fold, back.fold) == (1, 0)
        surplus = folds.sizes[there.group] - folds.sizes[back.group]
        assert folds.keeps_balance(surplus, 0, 1)


def test_of_folds_that_need_a_group_alike_the_smaller_gets_it():
    folds = search.Folds(np.array([3, 1]), sparse.csr_array([[0, 3], [1, 0]]), 2)
    folds.capacity = 10.0
    folds.place(0, 0)
    folds.place_by_rarest_column()
    assert folds.fold.tolist() == [0, 1]
