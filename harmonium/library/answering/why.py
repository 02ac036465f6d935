"""Why a tag has its probability on a track: what the sound adds, and what each known tag adds.

In log-odds, beginning with how usual the tag is in the library. The sound adds what takes that to
the probability by the sound alone. What a known tag adds depends on which others are known already;
so it is the mean over all orders in which they could become known (Shapley's value), or over
`N_ORDERS` random ones and their reverses where there are more than `MOST_EXACT` known tags. Either
way the parts add up to the log-odds of the probability.
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from harmonium.library.answering.shipped_model import log_odds
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.answering.track_tags import known_row, needed_tagger, track_features
from harmonium.library.snapshot import Snapshot

MOST_EXACT = 5
"""Known tags of which all subsets are tried."""
N_ORDERS = 4

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WhyPart:
    """What a known tag adds."""

    tag: str
    said: bool
    """Whether it holds."""
    log_odds: float


@dataclass(frozen=True)
class SoundPart:
    """What the sound adds, and the probability by the sound alone."""

    log_odds: float
    probability: float


@dataclass(frozen=True)
class Why:
    """Where a probability comes from."""

    tag: str
    probability: float
    """Given the sound and all that is known of other tags."""
    usual: float
    """The mean of its probability over the library."""
    sound: SoundPart
    parts: list[WhyPart]
    """What known tags add, the largest first."""


def why(
    view: Snapshot, track_id: int, tag: str, yes: Collection[str], no: Collection[str], person: str
) -> Why:
    """Why a track has a tag, or has it not, given a person's whole answer.

    What is said of the tag itself does not count: it is asked what the rest says of it.
    """
    tagger = needed_tagger(view)
    place = tagger.place(tag)
    known = known_row(view, tagger, track_id, yes, no, person)
    known[place] = np.nan
    told = np.flatnonzero(~np.isnan(known))
    values = _Values(tagger, track_features(view, tagger, track_id), known, place)
    shares = _exact(values, told) if len(told) <= MOST_EXACT else _sampled(values, told)
    alone, usual = values.of([()])[0], float(np.clip(view.predictions.means[place], 1e-4, 1 - 1e-4))
    parts = [
        WhyPart(tagger.tags[j], bool(known[j]), float(share))
        for j, share in zip(told.tolist(), shares, strict=True)
    ]
    final = alone + float(np.sum(shares))
    return Why(
        tagger.tags[place],
        _sigmoid(final),
        usual,
        SoundPart(alone - float(np.log(usual / (1 - usual))), _sigmoid(alone)),
        sorted(parts, key=lambda part: -abs(part.log_odds)),
    )


class _Values:
    """The log-odds of the tag, for sets of known tags."""

    def __init__(self, tagger: StoredTagger, x: Floats, known: Floats, place: int) -> None:
        self._tagger, self._x, self._known, self._place = tagger, x, known, place
        self._found: dict[frozenset[int], float] = {}

    def of(self, sets: Collection[Collection[int]]) -> list[float]:
        """Worked out together where they are not known yet."""
        wanted = [frozenset(map(int, some)) for some in sets]
        new = [some for some in dict.fromkeys(wanted) if some not in self._found]
        if new:
            rows = np.full((len(new), len(self._known)), np.nan, np.float32)
            for row, some in zip(rows, new, strict=True):
                row[list(some)] = self._known[list(some)]
            P = self._tagger.probabilities(np.repeat(self._x, len(new), axis=0), rows)
            self._found |= dict(zip(new, log_odds(P[:, self._place]).tolist(), strict=True))
        return [self._found[some] for some in wanted]


def _exact(values: _Values, told: NDArray[np.intp]) -> list[float]:
    """Σ over subsets S without j of |S|! (n - |S| - 1)! / n! · (v(S + j) - v(S)), for each j."""
    n = len(told)
    subsets = [some for k in range(n + 1) for some in combinations(told.tolist(), k)]
    value = dict(zip(map(frozenset, subsets), values.of(subsets), strict=True))
    return [
        sum(
            factorial(len(some))
            * factorial(n - len(some) - 1)
            / factorial(n)
            * (value[frozenset((*some, j))] - value[frozenset(some)])
            for some in subsets
            if j not in some
        )
        for j in told.tolist()
    ]


def _sampled(values: _Values, told: NDArray[np.intp]) -> list[float]:
    """The mean over some orders and their reverses."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(told).tolist() for _ in range(N_ORDERS)]
    orders += [order[::-1] for order in orders]
    sets = [tuple(order[:k]) for order in orders for k in range(len(order) + 1)]
    found = iter(values.of(sets))
    total = dict.fromkeys(told.tolist(), 0.0)
    for order in orders:
        before = next(found)
        for j in order:
            after = next(found)
            total[j] += (after - before) / len(orders)
            before = after
    return list(total.values())


def _sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))
