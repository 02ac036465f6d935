"""What a new person would say about each track, if several people tagged the same tracks."""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.library.learning.fitting import interrupts_raise
from harmonium.library.store.opinions import label_matrix
from harmonium.library.tagger import TagRBM
from harmonium.library.tags import MIN_PEOPLE

FEWEST_SHARED = 20
"""Tracks that two people have tagged, from which smoothing is worth a try,"""
SHARED_SHARE = 0.1
"""and the share of all tagged tracks."""
EFFORT = 2_000_000
"""Pairs of person and track, times passes over them, at most."""


def can_smooth(opinions: pl.DataFrame) -> bool:
    """Whether enough tracks have been tagged by several people."""
    people = opinions.group_by("track_id").agg(pl.col("person").n_unique())["person"]
    shared = int((people > 1).sum())
    enough = opinions["person"].n_unique() >= MIN_PEOPLE
    return enough and shared >= max(FEWEST_SHARED, SHARED_SHARE * len(people))


def learn_smoothing(
    opinions: pl.DataFrame, judged: pl.DataFrame, tags: tuple[str, ...], *, seed: int = 0
) -> tuple[Callable[[NDArray[np.int64]], NDArray[np.float32]], TagRBM]:
    """What gives smoothed labels (n_tracks, n_tags) of tracks with sorted ids; what was learnt.

    What was learnt is which tags people give together, whatever the track. Every track has
    opinions, and ``judged`` are the verdicts on them. A tag stays absent where people agree that it
    is.
    """
    from harmonium.data import Triples
    from harmonium.estimators import TagSmoother

    given = opinions.filter((pl.col("value") > 0) & pl.col("tag").is_in(tags))
    triples = Triples.from_columns(
        given["person"], given["track_id"], given["tag"], normalise=False
    )
    seen = opinions.select("person", "track_id").unique(maintain_order=True)
    epochs = int(np.clip(EFFORT / len(seen), 8, 100))
    smoother = TagSmoother(
        max_epochs=epochs, refit=len(seen) * epochs < EFFORT, random_state=seed, n_jobs=-1
    )
    with interrupts_raise():
        smoother.fit(triples, pairs=(seen["person"], seen["track_id"]))
    columns = [smoother.tags_.tolist().index(tag) for tag in tags]
    denied = judged.filter(pl.col("verdict") == 0).with_columns(denied=pl.lit(1.0))

    def labels_of(ids: NDArray[np.int64]) -> NDArray[np.float32]:
        soft = smoother.smooth(ids).values[:, columns]
        soft[label_matrix(denied, ids, tags, "denied") == 1] = 0
        return soft

    U, c, d = (np.asarray(getattr(smoother.params_, k), np.float64) for k in "Ucd")
    return labels_of, TagRBM(U[:, columns], c, d[columns])
