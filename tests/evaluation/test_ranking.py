"""AUC, average precision and precision at k against scikit-learn and against counting by hand."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, roc_auc_score

from harmonium.evaluation import (
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    metrics,
    precision_at_k_per_clip,
    precision_at_k_per_tag,
)

NAN = float("nan")
FINITE = {"allow_nan": False, "allow_infinity": False}
SCORES = st.one_of(
    st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5, 1.0]),  # many ties
    st.floats(0, 1),
    st.floats(-1e3, 1e3),
    st.floats(**FINITE),  # subnormal to 1e308, in one matrix
)


@st.composite
def labelled_scores(draw, max_clips=12, max_tags=3):
    shape = draw(st.tuples(st.integers(1, max_clips), st.integers(1, max_tags)))
    Y = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0, 1.0, NAN])))
    S = draw(hnp.arrays(float, shape, elements=SCORES))
    return Y, S


def auc_by_counting(y, s):
    won = [
        (s[p] > s[n]) + 0.5 * (s[p] == s[n])
        for p in np.flatnonzero(y == 1)
        for n in np.flatnonzero(y == 0)
    ]
    return np.mean(won) if won else NAN


def average_precision_by_counting(y, s):
    known = ~np.isnan(y)
    precisions = [
        np.sum((y == 1) & (s >= s[p])) / np.sum(known & (s >= s[p])) for p in np.flatnonzero(y == 1)
    ]
    return np.mean(precisions) if precisions else NAN


def _falls(values):
    return bool((values[1:] <= values[:-1]).all())


def precision_at_k_by_all_orders(y, s, k):
    known = np.flatnonzero(~np.isnan(y))
    if len(known) < k or not (y == 1).any():
        return NAN
    orders = [o for o in itertools.permutations(known) if _falls(s[list(o)])]
    return np.mean([y[list(order[:k])].mean() for order in orders])


def random_case(rng, n_clips=200, n_tags=4, *, unknown=0.0, levels=None, share=0.2):
    S = rng.normal(size=(n_clips, n_tags))
    if levels:
        S = np.round(S * levels) / levels
    Y = (rng.random((n_clips, n_tags)) < share).astype(float)
    Y[rng.random(Y.shape) < unknown] = NAN
    return Y, S


def per_tag_by_sklearn(metric, Y, S):
    known = ~np.isnan(Y)
    return [metric(Y[known[:, j], j], S[known[:, j], j]) for j in range(Y.shape[1])]


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("levels", [None, 2], ids=["no ties", "many ties"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_equal_to_scikit_learn(unknown, levels, share, dtype, order):
    Y, S = random_case(np.random.default_rng(0), unknown=unknown, levels=levels, share=share)
    Y, S = np.asarray(Y, order=order), np.asarray(S, dtype=dtype, order=order)
    np.testing.assert_allclose(
        auc_per_tag(Y, S), per_tag_by_sklearn(roc_auc_score, Y, S), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        average_precision_per_tag(Y, S),
        per_tag_by_sklearn(average_precision_score, Y, S),
        rtol=0,
        atol=1e-12,
    )


@given(labelled_scores())
@settings(deadline=None, max_examples=200)
def test_equal_to_counting(case):
    Y, S = case
    columns = list(zip(Y.T, S.T, strict=True))
    for metric, count in (
        (auc_per_tag, auc_by_counting),
        (average_precision_per_tag, average_precision_by_counting),
    ):
        np.testing.assert_allclose(metric(Y, S), [count(*c) for c in columns], rtol=0, atol=1e-14)


@given(labelled_scores(max_clips=6), st.integers(1, 6))
@example((np.ones((2, 1)), np.array([[-1e300], [1.7976931348623157e308]])), 1)
@settings(deadline=None, max_examples=100)
def test_precision_at_k_is_the_mean_over_all_orders_of_ties(case, k):
    Y, S = case
    expected = [precision_at_k_by_all_orders(y, s, k) for y, s in zip(Y.T, S.T, strict=True)]
    np.testing.assert_allclose(precision_at_k_per_tag(Y, S, k=k), expected, rtol=0, atol=1e-14)


@given(labelled_scores(max_clips=3, max_tags=5), st.integers(1, 4))
@settings(deadline=None, max_examples=50)
def test_precision_at_k_of_a_clip_is_that_of_its_tags(case, k):
    Y, S = case
    expected = [precision_at_k_by_all_orders(y, s, k) for y, s in zip(Y, S, strict=True)]
    found = precision_at_k_per_clip(Y, S, k=k)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert set(found.reasons) == set(np.flatnonzero(np.isnan(expected)))


@given(labelled_scores())
@settings(deadline=None, max_examples=100)
def test_auc_does_not_change_under_monotone_maps(case):
    Y, S = case
    ranks = np.unique(S, return_inverse=True)[1].reshape(S.shape)
    for mapped in (ranks, ranks**3 - 7.0, -np.exp(-ranks / 4), (ranks + 1) * 2.0**-1070):
        np.testing.assert_array_equal(auc_per_tag(Y, mapped), auc_per_tag(Y, S))


@given(labelled_scores(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_the_order_of_clips_does_not_matter(case, random):
    Y, S = case
    order = list(range(len(Y)))
    random.shuffle(order)
    for metric in (auc_per_tag, average_precision_per_tag):
        # The mean of a sum in another order: equal up to rounding.
        np.testing.assert_allclose(metric(Y[order], S[order]), metric(Y, S), rtol=0, atol=1e-15)


@given(labelled_scores(max_tags=6))
@settings(deadline=None, max_examples=50)
def test_auc_per_clip_is_the_auc_over_the_tags_of_each_clip(case):
    Y, S = case
    expected = [auc_by_counting(y, s) for y, s in zip(Y, S, strict=True)]
    np.testing.assert_allclose(auc_per_clip(Y, S), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("score", [0.3, -0.3, 1.0, 5.0, -1e300, 1e-310])
def test_neighbouring_floating_point_numbers_are_not_ties(score):
    Y = np.array([[1.0], [0.0]])
    S = np.array([[np.nextafter(score, np.inf)], [score]])
    assert auc_per_tag(Y, S).mean == 1
    assert auc_per_tag(1 - Y, S).mean == 0


@pytest.mark.parametrize("largest", [1.0, np.nextafter(2.0, 0.0), 2.0, np.finfo(float).max])
def test_no_score_comes_after_the_unknown_labels(largest):
    Y = np.array([[1.0], [0.0], [NAN], [NAN]])
    S = np.array([[largest], [0.5], [largest], [-largest]])
    assert auc_per_tag(Y, S).mean == 1
    assert auc_per_tag(1 - Y, S).mean == 0
    assert average_precision_per_tag(1 - Y, S).mean == 0.5
    assert precision_at_k_per_tag(Y, S, k=1).mean == 1


def test_magnitudes_too_far_apart_for_one_scale():
    S = np.array([[5e-324], [1e-323], [-5e-324], [1.7e308], [-1.7e308], [0.0]])
    Y = np.array([[1.0], [0.0], [0.0], [1.0], [0.0], [0.0]])
    assert auc_per_tag(Y, S).mean == 7 / 8


@given(hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2), elements=SCORES))
@settings(deadline=None, max_examples=100)
def test_ordinals_are_ordered_as_the_scores_and_leave_a_bit_free(scores):
    ordinals = metrics.ordinals(scores)
    assert np.abs(ordinals.astype(object)).max() < 2**62
    by_score, by_ordinal = scores.ravel(), ordinals.ravel()
    np.testing.assert_array_equal(
        by_score[:, None] < by_score[None, :], by_ordinal[:, None] < by_ordinal[None, :]
    )


def test_tags_in_blocks_give_what_tags_together_give(monkeypatch):
    Y, S = random_case(np.random.default_rng(1), unknown=0.1, levels=4)
    together = auc_per_tag(Y, S).values
    monkeypatch.setattr(metrics, "_BLOCK", 700)  # two tags at a time
    np.testing.assert_array_equal(auc_per_tag(Y, S), together)


def test_undefined_tags_are_nan_and_say_why():
    Y = np.array([[1, 0, NAN, 1, 1], [1, 0, NAN, 0, NAN], [NAN, 0, NAN, 0, 0]])
    S = np.arange(15.0).reshape(3, 5)
    auc = auc_per_tag(Y, S)
    assert auc.reasons == {0: "no negative", 1: "no positive", 2: "no known label"}
    assert np.flatnonzero(np.isnan(auc)).tolist() == [0, 1, 2]
    assert auc.n_defined == 2
    assert auc.mean == np.mean(auc.values[3:])
    precision = average_precision_per_tag(Y, S)
    assert precision.reasons == {1: "no positive", 2: "no known label"}
    assert precision.values[0] == 1
    at_3 = precision_at_k_per_tag(Y, S, k=3)
    few = "fewer than 3 known labels"
    assert at_3.reasons == {0: few, 1: "no positive", 2: "no known label", 4: few}
    assert auc_per_clip(Y.T, S.T).reasons == auc.reasons


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 2)])
def test_nothing_to_rank_is_undefined_without_a_warning(shape):
    for metric in (auc_per_tag, average_precision_per_tag, precision_at_k_per_tag):
        result = metric(np.zeros(shape), np.zeros(shape))
        assert len(result) == shape[1]
        assert set(result.reasons) == set(range(shape[1]))
        assert np.isnan(result.mean)


def test_frames_and_lists_are_read_as_arrays():
    Y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, NAN], [1.0, 0.0]])
    S = np.array([[0.9, 0.1], [0.2, 0.1], [0.95, 0.5], [0.8, 0.05]])
    expected = auc_per_tag(Y, S).values
    for frame in (
        pd.DataFrame,
        lambda values: pl.DataFrame(values, orient="row"),
        np.ndarray.tolist,
    ):
        np.testing.assert_array_equal(auc_per_tag(frame(Y), frame(S)), expected)
    whole = np.array([[True, False], [False, True]])
    for dtype in (bool, int, np.float32):
        assert auc_per_tag(whole.astype(dtype), whole.astype(dtype)).mean == 1


def test_the_arguments_are_left_as_they_were():
    Y, S = random_case(np.random.default_rng(2), unknown=0.2)
    Y, S = np.asfortranarray(Y), np.asfortranarray(S)  # whose transpose needs no copy
    before = Y.copy(), S.copy()
    auc_per_tag(Y, S)
    average_precision_per_tag(Y, S)
    precision_at_k_per_tag(Y, S, k=5)
    auc_per_clip(Y, S)
    np.testing.assert_array_equal(Y, before[0])
    np.testing.assert_array_equal(S, before[1])
