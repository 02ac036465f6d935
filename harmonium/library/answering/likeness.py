"""Tracks that are alike: in their sound, and in their tags where the model has learnt some.

By sound, two tracks are alike as far as their vectors in the space of `sound_space` point the same
way: their cosine. By tags, a track is described by what sets it apart: the probability of each tag
that the model has learnt, less its mean over the library, in units of its deviation; again it is
the cosine that counts. The likeness is the mean of both, the tags weighted by how many there are.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.library import sound_space
from harmonium.library.library import Library
from harmonium.library.store.models import StoredModel
from harmonium.library.store.predictions import STEP, steps_of, unpacked
from harmonium.library.store.schema import BLOCK, prediction
from harmonium.library.verdicts import agreed_tags

ROUNDING = 1e-6
"""Lengths that are not larger than this are none."""
EQUAL_TAGS = 30
"""With so many learnt tags, they weigh as much as the sound."""

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class AtHand(NamedTuple):
    """What is in memory already."""

    vectors: Callable[[], tuple[Ids, NDArray[np.int8]]]
    """As of `sound_space.all_vectors`."""
    columns: Callable[[NDArray[np.intp], Ids], Iterable[Floats]]
    """Places of tags, and tracks (n,) → their probabilities as the model was trained, by tag."""


def similarities(
    library: Library,
    model: StoredModel | None,
    track_id: int,
    heard: Ids,
    at_hand: AtHand | None = None,
) -> tuple[Ids, Floats]:
    """Tracks that can be compared with one, (n,), and how alike they are, (n,) in [-1, 1].

    What people agree on about that track counts, for it, as certain. A track that the model has not
    tagged is compared by its sound alone.

    Parameters
    ----------
    heard : all tracks with predictions of the model, (m,) ascending
    at_hand : what need not be read from the library
    """
    vectors = at_hand.vectors() if at_hand else None
    ids, by_sound = sound_space.cosines(library, track_id, vectors)
    row = int(np.searchsorted(heard, track_id))
    model = None if model is None else model.as_trained()
    if model is None or row == len(heard) or heard[row] != track_id or not model.learnt.any():
        return ids, by_sound
    assert model.id is not None
    learnt = np.flatnonzero(model.learnt)
    said = agreed_tags(library.opinions.triples([track_id]), library.genres()).get(track_id, {})
    own = np.array([said.get(model.vocabulary[j], np.nan) for j in learnt], np.float32)
    if at_hand:
        columns: Iterable[Floats] = at_hand.columns(learnt, heard)
    else:
        columns = _columns(library, model.id, learnt, heard)
    by_tags = alike(columns, row, own)
    if not np.array_equal(heard, ids):
        place = np.minimum(np.searchsorted(heard, ids), len(heard) - 1)
        by_tags = np.where(heard[place] == ids, by_tags[place], by_sound)
    weight = np.float32(len(learnt) / (len(learnt) + EQUAL_TAGS))
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


def _columns(
    library: Library, model_id: int, tags: NDArray[np.intp], ids: NDArray[np.int64]
) -> Iterator[Floats]:
    """The probabilities of tags, one after the other, of the tracks ``ids``, (n,)."""
    blocks = np.unique(ids // BLOCK)
    query = (
        sa.select(prediction.c.tag, prediction.c.probabilities)
        .where(
            prediction.c.model_id == model_id,
            prediction.c.tag.in_(tags.tolist()),
            prediction.c.block.in_(blocks.tolist()),
        )
        .order_by(prediction.c.tag, prediction.c.block)
    )
    places = np.searchsorted(blocks, ids // BLOCK) * BLOCK + ids % BLOCK
    first, last = places[0], places[-1] + 1
    without_gaps = last - first == len(ids)
    with library.connect() as connection:
        for _, rows in groupby(connection.execute(query), key=itemgetter(0)):
            steps = steps_of(b"".join(data for _, data in rows))
            yield unpacked(steps[first:last] if without_gaps else steps[places])
