"""How held-out clips judge a model: AUC, likelihood and thresholds."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss

from harmonium.estimators import validation


@given(data=st.data(), n=st.integers(1, 12))
@settings(deadline=None, max_examples=200)
def test_as_many_scores_reach_the_threshold_as_labels_are_positive(data, n):
    y = data.draw(arrays(np.float32, n, elements=st.sampled_from([0.0, 1.0, np.nan])))
    p = data.draw(arrays(np.float32, n, elements=st.floats(0, 1, width=16), unique=True))
    threshold = validation.matching_thresholds(y[:, None], p[:, None])[0]
    known, positives = ~np.isnan(y), int((y == 1).sum())
    if positives:
        assert (p[known] >= threshold).sum() == positives
    else:
        assert threshold == 0.5


def thresholds_of(y, p):
    """The threshold of a single tag."""
    column = np.array(y, np.float32)[:, None], np.array(p, np.float32)[:, None]
    return validation.matching_thresholds(*column)[0]


def test_a_threshold_lies_half_way_between_two_scores():
    assert thresholds_of([1, 1, 0, 0], [0.75, 0.5, 0.25, 0]) == 0.375


@pytest.mark.parametrize(
    ("y", "p", "n_reached"),
    [
        ([1, 1, 0, 0], [0.5, 0.5, 0.5, 0.25], 3),
        ([1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], 0),
    ],
    ids=["all", "none"],
)
def test_equal_scores_all_reach_a_threshold_or_none_do(y, p, n_reached):
    """Whatever is nearer to the number of positives."""
    assert (np.array(p) >= thresholds_of(y, p)).sum() == n_reached


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_label_that_is_a_share_counts_as_such(share):
    p = np.linspace(0, 1, 10)
    assert (p >= thresholds_of(np.full(10, share), p)).sum() == round(10 * share)


HARD, SOFT = [0.0, 1.0, np.nan], [0.0, 0.25, 0.5, 1.0, np.nan]
SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75])


def matrix(elements):
    shapes = st.tuples(st.integers(1, 8), st.just(2))
    return arrays(np.float32, shapes, elements=elements)


def by_pairs(y, s):
    """Every pair of two clips, one after the other; None where there is none."""
    y = y.astype(float)
    won = total = 0.0
    for i in range(len(y)):
        for k in range(len(y)):
            if i != k and not np.isnan(y[i] + y[k]):
                weight = y[i] * (1 - y[k])
                total += weight
                won += weight * (0.5 if s[i] == s[k] else float(s[i] > s[k]))
    return won / total if total else None


@given(data=st.data(), Y=matrix(st.sampled_from(HARD)) | matrix(st.sampled_from(SOFT)))
@settings(deadline=None, max_examples=60)
def test_the_auc_is_the_share_of_pairs_in_the_right_order(data, Y):
    S = data.draw(arrays(np.float32, Y.shape, elements=SCORES))
    values = [by_pairs(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    defined = [value for value in values if value is not None]
    assert validation.is_rankable(Y) == bool(defined)
    assume(defined)
    assert validation.mean_auc(Y, S) == pytest.approx(np.mean(defined), abs=1e-9)


@pytest.mark.parametrize("values", [HARD, SOFT], ids=["labels", "probabilities"])
def test_the_likelihood_is_that_of_scikit_learn_with_shares_as_weights(values):
    rng = np.random.default_rng(1)
    Y = rng.choice(values, (40, 3)).astype(np.float32)
    P = rng.uniform(0.01, 0.99, (40, 3)).astype(np.float32)
    y, p = Y[~np.isnan(Y)], P[~np.isnan(Y)]
    twice = np.repeat([1, 0], len(y))
    expected = -log_loss(twice, np.tile(p, 2), sample_weight=np.concatenate([y, 1 - y]))
    assert validation.log_likelihood(Y, P) == pytest.approx(expected, rel=1e-5)


def test_the_likelihood_of_certain_mistakes_is_finite():
    certain = np.array([[1.0, 0.0]], np.float32)
    assert -1000 < validation.log_likelihood(certain, 1 - certain) < -50


def test_predict_says_yes_as_often_as_it_is_true_of_the_validation_clips(fitted, held_out):
    P, decisions = fitted.predict_proba(held_out.X), fitted.predict(held_out.X)
    np.testing.assert_array_equal(decisions, fitted.thresholds_ <= P)
    np.testing.assert_array_equal(decisions.sum(axis=0), held_out.Y.sum(axis=0))
