"""The steps of the search for folds, from a state in which each has something to do."""

import numpy as np

from harmonium.evaluation import stratify


def folds_of(sizes, columns, fold):
    """Groups of these sizes with these columns (a string of digits for each), placed so."""
    n_columns = 1 + max((int(digit) for digits in columns for digit in digits), default=0)
    counts = np.zeros((len(sizes), n_columns), np.int64)
    for group, digits in enumerate(columns):
        for digit in digits:
            counts[group, int(digit)] = sizes[group]
    folds = stratify.Folds(np.array(sizes), counts, max(fold) + 1)
    for group, where in enumerate(fold):
        folds.place(group, where)
    return folds


def test_sizes_are_evened_out_by_moves():
    folds = folds_of([1] * 8, [""] * 8, [0, 0, 0, 0, 0, 0, 0, 1])
    stratify._even_out(folds)
    assert folds.size.tolist() == [4, 4]


def test_sizes_are_evened_out_by_exchanges():
    """No group is smaller than the gap of 4, but 5 for 3 closes it."""
    folds = folds_of([5, 5, 3, 3], [""] * 4, [0, 0, 1, 1])
    stratify._even_out(folds)
    assert folds.size.tolist() == [8, 8]


def test_no_size_is_evened_out_at_the_cost_of_a_gap():
    folds = folds_of([3, 1, 1], ["0", "01", "0"], [0, 0, 1])
    stratify._even_out(folds)
    assert folds.size.tolist() == [3, 2]
    assert folds.lacks.tolist() == [[0, 1], [0, 0]]


def test_a_gap_is_closed_by_an_exchange_where_a_move_would_upset_the_sizes():
    """Column 1 is in two groups of fold 0; fold 1 gives a group of the same size for one."""
    sizes, columns = [10, 10, 10, 10], ["01", "01", "0", "0"]
    folds = folds_of(sizes, columns, [0, 0, 1, 1])
    assert folds.lacks[1, 1]
    assert not folds.keeps_balance(np.array(10), 0, 1)
    stratify._close_gaps(folds, np.random.default_rng(0))
    assert not folds.lacks.any()
    assert folds.size.tolist() == [20, 20]


def test_of_the_exchanges_only_those_are_made_that_keep_the_sizes():
    """A group of 30 would close more gaps, but would upset the sizes."""
    folds = folds_of([10, 10, 20, 10, 30], ["01", "01", "0", "0", "02"], [0, 0, 0, 1, 1])
    exchanges = [moves for _, moves in stratify._changes(folds, 1, 1) if len(moves) == 2]
    assert exchanges
    for (out, target), (back, source) in exchanges:
        assert (target, source) == (1, 0)
        assert folds.keeps_balance(folds.sizes[out] - folds.sizes[back], 0, 1)


def test_of_folds_that_need_a_group_alike_the_smaller_gets_it():
    folds = stratify.Folds(np.array([3, 1]), np.array([[0, 3], [1, 0]]), 2)
    folds.capacity = 10.0
    folds.place(0, 0)
    stratify._place_by_rarest_column(folds)
    assert folds.fold.tolist() == [0, 1]
