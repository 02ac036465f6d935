"""What held-out probabilities say of tags: how well they are learnt, thresholds, precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.library.learning.examples import by_columns
from harmonium.library.store.models import UNREACHABLE
from harmonium.library.tagger import PrecisionCurve

CLEARLY = 2.0
"""An AUC is clearly above 0.5 if it is by so many of the standard errors that chance has."""
BINS = 50
"""Ranges of probabilities in which other tags are looked at."""
GROWTH = 1.1
"""Beyond the first ranks, each rank of a curve has so many times the tracks of the one before."""


@dataclass(frozen=True)
class TagScores:
    """What held-out probabilities say about each tag; all (n_tags,)."""

    positives: Ids
    negatives: Ids
    auc: Doubles
    error: Doubles
    """Standard error of the AUC."""
    learnt: Mask
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


def auc_error(auc: Doubles, positives: Ids, negatives: Ids) -> Doubles:
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


def chance_error(positives: Ids, negatives: Ids) -> Doubles:
    """√((P + N + 1) / 12PN): the standard error of the AUC of scores that say nothing."""
    return np.sqrt((positives + negatives + 1) / (12 * np.maximum(positives * negatives, 1)))


def choose_thresholds(Y: Floats, P: Floats, scores: TagScores) -> Floats:
    """The probability from which a track is said to have a tag, (n_tags,).

    As many held-out tracks reach it as have the tag. ``UNREACHABLE`` for tags that are not learnt.
    """
    from harmonium.estimators.calibration import matching_thresholds

    chosen = np.clip(by_columns(matching_thresholds, Y, P), 0.01, 0.99)
    return np.where(scores.learnt, chosen, UNREACHABLE).astype(np.float32)


def mean_auc(Y: Floats, P: Floats) -> float:
    """Mean over tags of the AUC, of the tracks that have probabilities."""
    from harmonium.evaluation import auc_per_tag

    scored = ~np.isnan(P[:, 0])
    auc = by_columns(lambda y, p: auc_per_tag(y[scored], p[scored]).values, Y, P)
    return float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5


# Precision curves. --------------------------------------------------------------------------------


def make_curves(
    Y: Floats,
    P: Floats,
    groups: Sequence[Any] | NDArray[Any] | None = None,
) -> list[PrecisionCurve]:
    """The curve of each tag, from labels (n, C) and held-out probabilities (n, C)."""
    rises = _shares_of_others(Y, P)
    return [
        make_curve(y, p, groups, _expected(p, rise))
        for y, p, rise in zip(Y.T, P.T, rises, strict=True)
    ]


def expected_shares(Y: Floats, P: Floats) -> Floats:
    """How likely each track has each tag, but for what is known of that tag, (n, C).

    The mean of its probability and of the share of the other tags' tracks with such a probability
    that are right: by `BINS` bins, made to rise with the probability (isotonic regression).
    """
    rises = _shares_of_others(Y, P)
    return np.stack([_expected(p, rise) for p, rise in zip(P.T, rises, strict=True)], axis=1)


def _shares_of_others(Y: Floats, P: Floats) -> list[Doubles | None]:
    """For each tag, how often the others are right by bins of the probability; None: not known."""
    from sklearn.isotonic import IsotonicRegression

    n, right = np.zeros((2, P.shape[1], BINS))
    for j, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):  # no more than a tag in memory
        known = ~np.isnan(y)
        bins = _bins(p[known])
        n[j] = np.bincount(bins, minlength=BINS)
        right[j] = np.bincount(bins, y[known] == 1, minlength=BINS)
    others, others_right = n.sum(axis=0) - n, right.sum(axis=0) - right
    centres = (np.arange(BINS) + 0.5) / BINS
    found: list[Doubles | None] = []
    for j in range(P.shape[1]):
        seen = others[j] > 0
        if not seen.any():
            found.append(None)
            continue
        rises = IsotonicRegression(out_of_bounds="clip")
        share = others_right[j, seen] / others[j, seen]
        rises.fit(centres[seen], share, sample_weight=others[j, seen])
        found.append(rises.predict(centres))
    return found


def _expected(p: Floats, rise: Doubles | None) -> Floats:
    """`expected_shares` of a tag, (n,)."""
    p = np.asarray(p, np.float32)
    return p if rise is None else ((p + rise[_bins(p)]) / 2).astype(np.float32)


def _bins(p: Floats) -> NDArray[np.int64]:
    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


def make_curve(
    y: Floats,
    p: Floats,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    expected: Floats | None = None,
) -> PrecisionCurve:
    """The curve of labels (n,), 0, 1 or NaN, and held-out probabilities (n,).

    ``groups`` (n,) says which tracks go together, such as those of an artist; None: none do.
    ``expected`` (n,) are what `expected_shares` gives for the tag; None: the probabilities.

    It has no ranks where no label is known; then nothing is promised.
    """
    known = ~np.isnan(y)
    order = np.flatnonzero(known)[np.argsort(-p[known], kind="stable")]
    y, ordered = y[order], p[order].astype(np.float64)
    # tracks of one probability are chosen together
    ranks = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)])
    kept, last = [], 0
    for rank in ranks.tolist():
        if rank + 1 >= min(GROWTH * last, last + len(y)) or rank == ranks[-1]:
            kept.append(rank)
            last = rank + 1
    places = np.array(kept, np.int64)
    right = np.cumsum(y == 1)[places].astype(np.int64)
    squares = np.cumsum(
        2 * _earlier(np.asarray(groups)[order]) + 1 if groups is not None else np.ones(len(y))
    )
    return PrecisionCurve(
        thresholds=ordered[places],
        chosen=places + 1,
        right=right,
        positives=int((y == 1).sum()),
        effective=np.square(places + 1) / squares[places].astype(np.float64),
        expected=np.cumsum((p if expected is None else expected)[order], dtype=np.float64)[places]
        / (places + 1),
    )


def _earlier(groups: NDArray[Any]) -> NDArray[np.int64]:
    """How many before it are in the same group, (n,)."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    earlier = np.empty(len(groups), np.int64)
    earlier[order] = np.arange(len(groups)) - starts
    return earlier


def curves_to_arrays(curves: Sequence[PrecisionCurve]) -> dict[str, NDArray[Any]]:
    """As arrays of a model file: the curves one after the other, and where each ends."""
    return {
        "curves.thresholds": np.concatenate([one.thresholds for one in curves]).astype(np.float32),
        "curves.chosen": np.concatenate([one.chosen for one in curves]).astype(np.int32),
        "curves.right": np.concatenate([one.right for one in curves]).astype(np.int32),
        "curves.effective": np.concatenate([one.effective for one in curves]).astype(np.float32),
        "curves.expected": np.concatenate([one.expected for one in curves]).astype(np.float32),
        "curves.positives": np.array([one.positives for one in curves], np.int32),
        "curves.ends": np.cumsum([len(one.chosen) for one in curves]).astype(np.int32),
    }
