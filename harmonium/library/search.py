"""Tracks by a question in tags, the surest first; see ``query`` for what can be asked.

What people agree on about a tag is certain: its probability is 1 or 0. Where they leave it open,
the probability is the model's; where the model has none (it has not learnt the tag, or not tagged
the track), it is 0. The probability of the question follows from those of its tags. First come the
tracks for which people's tags alone answer it, ordered by what the model would have said; then the
others, by their probability.

Tracks can also be ordered by how much they are like one of them: in their sound, and in their tags
where the model has learnt some. By sound, two tracks are alike as far as their vectors in the space
of `store.features` point the same way: their cosine. By tags, a track is described by what sets it
apart: the probability of each tag that the model has learnt, less its mean over the library, in
units of its deviation; again it is the cosine that counts. The similarity is the mean of both, the
tags weighted by how many there are.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask
from harmonium.library.query import And, Not, Or, Query, Tag, probability, tags_of
from harmonium.library.store.features import SoundVectors
from harmonium.library.store.models import STEP, StoredModel
from harmonium.library.store.opinions import Agreement

SOURCES = ("nobody", "model", "people")
"""Who answers a question."""
MIN_ORDERED = 500
"""Tracks of a result that are put in order, at least."""
N_TAGS_LIKE_SOUND = 30
"""The number of learnt tags that weigh as much as the sound."""
ROUNDING = 1e-6
"""Lengths that are not larger than this count as none."""

Masks = dict[str, tuple[Mask, Mask]]
"""Tag → whether it surely holds by what people say, and whether it may hold, for each track."""


class Columns(Protocol):
    """What a ranking reads of a library; `Snapshot` has it."""

    @property
    def sounds(self) -> SoundVectors:
        """How the tracks sound."""

    def agreed(self, names: Sequence[str]) -> dict[str, Agreement]:
        """Tag → the tracks of which people agree on it."""

    def agreed_of(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds for a track, where people agree on that."""

    def columns(self, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """The tracks with predictions (n,), ascending, and those of some tags (n, len(tags))."""

    def trained_columns(self, tags: NDArray[np.intp], ids: Ids) -> Iterable[Floats]:
        """The probabilities of tracks (n,), tag by tag, as the model was trained."""


@dataclass(eq=False)
class Found:
    """Tracks and what is known of them; all (n,). They are put in order as far as is needed."""

    ids: Ids
    probability: Floats | None = None
    """None where no tags were asked for."""
    sources: NDArray[np.uint8] | None = None
    """Places in `SOURCES`."""
    score: Floats | None = None
    """What they are ordered by; None where they are in order."""
    similarity: Floats | None = None
    tags: dict[str, Floats] = field(default_factory=dict)
    """Tag of the question → its probabilities."""
    people_only: list[str] = field(default_factory=list)
    n_below: int = 0
    """Tracks that are less probable than was asked for."""
    _ordered: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)

    def only(self, rows: NDArray[np.intp]) -> "Found":
        """Some of the tracks."""
        columns = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in ("ids", "probability", "sources", "score", "similarity")
        }
        tags = {name: column[rows] for name, column in self.tags.items()}
        return replace(self, **columns, tags=tags)  # type: ignore[arg-type]

    def rows(self, begin: int, end: int) -> NDArray[np.intp]:
        """Where the tracks from one place in the order to another are."""
        end = min(end, len(self.ids))
        if self.score is None:
            return np.arange(min(begin, end), end)
        if len(self._ordered) < end:
            self._ordered = first(self.score, max(MIN_ORDERED, 2 * end))
        return self._ordered[begin:end]

    def first(self, n: int) -> Ids:
        """The first tracks in order."""
        return self.ids[self.rows(0, n)]


def rank(
    columns: Columns,
    model: StoredModel | None,
    query: Query | None,
    like: int | None = None,
    *,
    predicted: bool = False,
) -> Found:
    """What is known of all tracks that may answer a question, in no order.

    Parameters
    ----------
    like : the number of a track; the others are ordered by probability times similarity to it, and
        those that are less alike than chance come last
    predicted : whether to leave out what people's tags answer: only what the model adds is found
    """
    names = [] if query is None else tags_of(query)
    agreed = columns.agreed(names)
    tagged, modelled = _modelled(columns, model, names)
    if like is None:
        ids, similarity = _joined(tagged, [some for pair in agreed.values() for some in pair]), None
    else:
        known, near = similarities(columns, model, like, tagged)
        ids, similarity = known[known != like], near[known != like]
    own = {name: _spread(tagged, modelled.get(name), ids) for name in names}
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
    sources = _sources(certain, masks, _mask(ids, tagged), modelled)
    if predicted:
        p = np.where(sources == SOURCES.index("model"), p, np.float32(0))
    return Found(ids, p, sources, score, similarity, mixed, people_only)


def _sources(
    certain: Mask, masks: Masks, tagged: Mask, modelled: Collection[str]
) -> NDArray[np.uint8]:
    """Who answers the question, for each track, as places in `SOURCES`, (n,).

    The model does if it says something of a tag that people leave open.
    """
    none = np.zeros(len(certain), bool)
    left_open = {name: ~surely & maybe for name, (surely, maybe) in masks.items()}
    by_model = tagged & sum((left_open[name] for name in modelled), none)
    by_people = sum((~one for one in left_open.values()), none)
    if not masks:  # alike is all that was asked for
        by_model = tagged
    codes = np.zeros(len(certain), np.uint8)  # nobody
    codes[by_people | certain] = SOURCES.index("people")
    codes[by_model & ~certain] = SOURCES.index("model")
    return codes


def _settled(p: Floats, surely: Mask, maybe: Mask) -> Floats:
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
    columns: Columns, model: StoredModel | None, names: list[str]
) -> tuple[Ids, dict[str, Floats]]:
    """Tracks with predictions, (n,), and those of the tags that the model has learnt, (n,) each.

    For a question without any such tag, the tracks are there all the same: some may lack a tag.
    """
    if model is None or model.id is None:
        return np.empty(0, np.int64), {}
    learnt = {tag: j for j, tag in enumerate(model.vocabulary) if model.learnt[j]}
    places = {name: learnt[name] for name in names if name in learnt}
    ids, P = columns.columns(list(places.values()) or [0])
    # a track may be too new to have anything of a word learnt from answers
    return ids, {name: np.nan_to_num(P[:, i]) for i, name in enumerate(places)}


def _spread(ids: Ids, values: Floats | None, everyone: Ids) -> Floats:
    """The values of some tracks as a column of all, 0 for the others."""
    if values is not None and (ids is everyone or np.array_equal(ids, everyone)):
        return values
    column = np.zeros(len(everyone), np.float32)
    if values is not None:
        here = np.isin(ids, everyone, assume_unique=True)
        column[np.searchsorted(everyone, ids[here])] = values[here]
    return column


def _mask(everyone: Ids, some: Ids) -> Mask:
    """Which of ``everyone`` are among ``some``, (n,); both ascending."""
    if everyone is some:
        return np.ones(len(everyone), bool)
    mask = np.zeros(len(everyone), bool)
    at, there = _places(everyone, some)
    mask[at[there]] = True
    return mask


def _places(everyone: Ids, some: Ids) -> tuple[NDArray[np.intp], Mask]:
    """Where each of ``some`` would be among ``everyone``, ascending, and whether it is, (m,)."""
    if not len(everyone):
        return np.zeros(len(some), np.intp), np.zeros(len(some), bool)
    if everyone[-1] - everyone[0] == len(everyone) - 1:  # no gaps: nothing to search for
        at = np.clip(some - everyone[0], 0, len(everyone) - 1)
    else:
        at = np.minimum(np.searchsorted(everyone, some), len(everyone) - 1)
    return at, everyone[at] == some


def answered(query: Query, masks: Masks) -> tuple[Mask, Mask]:
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


def first(score: Floats, n: int) -> NDArray[np.intp]:
    """Places of the n largest scores, largest first; equal ones in their order."""
    candidates = np.arange(len(score))
    if n < len(score):
        candidates = np.flatnonzero(score >= np.partition(score, -n)[-n])
    return candidates[np.argsort(-score[candidates], kind="stable")][:n]


# Tracks that are alike. --------------------------------------------------------------------------


def similarities(
    columns: Columns, model: StoredModel | None, track_id: int, tagged: Ids
) -> tuple[Ids, Floats]:
    """Tracks that can be compared with one, (n,), and how alike they are, (n,) in [-1, 1].

    What people agree on about that track counts, for it, as certain. A track that the model has not
    tagged is compared by its sound alone; ``tagged`` (m,) are the others, ascending.
    """
    ids, by_sound = columns.sounds.ids, columns.sounds.cosines(track_id)
    row = int(np.searchsorted(tagged, track_id))
    model = None if model is None else model.as_trained()
    if model is None or row == len(tagged) or tagged[row] != track_id or not model.learnt.any():
        return ids, by_sound
    learnt = np.flatnonzero(model.learnt)
    said = columns.agreed_of(track_id)
    own = np.array([said.get(model.vocabulary[j], np.nan) for j in learnt], np.float32)
    by_tags = alike(columns.trained_columns(learnt, tagged), row, own)
    if not np.array_equal(tagged, ids):
        place = np.minimum(np.searchsorted(tagged, ids), len(tagged) - 1)
        by_tags = np.where(tagged[place] == ids, by_tags[place], by_sound)
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    return ids, (1 - weight) * by_sound + weight * by_tags


def alike(columns: Iterable[Floats], row: int, own: Floats) -> Floats:
    """cos(z_i, z_row) with z_ij = (p_ij - mean_j) / deviation_j, for all tracks i, (n,).

    ``columns`` are the probabilities (n,) of each tag; ``own`` (n_tags,) replaces those of the row
    where it is not NaN. Column by column, since all of them together would not fit the cache.
    """
    dot: Floats | float = 0.0
    squares: Floats | float = 0.0
    own_square = 0.0
    n = 0
    for column, known in zip(columns, own, strict=True):
        n = len(column)
        value = column[row] if np.isnan(known) else known
        mean = column.mean()
        apart = column - mean
        deviation = float(np.sqrt(apart @ apart / n))
        if deviation > STEP:  # what is less may be the rounding of what is stored
            apart /= deviation
            z = float(value - mean) / deviation
            dot, squares, own_square = dot + z * apart, squares + apart * apart, own_square + z * z
    norm = np.sqrt(squares * own_square) * np.ones(n, np.float32)
    return np.divide(dot, norm, out=np.zeros(n, np.float32), where=norm > ROUNDING)
