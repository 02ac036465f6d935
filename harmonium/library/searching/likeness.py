"""How alike tracks are: the mean of two cosines, weighted by how many tags the model has learnt.

One is that of the tracks' sound vectors (`library.sound`), the other that of the probabilities of
learnt tags, each standardised over the library.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from harmonium.arrays import Floats, Ids
from harmonium.library.model.tag_table import TagTable
from harmonium.library.store.predictions import STEP, places_in

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

N_TAGS_LIKE_SOUND = 30  # the number of learnt tags that weigh as much as the sound
ROUNDING = 1e-6  # lengths up to this count as 0


def similarities(
    snapshot: "Snapshot", table: TagTable, track_id: int, tagged: Ids
) -> tuple[Ids, Floats]:
    """Tracks that can be compared with one, (n,), and their similarity, (n,) in [-1, 1].

    What people agree on about that track counts as certain. Tracks that the model has not tagged
    are compared by sound alone; ``tagged`` (m,) are the others, ascending.
    """
    ids = snapshot.sounds.ids
    by_sound = snapshot.sounds.cosines(track_id)
    row = int(np.searchsorted(tagged, track_id))
    learnt = table.trained
    if row == len(tagged) or tagged[row] != track_id or not learnt:
        return ids, by_sound
    said = snapshot.agreed_of(track_id)
    own = np.array([said.get(tag.name, np.nan) for tag in learnt], np.float32)
    columns = np.array([tag.place for tag in learnt], np.intp)
    by_tags = alike(snapshot.trained_columns(columns, tagged), row, own)
    if not np.array_equal(tagged, ids):
        place, known = places_in(tagged, ids)
        by_tags = np.where(known, by_tags[place], by_sound)
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    return ids, (1 - weight) * by_sound + weight * by_tags


def similarity_matrix(snapshot: "Snapshot", table: TagTable, ids: Ids) -> Floats:
    """Similarity by sound and predictions, for tracks that have vectors, (n, n) in [-1, 1]."""
    by_sound = _cosines(snapshot.sounds.at(ids).astype(np.float32))
    tagged = snapshot.steps([0]).ids
    place, known = places_in(tagged, ids)
    learnt = table.trained
    if not known.any() or not learnt:
        return by_sound
    Z = np.zeros((len(ids), len(learnt)), np.float32)
    columns = np.array([tag.place for tag in learnt], np.intp)
    for k, column in enumerate(snapshot.trained_columns(columns, tagged)):
        deviation = float(column.std())
        if deviation > STEP:
            Z[:, k] = (column[place] - column.mean()) / deviation
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    both = (1 - weight) * by_sound + weight * _cosines(Z)
    return np.where(known[:, None] & known, both, by_sound)


def _cosines(X: Floats) -> Floats:
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), ROUNDING)
    return unit @ unit.T


def alike(columns: Iterable[Floats], row: int, own: Floats) -> Floats:
    """cos(z_i, z_row) with z_ij = (p_ij - mean_j) / deviation_j, for all tracks i, (n,).

    ``columns`` are the probabilities (n,) of each tag; ``own`` (n_tags,) replaces those of the row
    where it is not NaN. It works column by column, since all columns together would not fit the
    cache.
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
        if deviation > STEP:  # anything less may be rounding in storage
            apart /= deviation
            z = float(value - mean) / deviation
            dot = dot + z * apart
            squares = squares + apart * apart
            own_square += z * z
    norm = np.sqrt(squares * own_square) * np.ones(n, np.float32)
    return np.divide(dot, norm, out=np.zeros(n, np.float32), where=norm > ROUNDING)
