"""Calibration error, Brier score and log loss against scikit-learn and against plain sums."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import brier_score_loss, log_loss

from harmonium.errors import DataError
from harmonium.evaluation import (
    brier_per_tag,
    calibration_error_per_tag,
    log_loss_per_tag,
    reliability,
)

NAN = float("nan")
PROBABILITIES = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0, 1))


@st.composite
def labelled_probabilities(draw):
    n_clips = draw(st.integers(1, 15))
    Y = draw(hnp.arrays(float, (n_clips, 2), elements=st.sampled_from([0.0, 1.0, NAN])))
    S = draw(hnp.arrays(float, (n_clips, 2), elements=PROBABILITIES))
    return Y, S


def calibration_error_by_sums(y, s, n_bins, bins):
    pairs = [(a, b) for a, b in zip(y, s, strict=True) if not math.isnan(a)]
    if not pairs:
        return NAN
    members = {}
    for label, score in pairs:
        below = sum(other < score for _, other in pairs)
        by_mass, by_width = n_bins * below // len(pairs), min(int(n_bins * score), n_bins - 1)
        members.setdefault(by_mass if bins == "mass" else by_width, []).append((label, score))
    return sum(
        len(inside)
        / len(pairs)
        * abs(np.mean([a for a, _ in inside]) - np.mean([b for _, b in inside]))
        for inside in members.values()
    )


@given(labelled_probabilities(), st.integers(1, 6), st.sampled_from(["mass", "width"]))
@settings(deadline=None, max_examples=100)
def test_calibration_error_is_the_weighted_gap_of_the_bins(case, n_bins, bins):
    Y, S = case
    expected = [
        calibration_error_by_sums(y, s, n_bins, bins) for y, s in zip(Y.T, S.T, strict=True)
    ]
    result = calibration_error_per_tag(Y, S, n_bins=n_bins, bins=bins)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-14)


def test_probabilities_that_tell_the_truth_have_a_small_calibration_error():
    rng = np.random.default_rng(0)
    S = rng.beta(0.5, 3, size=(200_000, 2))
    Y = (rng.random(S.shape) < S).astype(float)
    # Each of ten bins is off by at most five standard deviations of its share of positives.
    bound = 5 * np.sqrt(0.25 / 20_000)
    assert calibration_error_per_tag(Y, S).values.max() < bound
    assert calibration_error_per_tag(Y, S**2).values.min() > bound


def test_equal_to_scikit_learn():
    rng = np.random.default_rng(1)
    S = rng.random((200, 5))
    S[:4] = [[0.0], [1.0], [0.0], [1.0]]  # certainty, right or wrong
    Y = (rng.random(S.shape) < 0.3).astype(float)
    Y[rng.random(S.shape) < 0.2] = NAN
    known = ~np.isnan(Y)
    for metric, theirs in ((brier_per_tag, brier_score_loss), (log_loss_per_tag, log_loss)):
        expected = [theirs(Y[known[:, j], j], S[known[:, j], j], labels=[0, 1]) for j in range(5)]
        np.testing.assert_allclose(metric(Y, S), expected, rtol=1e-12)


def test_certainty_that_is_wrong_costs_36():
    loss = log_loss_per_tag([[1.0, 0.0]], [[0.0, 1.0]])
    np.testing.assert_allclose(loss, 52 * np.log(2), rtol=1e-15)
    np.testing.assert_array_equal(log_loss_per_tag([[1.0, 0.0]], [[1.0, 0.0]]), [0, 0])


@pytest.mark.parametrize("metric", [calibration_error_per_tag, brier_per_tag, log_loss_per_tag])
def test_only_a_tag_without_known_label_is_undefined(metric):
    result = metric([[1, 0, NAN], [1, 0, NAN]], np.full((2, 3), 0.5))
    assert result.reasons == {2: "no known label"}
    assert np.isnan(result.values).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "metric", [calibration_error_per_tag, brier_per_tag, log_loss_per_tag, reliability]
)
@pytest.mark.parametrize("score", [-0.25, 1.5])
def test_scores_that_are_not_probabilities_are_refused(metric, score):
    with pytest.raises(DataError, match=rf"between 0 and 1.*{score}.*predict_proba"):
        metric([[1.0], [0.0]], [[score], [0.5]])


def test_bad_bins_are_refused():
    with pytest.raises(DataError, match=r"'mass' or 'width'. Got 'size'"):
        calibration_error_per_tag([[1.0]], [[0.5]], bins="size")
    with pytest.raises(DataError, match=r"n_bins must be a whole number, at least 1. Got 0"):
        calibration_error_per_tag([[1.0]], [[0.5]], n_bins=0)


@given(labelled_probabilities())
@settings(deadline=None, max_examples=50)
def test_the_reliability_diagram_is_made_of_plain_sums(case):
    Y, S = case
    found = reliability(Y, S)
    edges = found.edges
    error = 0.0
    for b, (low, high) in enumerate(itertools.pairwise(edges)):
        inside = (low <= S) & ((high > S) | ((high == 1) & (S == 1))) & ~np.isnan(Y)
        assert found.n[b] == inside.sum()
        assert found.scores[b] == pytest.approx(S[inside].sum())
        assert found.positives[b] == (Y[inside] == 1).sum()
        error += abs((Y[inside] - S[inside]).sum()) / max(1, (~np.isnan(Y)).sum())
    assert found.error == pytest.approx(error)


def test_the_diagrams_of_two_folds_add_up():
    rng = np.random.default_rng(0)
    S = rng.random((40, 3))
    Y = (rng.random(S.shape) < S).astype(float)
    both = reliability(Y[:15], S[:15]) + reliability(Y[15:], S[15:])
    assert both.error == pytest.approx(reliability(Y, S).error)
    np.testing.assert_array_equal(both.n, reliability(Y, S).n)
