"""The health of a library: files, tags, and what people may have got wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.collection.answering.stored_tagger import Tagger
from harmonium.collection.learning.agreement import tag_names
from harmonium.collection.learning.verdicts import judge, label_matrix, votes
from harmonium.collection.spelling import Spellings, near_spellings
from harmonium.collection.store.models import StoredModel
from harmonium.collection.store.schema import loaded_path, track_copy
from harmonium.collection.store.tracks import Track

if TYPE_CHECKING:
    from harmonium.collection.library import Library

SURPRISING = 1.0
"""A label is surprising from here on: the model finds it e times less probable than usual."""


class Copy(NamedTuple):
    """A file with the same sound as a track."""

    path: str
    track: Track


class Doubt(NamedTuple):
    """What people say of a track, and the model finds surprising."""

    track: Track
    tag: str
    said: bool
    """Whether people gave the tag; if not, they gave others."""
    probability: float
    """That the track has the tag, by a model that had not seen it."""
    usual: float
    """The share of tracks that have the tag."""
    surprise: float
    """log(usual / probability) of what people say."""


@dataclass(frozen=True)
class Health:
    """What was found."""

    unreadable: list[Track]
    missing: list[Track]
    copies: list[Copy]
    recordings: list[list[Track]]
    """Tracks of one artist and title whose sound differs: perhaps one recording twice."""
    unused: list[str]
    """Tags that were once used."""
    once: list[str]
    """Tags of a single track."""
    spellings: list[Spellings]
    doubts: list[Doubt] | None
    """None without a model."""

    @property
    def is_well(self) -> bool:
        """Whether no file is broken or missing."""
        return not self.unreadable and not self.missing


def examine(library: "Library", *, doubts: int = 20) -> Health:
    """Look at all of a library, and at the ``doubts`` most surprising of people's tags."""
    used = library.opinions.tags()
    counts = dict(zip(used["tag"].to_list(), used["n_tracks"].to_list(), strict=True))
    model = library.models.current()
    return Health(
        unreadable=list(library.tracks.all(states=("unreadable",))),
        missing=list(library.tracks.all(states=("missing",))),
        copies=list(_copies(library)),
        recordings=_recordings(library),
        unused=sorted(tag_names(library) - set(counts)),
        once=sorted(tag for tag, n in counts.items() if n == 1),
        spellings=near_spellings(counts),
        doubts=None if model is None else find_doubts(library, model, doubts),
    )


def find_doubts(library: "Library", model: StoredModel, n: int) -> list[Doubt]:
    """The n labels of the tracks learnt from that held-out probabilities contradict most.

    Of a tag that was given, the surprise is log(usual / p), of one that was not
    log((1 - usual) / (1 - p)): how many times less probable the label is for a track that sounds
    like this than for any track. Only for tags that the model can tell.
    """
    tagger = Tagger(model)
    ids, P = tagger.held_out
    opinions = library.opinions.triples()
    rule = {key: model.report[key] for key in ("min_count", "min_share")}
    Y = label_matrix(judge(votes(opinions), **rule), ids, tagger.tags)
    surprise = surprises(Y, P, tagger.rates)
    surprise[:, ~tagger.learnt] = -np.inf
    tagged = np.isin(ids, opinions["track_id"].to_numpy())
    surprise[~tagged] = -np.inf
    order = np.argsort(-surprise, axis=None, kind="stable")[:n]
    rows, columns = np.unravel_index(order, surprise.shape)
    kept = surprise[rows, columns] >= SURPRISING
    rows, columns = rows[kept], columns[kept]
    return [
        Doubt(
            track,
            tagger.tags[j],
            bool(Y[i, j]),
            float(P[i, j]),
            float(tagger.rates[j]),
            float(surprise[i, j]),
        )
        for track, i, j in zip(library.tracks.many(ids[rows]), rows, columns, strict=True)
    ]


def surprises(
    Y: NDArray[np.float32], P: NDArray[np.float32], rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """log(usual probability of the label / its probability), (n, C); -∞ where it is unknown."""
    p = np.clip(P.astype(np.float64), 1e-4, 1 - 1e-4)
    rates = np.clip(rates, 1e-4, 1 - 1e-4)
    given, not_given = np.log(rates / p), np.log((1 - rates) / (1 - p))
    return np.where(np.isnan(Y), -np.inf, np.where(Y == 1, given, not_given))


def _copies(library: "Library") -> Iterator[Copy]:
    with library.connect() as connection:
        rows = connection.execute(sa.select(track_copy).order_by(track_copy.c.path)).mappings()
        found = [(loaded_path(row), row["track_id"]) for row in rows]
    for (path, _), track in zip(found, library.tracks.many([i for _, i in found]), strict=True):
        yield Copy(path, track)


def _recordings(library: "Library") -> list[list[Track]]:
    named: dict[tuple[str, str], list[Track]] = {}
    for track in library.tracks.all():
        if track.artist and track.title:
            key = (track.artist.strip().casefold(), track.title.strip().casefold())
            named.setdefault(key, []).append(track)
    return [tracks for _, tracks in sorted(named.items()) if len(tracks) > 1]
