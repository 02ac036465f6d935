"""How well each tag is learnt, and from which probability on a track is said to have it.

Both come from held-out probabilities: those of models that had not seen the track.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.library.learning.training_files import by_columns
from harmonium.library.store.models import UNREACHABLE

CLEARLY = 2.0
"""An AUC is clearly above 0.5 if it is by so many of the standard errors that chance has."""

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class TagScores:
    """What held-out probabilities say about each tag; all (n_tags,)."""

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    auc: Doubles
    error: Doubles
    """Standard error of the AUC."""
    learnt: NDArray[np.bool_]
    """Whether the AUC is clearly above chance."""


def score_tags(Y: Floats, P: Floats) -> TagScores:
    """AUC by tag, with its error, from labels (n, C), NaN unknown, and probabilities (n, C)."""
    from harmonium.evaluation import auc_per_tag

    positives = by_columns(lambda y: (y == 1).sum(axis=0).astype(np.int64), Y)
    negatives = by_columns(lambda y: (y == 0).sum(axis=0).astype(np.int64), Y)
    auc = by_columns(lambda y, p: auc_per_tag(y, p).values, Y, P)
    with np.errstate(invalid="ignore"):
        learnt = auc - 0.5 > CLEARLY * chance_error(positives, negatives)
    return TagScores(positives, negatives, auc, auc_error(auc, positives, negatives), learnt)


def auc_error(auc: Doubles, positives: NDArray[np.int64], negatives: NDArray[np.int64]) -> Doubles:
    """√([A(1 - A) + (P - 1)(Q₁ - A²) + (N - 1)(Q₂ - A²)] / PN): Hanley and McNeil (1982).

    Q₁ = A / (2 - A) and Q₂ = 2A² / (1 + A) are the chances that two positives outrank a negative,
    and that a positive outranks two negatives. A is kept half a pair away from 0 and 1: that some
    twenty tracks are in perfect order does not prove that all are.
    """
    pairs = np.maximum(positives * negatives, 1)
    a = np.clip(auc, 0.5 / pairs, 1 - 0.5 / pairs)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (positives - 1) * (first - a**2) + (negatives - 1) * (second - a**2)
    return np.sqrt(np.maximum(variance, 0) / pairs)


def chance_error(positives: NDArray[np.int64], negatives: NDArray[np.int64]) -> Doubles:
    """√((P + N + 1) / 12PN): the standard error of the AUC of scores that say nothing."""
    return np.sqrt((positives + negatives + 1) / (12 * np.maximum(positives * negatives, 1)))


def choose_thresholds(Y: Floats, P: Floats, scores: TagScores) -> Floats:
    """The probability from which a track is said to have a tag, (n_tags,).

    As many held-out tracks reach it as have the tag. ``UNREACHABLE`` for tags that are not learnt.
    """
    from harmonium.estimators.calibration import matching_thresholds

    chosen = np.clip(by_columns(matching_thresholds, Y, P), 0.01, 0.99)
    return np.where(scores.learnt, chosen, UNREACHABLE).astype(np.float32)
