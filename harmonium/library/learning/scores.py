"""What held-out probabilities show of each tag: AUC, thresholds and precision curves.

Labels Y and held-out probabilities P are (n, C); a label is 1, 0, or NaN if unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.library.learning.examples import by_columns
from harmonium.library.model.precision import CURVES, RANKED, PrecisionCurve

CLEARLY = 2.0  # standard errors by which an AUC must exceed 0.5 to be clearly above chance
CHOSEN = 1.5  # more for the mean of all tags, which is the best of several settings and epochs
GROWTH = 1.1  # ratio of track counts at successive ranks of a curve
MIN_THRESHOLD = 0.01  # thresholds stay this far away from 0 and 1


@dataclass(frozen=True, kw_only=True, eq=False)
class TagScores:
    """What held-out probabilities show about each tag; all (n_tags,)."""

    positives: Ids
    negatives: Ids
    auc: Doubles
    error: Doubles  # standard error of the AUC
    learnt: Mask  # whether the AUC is clearly above chance


def score_tags(Y: Floats, P: Floats, folds: Ids | None = None) -> TagScores:
    """The AUC of each tag, with its error.

    The AUC is the share of pairs, a track with the tag and one without, that are in order. Only
    pairs within a fold count: a different member ranks each fold, and members need not agree on how
    likely the tag is. None: all tracks are in one fold.
    """
    if folds is None:
        folds = np.zeros(len(Y), np.int64)
    masks = [folds == fold for fold in np.unique(folds)]
    counts = by_columns(lambda y, p: _scores_by_fold(y, p, masks), Y, P)  # (n_tags, 3, n_folds)
    positives, negatives, aucs = counts.transpose(1, 2, 0)
    pairs = positives * negatives
    with np.errstate(invalid="ignore"):
        auc = np.nansum(pairs * aucs, axis=0) / pairs.sum(axis=0)
        n_errors = CLEARLY + CHOSEN / np.sqrt(len(auc))
        learnt = auc - 0.5 > n_errors * auc_error(0.5, positives, negatives)
    return TagScores(
        positives=positives.sum(axis=0).astype(np.int64),
        negatives=negatives.sum(axis=0).astype(np.int64),
        auc=auc,
        error=auc_error(auc, positives, negatives),
        learnt=learnt,
    )


def _scores_by_fold(Y: Floats, P: Floats, folds: Sequence[Mask]) -> Doubles:
    """Positives, negatives and AUC of each tag in each fold, (n_tags, 3, n_folds)."""
    from harmonium.evaluation import auc_per_tag

    scores = np.empty((Y.shape[1], 3, len(folds)))
    for k, fold in enumerate(folds):
        labels = Y[fold]
        scores[:, 0, k] = (labels == 1).sum(axis=0)
        scores[:, 1, k] = (labels == 0).sum(axis=0)
        scores[:, 2, k] = auc_per_tag(labels, P[fold]).values
    return scores


def auc_error(auc: Doubles | float, positives: Doubles, negatives: Doubles) -> Doubles:
    """√(Σ PN [A(1 - A) + (P - 1)(Q₁ - A²) + (N - 1)(Q₂ - A²)]) / Σ PN: Hanley and McNeil (1982).

    The sums are over the first axis of ``positives`` and ``negatives``, the folds. Q₁ = A / (2 - A)
    and Q₂ = 2A² / (1 + A) are the chances that two positives outrank a negative, and that a
    positive outranks two negatives. At A = 1/2 it is the error of scores that say nothing. A is
    kept half a pair away from 0 and 1: a perfect order of some twenty tracks does not prove that
    all tracks are.
    """
    pairs = positives * negatives
    n_pairs = np.maximum(pairs.sum(axis=0), 1)
    a = np.clip(auc, 0.5 / n_pairs, 1 - 0.5 / n_pairs)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (positives - 1) * (first - a**2) + (negatives - 1) * (second - a**2)
    return np.sqrt(np.maximum(np.sum(pairs * variance, axis=0), 0)) / n_pairs


def mean_auc(Y: Floats, P: Floats, folds: Ids) -> float:
    """The mean over tags of the AUC within folds, for tracks that have probabilities."""
    scored = ~np.isnan(P[:, 0])
    auc = score_tags(Y[scored], P[scored], folds[scored]).auc
    return float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5


def choose_thresholds(Y: Floats, P: Floats, scores: TagScores) -> Floats:
    """The probability at which a track gets a tag, (n_tags,); NaN if not learnt.

    As many held-out tracks reach it as have the tag.
    """
    from harmonium.estimators.validation import matching_thresholds

    thresholds = np.clip(by_columns(matching_thresholds, Y, P), MIN_THRESHOLD, 1 - MIN_THRESHOLD)
    return np.where(scores.learnt, thresholds, np.nan).astype(np.float32)


def make_curves(
    Y: Floats, P: Floats, groups: Sequence[Any] | NDArray[Any] | None = None
) -> list[PrecisionCurve]:
    """The curve of each tag; ``groups`` as in `make_curve`."""
    return [make_curve(y, p, groups) for y, p in zip(Y.T, P.T, strict=True)]


def make_curve(
    y: Floats, p: Floats, groups: Sequence[Any] | NDArray[Any] | None = None
) -> PrecisionCurve:
    """The curve of labels (n,) and held-out probabilities (n,).

    ``groups`` (n,) says which tracks belong together, such as an artist's; None: none do.

    If no label is known, it has no ranks and promises nothing.
    """
    known = ~np.isnan(y)
    order = np.flatnonzero(known)[np.argsort(-p[known], kind="stable")]
    y, ordered = y[order], p[order].astype(np.float64)
    if groups is None:
        earlier = np.zeros(len(y), np.int64)
    else:
        earlier = _n_earlier(np.asarray(groups)[order])
    ranks = _chosen_ranks(ordered)
    # A group of n tracks adds 1 + 3 + … + (2n - 1) = n² to the sum of squares.
    squares = np.cumsum(2 * earlier + 1)[ranks].astype(np.float64)
    return PrecisionCurve(
        thresholds=ordered[ranks],
        chosen=ranks + 1,
        right=np.cumsum(y == 1)[ranks].astype(np.int64),
        positives=int((y == 1).sum()),
        effective=np.square(ranks + 1) / squares,
        expected=np.cumsum(ordered)[ranks] / (ranks + 1),
    )


def _chosen_ranks(ordered: Doubles) -> Ids:
    """Ranks at which a curve of descending probabilities (n,) has points: about `GROWTH` apart.

    Tracks with the same probability are chosen together.
    """
    n = len(ordered)
    ends = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True)[:n]).tolist()
    chosen: list[int] = []
    n_before = 0
    for rank in ends:
        if rank + 1 >= min(GROWTH * n_before, n_before + n) or rank == ends[-1]:
            chosen.append(rank)
            n_before = rank + 1
    return np.array(chosen, np.int64)


def _n_earlier(groups: NDArray[Any]) -> Ids:
    """How many earlier tracks are in the same group, (n,)."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    n_earlier = np.empty(len(groups), np.int64)
    n_earlier[order] = np.arange(len(groups)) - starts
    return n_earlier


def curves_to_arrays(
    curves: Sequence[PrecisionCurve], name: str = CURVES
) -> dict[str, NDArray[Any]]:
    """Curves as arrays for a model file: one after another, and where each ends."""
    arrays: dict[str, NDArray[Any]] = {
        f"{name}.{column}": np.concatenate([getattr(curve, column) for curve in curves]).astype(
            kind
        )
        for column, kind in RANKED.items()
    }
    arrays[f"{name}.positives"] = np.array([curve.positives for curve in curves], np.int32)
    arrays[f"{name}.ends"] = np.cumsum([len(curve.chosen) for curve in curves]).astype(np.int32)
    return arrays
