"""What a new person would say of each track, where several people have tagged the same tracks."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.collection.answering.numpy_inference import Machine
from harmonium.collection.learning.interrupts import interrupts_raise

FEWEST_SHARED = 20
"""Tracks that two people have tagged, from which smoothing is worth a try,"""
SHARED_SHARE = 0.1
"""and the share of all tagged tracks."""
EFFORT = 2_000_000
"""Pairs of person and track, times passes over them, at most."""


@dataclass(frozen=True)
class Smoothed:
    """The outcome of smoothing."""

    Y: NDArray[np.float32]
    """(n_tracks, n_tags) the probability that a new person would give the tag."""
    machine: Machine
    """Which tags people give together, whatever the track."""


def can_smooth(opinions: pl.DataFrame) -> bool:
    """Whether enough tracks have been tagged by several people."""
    people = opinions.group_by("track_id").agg(pl.col("person").n_unique())["person"]
    shared = int((people > 1).sum())
    return shared >= max(FEWEST_SHARED, SHARED_SHARE * len(people))


def smooth_labels(
    opinions: pl.DataFrame,
    ids: NDArray[np.int64],
    tags: tuple[str, ...],
    Y: NDArray[np.float32],
    *,
    seed: int = 0,
) -> Smoothed:
    """Labels as probabilities, from who said what of the tracks with these sorted ids.

    What people say is absent, in ``Y`` (n_tracks, n_tags), although somebody gave it, stays
    absent. A track of which nothing is learnt keeps its labels.
    """
    from harmonium.data import Triples
    from harmonium.estimators import TagSmoother

    said = opinions.filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
    given = said.filter((pl.col("value") > 0) & pl.col("tag").is_in(tags))
    triples = Triples.from_columns(
        given["person"], given["track_id"].cast(pl.String), given["tag"], normalise=False
    )
    seen = said.select("person", "track_id").unique(maintain_order=True)
    epochs = int(np.clip(EFFORT / len(seen), 8, 100))
    smoother = TagSmoother(
        max_epochs=epochs, refit=len(seen) * epochs < EFFORT, random_state=seed, n_jobs=-1
    )
    with interrupts_raise():
        smoother.fit(triples, pairs=(seen["person"], seen["track_id"].cast(pl.String)))
    smoothed = smoother.smooth()
    columns = [list(smoothed.tags).index(tag) for tag in tags]
    rows = np.searchsorted(ids, smoothed.items.cast(pl.Int64).to_numpy())
    soft = Y.copy()
    soft[rows] = smoothed.values[:, columns]
    params = smoother.params_
    machine = Machine(
        np.asarray(params.U, np.float64)[:, columns],
        np.asarray(params.c, np.float64),
        np.asarray(params.d, np.float64)[columns],
    )
    return Smoothed(np.where(_rejected(said, ids, tags), 0, soft), machine)


def _rejected(
    opinions: pl.DataFrame, ids: NDArray[np.int64], tags: tuple[str, ...]
) -> NDArray[np.bool_]:
    """Which tags of which tracks more people deny than give, (n_tracks, n_tags)."""
    from harmonium.collection.learning.verdicts import label_matrix

    balance = opinions.group_by("track_id", "tag").agg(balance=pl.col("value").sum())
    denied = balance.filter(pl.col("balance") < 0).with_columns(label=pl.lit(1.0, pl.Float32))
    return label_matrix(denied, ids, tags) == 1
