"""The AUC and the likelihood of labels that may be probabilities."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss

from harmonium.estimators.calibration import is_rankable, log_likelihood, mean_auc
from harmonium.evaluation import auc_per_tag

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


@given(data=st.data(), Y=matrix(st.sampled_from(SOFT)))
@settings(deadline=None, max_examples=60)
def test_the_auc_is_the_share_of_pairs_in_the_right_order(data, Y):
    S = data.draw(arrays(np.float32, Y.shape, elements=SCORES))
    values = [by_pairs(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    defined = [value for value in values if value is not None]
    assert is_rankable(Y) == bool(defined)
    assume(defined)
    assert mean_auc(Y, S) == pytest.approx(np.mean(defined), abs=1e-9)


@given(data=st.data(), Y=matrix(st.sampled_from(HARD)))
@settings(deadline=None, max_examples=50)
def test_of_labels_it_is_the_auc_to_the_bit(data, Y):
    S = data.draw(arrays(np.float32, Y.shape, elements=SCORES))
    np.testing.assert_array_equal(mean_auc(Y, S), auc_per_tag(Y, S).mean)


def test_a_constant_score_has_an_auc_of_a_half():
    Y = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    assert mean_auc(Y, np.zeros_like(Y)) == pytest.approx(0.5)
    assert mean_auc(Y, Y) > 0.6 > 0.4 > mean_auc(Y, -Y)


@pytest.mark.parametrize("values", [HARD, SOFT], ids=["labels", "probabilities"])
def test_the_likelihood_is_that_of_scikit_learn_with_shares_as_weights(values):
    rng = np.random.default_rng(1)
    Y = rng.choice(values, (40, 3)).astype(np.float32)
    P = rng.uniform(0.01, 0.99, (40, 3)).astype(np.float32)
    y, p = Y[~np.isnan(Y)], P[~np.isnan(Y)]
    twice = np.repeat([1, 0], len(y))
    expected = -log_loss(twice, np.tile(p, 2), sample_weight=np.concatenate([y, 1 - y]))
    assert log_likelihood(Y, P) == pytest.approx(expected, rel=1e-5)
    certain = np.array([[1.0, 0.0]], np.float32)
    assert -1000 < log_likelihood(certain, 1 - certain) < -50  # a mistake, and yet finite
