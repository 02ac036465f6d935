"""Features of tracks in the database: a row of bytes for each track and extractor."""

from itertools import repeat
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.errors import LibraryError
from harmonium.library.store import sound_vectors
from harmonium.library.store.bulk import batches, insert_rows
from harmonium.library.store.schema import extractor, feature, key_of, track

TrackFeatures = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Numbers of tracks (n,) and their features (n, n_features)."""


def read(connection: sa.Connection, ids: NDArray[np.int64], key: str) -> TrackFeatures:
    """The features of those of the tracks that have them, in the order given."""
    number, n_features = _extractor(connection, key)
    vectors: dict[int, bytes] = {}
    for some in batches(ids.tolist()):
        vectors.update(_vectors(connection, number, feature.c.track_id.in_(some)))
    return _features([(i, vectors[i]) for i in ids.tolist() if i in vectors], n_features)


def read_heads(connection: sa.Connection, ids: NDArray[np.int64], key: str) -> TrackFeatures:
    """The heads' tag probabilities of those of the tracks that have them, in the order given."""
    number, _ = _extractor(connection, key)
    found: dict[int, bytes] = {}
    for some in batches(ids.tolist()):
        which = sa.and_(feature.c.track_id.in_(some), feature.c.heads.is_not(None))
        found.update(_vectors(connection, number, which, feature.c.heads))
    n_heads = len(next(iter(found.values()), b"")) // 4
    return _features([(i, found[i]) for i in ids.tolist() if i in found], n_heads)


def read_range(connection: sa.Connection, start: int, end: int, key: str) -> TrackFeatures:
    """The features of the present tracks numbered from `start` to before `end`."""
    number, n_features = _extractor(connection, key)
    between = feature.c.track_id.between(start, end - 1)
    present = sa.exists().where(track.c.id == feature.c.track_id, track.c.state == "present")
    return _features(_vectors(connection, number, sa.and_(between, present)), n_features)


def without(connection: sa.Connection, key: str) -> set[int]:
    """The present tracks that have no features of this extractor."""
    number, _ = _extractor(connection, key)
    have = sa.exists().where(feature.c.track_id == track.c.id, feature.c.extractor_id == number)
    query = sa.select(track.c.id).where(track.c.state == "present", ~have)
    return set(connection.execute(query).scalars())


def write(
    connection: sa.Connection,
    ids: NDArray[np.int64],
    matrix: NDArray[np.float32],
    key: str,
    heads: NDArray[np.float32] | None = None,
) -> None:
    """Store the rows (n, n_features) of tracks (n,), in place of what these had.

    The heads, (n, n_heads), are the tag probabilities that the extractor gives besides, if any.
    """
    for name, rows in (("matrix", matrix), ("heads", heads)):
        if rows is not None and (rows.ndim != 2 or len(rows) != len(ids)):
            raise LibraryError(
                f"'{name}' must have a row for each of the {len(ids)} tracks, got {rows.shape}."
            )
    number = _registered(connection, key, matrix.shape[1])
    vectors = (row.tobytes() for row in matrix.astype("<f4"))
    given = repeat(None) if heads is None else (row.tobytes() for row in heads.astype("<f4"))
    for some in batches(zip(ids.tolist(), vectors, given, strict=False)):
        old = feature.c.track_id.in_([one[0] for one in some])
        connection.execute(sa.delete(feature).where(feature.c.extractor_id == number, old))
        insert_rows(connection, feature, [(number, *one) for one in some])
        sound_vectors.forget(connection, [one[0] for one in some], number)


def ids_and_number(connection: sa.Connection, key: str) -> tuple[NDArray[np.int64], int]:
    """All tracks that have features of an extractor, (n,) ascending; and its number, or 0."""
    number, _ = _extractor(connection, key)
    query = sa.select(feature.c.track_id).where(feature.c.extractor_id == number)
    found = connection.execute(query.order_by(feature.c.track_id)).scalars().all()
    return np.array(found, np.int64), number


def width(connection: sa.Connection, key: str) -> int:
    """How many features an extractor gives; 0 where it is not known."""
    return _extractor(connection, key)[1]


def count_and_number(connection: sa.Connection, key: str) -> tuple[int, int]:
    """How many tracks have features of an extractor; and its number, or 0."""
    number, _ = _extractor(connection, key)
    counted = sa.select(sa.func.count(feature.c.track_id)).where(feature.c.extractor_id == number)
    return int(connection.scalar(counted) or 0), number


def forget(connection: sa.Connection, track_id: int) -> None:
    """Drop all features of a track: its sound has changed."""
    connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))
    sound_vectors.forget(connection, [track_id])


def _vectors(
    connection: sa.Connection, number: int, which: Any, column: Any = feature.c.vector
) -> list[tuple[int, bytes]]:
    query = (
        sa.select(feature.c.track_id, column)
        .where(feature.c.extractor_id == number, which)
        .order_by(feature.c.track_id)
    )
    return [(track_id, data) for track_id, data in connection.execute(query)]


def _extractor(connection: sa.Connection, key: str) -> tuple[int, int]:
    """(number, n_features) of an extractor by its key, or of the last one by its name; else 0."""
    query = (
        sa.select(extractor.c.id, extractor.c.n_features)
        .where(sa.or_(extractor.c.key == key, extractor.c.name == key))
        .order_by((extractor.c.key == key).desc(), extractor.c.id.desc())
    )
    row = connection.execute(query).first()
    return (0, 0) if row is None else (row[0], row[1])


def _registered(connection: sa.Connection, key: str, n_features: int) -> int:
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
