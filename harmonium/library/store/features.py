"""Features of tracks, and the sound vectors that similarity compares.

Features are a row of float32 for each track and extractor. A sound vector has `N_AXES` whole
numbers from -127 to 127, one byte each. For it, each feature is standardised over the library and
clipped at two deviations, so that no odd feature decides alone. The `N_AXES` principal axes of that
are kept, not whitened: scaling them to equal variance made the neighbours worse (docs/library.md).
A track is then a vector of length 1, and two tracks are compared by their cosine.

The axes are fitted when a library is first indexed, and again when a tenth of the tracks is new or
has other features; in between, new tracks get vectors along the axes that are there. If a track's
features change, its vector is dropped, so that what is stored is always up to date. Vectors are
stored in blocks of `BLOCK` track numbers, each block up to its last track; a track without one has
`_NONE` in front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from safetensors.numpy import load, save

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.errors import LibraryError
from harmonium.library.store.database import batches, key_of, replace_rows
from harmonium.library.store.schema import (
    BLOCK,
    EXTRACTOR,
    extractor,
    feature,
    sound_space,
    sound_vector,
    track,
)

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress

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
    for rows in batches(range(len(ids))):
        some, vectors = ids[rows], matrix[rows].astype("<f4")
        old = (feature.c.extractor_id == number, feature.c.track_id.in_(some.tolist()))
        new = [
            {"extractor_id": number, "track_id": one, "vector": vector.tobytes()}
            for one, vector in zip(some.tolist(), vectors, strict=True)
        ]
        replace_rows(connection, feature, new, *old)
        write_vectors(connection, number, some)


def read_ids(connection: sa.Connection, number: int) -> Ids:
    """All tracks that have features of an extractor, (n,) ascending."""
    query = sa.select(feature.c.track_id).where(feature.c.extractor_id == number)
    found = connection.execute(query.order_by(feature.c.track_id)).scalars().all()
    return np.array(found, np.int64)


def forget(connection: sa.Connection, track_id: int) -> None:
    """Drop all features of a track: its sound has changed."""
    connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))
    for number in connection.scalars(sa.select(sound_vector.c.extractor_id).distinct()).all():
        write_vectors(connection, number, np.array([track_id]))


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
    """The tracks that have vectors of an extractor (n,), ascending, and these, (n, N_AXES)."""
    query = sa.select(sound_vector.c.block, sound_vector.c.vectors)
    query = query.where(sound_vector.c.extractor_id == number).order_by(sound_vector.c.block)
    found = [(row.block * BLOCK, row.vectors) for row in connection.execute(query)]
    vectors = np.frombuffer(b"".join(data for _, data in found), np.int8).reshape(-1, N_AXES)
    places = [np.arange(first, first + len(data) // N_AXES) for first, data in found]
    ids, have = np.concatenate([np.empty(0, np.int64), *places]), vectors[:, 0] != _NONE
    return (ids, vectors) if have.all() else (ids[have], vectors[have])


def write_vectors(
    connection: sa.Connection, number: int, ids: Ids, vectors: Vectors | None = None
) -> None:
    """Store the vectors (n, N_AXES) of tracks (n,), in place of what these had; None drops them."""
    blocks = ids // BLOCK
    for block in np.unique(blocks).tolist():
        here = blocks == block
        places = ids[here] % BLOCK
        same = (sound_vector.c.extractor_id == number, sound_vector.c.block == block)
        data = connection.scalar(sa.select(sound_vector.c.vectors).where(*same)) or b""
        old = np.frombuffer(data, np.int8).reshape(-1, N_AXES)
        if vectors is None and (old[places[places < len(old)], 0] == _NONE).all():
            continue
        whole = np.full((max(len(old), int(places.max()) + 1), N_AXES), _NONE, np.int8)
        whole[: len(old)] = old
        whole[places] = _NONE if vectors is None else vectors[here]
        values = {
            **{"extractor_id": number, "block": block, "vectors": whole.tobytes()},
            "n_vectors": int(np.count_nonzero(whole[:, 0] != _NONE)),
        }
        replace_rows(connection, sound_vector, [values], *same)


MAX_TRACKS = 10_000
"""Tracks that the space is made from; where there are more, a random choice of them."""
MAX_DEVIATIONS = 2.0
"""Where features are cut off, in deviations from their mean."""
MAX_GROWTH = 1.1
"""The factor by which a library may grow or shrink before its space is made again."""
ROUNDING = 1e-9
FULL = 127
"""The length of a vector."""
_PAGE = 4096  # tracks at a time


class SoundSpace(NamedTuple):
    """From features to vectors."""

    mean: Doubles
    """(n_features,)"""
    deviation: Doubles
    """(n_features,), infinite for a constant feature"""
    centre: Doubles
    """(n_features,) the mean of what is cut off at `MAX_DEVIATIONS`"""
    axes: Doubles
    """(n_features, at most N_AXES)"""

    @classmethod
    def fitted(cls, X: NDArray[np.float32]) -> Self:
        """The space of tracks with features (n, n_features)."""
        wide = X.astype(np.float64)
        mean, deviation = wide.mean(axis=0), wide.std(axis=0)
        deviation[deviation <= ROUNDING * np.abs(wide).max(axis=0)] = np.inf
        cut = np.clip((wide - mean) / deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        centre = cut.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov(cut.T, bias=True).reshape(len(mean), len(mean)))
        return cls(mean, deviation, centre, vectors[:, ::-1][:, :N_AXES])

    def vectors(self, X: NDArray[np.float32]) -> NDArray[np.int8]:
        """Tracks in the space, (n, N_AXES), of length `FULL` but for rounding."""
        cut = np.clip((X - self.mean) / self.deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        at = (cut - self.centre) @ self.axes
        length = np.maximum(np.linalg.norm(at, axis=1, keepdims=True), ROUNDING)
        padded = np.zeros((len(X), N_AXES), np.int8)
        padded[:, : at.shape[1]] = np.rint(FULL * at / length)
        return padded


def update_sound_vectors(library: Library, progress: Progress | None = None) -> None:
    """Give every track that has features its vector; nothing is done where all have theirs."""
    key = library.settings.get(EXTRACTOR)
    if key is None:
        return
    with library.connect() as connection:
        number, _ = find_extractor(connection, key)
        counts = (
            sa.select(sa.func.count(feature.c.track_id)).where(feature.c.extractor_id == number),
            sa.select(sa.func.sum(sound_vector.c.n_vectors)).where(
                sound_vector.c.extractor_id == number
            ),
        )
        n_tracks, n_known = (int(connection.scalar(query) or 0) for query in counts)
        fitted_on, space = _load(connection, number)
    fits = n_known * MAX_GROWTH >= n_tracks
    fits = fits and fitted_on / MAX_GROWTH <= n_tracks <= fitted_on * MAX_GROWTH
    if not n_tracks or (fits and n_known == n_tracks):
        return
    with library.begin() as connection:
        number, _ = find_extractor(connection, key)
        ids = read_ids(connection, number)
        if fits and space is not None:
            ids = np.setdiff1d(ids, read_vectors(connection, number)[0])
        else:
            chosen = ids
            if len(ids) > MAX_TRACKS:
                rng = np.random.default_rng(0)
                chosen = np.sort(rng.choice(ids, MAX_TRACKS, replace=False))
            space = SoundSpace.fitted(read(connection, chosen, key)[1])
            # The vectors of the former space are void.
            replace_rows(connection, sound_vector, [], sound_vector.c.extractor_id == number)
            arrays = {name: np.ascontiguousarray(one) for name, one in space._asdict().items()}
            values = {"extractor_id": number, "n_tracks": len(ids), "arrays": save(arrays)}
            replace_rows(connection, sound_space, [values], sound_space.c.extractor_id == number)
        for start in range(0, len(ids), _PAGE):
            some, X = read(connection, ids[start : start + _PAGE], key)
            write_vectors(connection, number, some, space.vectors(X))
            if progress:
                progress(start + len(some), len(ids))


class SoundVectors(NamedTuple):
    """How the tracks of a library sound."""

    ids: Ids
    """(n,) ascending, of the tracks that have vectors"""
    vectors: NDArray[np.int8]
    """(n, N_AXES), of length `FULL`"""

    @classmethod
    def of(cls, library: Library) -> Self:
        """Those of all tracks that have any."""
        key = library.settings.get(EXTRACTOR)
        with library.connect() as connection:
            number = 0 if key is None else find_extractor(connection, key)[0]
            return cls(*read_vectors(connection, number))

    def rows(self, ids: Ids) -> NDArray[np.intp]:
        """Which of ``ids`` have vectors."""
        return np.flatnonzero(np.isin(ids, self.ids))

    def at(self, ids: Ids) -> Doubles:
        """The vectors of tracks that have them, of length 1, (n, N_AXES)."""
        return self.vectors[np.searchsorted(self.ids, ids)] / float(FULL)

    def cosines(self, track_id: int) -> NDArray[np.float32]:
        """The cosine of each track with one of them, (n,)."""
        row = int(np.searchsorted(self.ids, track_id))
        if row == len(self.ids) or self.ids[row] != track_id:
            raise LibraryError(
                f"Track #{track_id} has no features to compare it by. `harmonium index` computes "
                "them."
            )
        own = self.vectors[row].astype(np.float32)
        own /= max(float(np.linalg.norm(own)), 1.0)
        found = np.empty(len(self.ids), np.float32)
        for start in range(0, len(self.ids), _PAGE):  # all as floats would not fit the cache
            some = self.vectors[start : start + _PAGE].astype(np.float32)
            length = np.sqrt(np.einsum("ij,ij->i", some, some))
            found[start : start + _PAGE] = some @ own / np.maximum(length, 1.0)
        return found


def current_space(library: Library) -> SoundSpace | None:
    """The space that is in use; None where there is none yet."""
    key = library.settings.get(EXTRACTOR)
    with library.connect() as connection:
        number = 0 if key is None else find_extractor(connection, key)[0]
        return _load(connection, number)[1]


def _load(connection: sa.Connection, number: int) -> tuple[int, SoundSpace | None]:
    """How many tracks there were when the space was made, and the space; 0 where there is none."""
    query = sa.select(sound_space).where(sound_space.c.extractor_id == number)
    row = connection.execute(query).first()
    return (0, None) if row is None else (row.n_tracks, SoundSpace(**load(row.arrays)))
