"""Features of tracks in the database: a row of bytes for each track and extractor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.collection.store.bulk import insert_rows
from harmonium.collection.store.schema import extractor, feature, key_of, track
from harmonium.errors import LibraryError

TrackFeatures = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Numbers of tracks (n,) and their features (n, n_features)."""
_PAGE = 1000


def read(connection: sa.Connection, ids: NDArray[np.int64], key: str) -> TrackFeatures:
    """The features of those of the tracks that have them, in the order given."""
    known = _extractor(connection, key)
    if known is None:
        return _nothing()
    number, n_features = known
    vectors: dict[int, bytes] = {}
    for start in range(0, len(ids), _PAGE):
        some = feature.c.track_id.in_(ids[start : start + _PAGE].tolist())
        vectors.update(_pairs(connection, number, some))
    have = np.array([i for i in ids.tolist() if i in vectors], np.int64)
    return have, _matrix([vectors[i] for i in have.tolist()], n_features)


def read_range(connection: sa.Connection, start: int, end: int, key: str) -> TrackFeatures:
    """The features of the present tracks numbered from `start` to before `end`."""
    known = _extractor(connection, key)
    if known is None:
        return _nothing()
    number, n_features = known
    between = sa.and_(feature.c.track_id >= start, feature.c.track_id < end)
    present = sa.exists().where(track.c.id == feature.c.track_id, track.c.state == "present")
    pairs = _pairs(connection, number, sa.and_(between, present))
    ids = np.array([i for i, _ in pairs], np.int64)
    return ids, _matrix([data for _, data in pairs], n_features)


def without(connection: sa.Connection, key: str) -> set[int]:
    """The present tracks that have no features of this extractor."""
    known = _extractor(connection, key)
    query = sa.select(track.c.id).where(track.c.state == "present")
    if known is not None:
        have = sa.exists().where(
            feature.c.track_id == track.c.id, feature.c.extractor_id == known[0]
        )
        query = query.where(~have)
    return set(connection.execute(query).scalars())


def write(
    connection: sa.Connection, ids: NDArray[np.int64], matrix: NDArray[np.float32], key: str
) -> None:
    """Store the rows (n, n_features) of tracks (n,), in place of what these had."""
    if matrix.ndim != 2 or len(matrix) != len(ids):
        raise LibraryError(
            f"'matrix' must have a row for each of the {len(ids)} tracks, got {matrix.shape}."
        )
    number = _registered(connection, key, matrix.shape[1])
    rows = np.ascontiguousarray(matrix, "<f4")
    for start in range(0, len(ids), _PAGE):
        some = ids[start : start + _PAGE].tolist()
        old = feature.c.track_id.in_(some)
        connection.execute(sa.delete(feature).where(feature.c.extractor_id == number, old))
        data = (row.tobytes() for row in rows[start : start + _PAGE])
        values = [(number, i, vector) for i, vector in zip(some, data, strict=True)]
        insert_rows(connection, feature, values)


def forget(connection: sa.Connection, track_id: int) -> None:
    """Drop all features of a track: its sound is another now."""
    connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))


def _pairs(connection: sa.Connection, number: int, which: Any) -> Sequence[tuple[int, bytes]]:
    query = (
        sa.select(feature.c.track_id, feature.c.vector)
        .where(feature.c.extractor_id == number, which)
        .order_by(feature.c.track_id)
    )
    return [(number, data) for number, data in connection.execute(query)]


def _extractor(connection: sa.Connection, key: str) -> tuple[int, int] | None:
    """The number of an extractor by its key, or of the last one by its name; and its features."""
    query = (
        sa.select(extractor.c.id, extractor.c.n_features)
        .where(sa.or_(extractor.c.key == key, extractor.c.name == key))
        .order_by((extractor.c.key == key).desc(), extractor.c.id.desc())
    )
    row = connection.execute(query).first()
    return None if row is None else (row[0], row[1])


def _registered(connection: sa.Connection, key: str, n_features: int) -> int:
    query = sa.select(extractor.c.id, extractor.c.n_features).where(extractor.c.key == key)
    row = connection.execute(query).first()
    if row is None:
        name = key.rpartition("@")[0] or key
        values = {"key": key, "name": name, "n_features": n_features}
        added = connection.execute(sa.insert(extractor).values(values))
        return key_of(added)
    if row[1] != n_features:
        raise LibraryError(
            f"The extractor {key!r} gives {row[1]} features a track, got {n_features}."
        )
    return int(row[0])


def _matrix(rows: list[bytes], n_features: int) -> NDArray[np.float32]:
    data = np.frombuffer(b"".join(rows), "<f4").astype(np.float32)
    return data.reshape(len(rows), n_features)


def _nothing() -> TrackFeatures:
    return np.empty(0, np.int64), np.empty((0, 0), np.float32)
