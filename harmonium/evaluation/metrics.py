"""All metrics of one set of scores."""

import numpy as np
from numpy.typing import ArrayLike

from harmonium.evaluation.calibration import (
    are_probabilities,
    brier_per_tag,
    calibration_error_per_tag,
    log_loss_per_tag,
)
from harmonium.evaluation.inputs import MetricResult
from harmonium.evaluation.ranking import (
    auc_per_clip,
    auc_per_tag,
    average_precision_per_tag,
    precision_at_k_per_tag,
)

NOT_PROBABILITIES = "scores are not probabilities"


def evaluate(
    Y: ArrayLike, S: ArrayLike, *, k: int = 10, n_bins: int = 10
) -> dict[str, MetricResult]:
    """Every metric by name, each with its values, their mean, and why some are undefined.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) scores. If some are below 0 or above 1, they are ranked but not judged as
        probabilities: the metrics of calibration are then NaN for all tags, with that reason.
    k : length of the list of ``precision_at_k``.
    n_bins : number of bins of ``calibration_error``.

    Returns
    -------
    dict with the keys ``auc``, ``average_precision``, ``precision_at_k``, ``auc_per_clip``,
    ``calibration_error``, ``brier``, ``log_loss``. ``auc_per_clip`` has n_clips values, the others
    n_tags.

    Examples
    --------
    >>> Y = [[1, 0], [0, 1], [0, float("nan")]]
    >>> results = evaluate(Y, [[0.9, 0.2], [0.3, 0.6], [0.5, 0.1]])
    >>> results["auc"].mean
    1.0
    >>> results["precision_at_k"].reasons
    {0: 'fewer than 10 known labels', 1: 'fewer than 10 known labels'}
    """
    results = {
        "auc": auc_per_tag(Y, S),
        "average_precision": average_precision_per_tag(Y, S),
        "precision_at_k": precision_at_k_per_tag(Y, S, k=k),
        "auc_per_clip": auc_per_clip(Y, S),
    }
    if are_probabilities(S):
        results["calibration_error"] = calibration_error_per_tag(Y, S, n_bins=n_bins)
        results["brier"] = brier_per_tag(Y, S)
        results["log_loss"] = log_loss_per_tag(Y, S)
    else:
        n_tags = np.shape(S)[1]
        reasons = dict.fromkeys(range(n_tags), NOT_PROBABILITIES)
        for name in ("calibration_error", "brier", "log_loss"):
            results[name] = MetricResult(np.full(n_tags, np.nan), reasons)
    return results
