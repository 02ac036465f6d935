"""All that is known of one tag: how good it is, what goes with it, and its tracks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.data.normalise import normalise_tag
from harmonium.library.answering.query import unknown_tag
from harmonium.library.answering.shipped_model import log_odds
from harmonium.library.answering.suggest import Relation, related_by
from harmonium.library.answering.tag_table import TagEntry, tag_entry
from harmonium.library.precision import PrecisionCurve, curves_from_arrays
from harmonium.library.snapshot import Hit, Snapshot

SHOWN = 8
"""Tracks of each list."""
RELATED = 8
"""Tags that it makes likely, and as many that it makes unlikely."""

Ids = NDArray[np.int64]


class TagDetail(NamedTuple):
    """A tag with all that is known of it."""

    entry: TagEntry
    curve: PrecisionCurve | None
    related: list[Relation]
    surest: list[Hit]
    """The most probable tracks of which people leave it open,"""
    doubtful: list[Hit]
    """those nearest to its threshold,"""
    surprising: list[Hit]
    """and those of which people say yes and the model no, or the other way round."""


def tag_detail(view: Snapshot, tag: str) -> TagDetail:
    """All that is known of a tag, in any spelling; an `UnknownTagError` where there is none."""
    name = normalise_tag(tag)
    entry = tag_entry(view, name)
    if entry is None:
        raise unknown_tag(tag, view.known)
    place = view.places.get(name)
    if place is None or view.tagger is None or view.model is None:
        return TagDetail(entry, None, [], [], [], [])
    curves = curves_from_arrays(view.tagger.arrays)
    curve = curves[place] if curves is not None and place < len(curves) else None
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
        entry,
        curve,
        others,
        _tracks(view, ids, p, np.where(left_open, p, -np.inf)),
        _tracks(view, ids, p, np.where(left_open, -doubt, -np.inf)),
        _tracks(view, ids, p, np.where(surprise > 0.5, surprise, -np.inf)),
    )


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
