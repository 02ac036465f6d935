"""The logistic function and what belongs to it, against SciPy and against extreme numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from harmonium.logistic import (
    MAX_LOG_ODDS,
    limited_log_odds,
    log_odds,
    mean_probabilities,
    sigmoid,
    softplus,
)


@given(st.floats(-1e308, 1e308))
def test_sigmoid_is_scipys_expit_for_any_number(x):
    assert sigmoid(np.array([x]))[0] == pytest.approx(expit(x), abs=1e-15)


def test_precision_is_kept():
    for function in (sigmoid, softplus, log_odds):
        for dtype in (np.float32, np.float64):
            assert function(np.array([0.25], dtype)).dtype == dtype


@given(st.floats(1e-300, 1 - 1e-16))
def test_log_odds_are_scipys_logit(p):
    assert log_odds(np.array([p]))[0] == pytest.approx(logit(p), abs=1e-12)


def test_log_odds_of_certain_probabilities_are_infinite():
    np.testing.assert_array_equal(log_odds(np.array([0.0, 1.0])), [-np.inf, np.inf])


def test_log_odds_are_limited_by_the_smallest_probability():
    expected = [logit(1e-4), 0.0, logit(1 - 1e-4)]
    np.testing.assert_allclose(log_odds(np.array([0.0, 0.5, 1.0]), 1e-4), expected, rtol=1e-12)


def test_softplus_does_not_overflow():
    np.testing.assert_allclose(softplus(np.array([-1e4, 0.0, 1e4])), [0, np.log(2), 1e4])


def test_the_mean_of_members_is_that_of_their_log_odds():
    first, second = np.float32([[0.2, 0.0]]), np.float32([[0.6, 1.0]])
    expected = expit((logit(0.2) + logit(0.6)) / 2)
    np.testing.assert_allclose(mean_probabilities([first, second]), [[expected, 0.5]], rtol=1e-6)
    np.testing.assert_array_equal(limited_log_odds(second)[:, 1], [MAX_LOG_ODDS])


def test_a_single_member_is_its_own_mean():
    only = np.float32([[0.2, 1.0]])
    assert mean_probabilities([only]) is only
