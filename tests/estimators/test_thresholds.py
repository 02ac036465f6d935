"""As many validation clips reach the threshold of a tag as have the tag."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harmonium.estimators.calibration import matching_thresholds


def test_predict_says_yes_as_often_as_it_is_true_of_the_validation_clips(fitted, held_out):
    P, decisions = fitted.predict_proba(held_out.X), fitted.predict(held_out.X)
    np.testing.assert_array_equal(decisions, fitted.thresholds_ <= P)
    np.testing.assert_array_equal(decisions.sum(axis=0), held_out.Y.sum(axis=0))


@given(data=st.data(), n=st.integers(1, 12))
@settings(deadline=None, max_examples=200)
def test_as_many_scores_reach_the_threshold_as_labels_are_positive(data, n):
    y = data.draw(arrays(np.float32, n, elements=st.sampled_from([0.0, 1.0, np.nan])))
    p = data.draw(arrays(np.float32, n, elements=st.floats(0, 1, width=16), unique=True))
    threshold = matching_thresholds(y[:, None], p[:, None])[0]
    known, positives = ~np.isnan(y), int((y == 1).sum())
    if positives:
        assert (p[known] >= threshold).sum() == positives
    else:
        assert threshold == 0.5


def test_a_threshold_lies_half_way_between_two_scores_and_equal_ones_all_reach_it():
    Y = np.array([[1, 1], [1, 0], [0, 0], [0, 0]], np.float32)
    P = np.array([[0.75, 0.5], [0.5, 0.5], [0.25, 0.5], [0, 0.25]], np.float32)
    thresholds = matching_thresholds(Y, P)
    assert thresholds[0] == 0.375
    assert (thresholds[1] <= P[:, 1]).sum() == 3


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_probability_counts_as_so_much_of_a_positive(share):
    Y, P = np.full((10, 1), share, np.float32), np.linspace(0, 1, 10, dtype=np.float32)[:, None]
    assert (matching_thresholds(Y, P) <= P).sum() == round(10 * share)
