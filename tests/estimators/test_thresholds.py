"""The threshold of each tag is the one of the best F1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score
from tagging_data import N_TAGS

from harmonium.estimators.validation import best_thresholds


def f1(y, chosen):
    known = ~np.isnan(y)
    return f1_score(y[known], chosen[known], zero_division=0)


def best_f1(y, p):
    """The best F1 of any threshold, one after the other."""
    return max(f1(y, p >= threshold) for threshold in [*np.unique(p), 2.0])


def test_predict_decides_with_the_best_f1_on_the_validation_clips(fitted, held_out):
    P, decisions = fitted.predict_proba(held_out.X), fitted.predict(held_out.X)
    np.testing.assert_array_equal(decisions, fitted.thresholds_ <= P)
    for j in range(N_TAGS):
        assert f1(held_out.Y[:, j], decisions[:, j]) == pytest.approx(
            best_f1(held_out.Y[:, j], P[:, j])
        )


@given(
    data=st.data(),
    n=st.integers(1, 12),
    # few values, so that there are ties; neighbours in single precision among them
    values=st.sampled_from(
        [[0, 0.25, 0.5, 1], [0.5, np.nextafter(np.float32(0.5), np.float32(1))]]
    ),
)
@settings(deadline=None, max_examples=200)
def test_no_threshold_has_a_better_f1(data, n, values):
    Y = data.draw(arrays(np.float32, (n, 2), elements=st.sampled_from([0.0, 1.0, np.nan])))
    P = data.draw(arrays(np.float32, (n, 2), elements=st.sampled_from([float(v) for v in values])))
    for y, p, threshold in zip(Y.T, P.T, best_thresholds(Y, P), strict=True):
        if (y == 1).any():
            assert f1(y, p >= threshold) == pytest.approx(best_f1(y, p))
        else:
            assert threshold == 0.5


def test_a_threshold_lies_half_way_between_two_scores():
    Y = np.array([[1], [1], [0], [0]], np.float32)
    P = np.array([[0.75], [0.5], [0.25], [0]], np.float32)
    assert best_thresholds(Y, P) == [0.375]
