"""Reading what there is to learn from: features, labels and folds of the tagged tracks.

Those of many tracks go into files, block by block.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.tag_names import artist_key
from harmonium.errors import DataError
from harmonium.library.learning.beside_shipped import ShippedSays
from harmonium.library.learning.fitting import N_FOLDS
from harmonium.library.learning.training_files import FoldTable, TrainingFiles, row_blocks
from harmonium.library.learning.training_set import TrainingSet
from harmonium.library.library import Library
from harmonium.library.store.opinions import label_matrix
from harmonium.library.store.tracks import Track


class Source(NamedTuple):
    """Where the tables of a training set come from."""

    library: Library
    extractor: str
    n_features: int
    judged: pl.DataFrame
    answered: NDArray[np.int64]
    tags: tuple[str, ...]
    folder: Path

    def features(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, n_features)"""
        found, X = self.library.tracks.features(ids, extractor=self.extractor)
        if len(found) != len(ids):
            raise DataError(
                "Features were taken out of the library while it was read. Train again."
            )
        return X

    def labels(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, n_tags) of tracks with ascending ids."""
        of_tracks = self.judged["track_id"].to_numpy()
        first, last = np.searchsorted(of_tracks, [ids[0], ids[-1] + 1])
        votes = self.judged.slice(int(first), int(last - first))
        return label_matrix(votes, ids, self.tags, only_answered=self.answered)


class TrainingTables(NamedTuple):
    """A training set that was read."""

    order: NDArray[np.intp]
    """(n,) which of the tracks each row is."""
    groups: NDArray[np.int64]
    """(n,) numbers of what no two folds share,"""
    grouped_by: str
    """and what that is."""
    examples: TrainingSet
    says: ShippedSays | None


def in_memory(source: Source, ids: NDArray[np.int64], seed: int) -> TrainingTables:
    """The training set of tracks with these ids, ascending."""
    from harmonium.evaluation import grouped_folds

    X, Y = source.features(ids), source.labels(ids)
    names, grouped_by = group_tracks(source.library.tracks.many(ids))
    folds = grouped_folds(names, Y, n_folds=N_FOLDS, seed=seed)
    says = ShippedSays.of(source.extractor, X)
    more_inputs = None if says is None else says.inputs
    examples = TrainingSet(X, Y, folds, source.tags, None, more_inputs)
    return TrainingTables(np.arange(len(ids)), _numbers(names), grouped_by, examples, says)


def in_files(source: Source, ids: NDArray[np.int64], seed: int) -> TrainingTables:
    """The same for any number of tracks: in the order of folds, never all of it in memory."""
    names, grouped_by = group_tracks(_Tracks(source.library, ids))
    groups = _numbers(names)
    rng = np.random.default_rng(seed)
    folds = _even_folds(groups, rng)
    order = np.lexsort((rng.random(len(ids)), folds))
    place, folds = np.argsort(order), folds[order]
    says = ShippedSays.of(source.extractor, np.empty((0, source.n_features), np.float32))
    n_more = 0 if says is None else len(says.model.vocabulary)
    X = FoldTable(source.folder / "X", folds, source.n_features + n_more, source.n_features)
    Y = FoldTable(source.folder / "Y", folds, len(source.tags))
    files = TrainingFiles(source.folder, X, Y)
    if says is not None:
        says = replace(says, probabilities=files.new_table(n_more))
    for some in row_blocks(len(ids)):
        features = source.features(ids[some])
        if says is not None:
            said = ShippedSays.of(source.extractor, features)
            assert said is not None
            says.probabilities[place[some]] = said.probabilities
            features = np.concatenate([features, said.inputs], axis=1)
        X.put(place[some], features)
        Y.put(place[some], source.labels(ids[some]))
    more = None if says is None else X.all(whole=True).open()[:, source.n_features :]
    examples = TrainingSet(X.values, Y.values, folds, source.tags, None, more, files)
    return TrainingTables(order, groups[order], grouped_by, examples, says)


class _Tracks:
    """Tracks of a library, read some at a time, as often as they are asked for."""

    def __init__(self, library: Library, ids: NDArray[np.int64]) -> None:
        self.library, self.ids = library, ids

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Track]:
        for some in row_blocks(len(self.ids)):
            yield from self.library.tracks.many(self.ids[some])


def _numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """(n,) a number for each name, the same for the same."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def _even_folds(groups: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each track, (n,): groups whole, by chance, each to the fold with fewest tracks.

    Of so many tracks, every fold then has its share of each tag.
    """
    sizes, fold_of, totals = (
        np.bincount(groups),
        np.empty(groups.max() + 1, np.int64),
        [0] * N_FOLDS,
    )
    for group in rng.permutation(len(sizes)).tolist():
        fold = totals.index(min(totals))
        fold_of[group] = fold
        totals[fold] += int(sizes[group])
    return fold_of[groups]


def group_tracks(tracks: "Sequence[Track] | _Tracks") -> tuple[list[str], str]:
    """What no two folds share: the artist, else the album, else the title; and which it is.

    Tracks of one artist sound alike, and a model that has heard one has half heard the others. If
    artists are too few or one has too many tracks to make folds of, albums have to do.
    """
    for by in ("artist", "album", "title"):
        names = [_group(track, by) for track in tracks]
        sizes = Counter(names)
        if len(sizes) >= 2 * N_FOLDS and max(sizes.values()) <= len(tracks) / N_FOLDS:
            known = sum(getattr(track, by) is not None for track in tracks)
            return names, by if 2 * known > len(tracks) else "track"
    return [str(track.id) for track in tracks], "track"


def _group(track: Track, by: str) -> str:
    value = getattr(track, by)
    if not value:
        return f"#{track.id}"
    artist = artist_key(track.artist or "")
    return f"artist {artist}" if by == "artist" else f"{by} {artist}\n{value.strip().casefold()}"
