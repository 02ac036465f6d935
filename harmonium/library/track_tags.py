"""The tags of one track: what people and the model say, what follows from an answer, and why.

Why a tag has its probability is told in log-odds, beginning with how usual the tag is in the
library. The sound adds what takes that to the probability by the sound alone. What a known tag adds
depends on which others are known already; so it is the mean over all orders in which they could
become known (Shapley's value), or over `N_ORDERS` random ones and their reverses where there are
more than `MAX_EXACT` known tags. Either way the parts add up to the log-odds of the probability.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, LibraryError
from harmonium.library.builtin import OTHER, tag_groups
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.models import Owner
from harmonium.library.store.opinions import verdict
from harmonium.library.tagger import Tagger, log_odds

MAX_MOVED = 8
"""Tags that an answer moved most, which are named."""
MIN_MOVE = 0.02
"""The smallest change of a probability that counts as a move."""
MAX_EXACT = 5
"""Known tags of which all subsets are tried."""
N_ORDERS = 4


@dataclass(frozen=True)
class PeopleCount:
    """How many people say so, and how many deny it."""

    yes: int
    no: int


@dataclass(frozen=True)
class TagOfTrack:
    """A tag, and what is known of it on a track."""

    tag: str
    shown: str
    """As this library spells it."""
    group: str
    owner: Owner
    probability: float | None
    """What the model says; None where it says nothing."""
    said: bool | None
    """What the person who asks has said."""
    people: PeopleCount
    threshold: float | None
    predicted: bool
    precision: float | None
    """The share of held-out tracks of at least this probability that have the tag."""


def tags_of_track(snapshot: Snapshot, track_id: int, person: str) -> list[TagOfTrack]:
    """All tags that people or the model speak of; what holds first, then by probability."""
    opinions = snapshot.library.opinions.of_track(track_id)
    yes = Counter(tag for _, tag, value in opinions if value > 0)
    no = Counter(tag for _, tag, value in opinions if value < 0)
    own = {tag: value > 0 for who, tag, value in opinions if who == person}
    p = snapshot.predictions.rows(np.array([track_id]))[0]
    found = [
        _tag(snapshot, tag, p, own.get(tag), PeopleCount(yes[tag], no[tag]))
        for tag in dict.fromkeys([*yes, *no, *snapshot.places])
    ]
    holds = {tag for tag, there in snapshot.verdicts.of_track(track_id).items() if there}
    return sorted(found, key=lambda one: (one.tag not in holds, -(one.probability or 0), one.tag))


def tags_by_sound(tagger: Tagger, p: Floats, spellings: Mapping[str, str]) -> list[TagOfTrack]:
    """The tags of a sound that is not in the library, the most probable first."""
    groups = tag_groups()
    found = [
        TagOfTrack(
            tag,
            spellings.get(tag, tag),
            groups.get(tag, OTHER),
            "own" if tagger.is_own[j] else "built-in",
            float(p[j]),
            None,
            PeopleCount(0, 0),
            float(tagger.thresholds[j]),
            bool(p[j] >= tagger.thresholds[j]),
            tagger.precision(j, float(p[j])),
        )
        for j, tag in enumerate(tagger.tags)
        if tagger.learnt[j]
    ]
    return sorted(found, key=lambda one: (-(one.probability or 0), one.tag))


def _tag(
    snapshot: Snapshot, tag: str, p: Floats, said: bool | None, people: PeopleCount
) -> TagOfTrack:
    place, probability, precision, predicted = snapshot.places.get(tag), None, None, False
    threshold = snapshot.threshold(tag)
    if place is not None and threshold is not None and place < len(p) and not np.isnan(p[place]):
        probability = float(p[place])
        predicted = bool(p[place] >= np.float32(threshold))
        if snapshot.tagger is not None:
            precision = snapshot.tagger.precision(place, probability)
    return TagOfTrack(
        tag,
        snapshot.shown(tag),
        snapshot.group(tag),
        snapshot.owner(tag),
        probability,
        said,
        people,
        threshold,
        predicted,
        precision,
    )


# What follows from an answer. --------------------------------------------------------------------


@dataclass(frozen=True)
class CompletedTag:
    """A tag, given what is known of others."""

    tag: str
    probability: float
    before: float
    """What is stored: by the sound, and by what was saved of the track before."""


@dataclass(frozen=True)
class Completion:
    """What follows from an answer."""

    tags: list[CompletedTag]
    moved: list[str]
    """The tags that it moved most, those first."""


def complete_track(
    snapshot: Snapshot, track_id: int, yes: Collection[str], no: Collection[str], person: str
) -> Completion:
    """What the model says of a track, given a person's whole answer, and what others say.

    Parameters
    ----------
    yes, no : tags, in any spelling; those that the model does not know change nothing
    person : who answers; what they said before does not count beside the answer
    """
    tagger = needed_tagger(snapshot)
    observed = _observed(snapshot, tagger, track_id, yes, no, person)
    x = _features(snapshot, tagger, track_id)
    before = snapshot.probabilities(np.array([track_id]))[0]
    if len(before) != len(tagger.tags) or np.isnan(before).any():
        before = tagger.probabilities(x)[0]
    after = tagger.probabilities(x, observed[None])[0]
    places = list(snapshot.places.values())
    change = np.where(np.isnan(observed), np.abs(after - before), 0)
    order = sorted(places, key=lambda j: -change[j])[:MAX_MOVED]
    return Completion(
        [CompletedTag(tagger.tags[j], float(after[j]), float(before[j])) for j in places],
        [tagger.tags[j] for j in order if change[j] >= MIN_MOVE],
    )


def needed_tagger(snapshot: Snapshot) -> Tagger:
    """The model in use, or a LibraryError that says how to get one."""
    if snapshot.tagger is None:
        raise LibraryError(
            "The library has no model yet. Train one from the tags that people gave to tracks."
        )
    return snapshot.tagger


def _features(snapshot: Snapshot, tagger: Tagger, track_id: int) -> Floats:
    """(1, n_features)"""
    ids, X = snapshot.library.tracks.features([track_id], extractor=tagger.extractor)
    if not len(ids):
        snapshot.library.tracks.get(track_id)
        raise LibraryError(
            f"Track #{track_id} has no features for this model. Index its folder again."
        )
    return X


def _observed(
    snapshot: Snapshot,
    tagger: Tagger,
    track_id: int,
    yes: Collection[str],
    no: Collection[str],
    person: str,
) -> Floats:
    """(n_tags,) 1 and 0 for what is known by an answer, and by what others agree on; else NaN."""
    said = _others_agree(snapshot, track_id, person)
    for tags, holds in ((yes, True), (no, False)):
        said |= dict.fromkeys(map(normalise_tag, tags), holds)
    if both := set(map(normalise_tag, yes)) & set(map(normalise_tag, no)):
        raise DataError(f"The tag {min(both)!r} cannot both hold and not hold.")
    return np.array([said.get(tag, np.nan) for tag in tagger.tags], np.float32)


def _others_agree(snapshot: Snapshot, track_id: int, person: str) -> dict[str, bool]:
    """Tag → whether it holds, as all but one person agree."""
    opinions = snapshot.library.opinions.of_track(track_id)
    others = [one for one in opinions if one[0] != person]
    yes = Counter(tag for _, tag, value in others if value > 0)
    no = Counter(tag for _, tag, value in others if value < 0)
    tags = list(dict.fromkeys([*yes, *no]))
    people = np.full(len(tags), len({who for who, _, _ in others}))
    found = verdict(
        np.array([yes[tag] for tag in tags]), np.array([no[tag] for tag in tags]), people
    )
    return {tag: bool(v) for tag, v in zip(tags, found, strict=True) if not np.isnan(v)}


# Why. --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoundPart:
    """What the sound adds, and the probability without anything else."""

    log_odds: float
    probability: float


@dataclass(frozen=True)
class WhyPart:
    """What a known tag adds."""

    tag: str
    said: bool
    """Whether it holds."""
    log_odds: float


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
    snapshot: Snapshot,
    track_id: int,
    tag: str,
    yes: Collection[str],
    no: Collection[str],
    person: str,
) -> Why:
    """Why a track has a tag, or has it not, given a person's whole answer.

    What is said of the tag itself does not count: it is asked what the rest says of it.
    """
    tagger = needed_tagger(snapshot)
    place = tagger.place(tag)
    observed = _observed(snapshot, tagger, track_id, yes, no, person)
    observed[place] = np.nan
    known = np.flatnonzero(~np.isnan(observed))
    values = _Values(tagger, _features(snapshot, tagger, track_id), observed, place)
    shares = _exact(values, known) if len(known) <= MAX_EXACT else _sampled(values, known)
    usual = float(np.clip(snapshot.predictions.means[place], 1e-4, 1 - 1e-4))
    alone = values.of([()])[0]
    parts = [
        WhyPart(tagger.tags[j], bool(observed[j]), float(share))
        for j, share in zip(known.tolist(), shares, strict=True)
    ]
    return Why(
        tagger.tags[place],
        _sigmoid(alone + float(np.sum(shares))),
        usual,
        SoundPart(alone - float(np.log(usual / (1 - usual))), _sigmoid(alone)),
        sorted(parts, key=lambda part: -abs(part.log_odds)),
    )


class _Values:
    """The log-odds of the tag, for sets of known tags."""

    def __init__(self, tagger: Tagger, x: Floats, observed: Floats, place: int) -> None:
        self._tagger, self._x, self._observed, self._place = tagger, x, observed, place
        self._found: dict[frozenset[int], float] = {}

    def of(self, sets: Collection[Collection[int]]) -> list[float]:
        """Worked out together where they are not known yet."""
        wanted = [frozenset(map(int, some)) for some in sets]
        new = [some for some in dict.fromkeys(wanted) if some not in self._found]
        if new:
            rows = np.full((len(new), len(self._observed)), np.nan, np.float32)
            for row, some in zip(rows, new, strict=True):
                row[list(some)] = self._observed[list(some)]
            P = self._tagger.probabilities(np.repeat(self._x, len(new), axis=0), rows)
            self._found |= dict(zip(new, log_odds(P[:, self._place]).tolist(), strict=True))
        return [self._found[some] for some in wanted]


def _exact(values: _Values, known: NDArray[np.intp]) -> list[float]:
    """Σ over subsets S without j of |S|! (n - |S| - 1)! / n! · (v(S + j) - v(S)), for each j."""
    n = len(known)
    subsets = [some for k in range(n + 1) for some in combinations(known.tolist(), k)]
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
        for j in known.tolist()
    ]


def _sampled(values: _Values, known: NDArray[np.intp]) -> list[float]:
    """The mean over some orders and their reverses."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(known).tolist() for _ in range(N_ORDERS)]
    orders += [order[::-1] for order in orders]
    sets = [tuple(order[:k]) for order in orders for k in range(len(order) + 1)]
    found = iter(values.of(sets))
    total = dict.fromkeys(known.tolist(), 0.0)
    for order in orders:
        before = next(found)
        for j in order:
            after = next(found)
            total[j] += (after - before) / len(orders)
            before = after
    return list(total.values())


def _sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))
