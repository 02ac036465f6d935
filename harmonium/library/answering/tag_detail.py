"""All that is known of one tag: how good it is, what goes with it, and its tracks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.data.normalise import normalise_tag
from harmonium.library.answering.query import unknown_tag
from harmonium.library.answering.shipped_model import log_odds
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.answering.suggest import Relation, related_by
from harmonium.library.answering.tag_table import TagEntry, tag_entry
from harmonium.library.precision import curves_from_arrays
from harmonium.library.snapshot import Hit, Snapshot

SHOWN = 8
"""Tracks of each list."""
RELATED = 8
"""Tags that it makes likely, and as many that it makes unlikely."""

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class CurvePoint:
    """The precision and recall of a tag at a threshold."""

    threshold: float
    precision: float
    low: float
    """The lower bound of the precision."""
    recall: float


@dataclass(frozen=True)
class TagDetail(TagEntry):
    """A tag with all that is known of it."""

    curve: list[CurvePoint]
    related: list[Relation]
    surest: list[Hit]
    """The most probable tracks of those that people have not answered."""
    doubtful: list[Hit]
    """Those of them that are nearest to the tag's threshold."""
    surprising: list[Hit]
    """Tracks of which people say yes and the model no, or the other way round."""


def tag_detail(view: Snapshot, tag: str) -> TagDetail:
    """All that is known of a tag, in any spelling; an `UnknownTagError` where there is none."""
    name = normalise_tag(tag)
    entry = tag_entry(view, name)
    if entry is None:
        raise unknown_tag(tag, view.known)
    place = view.places.get(name)
    if place is None or view.tagger is None or view.model is None:
        return TagDetail(**vars(entry), curve=[], related=[], surest=[], doubtful=[], surprising=[])
    others = related_by(view.tagger, name, RELATED) if name in view.tagger.tags else []
    ids, P = view.columns(view.model.id or 0, [place])
    p = _held_out(view, place, ids, P[:, 0])
    present = np.isin(ids, view.ids, assume_unique=True)
    agreed = view.verdicts.agreement(name)
    yes, no = np.isin(ids, agreed.yes), np.isin(ids, agreed.no)
    left_open = present & ~yes & ~no
    doubt = np.abs(log_odds(p) - log_odds(view.model.thresholds[place : place + 1]))
    surprise = np.where(yes, 1 - p, np.where(no, p, 0)) * present
    return TagDetail(
        **vars(entry),
        curve=_curve(view.tagger, place),
        related=others,
        surest=_tracks(view, ids, p, np.where(left_open, p, -np.inf)),
        doubtful=_tracks(view, ids, p, np.where(left_open, -doubt, -np.inf)),
        surprising=_tracks(view, ids, p, np.where(surprise > 0.5, surprise, -np.inf)),
    )


def _curve(tagger: StoredTagger, place: int) -> list[CurvePoint]:
    curves = curves_from_arrays(tagger.arrays)
    curve = curves[place] if curves is not None and place < len(curves) else None
    if curve is None or not len(curve.chosen):
        return []
    columns = (curve.thresholds, curve.precision, curve.bounds[0], curve.recall)
    return [CurvePoint(*row) for row in zip(*(one.tolist() for one in columns), strict=True)]


def _held_out(view: Snapshot, place: int, ids: Ids, p: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities; of tracks that the model has learnt from, by models that had not."""
    tagger = view.tagger
    if tagger is None or "held_out.ids" not in tagger.arrays:
        return p
    known, held_out = tagger.held_out
    if place >= held_out.shape[1]:
        return p
    at = np.minimum(np.searchsorted(ids, known), max(0, len(ids) - 1))
    here = ids[at] == known if len(ids) else np.zeros(len(known), bool)
    p = p.copy()
    p[at[here]] = held_out[here, place]
    return p


def _tracks(
    view: Snapshot, ids: Ids, p: NDArray[np.float32], score: NDArray[np.floating]
) -> list[Hit]:
    """The tracks of the highest scores."""
    rows = np.argsort(-score, kind="stable")[:SHOWN]
    rows = rows[np.isfinite(score[rows])]
    tracks, tags = view.library.tracks.many(ids[rows]), view.telling_tags(ids[rows])
    return [
        Hit(track, float(p[row]), None, "model", own)
        for track, row, own in zip(tracks, rows, tags, strict=True)
    ]
