"""Features of tracks, a row of bytes for each track and extractor; and the vectors made of them.

A vector says how a track sounds in `N_AXES` whole numbers from -127 to 127, one byte each. Vectors
are stored in blocks of `BLOCK` track numbers, each block up to its last track; a track without one
has `_NONE` in front. `harmonium.library.sound_space` makes them out of the features; where these
change, the vectors are dropped, so that what is stored is always up to date.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask
from harmonium.errors import LibraryError
from harmonium.library.store.bulk import batches, insert_rows
from harmonium.library.store.schema import (
    BLOCK,
    extractor,
    feature,
    key_of,
    sound_vector,
    track,
)

TrackFeatures = tuple[Ids, Floats]
"""Numbers of tracks (n,) and their features (n, n_features)."""
Vectors = NDArray[np.int8]
N_AXES = 128
_NONE = -128


def find_extractor(connection: sa.Connection, key: str) -> tuple[int, int]:
    """(number, n_features) of an extractor by its key, or of the last one by its name; else 0."""
    query = (
        sa.select(extractor.c.id, extractor.c.n_features)
        .where(sa.or_(extractor.c.key == key, extractor.c.name == key))
        .order_by((extractor.c.key == key).desc(), extractor.c.id.desc())
    )
    row = connection.execute(query).first()
    return (0, 0) if row is None else (row[0], row[1])


def read(connection: sa.Connection, ids: Ids, key: str) -> TrackFeatures:
    """The features of those of the tracks that have them, in the order given."""
    number, n_features = find_extractor(connection, key)
    vectors: dict[int, bytes] = {}
    for some in batches(ids.tolist()):
        vectors.update(_vectors(connection, number, feature.c.track_id.in_(some)))
    return _features([(i, vectors[i]) for i in ids.tolist() if i in vectors], n_features)


def read_range(connection: sa.Connection, start: int, end: int, key: str) -> TrackFeatures:
    """The features of the present tracks numbered from `start` to before `end`."""
    number, n_features = find_extractor(connection, key)
    between = feature.c.track_id.between(start, end - 1)
    present = sa.exists().where(track.c.id == feature.c.track_id, track.c.state == "present")
    return _features(_vectors(connection, number, sa.and_(between, present)), n_features)


def without(connection: sa.Connection, key: str) -> set[int]:
    """The present tracks that have no features of this extractor."""
    number, _ = find_extractor(connection, key)
    have = sa.exists().where(feature.c.track_id == track.c.id, feature.c.extractor_id == number)
    query = sa.select(track.c.id).where(track.c.state == "present", ~have)
    return set(connection.execute(query).scalars())


def write(connection: sa.Connection, ids: Ids, matrix: Floats, key: str) -> None:
    """Store the rows (n, n_features) of tracks (n,), in place of what these had."""
    if matrix.ndim != 2 or len(matrix) != len(ids):
        raise LibraryError(
            f"'matrix' must have a row for each of the {len(ids)} tracks, got {matrix.shape}."
        )
    number = _register(connection, key, matrix.shape[1])
    vectors = (row.tobytes() for row in matrix.astype("<f4"))
    for some in batches(zip(ids.tolist(), vectors, strict=True)):
        old = feature.c.track_id.in_([one[0] for one in some])
        connection.execute(sa.delete(feature).where(feature.c.extractor_id == number, old))
        insert_rows(connection, feature, [(number, *one) for one in some])
        forget_vectors(connection, [one[0] for one in some], number)


def read_ids(connection: sa.Connection, number: int) -> Ids:
    """All tracks that have features of an extractor, (n,) ascending."""
    query = sa.select(feature.c.track_id).where(feature.c.extractor_id == number)
    found = connection.execute(query.order_by(feature.c.track_id)).scalars().all()
    return np.array(found, np.int64)


def count(connection: sa.Connection, number: int) -> int:
    """How many tracks have features of an extractor."""
    counted = sa.select(sa.func.count(feature.c.track_id)).where(feature.c.extractor_id == number)
    return int(connection.scalar(counted) or 0)


def forget(connection: sa.Connection, track_id: int) -> None:
    """Drop all features of a track: its sound has changed."""
    connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))
    for number in connection.execute(sa.select(sound_vector.c.extractor_id).distinct()).all():
        forget_vectors(connection, [track_id], number[0])


def _vectors(connection: sa.Connection, number: int, which: Any) -> list[tuple[int, bytes]]:
    query = (
        sa.select(feature.c.track_id, feature.c.vector)
        .where(feature.c.extractor_id == number, which)
        .order_by(feature.c.track_id)
    )
    return [(track_id, data) for track_id, data in connection.execute(query)]


def _register(connection: sa.Connection, key: str, n_features: int) -> int:
    query = sa.select(extractor.c.id, extractor.c.n_features).where(extractor.c.key == key)
    row = connection.execute(query).first()
    if row is None:
        name = key.rpartition("@")[0] or key
        values = {"key": key, "name": name, "n_features": n_features}
        return key_of(connection.execute(sa.insert(extractor).values(values)))
    if row[1] != n_features:
        raise LibraryError(
            f"The extractor {key!r} gives {row[1]} features a track, got {n_features}."
        )
    return int(row[0])


def _features(vectors: list[tuple[int, bytes]], n_features: int) -> TrackFeatures:
    data = np.frombuffer(b"".join(vector for _, vector in vectors), "<f4").astype(np.float32)
    return np.array([i for i, _ in vectors], np.int64), data.reshape(len(vectors), n_features)


# Vectors. --------------------------------------------------------------------------------------


def read_vectors(connection: sa.Connection, number: int) -> tuple[Ids, Vectors]:
    """Numbers of tracks (n,), ascending, and what is stored at their places, (n, N_AXES).

    `have_vectors` says which of them have a vector.
    """
    query = sa.select(sound_vector.c.block, sound_vector.c.vectors)
    query = query.where(sound_vector.c.extractor_id == number).order_by(sound_vector.c.block)
    found = [(row.block * BLOCK, row.vectors) for row in connection.execute(query)]
    vectors = np.frombuffer(b"".join(data for _, data in found), np.int8).reshape(-1, N_AXES)
    ids = [np.arange(first, first + len(data) // N_AXES) for first, data in found]
    return np.concatenate([np.empty(0, np.int64), *ids]), vectors


def have_vectors(vectors: Vectors) -> Mask:
    """Which of the places (n, N_AXES) hold a vector, (n,)."""
    return vectors[:, 0] != _NONE


def count_vectors(connection: sa.Connection, number: int) -> int:
    """How many tracks have vectors of an extractor."""
    query = sa.select(sa.func.sum(sound_vector.c.n_vectors))
    return int(connection.scalar(query.where(sound_vector.c.extractor_id == number)) or 0)


def write_vectors(connection: sa.Connection, number: int, ids: Ids, vectors: Vectors) -> None:
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


def forget_vectors(connection: sa.Connection, ids: Sequence[int], number: int) -> None:
    """Drop the vectors of tracks, of one extractor: their features have changed."""
    gone = np.asarray(ids, np.int64)
    for block in np.unique(gone // BLOCK).tolist():
        whole = _read_block(connection, number, block)
        places = gone[gone // BLOCK == block] % BLOCK
        places = places[places < len(whole)]
        if have_vectors(whole[places]).any():
            whole = whole.copy()
            whole[places] = _NONE
            _write_block(connection, number, block, whole)


def forget_all_vectors(connection: sa.Connection, number: int) -> None:
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
            n_vectors=int(have_vectors(whole).sum()),
            vectors=whole.tobytes(),
        )
    )


def _here(number: int, block: int) -> tuple[sa.ColumnElement[bool], ...]:
    return sound_vector.c.extractor_id == number, sound_vector.c.block == block
