"""All metrics together."""

import numpy as np

from harmonium.evaluation import (
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    brier_per_tag,
    calibration_error_per_tag,
    evaluate,
    log_loss_per_tag,
    precision_at_k_per_tag,
)


def case():
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 5)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    Y[:, 4] = np.nan
    return Y, rng.random((40, 5))


def test_evaluate_gives_what_each_metric_gives():
    Y, S = case()
    expected = {
        "auc": auc_per_tag(Y, S),
        "average_precision": average_precision_per_tag(Y, S),
        "precision_at_k": precision_at_k_per_tag(Y, S, k=3),
        "auc_per_clip": auc_per_clip(Y, S),
        "calibration_error": calibration_error_per_tag(Y, S, n_bins=4),
        "brier": brier_per_tag(Y, S),
        "log_loss": log_loss_per_tag(Y, S),
    }
    results = evaluate(Y, S, k=3, n_bins=4)
    assert list(results) == list(expected)
    for name, result in results.items():
        np.testing.assert_array_equal(result, expected[name])
        assert result.reasons == expected[name].reasons
        assert set(result.reasons) == set(np.flatnonzero(np.isnan(result)).tolist())


def test_lists_of_ten_and_ten_bins_unless_others_are_asked_for():
    Y, S = case()
    usual = evaluate(Y, S)
    for name, result in evaluate(Y, S, k=10, n_bins=10).items():
        np.testing.assert_array_equal(usual[name], result)
    others = evaluate(Y, S, k=11, n_bins=11)
    for name in ("precision_at_k", "calibration_error"):
        assert (np.asarray(others[name]) != np.asarray(usual[name]))[:4].any()


def test_scores_that_are_not_probabilities_are_ranked_but_not_judged_as_such():
    Y, S = case()
    ranked, scaled = evaluate(Y, S), evaluate(Y, 3 * S - 1)
    for name in ("auc", "average_precision", "precision_at_k"):
        np.testing.assert_array_equal(scaled[name], ranked[name])
    for name in ("calibration_error", "brier", "log_loss"):
        assert scaled[name].reasons == dict.fromkeys(range(5), "scores are not probabilities")
        assert np.isnan(scaled[name].mean)
