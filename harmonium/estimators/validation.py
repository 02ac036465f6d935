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


def mean_auc(Y: Floats, S: Floats) -> float:
    """Mean over tags of the AUC of scores S (N, C) for labels Y (N, C)."""
    from harmonium.evaluation.metrics import expected_auc_per_tag

    return expected_auc_per_tag(Y, S).mean


def log_likelihood(Y: Floats, P: Floats) -> float:
    """Mean of y log p + (1 - y) log(1 - p) over the known labels; P is (N, C) probabilities."""
    tiny = np.finfo(np.float32).tiny
    terms = Y * np.log(np.maximum(P, tiny)) + (1 - Y) * np.log(np.maximum(1 - P, tiny))
    return float(np.mean(terms[~np.isnan(Y)]))


def matching_thresholds(Y: Floats, P: Floats) -> Doubles:
    """For each tag, the threshold that as many scores reach as there are positive labels; (C,).

    So a model gives a tag as often as it is true, and precision equals recall. Y is (N, C): a label
    that is a probability p counts as p positives, and unknown labels are left out. P is (N, C)
    scores from 0 to 1; equal scores all reach a threshold or none do, whichever is nearer. A
    threshold lies halfway between two scores, and is 0.5 without positives.
    """
    thresholds = np.full(Y.shape[1], 0.5)
    for tag, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):
        known = ~np.isnan(y)
        n_positive = round(float(y[known].sum()))
        if n_positive:
            thresholds[tag] = _threshold_reached_by(n_positive, p[known].astype(np.float64))
    return thresholds


def _threshold_reached_by(n: int, p: Doubles) -> float:
    """The threshold that n of the scores reach, or as nearly as equal scores allow."""
    scores, counts = np.unique(p, return_counts=True)
    reaching = np.cumsum(counts[::-1])[::-1]  # how many scores are at least this one
    reaching = np.append(reaching, 0)  # and above all of them
    place = np.argmin(np.abs(reaching - n))
    bounds = np.concatenate([[0.0], scores, [1.0]])
    return float((bounds[place] + bounds[place + 1]) / 2)
