"""The thresholds of decisions, from held-out probabilities: by prevalence, by F1, or by a promise.

A promised precision is kept as a library keeps it for built-in tags: a threshold goes down the
held-out clips, from the first with enough of them, while the lower bound of their precision
(`precision_bound`) is at least the promise. It is wrong for at most a share `DOUBT` of the tags,
about.
"""

from typing import Literal

import numpy as np

from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.estimators.validation import matching_thresholds
from harmonium.precision_bound import DOUBT, MIN_EFFECTIVE, precision_quantile

Decisions = Literal["prevalence", "f1", "precision"]

NEVER = np.inf  # the threshold of a tag for which the promise cannot be kept


def decision_thresholds(
    decisions: Decisions,
    precision: float,
    Y: Floats,
    P: Floats,
    weights: Floats | None = None,
    groups: Ids | None = None,
) -> Doubles:
    """The threshold of each tag, (C,), from labels Y and probabilities P (N, C) of held-out clips.

    ``weights`` (N, 1) or (N, C) are what labels count; clips of one of the ``groups`` (N,) are
    right or wrong together.
    """
    if decisions == "f1":
        return f1_thresholds(Y, P, weights)
    if decisions == "precision":
        return promised_thresholds(Y, P, precision, weights, groups)
    return matching_thresholds(Y, P, weights)


def f1_thresholds(Y: Floats, P: Floats, weights: Floats | None = None) -> Doubles:
    """For each tag, the threshold at which 2 TP / (said + positive) is highest; (C,).

    A label that is a probability p counts as p positives. A threshold lies halfway between two
    scores, and is 0.5 without positives.
    """
    thresholds = np.full(Y.shape[1], 0.5)
    for tag, ranks in enumerate(_ranks(Y, P, weights)):
        if not len(ranks.right) or not ranks.right[-1]:
            continue
        f1 = 2 * ranks.right / (ranks.chosen + ranks.right[-1])
        thresholds[tag] = ranks.below(int(np.argmax(f1)))
    return thresholds


def promised_thresholds(
    Y: Floats,
    P: Floats,
    precision: float,
    weights: Floats | None = None,
    groups: Ids | None = None,
) -> Doubles:
    """For each tag, the lowest threshold that keeps the promise; `NEVER` if none does; (C,)."""
    thresholds = np.full(Y.shape[1], NEVER)
    for tag, ranks in enumerate(_ranks(Y, P, weights, groups)):
        enough = ranks.effective >= MIN_EFFECTIVE
        kept = enough & np.logical_and.accumulate((ranks.bound() >= precision) | ~enough)
        if kept.any():
            thresholds[tag] = ranks.scores[np.flatnonzero(kept)[-1]]
    return thresholds


class _Ranks:
    """A tag's held-out clips by falling score; entry i is about all with at least scores[i]."""

    def __init__(self, y: Doubles, p: Doubles, weight: Doubles, groups: Ids | None) -> None:
        order = np.argsort(-p, kind="stable")
        ordered = p[order]
        last: Mask = np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)]
        heavy = weight[order]
        self.scores = ordered[last]
        self.chosen = np.cumsum(heavy)[last]  # how many, by weight
        self.right = np.cumsum(heavy * y[order])[last]  # and how many of these have the tag
        self.expected = np.cumsum(heavy * ordered)[last] / self.chosen
        own = np.arange(len(p)) if groups is None else groups[order]
        self.effective = self.chosen**2 / _sums_of_squares(own, heavy)[last]

    def below(self, rank: int) -> float:
        """The threshold halfway between this score and the next."""
        following = self.scores[rank + 1] if rank + 1 < len(self.scores) else 0.0
        return float((self.scores[rank] + following) / 2)

    def bound(self) -> Doubles:
        """The lower bound of the precision of each rank."""
        return precision_quantile(
            DOUBT,
            precision=self.right / self.chosen,
            effective=self.effective,
            expected=self.expected,
        )


def _sums_of_squares(groups: Ids, weights: Doubles) -> Doubles:
    """After each clip, the sum over groups of the squared weight so far."""
    totals: dict[int, float] = {}
    sums = np.empty(len(groups))
    total = 0.0
    for place, (group, weight) in enumerate(zip(groups.tolist(), weights.tolist(), strict=True)):
        before = totals.get(group, 0.0)
        totals[group] = before + weight
        total += weight * (2 * before + weight)
        sums[place] = total
    return sums


def _ranks(Y: Floats, P: Floats, weights: Floats | None, groups: Ids | None = None) -> list[_Ranks]:
    counts = np.broadcast_to(np.float32(1) if weights is None else weights, Y.shape)
    ranks = []
    for y, p, count in zip(Y.T, P.T, counts.T, strict=True):
        known = ~np.isnan(y) & (count > 0)
        of_tag = _Ranks(
            y[known].astype(np.float64),
            p[known].astype(np.float64),
            count[known].astype(np.float64),
            None if groups is None else groups[known],
        )
        ranks.append(of_tag)
    return ranks
