"""How the tracks of a library sound, as vectors that can be compared.

Two tracks are compared by the cosine of their sound vectors. The features are standardised over the
library, clipped at two deviations, so that no odd feature decides alone, and projected on their
`N_AXES` principal axes, which are not whitened (docs/library.md).

The axes are fitted when a library is first indexed, and again when a tenth of the tracks is new or
has new features; new tracks get vectors along the existing axes. If a track's features change, its
vector is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from harmonium.arrays import Doubles, Floats, Ids, Places
from harmonium.errors import LibraryError, LibraryReadOnlyError, LibraryUnavailableError
from harmonium.library.store.features import (
    N_AXES,
    StoredSpace,
    Vectors,
    count_features,
    count_vectors,
    find_extractor,
    ids_with_features,
    read_space,
    read_vectors,
    replace_space,
    write_vectors,
)
from harmonium.library.store.schema import EXTRACTOR

if TYPE_CHECKING:
    import sqlalchemy as sa

    from harmonium.library.library import Library, Progress

MAX_TRACKS = 10_000  # tracks that the space is fitted on; if there are more, a random sample
MAX_DEVIATIONS = 2.0  # where features are clipped, in deviations from their mean
MAX_GROWTH = 1.1  # how much a library may grow or shrink before its space is fitted again
ROUNDING = 1e-9
FULL = 127  # the length of a vector
_PAGE = 4096  # tracks at a time


class SoundSpace(NamedTuple):
    """From features to vectors."""

    mean: Doubles  # (n_features,)
    deviation: Doubles  # (n_features,), infinite for a constant feature
    centre: Doubles  # (n_features,) the mean after clipping at `MAX_DEVIATIONS`
    axes: Doubles  # (n_features, at most N_AXES)

    @classmethod
    def fitted(cls, X: Floats) -> Self:
        """The space of tracks with features (n, n_features)."""
        wide = X.astype(np.float64)
        mean = wide.mean(axis=0)
        deviation = wide.std(axis=0)
        deviation[deviation <= ROUNDING * np.abs(wide).max(axis=0)] = np.inf
        clipped = np.clip((wide - mean) / deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        covariance = np.cov(clipped.T, bias=True).reshape(len(mean), len(mean))
        _, eigenvectors = np.linalg.eigh(covariance)  # the smallest eigenvalue comes first
        return cls(
            mean=mean,
            deviation=deviation,
            centre=clipped.mean(axis=0),
            axes=eigenvectors[:, ::-1][:, :N_AXES],
        )

    def vectors(self, X: Floats) -> Vectors:
        """Tracks in the space, (n, N_AXES), of length `FULL` up to rounding."""
        clipped = np.clip((X - self.mean) / self.deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        projected = (clipped - self.centre) @ self.axes
        length = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), ROUNDING)
        vectors = np.zeros((len(X), N_AXES), np.int8)
        vectors[:, : projected.shape[1]] = np.rint(FULL * projected / length)
        return vectors


class SoundVectors(NamedTuple):
    """How the tracks of a library sound."""

    ids: Ids  # (n,) ascending, of the tracks that have vectors
    vectors: Vectors  # (n, N_AXES), of length `FULL`

    @classmethod
    def of(cls, library: Library) -> Self:
        """The vectors of all tracks that have them."""
        key = library.settings.get(EXTRACTOR)
        with library.connect() as connection:
            extractor = find_extractor(connection, key)
            if extractor is None:
                return cls(ids=np.empty(0, np.int64), vectors=np.empty((0, N_AXES), np.int8))
            stored = read_vectors(connection, extractor.id)
            return cls(ids=stored.ids, vectors=stored.vectors)

    def rows(self, ids: Ids) -> Places:
        """Which of ``ids`` have vectors."""
        return np.flatnonzero(np.isin(ids, self.ids))

    def at(self, ids: Ids) -> Doubles:
        """The vectors of these tracks, which must have them, scaled to length 1, (n, N_AXES)."""
        return self.vectors[np.searchsorted(self.ids, ids)] / float(FULL)

    def cosines(self, track_id: int) -> Floats:
        """The cosine of each track with one track, (n,)."""
        row = int(np.searchsorted(self.ids, track_id))
        if row == len(self.ids) or self.ids[row] != track_id:
            raise LibraryError(
                f"Track #{track_id} has no features to compare it by. `harmonium index` computes "
                "them."
            )
        own = self.vectors[row].astype(np.float32)
        own /= max(float(np.linalg.norm(own)), 1.0)
        cosines = np.empty(len(self.ids), np.float32)
        for start in range(0, len(self.ids), _PAGE):  # all as floats would not fit the cache
            page = self.vectors[start : start + _PAGE].astype(np.float32)
            length = np.sqrt(np.einsum("ij,ij->i", page, page))
            cosines[start : start + _PAGE] = page @ own / np.maximum(length, 1.0)
        return cosines


def current_space(library: Library) -> SoundSpace | None:
    """The space in use; None before it was first fitted."""
    key = library.settings.get(EXTRACTOR)
    with library.connect() as connection:
        extractor = find_extractor(connection, key)
        stored = None if extractor is None else read_space(connection, extractor.id)
    return None if stored is None else SoundSpace(**stored.arrays)


class _VectorCounts(NamedTuple):
    """How many of the tracks with features have vectors, and what these were made with."""

    n_features: int
    n_vectors: int
    space: StoredSpace | None

    @classmethod
    def read(cls, connection: sa.Connection, extractor_id: int) -> Self:
        return cls(
            n_features=count_features(connection, extractor_id),
            n_vectors=count_vectors(connection, extractor_id),
            space=read_space(connection, extractor_id),
        )

    @property
    def usable_space(self) -> SoundSpace | None:
        """The space, unless too many tracks are new, gone, or have new features."""
        if self.space is None or self.n_vectors * MAX_GROWTH < self.n_features:
            return None
        n_then = self.space.n_tracks
        if not n_then / MAX_GROWTH <= self.n_features <= n_then * MAX_GROWTH:
            return None
        return SoundSpace(**self.space.arrays)

    @property
    def is_complete(self) -> bool:
        if self.n_features == 0:
            return True
        return self.n_vectors == self.n_features and self.usable_space is not None


def update_sound_vectors(library: Library, progress: Progress | None = None) -> None:
    """Compute the missing vectors of tracks with features."""
    key = library.settings.get(EXTRACTOR)
    if key is None:
        return
    with library.connect() as connection:
        extractor = find_extractor(connection, key)
        if extractor is None or _VectorCounts.read(connection, extractor.id).is_complete:
            return
    with library.begin() as connection:
        ids = ids_with_features(connection, extractor.id)
        space = _VectorCounts.read(connection, extractor.id).usable_space
        if space is None:
            space = _fitted_on_sample(library, ids, key)
            new = StoredSpace(n_tracks=len(ids), arrays=space._asdict())
            replace_space(connection, extractor.id, new)
        else:
            ids = np.setdiff1d(ids, read_vectors(connection, extractor.id).ids)
        for start in range(0, len(ids), _PAGE):
            page, X = library.tracks.features(ids[start : start + _PAGE], extractor=key)
            write_vectors(connection, extractor.id, page, space.vectors(X))
            if progress:
                progress(start + len(page), len(ids))


def try_to_update_sound_vectors(library: Library, progress: Progress | None = None) -> None:
    """Compute missing vectors, for a search that can also do with those that there are.

    The library may be on a full or read-only disk, or another program may be writing to it.
    """
    try:
        update_sound_vectors(library, progress)
    except (LibraryUnavailableError, LibraryReadOnlyError):
        if not len(SoundVectors.of(library).ids):
            raise


def _fitted_on_sample(library: Library, ids: Ids, key: str) -> SoundSpace:
    """The space of at most `MAX_TRACKS` of these tracks."""
    n_chosen = min(len(ids), MAX_TRACKS)
    chosen = np.sort(np.random.default_rng(0).choice(ids, n_chosen, replace=False))
    _, X = library.tracks.features(chosen, extractor=key)
    return SoundSpace.fitted(X)
