"""What the metrics refuse, in which words, and what a result can be used as."""

import numpy as np
import pandas as pd
import pytest

from harmonium.errors import DataError
from harmonium.evaluation import (
    MetricResult,
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    brier_per_tag,
    calibration_error_per_tag,
    evaluate,
    log_loss_per_tag,
    precision_at_k_per_tag,
    validate,
)
from harmonium.evaluation.inputs import ternary

NAN = float("nan")
METRICS = [
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    brier_per_tag,
    calibration_error_per_tag,
    evaluate,
    log_loss_per_tag,
    precision_at_k_per_tag,
    validate,
]
GOOD_Y, GOOD_S = np.array([[1, 0], [0, 1.0]]), np.array([[0.5, 0.1], [0.2, 0.9]])
BAD_CASES = [
    (GOOD_Y, GOOD_S[:, :1], r"Y and S must have the same shape.* Y \(2, 2\) and S \(2, 1\)"),
    (GOOD_Y[:, 0], GOOD_S[:, 0], r"Y must have two dimensions.*shape \(2,\).*Y\[:, None\]"),
    (GOOD_Y, GOOD_S[0], r"S must have two dimensions.*shape \(2,\)"),
    ([[1, 2], [0, 0]], GOOD_S, r"0, 1 and NaN.*Got 1 other values.*clip 0, tag 1: 2\.0"),
    ([[1, 0.5], [-1, 0]], GOOD_S, r"Got 2 other values.*clip 0, tag 1: 0\.5"),
    ([[1, np.inf], [0, 0]], GOOD_S, r"clip 0, tag 1: inf"),
    (GOOD_Y, [[0.5, 0.1], [NAN, 0.9]], r"S must hold finite.*Got 1 .*clip 1, tag 0: nan"),
    (GOOD_Y, [[0.5, np.inf], [NAN, 0.9]], r"S must hold finite.*Got 2 .*clip 0, tag 1: inf"),
    ([["yes", "no"], ["no", "yes"]], GOOD_S, r"Y must be a matrix of numbers"),
    (GOOD_Y, [[0.5, 0.1], [0.2]], r"S must be a matrix of numbers"),
    (pd.DataFrame({"a": [1, pd.NA], "b": [0, 1]}), GOOD_S, r"Y must be a matrix of numbers"),
    (None, GOOD_S, r"Y must have two dimensions"),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(("Y", "S", "message"), BAD_CASES)
def test_every_metric_refuses_bad_input_in_the_same_words(metric, Y, S, message):
    with pytest.raises(DataError, match=message):
        metric(Y, S)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_k_is_a_whole_number(k):
    with pytest.raises(DataError, match=f"k must be a whole number.*Got {k!r}"):
        precision_at_k_per_tag(GOOD_Y, GOOD_S, k=k)


def test_a_result_is_an_array_to_numpy():
    result = MetricResult(np.array([0.5, NAN, 1.0]), {1: "no positive"})
    assert len(result) == 3
    assert result.mean == 0.75
    assert np.nanmax(result) == 1
    np.testing.assert_array_equal(np.asarray(result), [0.5, NAN, 1])
    np.testing.assert_array_equal(result - np.ones(3), [-0.5, NAN, 0])
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    copied = np.array(result)
    copied[0] = 0
    assert result.values[0] == 0.5


def test_labels_that_are_all_known_need_no_mask():
    assert ternary([[0, 1], [1, 0]]).known is None
    np.testing.assert_array_equal(ternary([[0, NAN]]).known, [[True, False]])
