"""Smoothed labels: what a new person would say, learnt from people who tagged the same tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Ids, Places
from harmonium.library.tags import MIN_PEOPLE
from harmonium.library.verdicts import label_matrix
from harmonium.rbm.forward import PlainRBM

if TYPE_CHECKING:
    from harmonium.estimators.smoother import TagSmoother

MIN_SHARED = 20  # smoothing needs two people who have tagged this many tracks in common
MIN_SHARED_FRACTION = 0.1  # smoothing needs several people on this share of the tracks
MAX_SMOOTHING = 2_000_000  # the most pairs of person and track, times passes over them
EPOCHS = (8, 100)  # the fewest and the most


def can_smooth(opinions: pl.DataFrame) -> bool:
    """Whether enough tracks have been tagged by several people."""
    n_people = opinions.group_by("track_id").agg(pl.col("person").n_unique())["person"]
    n_shared = int((n_people > 1).sum())
    has_people = opinions["person"].n_unique() >= MIN_PEOPLE
    return has_people and n_shared >= max(MIN_SHARED, MIN_SHARED_FRACTION * len(n_people))


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothing:
    """What was learnt about some tags from people who tagged the same tracks."""

    smoother: TagSmoother
    tags: tuple[str, ...]
    columns: Places  # (n_tags,) where the smoother has them
    rejected: pl.DataFrame  # the verdicts that a tag is absent

    def labels(self, ids: Ids) -> Floats:
        """Smoothed labels of ascending tracks, (n, n_tags).

        If people agree that a tag is absent, it stays so.
        """
        labels = self.smoother.smooth(ids).values[:, self.columns]
        labels[label_matrix(self.rejected, ids, self.tags, "rejected") == 1] = 0
        return labels

    @property
    def together(self) -> PlainRBM:
        """Which tags people give together, whatever the track."""
        params = self.smoother.params_
        return PlainRBM(
            U=np.asarray(params.U, np.float64)[:, self.columns],
            c=np.asarray(params.c, np.float64),
            d=np.asarray(params.d, np.float64)[self.columns],
        )


def learn_smoothing(
    opinions: pl.DataFrame, judged: pl.DataFrame, tags: tuple[str, ...], *, seed: int = 0
) -> Smoothing:
    """Learn from opinions which tags people give, and leave out.

    Every track has opinions, and ``judged`` has the verdicts on them.
    """
    from harmonium.data import Triples
    from harmonium.estimators.smoother import TagSmoother

    given = opinions.filter((pl.col("value") > 0) & pl.col("tag").is_in(tags))
    triples = Triples.from_columns(
        given["person"], given["track_id"], given["tag"], normalise=False
    )
    pairs = opinions.select("person", "track_id").unique(maintain_order=True)
    epochs = int(np.clip(MAX_SMOOTHING / len(pairs), *EPOCHS))
    smoother = TagSmoother(
        max_epochs=epochs, refit=len(pairs) * epochs < MAX_SMOOTHING, random_state=seed, n_jobs=-1
    )
    smoother.fit(triples, pairs=(pairs["person"], pairs["track_id"]))
    places = {tag: place for place, tag in enumerate(smoother.tags_.tolist())}
    return Smoothing(
        smoother=smoother,
        tags=tags,
        columns=np.array([places[tag] for tag in tags], np.intp),
        rejected=judged.filter(pl.col("verdict") == 0).with_columns(rejected=pl.lit(1.0)),
    )
