"""What the model predicts for a track's other tags given the known ones, and why.

Why a track has a tag is explained in log-odds, starting from how common the tag is. The sound adds
what leads from there to the probability by sound alone. What a known tag adds depends on which
others are already known, so it is the mean over all orders in which they could become known (the
Shapley value), or over `N_ORDERS` random orders and their reverses if more than `MAX_EXACT` tags
are known. Either way the parts add up to the log-odds of the probability.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
import polars as pl

from harmonium import logistic
from harmonium.arrays import Floats
from harmonium.errors import DataError, LibraryError
from harmonium.library.model.odds import log_odds
from harmonium.library.model.tagger import Tagger
from harmonium.library.snapshot import Snapshot
from harmonium.library.verdicts import agreed_tags

MAX_MOVED = 8  # tags to name that an answer moved most
MIN_MOVE = 0.02  # the smallest change of a probability that counts as a move
MAX_EXACT = 5  # all orders are tried up to this number of known tags
N_ORDERS = 4
MIN_USUAL = 1e-4  # the distance from 0 and 1 at which the mean probability of a tag is clipped


@dataclass(frozen=True)
class CompletedTag:
    """A tag, given what is known about others."""

    tag: str
    probability: float
    before: float  # as stored: from the sound, and from what was saved about the track before


@dataclass(frozen=True)
class Completion:
    """What follows from an answer."""

    tags: list[CompletedTag]
    moved: list[str]  # the tags that it moved most, in that order


def complete_track(
    snapshot: Snapshot,
    track_id: int,
    accepted: Collection[str],
    rejected: Collection[str],
    person: str,
) -> Completion:
    """What the model predicts for a track, given all answers of a person and what others say.

    What the person said before does not count. Tags unknown to the model change nothing.
    """
    given = observe_track(snapshot, track_id, accepted, rejected, person)
    before = snapshot.probabilities(np.array([track_id]))[0]
    if len(before) != len(given.tagger.tags) or np.isnan(before).any():
        before = given.tagger.probabilities(given.features)[0]
    after = given.tagger.probabilities(given.features, given.observed[None])[0]
    moves = np.where(np.isnan(given.observed), np.abs(after - before), 0)
    tags = []
    moved = []
    for tag in snapshot.tags.predicted:
        completed = CompletedTag(
            tag=tag.name,
            probability=float(after[tag.place]),
            before=float(before[tag.place]),
        )
        tags.append(completed)
        if moves[tag.place] >= MIN_MOVE:
            moved.append(tag)
    moved.sort(key=lambda tag: -moves[tag.place])
    return Completion(tags=tags, moved=[tag.name for tag in moved[:MAX_MOVED]])


@dataclass(frozen=True, kw_only=True, eq=False)
class ObservedTrack:
    """A track as the model in use sees it."""

    tagger: Tagger
    features: Floats  # (1, n_features)
    observed: Floats  # (n_tags,) 1 has the tag, 0 does not, NaN unknown


def observe_track(
    snapshot: Snapshot,
    track_id: int,
    accepted: Collection[str],
    rejected: Collection[str],
    person: str,
) -> ObservedTrack:
    """A track with the tags that are known by a person's answers or by what others agree on."""
    tagger = snapshot.needed_tagger()
    known = _others_agree(snapshot, track_id, person)
    yes = {snapshot.tags.name(tag) for tag in accepted}
    no = {snapshot.tags.name(tag) for tag in rejected}
    if yes & no:
        raise DataError(f"The tag {min(yes & no)!r} cannot be both present and absent.")
    known |= dict.fromkeys(yes, True) | dict.fromkeys(no, False)
    ids, features = snapshot.library.tracks.features([track_id], extractor=tagger.extractor)
    if not len(ids):
        snapshot.library.tracks.get(track_id)
        raise LibraryError(
            f"Track #{track_id} has no features for this model. Index its folder again."
        )
    observed = np.array([known.get(tag, np.nan) for tag in tagger.tags], np.float32)
    return ObservedTrack(tagger=tagger, features=features, observed=observed)


def _others_agree(snapshot: Snapshot, track_id: int, person: str) -> dict[str, bool]:
    """Tag → whether it holds for a track, as people other than this person agree."""
    opinions = snapshot.library.opinions.of_track(track_id)
    rows = [(who, track_id, tag, value) for who, tag, value in opinions if who != person]
    schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int64}
    return agreed_tags(pl.DataFrame(rows, schema, orient="row")).get(track_id, {})


@dataclass(frozen=True)
class WhyPart:
    """What a known tag adds."""

    tag: str
    said: bool  # whether it holds
    log_odds: float


@dataclass(frozen=True)
class Why:
    """Where a probability comes from."""

    tag: str
    probability: float  # given the sound and everything known about other tags
    usual: float  # the mean of its probability over the library
    sound: dict[Literal["log_odds", "probability"], float]
    """What the sound adds, and the probability without anything else."""
    parts: list[WhyPart]  # what known tags add, the largest first


def why(
    snapshot: Snapshot,
    track_id: int,
    tag: str,
    accepted: Collection[str],
    rejected: Collection[str],
    person: str,
) -> Why:
    """Why a track has or lacks a tag, given all answers of a person.

    Opinions about the tag itself do not count: the question is what the rest says.
    """
    given = observe_track(snapshot, track_id, accepted, rejected, person)
    place = given.tagger.place(tag)
    given.observed[place] = np.nan
    known = np.flatnonzero(~np.isnan(given.observed)).tolist()
    orders = _orders(known)
    values = _log_odds_given(given, place, orders)
    parts = []
    for j in known:
        gains = []
        for order in orders:
            before = frozenset(order[: order.index(j)])
            gains.append(values[before | {j}] - values[before])
        part = WhyPart(
            tag=given.tagger.tags[j], said=bool(given.observed[j]), log_odds=float(np.mean(gains))
        )
        parts.append(part)
    parts.sort(key=lambda part: -abs(part.log_odds))
    usual = np.clip(snapshot.predictions.mean(place), MIN_USUAL, 1 - MIN_USUAL)
    by_sound = np.array(values[frozenset()])
    by_all = by_sound + sum(part.log_odds for part in parts)
    return Why(
        tag=given.tagger.tags[place],
        probability=float(logistic.sigmoid(by_all)),
        usual=float(usual),
        sound={
            "log_odds": float(by_sound - logistic.log_odds(usual)),
            "probability": float(logistic.sigmoid(by_sound)),
        },
        parts=parts,
    )


def _orders(known: Sequence[int]) -> list[list[int]]:
    """Orders in which tags could become known: all, or some random ones and their reverses."""
    if len(known) <= MAX_EXACT:
        return [list(order) for order in permutations(known)]
    rng = np.random.default_rng(0)
    orders: list[list[int]] = [rng.permutation(known).tolist() for _ in range(N_ORDERS)]
    return orders + [order[::-1] for order in orders]


def _log_odds_given(
    track: ObservedTrack, place: int, orders: Sequence[Sequence[int]]
) -> dict[frozenset[int], float]:
    """Tags that come first in an order → a tag's log-odds if exactly these are known."""
    sets = list({frozenset(order[:k]) for order in orders for k in range(len(order) + 1)})
    rows = np.full((len(sets), len(track.observed)), np.nan, np.float32)
    for row, known in zip(rows, sets, strict=True):
        row[list(known)] = track.observed[list(known)]
    P = track.tagger.probabilities(np.repeat(track.features, len(sets), axis=0), rows)
    return dict(zip(sets, log_odds(P[:, place]).astype(np.float64).tolist(), strict=True))
