"""How tracks sound, in few numbers: what likeness by sound compares.

Each feature is taken less its mean over the library, in units of its deviation, and cut off at two
deviations, so that no odd feature decides alone. Of that, the `N_AXES` principal axes are kept, not
whitened: scaling them to equal variance made the neighbours worse (docs/library.md). A track is
then a vector of length 1, and two tracks are alike by their cosine.

The space is made when a library is first indexed, and again when a tenth of the tracks is new or
has other features; in between, tracks are brought into the space that is there.
"""

from typing import NamedTuple, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Ids
from harmonium.errors import LibraryError
from harmonium.library.library import Library, Progress
from harmonium.library.store import features
from harmonium.library.store.features import N_AXES
from harmonium.library.store.schema import EXTRACTOR, sound_space

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


def bring_up_to_date(library: Library, progress: Progress | None = None) -> None:
    """Give every track that has features its vector; nothing is done where all have theirs."""
    key = library.settings.get(EXTRACTOR)
    if key is None:
        return
    with library.connect() as connection:
        number, _ = features.find_extractor(connection, key)
        count = features.count(connection, number)
        fitted_on = _fitted_on(connection, number)
        n_known = features.count_vectors(connection, number)
    fits = n_known * MAX_GROWTH >= count
    fits = fits and fitted_on / MAX_GROWTH <= count <= fitted_on * MAX_GROWTH
    if not count or (fits and n_known == count):
        return
    with library.begin() as connection:
        number, _ = features.find_extractor(connection, key)
        ids = features.read_ids(connection, number)
        if fits:
            space = _load(connection, number)
            known, vectors = features.read_vectors(connection, number)
            ids = np.setdiff1d(ids, known[features.have_vectors(vectors)])
        else:
            space = SoundSpace.fitted(features.read(connection, _some(ids), key)[1])
            _keep(connection, number, space, len(ids))
        for start in range(0, len(ids), _PAGE):
            some, X = features.read(connection, ids[start : start + _PAGE], key)
            features.write_vectors(connection, number, some, space.vectors(X))
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
            number = 0 if key is None else features.find_extractor(connection, key)[0]
            ids, vectors = features.read_vectors(connection, number)
        have = features.have_vectors(vectors)
        return cls(ids, vectors) if have.all() else cls(ids[have], vectors[have])

    def rows(self, ids: Ids) -> NDArray[np.intp]:
        """Which of ``ids`` have vectors."""
        if not len(self.ids):
            return np.empty(0, np.intp)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.flatnonzero(self.ids[at] == ids)

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
        number = 0 if key is None else features.find_extractor(connection, key)[0]
        return _load(connection, number) if _fitted_on(connection, number) else None


def _some(ids: Ids) -> Ids:
    if len(ids) <= MAX_TRACKS:
        return ids
    return np.sort(np.random.default_rng(0).choice(ids, MAX_TRACKS, replace=False))


def _fitted_on(connection: sa.Connection, number: int) -> int:
    """How many tracks there were when the space was made; 0 where there is none."""
    query = sa.select(sound_space.c.n_tracks).where(sound_space.c.extractor_id == number)
    return connection.scalar(query) or 0


def _load(connection: sa.Connection, number: int) -> SoundSpace:
    from safetensors.numpy import load

    query = sa.select(sound_space.c.arrays).where(sound_space.c.extractor_id == number)
    return SoundSpace(**load(connection.execute(query).scalar_one()))


def _keep(connection: sa.Connection, number: int, space: SoundSpace, n_tracks: int) -> None:
    """Keep a new space; the vectors of the former are void."""
    from safetensors.numpy import save

    features.forget_all_vectors(connection, number)
    connection.execute(sa.delete(sound_space).where(sound_space.c.extractor_id == number))
    arrays = save({name: np.ascontiguousarray(one) for name, one in space._asdict().items()})
    values = {"extractor_id": number, "n_tracks": n_tracks, "arrays": arrays}
    connection.execute(sa.insert(sound_space).values(values))
