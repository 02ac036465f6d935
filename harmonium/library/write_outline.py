"""What writing would add to files, tag by tag, without reading the files.

It goes by what the library knows of them since they were last indexed or written. What writing does
to some files, field by field, `writing.write_tracks.plan_writes` tells, which reads them.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.library.precision import lower_bound
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.models import packed, unpacked

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class OutlinedTag:
    """A tag that would be added to files."""

    tag: str
    shown: str
    n: int
    """Tracks whose files would get it."""
    precision: float | None
    """How often the model is right about it, for held-out tracks."""
    expected_wrong: float
    """How many of those that the model adds will be wrong, by their probabilities."""
    accepted: bool
    elsewhere: bool
    """Whether the built-in model says so: its precision was measured on other music."""


@dataclass(frozen=True)
class UnreachedTag:
    """A tag that is learnt, but not right so often."""

    tag: str
    best: float | None
    """The share that is right at best, by a cautious count."""


@dataclass(frozen=True)
class WriteOutline:
    """What writing would add."""

    tracks: Ids
    """Those whose files would get something."""
    tags: list[OutlinedTag]
    not_reached: list[UnreachedTag]
    n_guessed: int
    """How many accepted tags the model would add."""

    @property
    def expected_wrong(self) -> float:
        """How many of them will be wrong."""
        return sum(tag.expected_wrong for tag in self.tags if tag.accepted)


def write_outline(
    snapshot: Snapshot, ids: Ids, precision: float | None, ignore: Collection[str] = ()
) -> WriteOutline:
    """What writing tags to the files of tracks would add.

    Parameters
    ----------
    ids : the tracks, (n,)
    precision : how often what the model adds is to be right, as of `TagSources`
    ignore : tags that are not to be written, normalised
    """
    ids = np.sort(ids)
    gets = np.zeros(len(ids), bool)
    found, n_guessed = [], 0
    thresholds = snapshot.write_thresholds(precision)
    own = () if snapshot.model is None else snapshot.model.is_own
    for tag in {**dict.fromkeys(snapshot.verdicts.names), **dict.fromkeys(snapshot.places)}:
        agreed = snapshot.verdicts.agreement(tag)
        has = np.isin(ids, snapshot.in_files.get(tag, _NONE), assume_unique=True)
        said = np.isin(ids, agreed.yes, assume_unique=True) & ~has
        p = _guessed(snapshot, ids, tag, thresholds)
        p[has | np.isin(ids, agreed.yes) | np.isin(ids, agreed.no)] = np.nan
        guessed = ~np.isnan(p)
        n = int(said.sum() + guessed.sum())
        if not n:
            continue
        accepted = tag not in ignore and tag not in snapshot.hidden
        if accepted:
            gets |= said | guessed
            n_guessed += int(guessed.sum())
        wrong = float((1 - p[guessed]).sum())
        right = _precision(snapshot, tag, thresholds)
        elsewhere = bool(guessed.any()) and not own[snapshot.places[tag]]
        shown = snapshot.shown(tag)
        found.append(OutlinedTag(tag, shown, n, right, wrong, accepted, elsewhere))
    found.sort(key=lambda one: (-one.n, one.tag))
    return WriteOutline(ids[gets], found, _unreached(snapshot, thresholds), n_guessed)


_NONE = np.empty(0, np.int64)


def _guessed(
    snapshot: Snapshot, ids: Ids, tag: str, thresholds: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(n,) the probability of a tag where the model would write it, else NaN."""
    p = np.full(len(ids), np.nan, np.float32)
    place, found = snapshot.places.get(tag), snapshot.predictions
    if place is None or place >= len(thresholds) or thresholds[place] > 1 or not len(found.ids):
        return p
    at = np.minimum(np.searchsorted(found.ids, ids), len(found.ids) - 1)
    # as `wanted_tags`: what answers have taught since may take a tag away, and not add it
    steps = np.minimum(found.steps[place][at], snapshot.trained.steps[place][at])
    reached = (found.ids[at] == ids) & (steps >= packed(thresholds[[place]])[0])
    p[reached] = unpacked(steps[reached])
    return p


def _precision(snapshot: Snapshot, tag: str, thresholds: NDArray[np.float32]) -> float | None:
    place = snapshot.places.get(tag, len(thresholds))
    if snapshot.tagger is None or place >= len(thresholds) or thresholds[place] > 1:
        return None
    return snapshot.tagger.precision(place, float(thresholds[place]))


def _unreached(snapshot: Snapshot, thresholds: NDArray[np.float32]) -> list[UnreachedTag]:
    curves = [] if snapshot.tagger is None else snapshot.tagger.curves
    found = []
    for tag, place in snapshot.places.items():
        if place < len(thresholds) and thresholds[place] <= 1:
            continue
        best = None
        if place < len(curves) and len(curves[place].chosen):
            curve = curves[place]
            best = float(lower_bound(curve.right, curve.chosen).max())
        found.append(UnreachedTag(tag, best))
    return found
