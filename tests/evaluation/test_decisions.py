"""Metrics of sets of tags against scikit-learn, also of the known labels alone."""

import numpy as np
import pytest
from sklearn import metrics

from harmonium.errors import DataError
from harmonium.evaluation import (
    coverage_error_per_clip,
    evaluate_decisions,
    f1_per_tag,
    ranking_precision_per_clip,
)

NAN = float("nan")


@pytest.fixture(params=range(5))
def case(request):
    """Labels and scores with ties; a clip without tags, one with all, and a tag of no clip."""
    rng = np.random.default_rng(request.param)
    Y = (rng.random((60, 7)) < 0.4).astype(float)
    Y[0], Y[1] = 0, 1
    Y[:, 6] = 0
    return Y, rng.integers(0, 8, Y.shape) / 8


def test_without_unknown_labels_decisions_are_judged_as_by_scikit_learn(case):
    Y, S = case
    D = S >= 0.5
    D[:, 6] = False
    scores = evaluate_decisions(Y, D)
    f1 = metrics.f1_score(Y, D, average=None, zero_division=np.nan)
    np.testing.assert_allclose(f1_per_tag(Y, D), f1)
    assert np.isnan(f1[6])
    assert f1_per_tag(Y, D).reasons == {6: "no positive, and none predicted"}
    assert scores.macro_f1 == pytest.approx(np.nanmean(f1))
    assert scores.micro_f1 == pytest.approx(metrics.f1_score(Y, D, average="micro"))
    assert scores.hamming_loss == pytest.approx(metrics.hamming_loss(Y, D))
    assert scores.subset_accuracy == pytest.approx(metrics.accuracy_score(Y, D))


def test_without_unknown_labels_rankings_are_judged_as_by_scikit_learn(case):
    Y, S = case
    coverage, precision = coverage_error_per_clip(Y, S), ranking_precision_per_clip(Y, S)
    assert coverage.mean == pytest.approx(metrics.coverage_error(Y, S))
    expected = metrics.label_ranking_average_precision_score(Y, S)
    assert precision.mean == pytest.approx(expected)
    for row in range(len(Y)):
        alone = Y[row : row + 1], S[row : row + 1]
        assert coverage.values[row] == metrics.coverage_error(*alone)


def test_unknown_labels_count_as_if_the_clip_were_not_asked_about_the_tag(case):
    Y, S = case
    unknown = np.random.default_rng(9).random(Y.shape) < 0.3
    unknown[2] = True
    unknown[:, 6] = False
    unknown[2, 6] = True
    Y = np.where(unknown, NAN, Y)
    D = S >= 0.5
    D[:, 6] = False
    scores = evaluate_decisions(Y, D)
    f1 = [
        metrics.f1_score(y[~np.isnan(y)], d[~np.isnan(y)], zero_division=np.nan)
        for y, d in zip(Y.T, D.T, strict=True)
    ]
    np.testing.assert_allclose(f1_per_tag(Y, D), f1)
    known = ~np.isnan(Y)
    assert scores.micro_f1 == pytest.approx(metrics.f1_score(Y[known], D[known]))
    assert scores.hamming_loss == pytest.approx(metrics.hamming_loss(Y[known], D[known]))
    clips = [row for row in range(len(Y)) if known[row].any()]
    right = [np.array_equal(Y[row, known[row]], D[row, known[row]]) for row in clips]
    assert scores.subset_accuracy == pytest.approx(np.mean(right))
    coverage, precision = coverage_error_per_clip(Y, S), ranking_precision_per_clip(Y, S)
    assert coverage.reasons == precision.reasons == {2: "no known label"}
    for row in clips:
        alone = Y[row : row + 1, known[row]], S[row : row + 1, known[row]]
        assert coverage.values[row] == metrics.coverage_error(*alone)
        expected = metrics.label_ranking_average_precision_score(*alone)
        assert precision.values[row] == pytest.approx(expected)


def test_nothing_known_gives_nan_without_a_warning():
    scores = evaluate_decisions([[NAN]], [[1]])
    assert np.isnan([scores.micro_f1, scores.macro_f1, scores.hamming_loss]).all()
    assert np.isnan(scores.subset_accuracy)


@pytest.mark.parametrize("metric", [evaluate_decisions, f1_per_tag])
def test_probabilities_are_not_decisions(metric):
    with pytest.raises(DataError, match=r"D must hold decisions, .* clip 0, tag 1: 0\.7"):
        metric([[1, 0]], [[1, 0.7]])
