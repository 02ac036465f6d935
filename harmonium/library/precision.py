"""How often a tag is right from each probability on, and from where on it is right often enough.

For every tag, training keeps the curve of held-out tracks: how many have at least a probability,
and how many of those have the tag. `precision_curve` gives it, for any stored model. Tags that came
along with Harmonium have the curve of the clips that they were learnt from; it has no ranks where
no person was asked for the tag.

To be right with a share r, `threshold_for` goes down the ranks of the curve, beginning with the
first that has enough tracks, while the lower bound of the share that is right is not below r. The
last rank that passed is the threshold. The first failure ends it, so that looking at many ranks
costs nothing (fixed-sequence testing). The bound allows for two things:

- The tracks of an artist sound alike, and are right or wrong together. So they count as many tracks
  only as far as artists differ: n tracks, n_g of each artist, count as n² / Σ n_g² (Kish), which is
  the number of artists where each has as many.
- Of many tags some pass by luck, and those are the ones that are written. What can be expected of
  a tag beforehand holds them back, and counts as much as `PRIOR` tracks: half of it is the mean of
  its probabilities, the other half how often such probabilities were right for the other tags.

The share that is right then has a beta distribution, and the bound is the point below which it is
with a probability of `DOUBT`. `benchmarks/precision.py` compares promise and truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.library.store.models import UNREACHABLE, StoredModel

USUAL_PRECISION = 0.8
"""What is written is to be right so often."""
DOUBT = 0.2
"""The share of tags about which a bound may be wrong."""
PRIOR = 10.0
"""So many held-out tracks count as much as the probabilities themselves."""
BINS = 50
"""Ranges of probabilities in which other tags are looked at."""
FEWEST = 8.0
"""Tracks of different artists that a threshold needs above it."""
GROWTH = 1.1
"""Beyond the first ranks, each rank of a curve has so many times the tracks of the one before."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrecisionCurve:
    """Held-out tracks of a tag by probability, from the most probable on; arrays (n_ranks,)."""

    thresholds: Doubles
    """Strictly descending,"""
    chosen: NDArray[np.int64]
    """how many tracks have at least this probability,"""
    right: NDArray[np.int64]
    """and how many of them have the tag."""
    positives: int
    """How many tracks have the tag."""
    effective: Doubles
    """How many tracks of different artists tell as much as those chosen,"""
    expected: Doubles
    """and the share of them that can be expected to be right (`expected_shares`)."""

    @property
    def precision(self) -> Doubles:
        """The share of the tracks chosen that have the tag."""
        return self.right / self.chosen

    @property
    def recall(self) -> Doubles:
        """The share of the tracks with the tag that are chosen."""
        return self.right / max(1, self.positives)

    @property
    def bounds(self) -> tuple[Doubles, Doubles]:
        """Lower and upper bounds of the precision, each right in 80 %."""
        return self.below(DOUBT), self.below(1 - DOUBT)

    def below(self, share: float) -> Doubles:
        """What the precision is below with this probability."""
        from scipy.stats import beta

        right = PRIOR * np.clip(self.expected, 0.01, 0.99) + self.precision * self.effective
        return beta.ppf(share, right, PRIOR + self.effective - right)

    def at(self, threshold: float) -> int | None:
        """The last rank that reaches a threshold; None where no track does."""
        n = int(np.sum(self.thresholds >= threshold))
        return n - 1 if n else None


def lower_bound(
    right: NDArray[np.int64], chosen: NDArray[np.int64], doubt: float = DOUBT
) -> Doubles:
    """The precision q at which so many or more are right in a share ``doubt`` of all samples.

    The bound of Clopper and Pearson, for tracks about which nothing else is known.
    """
    from scipy.stats import beta

    found = beta.ppf(doubt, np.maximum(right, 1), chosen - right + 1)
    return np.where(right > 0, found, 0.0)


def make_curves(
    Y: NDArray[np.float32],
    P: NDArray[np.float32],
    groups: Sequence[Any] | NDArray[Any] | None = None,
) -> list[PrecisionCurve]:
    """The curve of each tag, from labels (n, C) and held-out probabilities (n, C)."""
    rises = _shares_of_others(Y, P)
    return [
        make_curve(y, p, groups, _expected(p, rise))
        for y, p, rise in zip(Y.T, P.T, rises, strict=True)
    ]


def expected_shares(Y: NDArray[np.float32], P: NDArray[np.float32]) -> NDArray[np.float32]:
    """How likely each track has each tag, but for what is known of that tag, (n, C).

    The mean of its probability and of the share of the other tags' tracks with such a probability
    that are right: by `BINS` bins, made to rise with the probability (isotonic regression).
    """
    rises = _shares_of_others(Y, P)
    return np.stack([_expected(p, rise) for p, rise in zip(P.T, rises, strict=True)], axis=1)


def _shares_of_others(
    Y: NDArray[np.float32], P: NDArray[np.float32]
) -> list[NDArray[np.float64] | None]:
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
    found: list[NDArray[np.float64] | None] = []
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


def _expected(p: NDArray[np.float32], rise: NDArray[np.float64] | None) -> NDArray[np.float32]:
    """`expected_shares` of a tag, (n,)."""
    p = np.asarray(p, np.float32)
    return p if rise is None else ((p + rise[_bins(p)]) / 2).astype(np.float32)


def _bins(p: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


def make_curve(
    y: NDArray[np.float32],
    p: NDArray[np.float32],
    groups: Sequence[Any] | NDArray[Any] | None = None,
    expected: NDArray[np.float32] | None = None,
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


def threshold_for(curve: PrecisionCurve, precision: float) -> float:
    """The probability from which on a tag has this precision; `UNREACHABLE` if it never does."""
    if not 0 <= precision < 1:
        raise DataError(f"'precision' must be at least 0 and below 1. Got {precision}.")
    passed, threshold = curve.bounds[0] >= precision, UNREACHABLE
    for rank in np.flatnonzero(curve.effective >= FEWEST).tolist():
        if not passed[rank]:
            break
        threshold = float(curve.thresholds[rank])
    return threshold


# Kept with a model. ---------------------------------------------------------------------------


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


def precision_curves(model: StoredModel) -> list[PrecisionCurve] | None:
    """The curve of each tag of a stored model.

    None where it has none: it is an older one, or came without its bytes.
    """
    from harmonium.estimators.model_files import from_bytes

    if not model.bytes:
        return None
    return curves_from_arrays(from_bytes(model.bytes, name="The stored model")[0])


def curves_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> list[PrecisionCurve] | None:
    """What `curves_to_arrays` was given, or None.

    Older models do not know which tracks go together; they count each for itself.
    """
    if "curves.ends" not in arrays:
        return None
    thresholds, chosen = arrays["curves.thresholds"], arrays["curves.chosen"]
    effective = arrays.get("curves.effective", chosen)
    expected = arrays.get("curves.expected", thresholds)  # at least
    ends = arrays["curves.ends"].tolist()
    return [
        PrecisionCurve(
            thresholds=thresholds[begin:end].astype(np.float64),
            chosen=chosen[begin:end].astype(np.int64),
            right=arrays["curves.right"][begin:end].astype(np.int64),
            positives=int(positives),
            effective=effective[begin:end].astype(np.float64),
            expected=expected[begin:end].astype(np.float64),
        )
        for begin, end, positives in zip([0, *ends], ends, arrays["curves.positives"], strict=False)
    ]


def precision_curve(model: StoredModel, tag: str) -> PrecisionCurve | None:
    """Precision and recall of a tag at each threshold, from held-out tracks.

    None where the model has no such tag, or no curves.
    """
    curves = precision_curves(model)
    place = model.vocabulary.index(tag) if tag in model.vocabulary else len(model.vocabulary)
    return None if curves is None or place >= len(curves) else curves[place]


def knows_precision(model: StoredModel) -> bool:
    """Whether the model says how often its tags are right; older ones do not."""
    return precision_curves(model) is not None


def thresholds_for(model: StoredModel, precision: float | None) -> NDArray[np.float32]:
    """(n_tags,) from which probability on each tag is right with this share; else `UNREACHABLE`.

    The model's own thresholds where no precision is asked for, or it knows none.
    """
    curves = None if precision is None else precision_curves(model)
    if precision is None or curves is None:
        return model.thresholds
    found = np.full(len(model.vocabulary), UNREACHABLE)
    found[: len(curves)] = [threshold_for(curve, precision) for curve in curves]
    return np.where(model.learnt, found, UNREACHABLE).astype(np.float32)
