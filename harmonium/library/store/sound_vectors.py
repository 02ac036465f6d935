"""How tracks sound, in few numbers each: `N_AXES` whole numbers from -127 to 127, one byte each.

They are stored in blocks of `BLOCK` track numbers, each block up to its last track. A track without
any has `_NONE` in front. `harmonium.library.sound_space` makes them of the features; where these
change, the numbers are dropped, so that what is stored is always up to date.
"""

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.library.store.schema import BLOCK, sound_vector

N_AXES = 128
_NONE = -128

Vectors = NDArray[np.int8]


def read(connection: sa.Connection, number: int) -> tuple[NDArray[np.int64], Vectors]:
    """Numbers of tracks (n,), ascending, and what is stored at their places, (n, N_AXES).

    `have` says which of them have a vector.
    """
    query = sa.select(sound_vector.c.block, sound_vector.c.vectors)
    query = query.where(sound_vector.c.extractor_id == number).order_by(sound_vector.c.block)
    found = [(row.block * BLOCK, row.vectors) for row in connection.execute(query)]
    vectors = np.frombuffer(b"".join(data for _, data in found), np.int8).reshape(-1, N_AXES)
    ids = [np.arange(first, first + len(data) // N_AXES) for first, data in found]
    return np.concatenate([np.empty(0, np.int64), *ids]), vectors


def have(vectors: Vectors) -> NDArray[np.bool_]:
    """Which of the places (n, N_AXES) hold a vector, (n,)."""
    return vectors[:, 0] != _NONE


def count(connection: sa.Connection, number: int) -> int:
    """How many tracks have vectors of an extractor."""
    query = sa.select(sa.func.sum(sound_vector.c.n_vectors))
    return int(connection.scalar(query.where(sound_vector.c.extractor_id == number)) or 0)


def write(connection: sa.Connection, number: int, ids: NDArray[np.int64], vectors: Vectors) -> None:
    """Store the vectors (n, N_AXES) of tracks (n,), in place of what these had."""
    blocks = ids // BLOCK
    for block in np.unique(blocks).tolist():
        here = blocks == block
        places = ids[here] % BLOCK
        old = _read_block(connection, number, block)
        whole = np.full((max(len(old), int(places.max()) + 1), N_AXES), _NONE, np.int8)
        whole[: len(old)] = old
        whole[places] = vectors[here]
        _write_block(connection, number, block, whole)


def forget(connection: sa.Connection, ids: Sequence[int], number: int | None = None) -> None:
    """Drop the vectors of tracks, of one extractor or of all: their features have changed."""
    if number is None:
        every = connection.execute(sa.select(sound_vector.c.extractor_id).distinct())
        for one in every.scalars().all():
            forget(connection, ids, one)
        return
    gone = np.asarray(ids, np.int64)
    for block in np.unique(gone // BLOCK).tolist():
        whole = _read_block(connection, number, block)
        places = gone[gone // BLOCK == block] % BLOCK
        places = places[places < len(whole)]
        if have(whole[places]).any():
            whole = whole.copy()
            whole[places] = _NONE
            _write_block(connection, number, block, whole)


def forget_all(connection: sa.Connection, number: int) -> None:
    """Drop the vectors of all tracks, of one extractor."""
    connection.execute(sa.delete(sound_vector).where(sound_vector.c.extractor_id == number))


def _read_block(connection: sa.Connection, number: int, block: int) -> Vectors:
    query = sa.select(sound_vector.c.vectors).where(*_here(number, block))
    return np.frombuffer(connection.scalar(query) or b"", np.int8).reshape(-1, N_AXES)


def _write_block(connection: sa.Connection, number: int, block: int, whole: Vectors) -> None:
    connection.execute(sa.delete(sound_vector).where(*_here(number, block)))
    connection.execute(
        sa.insert(sound_vector).values(
            extractor_id=number,
            block=block,
            n_vectors=int(have(whole).sum()),
            vectors=whole.tobytes(),
        )
    )


def _here(number: int, block: int) -> tuple[sa.ColumnElement[bool], ...]:
    return sound_vector.c.extractor_id == number, sound_vector.c.block == block
