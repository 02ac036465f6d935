"""Tracks by a question in tags, the surest first; see ``query`` for what can be asked.

What people agree on about a tag is certain: its probability is 1 or 0. Where they leave it open,
the probability is the model's; where the model has none (it has not learnt the tag, or not tagged
the track), it is 0. The probability of the question follows from those of its tags. First come the
tracks for which people's tags alone answer it, ordered by what the model would have said; then the
others, by their probability.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.library import sound_space
from harmonium.library.answering.likeness import AtHand, similarities
from harmonium.library.answering.query import (
    And,
    Not,
    Or,
    Query,
    Tag,
    parse,
    probability,
    tags_of,
)
from harmonium.library.library import Library
from harmonium.library.store.models import Owner, StoredModel
from harmonium.library.store.schema import tag
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import Agreement, agreed_tracks

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
SOURCES = ("nobody", "model", "people")
"""Who answers a question, see `Hit.source`."""
Masks = dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]
"""Tag → whether it surely holds by what people say, and whether it may hold, for each track."""


@dataclass(frozen=True)
class Hit:
    """A track that was found."""

    track: Track
    probability: float
    """How likely the track answers the question; 1 if people's tags say so."""
    certain: bool
    """Whether people's tags alone answer the question."""
    source: str = "model"
    """Who says so: "people", the "model", or "nobody", where nothing speaks against it."""
    tags: dict[str, float] = field(default_factory=dict)
    """Tag of the question → its probability."""
    similarity: float | None = None
    """The cosine with the track of ``like``: 1 for the same, 0 for as unlike as any two tracks."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    hits: list[Hit]
    people_only: list[str]
    """Tags of the question that the model has not learnt: only what people say counts."""
    n_below: int = 0
    """Tracks that are less probable than was asked for, if they would have been among the hits."""


def search(
    library: Library,
    text: str | None = None,
    *,
    like: int | None = None,
    limit: int = 20,
    min_probability: float = 0.0,
    predicted: bool = False,
    progress: sound_space.SpaceProgress | None = None,
    owner: Owner | None = None,
) -> SearchResult:
    """The tracks that answer a question, or are like a track, or both; the best first.

    Parameters
    ----------
    text : the question, as ``mellow piano -rock``; None for any track
    like : the number of a track; the others are ordered by probability times similarity to it,
        and those that are less alike than chance come last
    limit : how many, at most
    min_probability : leave out less probable ones
    predicted : whether to leave out what people's tags answer: only what the model adds is found
    progress : called with (tracks done, tracks) while tracks are first made comparable
    owner : whose tags the model may predict: "yours", "shipped" (those of the model that came
        along), or None, both
    """
    if text is None and like is None:
        raise DataError("Ask for tags, for tracks like another (--like), or for both.")
    if limit < 1:
        raise DataError(f"'limit' must be at least 1, got {limit}.")
    if like is not None:
        sound_space.bring_up_to_date(library, progress)
    with library.reading():
        reader = LibraryReader(library)
        model = library.models.current(whole=False)
        model = None if model is None else model.only(owner)
        query = None if text is None else parse(text, known_tags(library, model), aliases(model))
        ranking = rank(reader, model, query, like, predicted=predicted)
        hits = _hits(library, ranking, limit, min_probability)
        low = (ranking.probability > 0) & (ranking.probability < min_probability)
        n_below = 0
        if len(hits) < limit and low.any():
            n_below = int(np.isin(ranking.ids[low], library.tracks.ids()).sum())
        return SearchResult(hits, ranking.people_only, n_below)


def known_tags(library: Library, model: StoredModel | None = None) -> set[str]:
    """Every tag that a track may have: those that anybody ever used, and those of the model."""
    used = {row.name for row in library.fetch(sa.select(tag.c.name))}
    return used if model is None else used.union(model.vocabulary)


def aliases(model: StoredModel | None) -> dict[str, str]:
    """Other words → the tags of the model that they mean."""
    return {} if model is None else model.report.get("aliases", {})


class Reader(Protocol):
    """Where a ranking reads what it needs."""

    @property
    def library(self) -> Library:
        """The library."""

    def agreed(self, names: Sequence[str]) -> dict[str, Agreement]:
        """Tag → the tracks of which people agree on it."""

    def columns(self, model_id: int, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """Tracks with predictions (n,), and those of some tags, as `Predictions.columns`."""

    @property
    def at_hand(self) -> AtHand | None:
        """What likeness need not read."""


class LibraryReader(NamedTuple):
    """Reads from the library each time."""

    library: Library

    def agreed(self, names: Sequence[str]) -> dict[str, Agreement]:
        """As of `Reader`."""
        return agreed_tracks(self.library, names)

    def columns(self, model_id: int, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """As of `Reader`."""
        return self.library.predictions.columns(model_id, tags)

    @property
    def at_hand(self) -> None:
        """Nothing is."""
        return None


@dataclass
class Ranking:
    """Tracks and what is known of them; rows are tracks."""

    ids: Ids
    probability: Floats
    certain: NDArray[np.bool_]
    sources: NDArray[np.uint8]
    """Places in `SOURCES`."""
    score: Floats
    """What they are ordered by."""
    tags: dict[str, Floats]
    people_only: list[str]
    similarity: Floats | None


def rank(
    reader: Reader,
    model: StoredModel | None,
    query: Query | None,
    like: int | None = None,
    *,
    predicted: bool = False,
) -> Ranking:
    """What is known of all tracks that may answer a question, in no order; as of `search`."""
    names = [] if query is None else tags_of(query)
    agreed = reader.agreed(names)
    heard, modelled = _modelled(reader, model, names)
    if like is None:
        ids, similarity = _joined(heard, [some for pair in agreed.values() for some in pair]), None
    else:
        known, near = similarities(reader.library, model, like, heard, reader.at_hand)
        ids, similarity = known[known != like], near[known != like]
    own = {name: _spread(heard, modelled.get(name), ids) for name in names}
    masks = {name: (_mask(ids, pair.yes), ~_mask(ids, pair.no)) for name, pair in agreed.items()}
    mixed = {name: _settled(own[name], *mask) for name, mask in masks.items()}
    if query is None:
        p, certain = np.ones(len(ids), np.float32), np.zeros(len(ids), bool)
    else:
        p, (certain, _) = probability(query, mixed.__getitem__), answered(query, masks)
    if similarity is not None:
        score = np.where(similarity > 0, p * similarity, similarity)
    else:
        score = p.copy()
        if query is not None and certain.any():  # before all that are not certain
            score[certain] = 2 + probability(query, lambda name: own[name][certain])
    people_only = [name for name in names if name not in modelled]
    sources = _sources(certain, masks, _mask(ids, heard), modelled)
    if predicted:
        p = np.where(sources == SOURCES.index("model"), p, np.float32(0))
    return Ranking(ids, p, certain, sources, score, mixed, people_only, similarity)


def _sources(
    certain: NDArray[np.bool_],
    masks: Masks,
    heard: NDArray[np.bool_],
    modelled: Collection[str],
) -> NDArray[np.uint8]:
    """Who answers the question, for each track, as places in `SOURCES`, (n,).

    The model does if it says something of a tag that people leave open.
    """
    none = np.zeros(len(certain), bool)
    left_open = {name: ~surely & maybe for name, (surely, maybe) in masks.items()}
    by_model = heard & sum((left_open[name] for name in modelled), none)
    by_people = sum((~one for one in left_open.values()), none)
    if not masks:  # alike is all that was asked for
        by_model = heard
    codes = np.zeros(len(certain), np.uint8)  # nobody
    codes[by_people | certain] = SOURCES.index("people")
    codes[by_model & ~certain] = SOURCES.index("model")
    return codes


def _settled(p: Floats, surely: NDArray[np.bool_], maybe: NDArray[np.bool_]) -> Floats:
    """Probabilities, 1 and 0 where people say so, (n,)."""
    p = p.copy()
    p[surely] = 1
    p[~maybe] = 0
    return p


def _joined(ids: Ids, more: list[Ids]) -> Ids:
    """All of the numbers, ascending; mostly the others are among the first."""
    strangers = [some[~_places(ids, some)[1]] for some in more]
    if not any(map(len, strangers)):
        return ids
    return np.unique(np.concatenate([ids, *strangers]))


def _modelled(
    reader: Reader, model: StoredModel | None, names: list[str]
) -> tuple[Ids, dict[str, Floats]]:
    """Tracks with predictions, (n,), and those of the tags that the model has learnt, (n,) each.

    For a question without any such tag, the tracks are there all the same: some may lack a tag.
    """
    if model is None or model.id is None:
        return np.empty(0, np.int64), {}
    learnt = {tag: j for j, tag in enumerate(model.vocabulary) if model.learnt[j]}
    places = {name: learnt[name] for name in names if name in learnt}
    ids, columns = reader.columns(model.id, list(places.values()) or [0])
    # a track may be too new to have anything of a word learnt from answers
    return ids, {name: np.nan_to_num(columns[:, i]) for i, name in enumerate(places)}


def _spread(ids: Ids, values: Floats | None, everyone: Ids) -> Floats:
    """The values of some tracks as a column of all, 0 for the others."""
    if values is not None and (ids is everyone or np.array_equal(ids, everyone)):
        return values
    column = np.zeros(len(everyone), np.float32)
    if values is not None:
        here = np.isin(ids, everyone, assume_unique=True)
        column[np.searchsorted(everyone, ids[here])] = values[here]
    return column


def _mask(everyone: Ids, some: Ids) -> NDArray[np.bool_]:
    """Which of ``everyone`` are among ``some``, (n,); both ascending."""
    if everyone is some:
        return np.ones(len(everyone), bool)
    mask = np.zeros(len(everyone), bool)
    at, there = _places(everyone, some)
    mask[at[there]] = True
    return mask


def _places(everyone: Ids, some: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each of ``some`` would be among ``everyone``, ascending, and whether it is, (m,)."""
    if not len(everyone):
        return np.zeros(len(some), np.intp), np.zeros(len(some), bool)
    if everyone[-1] - everyone[0] == len(everyone) - 1:  # no gaps: nothing to search for
        at = np.clip(some - everyone[0], 0, len(everyone) - 1)
    else:
        at = np.minimum(np.searchsorted(everyone, some), len(everyone) - 1)
    return at, everyone[at] == some


def answered(query: Query, masks: Masks) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the question surely holds by what people say, and whether it may hold, (n,) each."""
    match query:
        case Tag(name):
            return masks[name]
        case Not(part):
            surely, maybe = answered(part, masks)
            return ~maybe, ~surely
        case And(parts) | Or(parts):
            combine = np.logical_and if isinstance(query, And) else np.logical_or
            pairs = [answered(part, masks) for part in parts]
            return combine.reduce([s for s, _ in pairs]), combine.reduce([m for _, m in pairs])


def _hits(library: Library, ranking: Ranking, limit: int, min_probability: float) -> list[Hit]:
    """The first tracks in order that are there and probable enough."""
    enough = (ranking.probability > 0) & (ranking.probability >= min_probability)
    rows = np.flatnonzero(enough)
    n_wanted = 2 * limit  # some may be missing: the files, not the tracks
    while True:
        best = rows[first(ranking.score[rows], n_wanted)]
        tracks = library.tracks.many(ranking.ids[best])
        near = ranking.similarity
        hits = [
            Hit(
                track,
                float(ranking.probability[row]),
                bool(ranking.certain[row]),
                SOURCES[ranking.sources[row]],
                {name: float(column[row]) for name, column in ranking.tags.items()},
                None if near is None else float(near[row]),
            )
            for row, track in zip(best, tracks, strict=True)
            if track.state == "present"
        ]
        if len(hits) >= limit or len(best) == len(rows):
            return hits[:limit]
        n_wanted *= 4


def first(score: Floats, n: int) -> NDArray[np.intp]:
    """Places of the n largest scores, largest first; equal ones in their order."""
    candidates = np.arange(len(score))
    if n < len(score):
        candidates = np.flatnonzero(score >= np.partition(score, -n)[-n])
    return candidates[np.argsort(-score[candidates], kind="stable")][:n]
