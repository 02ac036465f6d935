"""From probabilities to decisions: a threshold for each tag."""

import numpy as np
from numpy.typing import NDArray


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
