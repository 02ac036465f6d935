"""The rows of features: extractors, the features of tracks, and the sound vectors made from them.

A track's features are a row of float32 for each extractor. Its sound vector
(`harmonium.library.sound`) has `N_AXES` one-byte integers. Vectors are stored in blocks of `BLOCK`
track numbers, each block up to its last track; a track without a vector starts with `_NO_VECTOR`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from safetensors.numpy import load, save

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.errors import LibraryError
from harmonium.library.store import database
from harmonium.library.store.schema import (
    BLOCK,
    extractor,
    feature,
    sound_space,
    sound_vector,
)

TrackFeatures = tuple[Ids, Floats]  # numbers of tracks (n,) and their features (n, n_features)
Vectors = NDArray[np.int8]  # sound vectors (n, N_AXES)
N_AXES = 128
_NO_VECTOR = -128


class StoredExtractor(NamedTuple):
    """An extractor whose features the library has."""

    id: int
    n_features: int


class StoredSpace(NamedTuple):
    """What sound vectors were made with."""

    n_tracks: int  # that the library had then
    arrays: Mapping[str, Doubles]


class StoredVectors(NamedTuple):
    """The sound vectors of tracks."""

    ids: Ids  # (n,) ascending
    vectors: Vectors  # (n, N_AXES)


def find_extractor(connection: sa.Connection, key: str | None) -> StoredExtractor | None:
    """The extractor with this key, or the last one with this name."""
    query = (
        sa.select(extractor.c.id, extractor.c.n_features)
        .where(sa.or_(extractor.c.key == key, extractor.c.name == key))
        .order_by((extractor.c.key == key).desc(), extractor.c.id.desc())
    )
    row = connection.execute(query).first()
    return None if row is None else StoredExtractor(id=row.id, n_features=row.n_features)


def register_extractor(connection: sa.Connection, key: str, n_features: int) -> int:
    """The number of the extractor with this key, which is stored if it is new."""
    query = sa.select(extractor.c.id, extractor.c.n_features).where(extractor.c.key == key)
    row = connection.execute(query).first()
    if row is None:
        name = key.rpartition("@")[0] or key
        values = {"key": key, "name": name, "n_features": n_features}
        return database.key_of(connection.execute(sa.insert(extractor).values(values)))
    if row.n_features != n_features:
        raise LibraryError(
            f"The extractor {key!r} gives {row.n_features} features per track, got {n_features}."
        )
    return int(row.id)


def ids_with_features(
    connection: sa.Connection, extractor_id: int, among: Ids | None = None
) -> Ids:
    """The tracks that have features of an extractor, (n,) ascending: all, or ``among`` some."""
    query = (
        sa.select(feature.c.track_id)
        .where(feature.c.extractor_id == extractor_id)
        .order_by(feature.c.track_id)
    )
    if among is not None and len(among) <= database.IDS_AT_ONCE:
        query = query.where(feature.c.track_id.in_(among.tolist()))
    return np.array(connection.execute(query).scalars().all(), np.int64)


def read_features(connection: sa.Connection, extractor_id: int, ids: Ids) -> dict[int, bytes]:
    """Track → its features, for those tracks that have them."""
    features = {}
    for batch in database.batches(ids.tolist(), database.IDS_AT_ONCE):
        query = sa.select(feature.c.track_id, feature.c.vector).where(
            feature.c.extractor_id == extractor_id, feature.c.track_id.in_(batch)
        )
        for track_id, vector in connection.execute(query):
            features[track_id] = vector
    return features


def write_features(connection: sa.Connection, extractor_id: int, ids: Ids, X: Floats) -> None:
    """Store features (n, n_features) of tracks (n,); their sound vectors are dropped."""
    for places in database.batches(range(len(ids))):
        batch = ids[places]
        rows = []
        for track_id, vector in zip(batch.tolist(), X[places], strict=True):
            rows.append(
                {
                    "extractor_id": extractor_id,
                    "track_id": track_id,
                    "vector": vector.astype("<f4").tobytes(),
                }
            )
        database.replace_rows(
            connection,
            feature,
            rows,
            feature.c.extractor_id == extractor_id,
            feature.c.track_id.in_(batch.tolist()),
        )
        drop_vectors(connection, extractor_id, batch)


def delete_features(connection: sa.Connection, track_id: int) -> None:
    """Delete the features and the sound vectors of a track, of all extractors."""
    connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))
    with_vectors = sa.select(sound_vector.c.extractor_id).distinct()
    for extractor_id in connection.scalars(with_vectors).all():
        drop_vectors(connection, extractor_id, np.array([track_id]))


def count_features(connection: sa.Connection, extractor_id: int) -> int:
    """How many tracks have features of an extractor."""
    query = sa.select(sa.func.count(feature.c.track_id))
    return int(connection.scalar(query.where(feature.c.extractor_id == extractor_id)) or 0)


def count_vectors(connection: sa.Connection, extractor_id: int) -> int:
    """How many tracks have sound vectors made from an extractor's features."""
    query = sa.select(sa.func.sum(sound_vector.c.n_vectors))
    return int(connection.scalar(query.where(sound_vector.c.extractor_id == extractor_id)) or 0)


def read_space(connection: sa.Connection, extractor_id: int) -> StoredSpace | None:
    """What an extractor's sound vectors were made with; None before the first were made."""
    query = sa.select(sound_space).where(sound_space.c.extractor_id == extractor_id)
    row = connection.execute(query).first()
    if row is None:
        return None
    return StoredSpace(n_tracks=row.n_tracks, arrays=load(row.arrays))


def replace_space(connection: sa.Connection, extractor_id: int, space: StoredSpace) -> None:
    """Store what sound vectors are made with from now on, and delete the old ones."""
    connection.execute(sa.delete(sound_vector).where(sound_vector.c.extractor_id == extractor_id))
    arrays = {name: np.ascontiguousarray(array) for name, array in space.arrays.items()}
    row = {"extractor_id": extractor_id, "n_tracks": space.n_tracks, "arrays": save(arrays)}
    database.replace_rows(
        connection, sound_space, [row], sound_space.c.extractor_id == extractor_id
    )


def read_vectors(connection: sa.Connection, extractor_id: int) -> StoredVectors:
    """The sound vectors of all tracks that have them."""
    query = (
        sa.select(sound_vector.c.block, sound_vector.c.vectors)
        .where(sound_vector.c.extractor_id == extractor_id)
        .order_by(sound_vector.c.block)
    )
    parts = []
    ids = [np.empty(0, np.int64)]
    for block, data in connection.execute(query):
        first = block * BLOCK
        ids.append(np.arange(first, first + len(data) // N_AXES))
        parts.append(data)
    all_ids = np.concatenate(ids)
    vectors = np.frombuffer(b"".join(parts), np.int8).reshape(-1, N_AXES)
    has_vector = vectors[:, 0] != _NO_VECTOR
    if has_vector.all():  # without copying them
        return StoredVectors(all_ids, vectors)
    return StoredVectors(all_ids[has_vector], vectors[has_vector])


def write_vectors(connection: sa.Connection, extractor_id: int, ids: Ids, vectors: Vectors) -> None:
    """Store the sound vectors (n, N_AXES) of tracks (n,), replacing the old ones."""
    blocks = ids // BLOCK
    for block in np.unique(blocks).tolist():
        in_block = blocks == block
        places = ids[in_block] % BLOCK
        old = _block_of_vectors(connection, extractor_id, block)
        n_places = max(len(old), int(places.max()) + 1)
        new = np.full((n_places, N_AXES), _NO_VECTOR, np.int8)
        new[: len(old)] = old
        new[places] = vectors[in_block]
        _replace_block_of_vectors(connection, extractor_id, block, new)


def drop_vectors(connection: sa.Connection, extractor_id: int, ids: Ids) -> None:
    """Delete the sound vectors of tracks (n,)."""
    blocks = ids // BLOCK
    for block in np.unique(blocks).tolist():
        old = _block_of_vectors(connection, extractor_id, block)
        places = ids[blocks == block] % BLOCK
        places = places[places < len(old)]
        if (old[places, 0] != _NO_VECTOR).any():
            new = old.copy()
            new[places] = _NO_VECTOR
            _replace_block_of_vectors(connection, extractor_id, block, new)


def _block_of_vectors(connection: sa.Connection, extractor_id: int, block: int) -> Vectors:
    """The vectors of a block up to its last track, (n, N_AXES)."""
    query = sa.select(sound_vector.c.vectors).where(
        sound_vector.c.extractor_id == extractor_id, sound_vector.c.block == block
    )
    data = connection.scalar(query) or b""
    return np.frombuffer(data, np.int8).reshape(-1, N_AXES)


def _replace_block_of_vectors(
    connection: sa.Connection, extractor_id: int, block: int, vectors: Vectors
) -> None:
    row = {
        "extractor_id": extractor_id,
        "block": block,
        "vectors": vectors.tobytes(),
        "n_vectors": int(np.count_nonzero(vectors[:, 0] != _NO_VECTOR)),
    }
    database.replace_rows(
        connection,
        sound_vector,
        [row],
        sound_vector.c.extractor_id == extractor_id,
        sound_vector.c.block == block,
    )
