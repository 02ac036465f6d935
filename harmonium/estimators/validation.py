"""How well scores agree with held-out labels, which may be probabilities, and what to decide by.

A label that is a probability p counts as p of a positive and 1 - p of a negative: for labels of 0
and 1 that is the usual AUC and the usual likelihood.
"""

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.labels import is_soft
from harmonium.evaluation import auc_per_tag

Floats = NDArray[np.float32]


def is_rankable(Y: Floats) -> bool:
    """Whether some tag has both a positive and a negative, so that an AUC is defined."""
    return bool((_pairs(Y) > 0).any())


def mean_auc(Y: Floats, S: Floats) -> float:
    """Mean over tags of the AUC of scores S (N, C) for labels Y (N, C)."""
    if not is_soft(Y):
        return auc_per_tag(Y, S).mean
    pairs = _pairs(Y)
    won = [_pairs_won(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    return float(np.mean(np.array(won)[pairs > 0] / pairs[pairs > 0]))


def log_likelihood(Y: Floats, P: Floats) -> float:
    """Mean of y log p + (1 - y) log(1 - p) over the known labels; P is (N, C) probabilities."""
    tiny = np.finfo(np.float32).tiny
    terms = Y * np.log(np.maximum(P, tiny)) + (1 - Y) * np.log(np.maximum(1 - P, tiny))
    return float(np.mean(terms[~np.isnan(Y)]))


def half_told(Y: Floats) -> Floats:
    """Half of the known tags, drawn by chance but alike in every call; NaN for the others."""
    return np.where(np.random.default_rng(0).random(Y.shape) < 0.5, Y, np.float32(np.nan))


def _pairs(Y: Floats) -> NDArray[np.float64]:
    """Σ_{i≠k} y_ij (1 - y_kj) over the known labels of tag j: expected (positive, negative) pairs.

    Shape (C,).
    """
    known = ~np.isnan(Y)
    p = np.where(known, Y, 0.0).astype(np.float64)
    q = known - p
    return np.maximum(p.sum(axis=0) * q.sum(axis=0) - (p * q).sum(axis=0), 0.0)


def _pairs_won(y: Floats, s: Floats) -> float:
    """Σ_{i≠k} y_i (1 - y_k) [s_i > s_k], equal scores counting half; of one tag."""
    known = ~np.isnan(y)
    p, (values, place) = y[known].astype(np.float64), np.unique(s[known], return_inverse=True)
    positive = np.bincount(place, weights=p, minlength=len(values))
    negative = np.bincount(place, weights=1 - p, minlength=len(values))
    below = np.cumsum(negative) - negative
    return float(positive @ (below + negative / 2) - (p * (1 - p)).sum() / 2)


def best_thresholds(Y: NDArray[np.float32], P: NDArray[np.float32]) -> NDArray[np.float64]:
    """The threshold that maximises F1 = 2TP / (2TP + FP + FN), for each tag; 0.5 without positives.

    Y is (N, C): a label that is a probability counts as so much of a positive and the rest of a
    negative, unknown labels are left out. P is (N, C) probabilities. A threshold lies half way
    between two scores, so that p >= threshold is the decision that was scored.
    """
    return np.array([_best_threshold(y, p) for y, p in zip(Y.T, P.T, strict=True)])


def _best_threshold(y: NDArray[np.float32], p: NDArray[np.float32]) -> float:
    known = ~np.isnan(y)
    order = np.argsort(-p[known], kind="stable")
    y, p = y[known][order], p[known][order].astype(np.float64)
    if not y.any():
        return 0.5
    chosen = np.arange(1, len(y) + 1)
    f1 = 2 * np.cumsum(y) / (chosen + y.sum())  # 2TP + FP + FN = chosen + positives
    last_of_ties = np.append(p[1:] < p[:-1], True)
    best = int(np.argmax(np.where(last_of_ties, f1, -1.0)))
    below = p[best + 1] if best + 1 < len(p) else 0.0
    return float((p[best] + below) / 2)
