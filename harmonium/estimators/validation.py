"""How held-out clips judge a model: ranking, likelihood, and the thresholds of its decisions.

A label that is a probability p counts as p positives and 1 - p negatives. NumPy is enough to import
this.
"""

import numpy as np

from harmonium.arrays import Doubles, Floats


def is_rankable(Y: Floats) -> bool:
    """Whether some tag has both a positive and a negative, so that an AUC is defined."""
    from harmonium.evaluation.metrics import expected_pairs  # this loads SciPy

    return bool((expected_pairs(Y) > 0).any())


def mean_auc(Y: Floats, S: Floats, weights: Floats | None = None) -> float:
    """Mean over tags of the AUC of scores S (N, C) for labels Y (N, C)."""
    from harmonium.evaluation.metrics import expected_auc_per_tag

    return expected_auc_per_tag(Y, S, weights).mean


def log_likelihood(Y: Floats, P: Floats, weights: Floats | None = None) -> float:
    """Mean of y log p + (1 - y) log(1 - p) over the known labels; P is (N, C) probabilities."""
    tiny = np.finfo(np.float32).tiny
    terms = Y * np.log(np.maximum(P, tiny)) + (1 - Y) * np.log(np.maximum(1 - P, tiny))
    known = ~np.isnan(Y)
    if weights is None:
        return float(np.mean(terms[known]))
    return float(np.average(terms[known], weights=np.broadcast_to(weights, Y.shape)[known]))


def matching_thresholds(Y: Floats, P: Floats, weights: Floats | None = None) -> Doubles:
    """For each tag, the threshold that as many scores reach as there are positive labels; (C,).

    So a model gives a tag as often as it is true, and precision equals recall. Y is (N, C): a label
    that is a probability p counts as p positives, and unknown labels are left out. P is (N, C)
    scores from 0 to 1; equal scores all reach a threshold or none do, whichever is nearer. A
    threshold lies halfway between two scores, and is 0.5 without positives. With ``weights``,
    (N, 1) or (N, C), that is said of the labels' weights, not of their numbers.
    """
    thresholds = np.full(Y.shape[1], 0.5)
    counts = np.broadcast_to(np.float32(1) if weights is None else weights, Y.shape)
    for tag, (y, p, count) in enumerate(zip(Y.T, P.T, counts.T, strict=True)):
        known = ~np.isnan(y) & (count > 0)
        n_positive = float(np.sum(count[known] * y[known], dtype=np.float64))
        if weights is None:
            n_positive = round(n_positive)
        if n_positive:
            thresholds[tag] = _threshold_reached_by(
                n_positive, p[known].astype(np.float64), count[known].astype(np.float64)
            )
    return thresholds


def _threshold_reached_by(n: float, p: Doubles, counts: Doubles) -> float:
    """The threshold that scores of the weight n reach, or as nearly as equal scores allow."""
    scores, place_of_score = np.unique(p, return_inverse=True)
    weights = np.bincount(place_of_score, counts)
    reaching = np.cumsum(weights[::-1])[::-1]  # how much of them is at least this one
    reaching = np.append(reaching, 0)  # and above all of them
    place = np.argmin(np.abs(reaching - n))
    bounds = np.concatenate([[0.0], scores, [1.0]])
    return float((bounds[place] + bounds[place + 1]) / 2)
