"""How often a tag is right above each probability, as held-out tracks show.

A model file has a curve for each of its tags (`learning.fitting`), over held-out tracks, or for
built-in tags over the clips that they were learnt from. For a precision of r, `threshold_for` goes
down the ranks of the curve, from the first with enough tracks, while the lower bound of the
precision is at least r. The first failure ends it, so that looking at many ranks costs nothing
(fixed-sequence testing). The precision has a beta distribution, and falls below the bound with a
probability of `DOUBT`. The bound allows for two things:

- An artist's tracks are right or wrong together. So n tracks, n_g from each artist, count as n² / Σ
  n_g² (Kish), which is the number of artists if each has equally many.
- Of many tags, some pass by luck, and those are the ones that are written. So a tag's expected
  precision, the mean of its probabilities, counts as much as `PRIOR` tracks.

A probability of at least r is accepted, unless held-out tracks fell short of it: at r, or at a
lower probability above `MIN_NEARBY`, the median of that distribution is below the probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Ids, Mask
from harmonium.errors import DataError

DOUBT = 0.2  # the share of tags about which a bound may be wrong
MIN_NEARBY = 0.5  # the share that must be right of the tracks near a threshold
PRIOR = 10.0  # the number of held-out tracks that count as much as the probabilities themselves
MIN_EFFECTIVE = 8.0  # tracks of different artists that a threshold needs above it

RANKED = {
    "thresholds": np.float32,
    "effective": np.float32,
    "expected": np.float32,
    "chosen": np.int32,
    "right": np.int32,
}
"""What a curve has for each rank, and the type it is stored as."""


@dataclass(frozen=True, eq=False)
class PrecisionCurve:
    """A tag's held-out tracks by probability, the most probable first; arrays (n_ranks,)."""

    thresholds: Doubles  # probabilities, strictly descending
    chosen: Ids  # how many tracks have at least this probability
    right: Ids  # how many of these have the tag
    positives: int  # how many tracks have the tag
    effective: Doubles  # how many tracks by different artists would tell as much as those chosen
    expected: Doubles  # mean probability of those chosen

    @property
    def precision(self) -> Doubles:
        """The share of the tracks chosen that have the tag."""
        return self.right / self.chosen

    @property
    def recall(self) -> Doubles:
        """The share of the tracks with the tag that are chosen."""
        return self.right / max(1, self.positives)

    def below(self, share: float = DOUBT) -> Doubles:
        """The precision's quantile at ``share``; by default, its lower bound."""
        from scipy.stats import beta

        right = PRIOR * np.clip(self.expected, 0.01, 0.99) + self.precision * self.effective
        return beta.ppf(share, right, PRIOR + self.effective - right)

    @cached_property
    def bound(self) -> Doubles:
        """The lower bound of the precision."""
        return self.below()

    @cached_property
    def median(self) -> Doubles:
        """The precision to expect: its median, given the tracks and the probabilities."""
        return self.below(0.5)

    @property
    def is_enough(self) -> Mask:
        """Which ranks have enough tracks to say anything."""
        return self.effective >= MIN_EFFECTIVE

    def nearby(self) -> Doubles:
        """The precision among the last tracks chosen: a quarter of all, and at least a few.

        The probability at the threshold counts as much as `PRIOR` tracks.
        """
        from_rank = self.chosen - np.maximum(MIN_EFFECTIVE, self.chosen / 4)
        before = np.searchsorted(self.chosen, from_rank, side="right")
        chosen = np.append(0, self.chosen)[before]
        right = np.append(0, self.right)[before]
        n = self.chosen - chosen
        return (PRIOR * self.thresholds + self.right - right) / (PRIOR + n)

    def at(self, threshold: float) -> int | None:
        """The last rank that reaches a threshold; None if no track does."""
        n = int(np.sum(self.thresholds >= threshold))
        return n - 1 if n else None

    def precision_from(self, threshold: float) -> float | None:
        """The share of the tracks reaching a threshold that have the tag; None if none does."""
        rank = self.at(threshold)
        return None if rank is None else float(self.precision[rank])

    def recall_from(self, threshold: float) -> float | None:
        """The share of the tracks with the tag that reach a threshold; None if none does."""
        rank = self.at(threshold)
        return None if rank is None else float(self.recall[rank])

    def expected_from(self, threshold: float) -> float | None:
        """The precision to expect of what reaches a threshold; None if no held-out track does."""
        rank = self.at(threshold)
        return None if rank is None else float(self.median[rank])


@lru_cache(maxsize=4096)
def threshold_for(curve: PrecisionCurve, precision: float) -> float | None:
    """The threshold at which a tag has this precision; None if it never does.

    Near the threshold, most tracks must have the tag, however good the others are. A probability
    this high is enough if held-out tracks at or below it did not fall short.
    """
    if not 0 <= precision < 1:
        raise DataError(f"'precision' must be at least 0 and below 1. Got {precision}.")
    enough = curve.is_enough
    passed = np.logical_and.accumulate(_passes(curve, precision) | ~enough)
    thresholds = curve.thresholds[enough & passed].tolist()
    credible = (curve.median >= curve.thresholds) | (curve.thresholds < MIN_NEARBY)
    rank = curve.at(precision)
    if rank is not None and credible[rank:].all():
        thresholds.append(precision)
    return min(thresholds, default=None)


def best_precision(curve: PrecisionCurve) -> float | None:
    """The best lower bound of the precision, where there are enough tracks; None if nowhere."""
    bounds = curve.bound[curve.is_enough]
    return float(bounds.max()) if len(bounds) else None


def _passes(curve: PrecisionCurve, precision: float) -> Mask:
    return (curve.bound >= precision) & (curve.nearby() >= min(precision, MIN_NEARBY))


def curves_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> list[PrecisionCurve]:
    """What `curves_to_arrays` was given, or nothing."""
    if "curves.expected" not in arrays:
        return []
    columns = {name: arrays[f"curves.{name}"] for name in RANKED}
    ends = arrays["curves.ends"].tolist()
    positives = arrays["curves.positives"].tolist()
    curves = []
    for begin, end, n_positive in zip([0, *ends], ends, positives, strict=False):
        curve = PrecisionCurve(
            thresholds=columns["thresholds"][begin:end].astype(np.float64),
            chosen=columns["chosen"][begin:end].astype(np.int64),
            right=columns["right"][begin:end].astype(np.int64),
            positives=n_positive,
            effective=columns["effective"][begin:end].astype(np.float64),
            expected=columns["expected"][begin:end].astype(np.float64),
        )
        curves.append(curve)
    return curves
