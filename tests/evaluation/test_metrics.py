"""Metrics against scikit-learn and against counting by hand; what they refuse."""

import itertools
import math
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import DOCS
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from harmonium import evaluation
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
    precision_at_k_per_clip,
    precision_at_k_per_tag,
    reliability,
)
from harmonium.evaluation.metrics import expected_auc_per_tag

NAN = float("nan")
PAGE = DOCS / "evaluation.md"
NAMES = {name: f"{name}_per_tag" for name in ("auc", "average_precision", "precision_at_k")}
NAMES["auc_per_clip"] = "auc_per_clip"
NAMES |= {name: f"{name}_per_tag" for name in ("calibration_error", "brier", "log_loss")}


def case():
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 5)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    Y[:, 4] = np.nan
    return Y, rng.random((40, 5))


@pytest.mark.parametrize("options", [{}, {"k": 3, "n_bins": 4}], ids=["usual", "others"])
def test_evaluate_gives_what_each_metric_gives(options):
    Y, S = case()
    results = evaluate(Y, S, **options)
    assert list(results) == list(NAMES)
    for name, result in results.items():
        own = {"precision_at_k": "k", "calibration_error": "n_bins"}.get(name)
        given = {key: value for key, value in options.items() if key == own}
        expected = getattr(evaluation, NAMES[name])(Y, S, **given)
        np.testing.assert_array_equal(result, expected)
        assert result.reasons == expected.reasons
        assert set(result.reasons) == set(np.flatnonzero(np.isnan(result)).tolist())
    for name in ("calibration_error", "brier", "log_loss"):
        assert results[name].reasons == {4: "no known label"}


def test_scores_that_are_not_probabilities_are_ranked_but_not_judged_as_such():
    Y, S = case()
    ranked, scaled = evaluate(Y, S), evaluate(Y, 3 * S - 1)
    for name in ("auc", "average_precision", "precision_at_k"):
        np.testing.assert_array_equal(scaled[name], ranked[name])
    for name in ("calibration_error", "brier", "log_loss"):
        assert scaled[name].reasons == dict.fromkeys(range(5), "scores are not probabilities")
        assert np.isnan(scaled[name].mean)


GOOD_Y, GOOD_S = np.array([[1, 0], [0, 1.0]]), np.array([[0.5, 0.1], [0.2, 0.9]])
BAD_CASES = [
    (GOOD_Y, GOOD_S[:, :1], r"same shape.* Y \(2, 2\) and S \(2, 1\)"),
    (GOOD_Y[:, 0], GOOD_S[:, 0], r"Y must have two dimensions.*shape \(2,\).*Y\[:, None\]"),
    (GOOD_Y, GOOD_S[0], r"S must have two dimensions.*shape \(2,\)"),
    ([[1, 2], [0, 0]], GOOD_S, r"Got 1 other values.*clip 0, tag 1: 2\.0"),
    ([[1, 0.5], [-1, 0]], GOOD_S, r"Got 2 other values.*clip 0, tag 1: 0\.5"),
    (GOOD_Y, [[0.5, 0.1], [NAN, 0.9]], r"S must hold finite.*Got 1 .*clip 1, tag 0: nan"),
    (GOOD_Y, [[0.5, np.inf], [NAN, 0.9]], r"S must hold finite.*Got 2 .*clip 0, tag 1: inf"),
    ([["yes", "no"], ["no", "yes"]], GOOD_S, r"Y must be a matrix of numbers"),
    (GOOD_Y, [[0.5, 0.1], [0.2]], r"S must be a matrix of numbers"),
    (pd.DataFrame({"a": [1, pd.NA], "b": [0, 1]}), GOOD_S, r"Y must be a matrix of numbers"),
    (None, GOOD_S, r"Y must have two dimensions"),
]


@pytest.mark.parametrize("metric", ["evaluate", *NAMES.values()])
@pytest.mark.parametrize(("Y", "S", "message"), BAD_CASES)
def test_every_metric_refuses_bad_input_in_the_same_words(metric, Y, S, message):
    with pytest.raises(DataError, match=message):
        getattr(evaluation, metric)(Y, S)


def test_a_result_is_an_array_to_numpy():
    result = MetricResult(np.array([0.5, NAN, 1.0]), {1: "no positive"})
    assert len(result) == 3
    assert result.mean == 0.75
    np.testing.assert_array_equal(np.asarray(result), [0.5, NAN, 1])
    np.testing.assert_array_equal(result - np.ones(3), [-0.5, NAN, 0])


def test_the_examples_of_the_page_run(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["tests"].n_better > names["tests"].n_worse
    assert capsys.readouterr().out.count("{}") >= 2


# Ranking

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


def precision_at_k_by_all_orders(y, s, k):
    known = np.flatnonzero(~np.isnan(y))
    if len(known) < k or not (y == 1).any():
        return NAN
    every = itertools.permutations(known)
    orders = [o for o in every if all(s[a] >= s[b] for a, b in itertools.pairwise(o))]
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
def test_ranking_equals_scikit_learn(unknown, levels, share, dtype, order):
    Y, S = random_case(np.random.default_rng(0), unknown=unknown, levels=levels, share=share)
    Y, S = np.asarray(Y, order=order), np.asarray(S, dtype=dtype, order=order)
    both = {auc_per_tag: roc_auc_score, average_precision_per_tag: average_precision_score}
    for metric, theirs in both.items():
        expected = per_tag_by_sklearn(theirs, Y, S)
        np.testing.assert_allclose(metric(Y, S), expected, rtol=0, atol=1e-12)


@given(labelled_scores())
@example(
    (  # magnitudes too far apart for one scale
        np.array([[1.0], [0.0], [0.0], [1.0], [0.0], [0.0]]),
        np.array([[5e-324], [1e-323], [-5e-324], [1.7e308], [-1.7e308], [0.0]]),
    )
)
@settings(deadline=None, max_examples=200)
def test_equal_to_counting(case):
    Y, S = case
    columns = list(zip(Y.T, S.T, strict=True))
    slow = {auc_per_tag: auc_by_counting, average_precision_per_tag: average_precision_by_counting}
    for metric, count in slow.items():
        np.testing.assert_allclose(metric(Y, S), [count(*c) for c in columns], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(auc_per_clip(Y.T, S.T), auc_per_tag(Y, S))


@given(labelled_scores(max_clips=6), st.integers(1, 6))
@example((np.ones((2, 1)), np.array([[-1e300], [1.7976931348623157e308]])), 1)
@settings(deadline=None, max_examples=100)
def test_precision_at_k_is_the_mean_over_all_orders_of_ties(case, k):
    Y, S = case
    expected = [precision_at_k_by_all_orders(y, s, k) for y, s in zip(Y.T, S.T, strict=True)]
    found, of_clips = precision_at_k_per_tag(Y, S, k=k), precision_at_k_per_clip(Y.T, S.T, k=k)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(found, of_clips)
    assert set(of_clips.reasons) == set(np.flatnonzero(np.isnan(expected)))


SPARSE_Y = np.array([[1, 0, NAN, 1, 1], [1, 0, NAN, 0, NAN], [NAN, 0, NAN, 0, 0]])
SPARSE_S = np.arange(15.0).reshape(3, 5)


def test_where_the_auc_is_undefined():
    auc = auc_per_tag(SPARSE_Y, SPARSE_S)
    assert auc.reasons == {0: "no negative", 1: "no positive", 2: "no known label"}
    assert np.flatnonzero(np.isnan(auc)).tolist() == [0, 1, 2]
    assert auc.n_defined == 2
    assert auc.mean == np.mean(auc.values[3:])
    assert auc_per_clip(SPARSE_Y.T, SPARSE_S.T).reasons == auc.reasons


def test_where_the_average_precision_is_undefined():
    precision = average_precision_per_tag(SPARSE_Y, SPARSE_S)
    assert precision.reasons == {1: "no positive", 2: "no known label"}
    assert precision.values[0] == 1


def test_where_the_precision_at_k_is_undefined():
    at_3 = precision_at_k_per_tag(SPARSE_Y, SPARSE_S, k=3)
    few = "fewer than 3 known labels"
    assert at_3.reasons == {0: few, 1: "no positive", 2: "no known label", 4: few}


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 2)])
def test_nothing_to_rank_is_undefined_without_a_warning(shape):
    for metric in (auc_per_tag, average_precision_per_tag, precision_at_k_per_tag):
        result = metric(np.zeros(shape), np.zeros(shape))
        assert len(result) == shape[1]
        assert set(result.reasons) == set(range(shape[1]))
        assert np.isnan(result.mean)


def test_soft_labels_do_not_change_the_auc_of_other_tags():
    Y, S = case()
    soft = np.where(np.isnan(Y), Y, 0.5)
    found = expected_auc_per_tag(np.hstack([Y, soft[:, :1]]), np.hstack([S, S[:, :1]]))
    np.testing.assert_array_equal(found.values[:5], auc_per_tag(Y, S).values)
    assert found.values[5] == 0.5


def test_a_soft_label_counts_as_both():
    Y = np.array([[0.75], [0.5], [0.25]])
    S = np.array([[0.9], [0.5], [0.1]])
    in_order = 0.75 * 0.5 + 0.75 * 0.75 + 0.5 * 0.75
    wrong = 0.5 * 0.25 + 0.25 * 0.25 + 0.25 * 0.5
    expected = in_order / (in_order + wrong)
    assert expected_auc_per_tag(Y, S).values[0] == pytest.approx(expected)


# Calibration

PROBABILITIES = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0, 1))


@st.composite
def labelled_probabilities(draw):
    n_clips = draw(st.integers(1, 15))
    Y = draw(hnp.arrays(float, (n_clips, 2), elements=st.sampled_from([0.0, 1.0, NAN])))
    S = draw(hnp.arrays(float, (n_clips, 2), elements=PROBABILITIES))
    return Y, S


def calibration_error_by_sums(y, s, n_bins):
    pairs = [(a, b) for a, b in zip(y, s, strict=True) if not math.isnan(a)]
    if not pairs:
        return NAN
    members = {}
    for label, score in pairs:
        below = sum(other < score for _, other in pairs)
        members.setdefault(n_bins * below // len(pairs), []).append((label, score))
    return sum(abs(sum(a - b for a, b in inside)) for inside in members.values()) / len(pairs)


@given(labelled_probabilities(), st.integers(1, 6))
@settings(deadline=None, max_examples=100)
def test_calibration_error_is_the_weighted_gap_of_the_bins(case, n_bins):
    Y, S = case
    expected = [calibration_error_by_sums(y, s, n_bins) for y, s in zip(Y.T, S.T, strict=True)]
    result = calibration_error_per_tag(Y, S, n_bins=n_bins)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-14)


def test_calibration_equals_scikit_learn():
    rng = np.random.default_rng(1)
    Y, _ = random_case(rng, n_tags=5, unknown=0.2, share=0.3)
    S = rng.random(Y.shape)
    S[:4] = [[0.0], [1.0], [0.0], [1.0]]  # certainty, right or wrong
    for metric, theirs in ((brier_per_tag, brier_score_loss), (log_loss_per_tag, log_loss)):
        expected = per_tag_by_sklearn(partial(theirs, labels=[0, 1]), Y, S)
        np.testing.assert_allclose(metric(Y, S), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "metric", [calibration_error_per_tag, brier_per_tag, log_loss_per_tag, reliability]
)
@pytest.mark.parametrize("score", [-0.25, 1.5])
def test_scores_that_are_not_probabilities_are_refused(metric, score):
    with pytest.raises(DataError, match=rf"between 0 and 1.*{score}.*predict_proba"):
        metric([[1.0], [0.0]], [[score], [0.5]])


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_a_bad_k_is_refused(k):
    with pytest.raises(DataError, match=f"k must be a whole number.*Got {k!r}"):
        precision_at_k_per_tag(GOOD_Y, GOOD_S, k=k)


def test_a_bad_number_of_bins_is_refused():
    with pytest.raises(DataError, match=r"n_bins must be a whole number, at least 1. Got 0"):
        calibration_error_per_tag([[1.0]], [[0.5]], n_bins=0)


@given(labelled_probabilities())
@settings(deadline=None, max_examples=50)
def test_the_reliability_diagram_has_plain_sums(case):
    Y, S = case
    found = reliability(Y, S)
    error = 0.0
    for b, (low, high) in enumerate(itertools.pairwise(found.edges)):
        inside = (low <= S) & ((high > S) | ((high == 1) & (S == 1))) & ~np.isnan(Y)
        assert found.n[b] == inside.sum()
        assert found.scores[b] == pytest.approx(S[inside].sum())
        assert found.positives[b] == (Y[inside] == 1).sum()
        error += abs((Y[inside] - S[inside]).sum()) / max(1, (~np.isnan(Y)).sum())
    assert found.error == pytest.approx(error)
