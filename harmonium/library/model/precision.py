"""How often a tag is right above each probability, as held-out tracks show.

A model file has a curve for each of its tags (`learning.fitting`), over held-out tracks of the
library, or for built-in tags over the clips that they were learnt from, which are of another
collection. If both are known, the file has both.

For a precision of r, `threshold_for` gives the threshold of a built-in tag. It goes down the ranks
of the curve, from the first with enough tracks, while the lower bound of the precision is at least
r. The first failure ends it, so that looking at many ranks costs nothing (fixed-sequence testing).
The precision has a beta distribution, and falls below the bound with a probability of `DOUBT`. The
bound allows for two things:

- An artist's tracks are right or wrong together. So n tracks, n_g from each artist, count as n² / Σ
  n_g² (Kish), which is the number of artists if each has equally many.
- Of many tags, some pass by luck, and those are the ones that are written. So a tag's expected
  precision, the mean of its probabilities, counts as much as `PRIOR` tracks.

A probability of at least r is accepted, unless held-out tracks fell short of it: at r, or at a
lower probability above `MIN_NEARBY`, the median of that distribution is below the probability.

`TagPrecision.threshold` is the rule for a library that has taught tags:

1. It starts from r itself, as probabilities are calibrated over all tags of the library together,
   or from the built-in model's threshold if that is lower.
2. It rises until the library's held-out tracks do not contradict.
3. If the tag was learnt here, it falls as far as the expected precision is at least r: the mean of
   held-out tracks, of the probabilities, which count as `TAUGHT_PRIOR` tracks, and of the built-in
   model's clips, which are of another collection and count as `ELSEWHERE` tracks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Ids, Mask
from harmonium.errors import DataError
from harmonium.precision_bound import DOUBT, MIN_EFFECTIVE, PRIOR, precision_quantile

MIN_NEARBY = 0.5  # the share that must be right of the tracks near a threshold
TAUGHT_PRIOR = 20.0  # the same for a tag that the library's tracks teach
ELSEWHERE = 10.0  # the number of the library's tracks that all clips of another collection count as

RANKED = {
    "thresholds": np.float32,
    "effective": np.float32,
    "expected": np.float32,
    "chosen": np.int32,
    "right": np.int32,
}
"""What a curve has for each rank, and the type it is stored as."""
CURVES, OTHER_CURVES = "curves", "other_curves"
"""In a model file: what held-out tracks of the collection show that a tag was learnt from, and what
the other collection does."""


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
        return precision_quantile(
            share,
            precision=self.precision,
            effective=self.effective,
            expected=self.expected,
        )

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
    check_precision(precision)
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


def check_precision(precision: float) -> None:
    """Raise a DataError for what is not a precision that can be asked for."""
    if not 0 <= precision < 1:
        raise DataError(f"'precision' must be at least 0 and below 1. Got {precision}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class TagPrecision:
    """What the library's tracks, and the built-in model's clips, show about a tag."""

    own: PrecisionCurve | None = None  # of the library's held-out tracks
    builtin: PrecisionCurve | None = None  # of the built-in model's clips
    taught: bool  # whether the library's tracks taught the tag, perhaps beside the built-in model

    @lru_cache(maxsize=8)  # noqa: B019 (a record lives as long as its model's table of tags)
    def threshold(self, precision: float) -> float | None:
        """The threshold at which the tag has this precision; None if it never does."""
        check_precision(precision)
        start = None if self.builtin is None else threshold_for(self.builtin, precision)
        if self.own is None:
            return start
        if self.taught:
            start = precision if start is None else min(start, precision)
        if start is None:
            return None
        thresholds = [self._not_contradicted(start, precision)]
        if self.taught:
            thresholds.append(self._reached(precision))
        return min((each for each in thresholds if each is not None), default=None)

    def is_contradicted(self, precision: float) -> bool:
        """Whether the library's tracks keep the built-in model from writing as many tags."""
        if self.builtin is None:
            return False
        elsewhere = threshold_for(self.builtin, precision)
        if elsewhere is None:
            return False
        threshold = self.threshold(precision)
        return threshold is None or threshold > elsewhere

    def expected_from(self, threshold: float) -> float | None:
        """The precision to expect of what reaches a threshold; None if nothing shows it."""
        rank = None if self.own is None or not self.taught else self.own.at(threshold)
        if rank is not None:
            return float(self.expected[rank])
        return None if self.builtin is None else self.builtin.expected_from(threshold)

    def best(self) -> float | None:
        """The best precision to expect where the tag would be written; None if nothing shows it."""
        if self.own is not None and self.taught:
            return float(self.expected.max())
        return None if self.builtin is None else best_precision(self.builtin)

    @cached_property
    def expected(self) -> Doubles:
        """The expected precision at each rank of the library's own curve."""
        assert self.own is not None
        n = self.own.effective
        right = TAUGHT_PRIOR * self.own.expected + n * self.own.precision
        total = TAUGHT_PRIOR + n
        if self.builtin is not None:
            ranks = np.searchsorted(-self.builtin.thresholds, -self.own.thresholds, side="right")
            reached = ranks > 0
            elsewhere = self.builtin.precision[np.maximum(ranks - 1, 0)]
            right = right + ELSEWHERE * np.where(reached, elsewhere, 0)
            total = total + ELSEWHERE * reached
        return right / total

    def _reached(self, precision: float) -> float | None:
        """The lowest threshold down to which the expected precision is always high enough."""
        assert self.own is not None
        passed = np.logical_and.accumulate(self.expected >= precision)
        passed &= self.own.nearby() >= min(precision, MIN_NEARBY)
        return min(self.own.thresholds[passed].tolist(), default=None)

    def _not_contradicted(self, start: float, precision: float) -> float | None:
        """The lowest threshold from ``start`` on that the library's tracks do not contradict."""
        from scipy.stats import beta

        assert self.own is not None
        higher = self.own.thresholds[self.own.thresholds > start]
        for threshold in (start, *higher[::-1].tolist()):
            rank = self.own.at(threshold)
            if rank is None:
                return float(threshold)
            elsewhere = None if self.builtin is None else self.builtin.precision_from(threshold)
            believed = TAUGHT_PRIOR * max(precision, elsewhere or 0.0)
            n = self.own.effective[rank]
            right = believed + n * self.own.precision[rank]
            upper = beta.ppf(1 - DOUBT, right, TAUGHT_PRIOR + n - right)
            if not upper < precision:  # NaN if all are right
                return float(threshold)
        return None


def curves_from_arrays(
    arrays: Mapping[str, NDArray[Any]], name: str = CURVES
) -> list[PrecisionCurve]:
    """What `curves_to_arrays` was given, or nothing."""
    if f"{name}.expected" not in arrays:
        return []
    columns = {column: arrays[f"{name}.{column}"] for column in RANKED}
    ends = arrays[f"{name}.ends"].tolist()
    positives = arrays[f"{name}.positives"].tolist()
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
