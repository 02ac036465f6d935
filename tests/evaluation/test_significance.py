"""Significance tests against scipy.stats, and the cases that scipy leaves open."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from harmonium.errors import DataError
from harmonium.evaluation import friedman, paired_t_tests
from harmonium.evaluation.significance import adjust_p_values

NAN = float("nan")


def aucs(n_folds=5, n_tags=30, seed=0):
    rng = np.random.default_rng(seed)
    B = rng.uniform(0.5, 0.9, size=(n_folds, n_tags))
    return B + rng.normal(0.02, 0.03, size=B.shape), B


def test_equal_to_scipy():
    A, B = aucs()
    ours, theirs = paired_t_tests(A, B), stats.ttest_rel(A, B)
    np.testing.assert_allclose(ours.t, theirs.statistic, rtol=1e-10)
    np.testing.assert_allclose(ours.p, theirs.pvalue, rtol=1e-10)
    np.testing.assert_allclose(ours.difference, (A - B).mean(axis=0), rtol=1e-12)
    assert ours.n_better == np.sum((theirs.pvalue < 0.05) & (theirs.statistic > 0))
    assert ours.n_worse == np.sum((theirs.pvalue < 0.05) & (theirs.statistic < 0))
    assert ours.n_better > 0
    assert paired_t_tests(A, B, alpha=0.001).n_better < ours.n_better
    holm = paired_t_tests(A, B, correction="holm")
    np.testing.assert_array_equal(holm.p, ours.p)
    np.testing.assert_array_equal(holm.p_adjusted, adjust_p_values(ours.p, "holm"))


def test_a_fold_without_both_scores_is_left_out():
    A, B = aucs(n_tags=4)
    A[0, 0], B[3, 0], B[:4, 1], A[:, 2] = NAN, NAN, NAN, NAN
    tests = paired_t_tests(A, B)
    assert tests.n_folds.tolist() == [3, 1, 0, 5]
    theirs = stats.ttest_rel(A[[1, 2, 4], 0], B[[1, 2, 4], 0])
    np.testing.assert_allclose(tests.t[0], theirs.statistic, rtol=1e-10)
    np.testing.assert_allclose(tests.p[0], theirs.pvalue, rtol=1e-10)
    reason = "fewer than two folds with both scores"
    assert tests.reasons == {1: reason, 2: reason}
    assert np.isnan(tests.p).tolist() == [False, True, True, False]
    assert not tests.better[1:3].any()
    assert not tests.worse[1:3].any()
    for shape in ((0, 2), (5, 0)):
        assert paired_t_tests(np.ones(shape), np.ones(shape)).n_better == 0


@pytest.mark.parametrize(
    ("step", "t", "p", "found"),
    [(0.25, np.inf, 0, (2, 0)), (-0.25, -np.inf, 0, (0, 2)), (0, 0, 1, (0, 0))],
)
def test_a_constant_difference_is_significant_unless_it_is_0(step, t, p, found):
    B = np.array([[0.25, 0.5], [0.5, 0.5], [0.75, 0.5]])  # sums with 0.25 are exact
    tests = paired_t_tests(B + step, B)
    assert (tests.t == t).all()
    assert (tests.p == p).all()
    assert (tests.n_better, tests.n_worse) == found
    inexact = paired_t_tests(np.full((3, 1), 0.1), np.zeros((3, 1)))  # (0.1 + 0.1 + 0.1) / 3 ≠ 0.1
    assert inexact.t[0] == np.inf


def holm_by_definition(p):
    """Reject the smallest p values while p_(i) ≤ α / (m - i + 1): the least such α for each."""
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    for i, index in enumerate(order):
        adjusted[index] = min(1, max((len(p) - j) * p[order[j]] for j in range(i + 1)))
    return adjusted


@given(hnp.arrays(float, st.integers(1, 20), elements=st.floats(0, 1)))
@settings(deadline=None, max_examples=100)
def test_corrections_equal_their_definition(p):
    # Subnormal numbers would be rounded differently, for scipy multiplies in another order.
    p = np.where(p < 1e-300, 0, p)
    np.testing.assert_allclose(adjust_p_values(p, "bh"), stats.false_discovery_control(p))
    np.testing.assert_allclose(adjust_p_values(p, "holm"), holm_by_definition(p))
    np.testing.assert_array_equal(adjust_p_values(p, "none"), p)


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_what_was_not_tested_does_not_count_in_a_correction(correction):
    adjusted = adjust_p_values([0.01, NAN, 0.03], correction)
    np.testing.assert_array_equal(adjusted[[0, 2]], adjust_p_values([0.01, 0.03], correction))
    assert np.isnan(adjusted[1])


@pytest.mark.parametrize("digits", [9, 0], ids=["no ties", "ties"])
def test_friedman_equals_scipy(digits):
    scores = np.round(3 * np.random.default_rng(0).random((20, 4)) + [0.9, 0.3, 0, 0], digits)
    ours = friedman(scores)
    theirs = stats.friedmanchisquare(*scores.T)
    np.testing.assert_allclose(ours.statistic, theirs.statistic, rtol=1e-10)
    np.testing.assert_allclose(ours.p, theirs.pvalue, rtol=1e-10)
    np.testing.assert_allclose(ours.average_ranks, stats.rankdata(-scores, axis=1).mean(axis=0))


def test_blocks_with_an_undefined_score_are_left_out():
    scores = np.random.default_rng(0).random((20, 4))
    broken = friedman(np.insert(scores, 4, [0.5, NAN, 0.5, 0.5], axis=0))
    assert (broken.n_blocks, broken.n_dropped) == (20, 1)
    assert broken.statistic == friedman(scores).statistic


def test_critical_values_are_those_of_the_published_table():
    # Demšar, Statistical comparisons of classifiers over multiple data sets, 2006, Table 5(a).
    published = {
        0.05: {3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 8: 3.031, 10: 3.164},
        0.10: {3: 2.052, 4: 2.291, 5: 2.459, 6: 2.589, 8: 2.780, 10: 2.920},
    }
    for alpha, row in published.items():
        for n_models, critical in row.items():
            scores = np.arange(14 * n_models).reshape(14, n_models)
            difference = friedman(scores, alpha=alpha).critical_difference
            scale = np.sqrt(n_models * (n_models + 1) / (6 * 14))
            assert difference / scale == pytest.approx(critical, abs=1e-3)


def test_different_are_the_models_a_critical_difference_apart():
    test = friedman(np.random.default_rng(2).normal([3, 0, 0, -3], size=(30, 4)))
    gaps = np.abs(np.subtract.outer(test.average_ranks, test.average_ranks))
    np.testing.assert_array_equal(test.different, gaps >= test.critical_difference)
    assert test.different[0, 3]


def test_equal_models_do_not_differ():
    tied = friedman(np.ones((5, 3)))
    assert (tied.statistic, tied.p) == (0, 1)
    assert tied.average_ranks.tolist() == [2, 2, 2]
    assert not tied.different.any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_t_tests(np.ones((5, 2)), np.ones((5, 3))), r"same shape.*\(5, 3\)"),
        (lambda: paired_t_tests(np.ones(5), np.ones(5)), r"A must have two dimensions.*\(5,\)"),
        (lambda: paired_t_tests([["a"]], [[1.0]]), "A must be a matrix of numbers"),
        (lambda: paired_t_tests([[np.inf]], [[1.0]]), "A must hold finite scores"),
        (lambda: paired_t_tests([[1.0]], [[1.0]], alpha=95), "alpha must lie between 0 and 1.*95"),
        (lambda: paired_t_tests([[1.0]], [[1.0]], correction="b"), "'bh'. Got 'b'"),
        (lambda: friedman(np.ones((9, 2))), "at least 3 models.*Got 2 models.*paired_t_tests"),
        (lambda: friedman([[1, 2, NAN], [1, 2, 3]]), "Got 3 models and 1 such blocks of 2"),
        (lambda: friedman(np.ones(3)), r"scores must have two dimensions"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
