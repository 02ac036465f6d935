"""Training data: the features, labels and groups of tagged tracks.

Features that do not fit in memory are in a temporary file.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Places
from harmonium.data.artists import artist_key
from harmonium.errors import DataError
from harmonium.library.learning.labels import TaggedTracks, row_blocks
from harmonium.library.library import Library
from harmonium.library.model.builtin import builtin_extractor, builtin_model
from harmonium.library.model.odds import log_odds
from harmonium.library.model.tagger import Tagger
from harmonium.logistic import sigmoid

N_FOLDS = 5  # a model's members, each with its own held-out fold
MAX_NUMBERS = 2**24  # bytes of a table in memory at a time, when tags are handled one by one


class Hyperparameters(NamedTuple):
    """Settings to try."""

    learning_rate: float
    l2: float
    smoothed: bool = False  # whether to learn from smoothed labels
    more_inputs: bool = False  # whether the built-in model's log-odds are inputs, too
    linear: bool = False  # whether it is a logistic regression, which has no learning rate


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The tracks to learn from."""

    X: Floats | Path
    """(n, D + E) features, and then the built-in model's log-odds, if it takes these features; or
    their .npy file, which is opened where it is needed."""
    Y: Floats  # (n, C) labels: 0, 1, NaN
    groups: Ids  # (n,) the group of each track; no two folds share a group
    tags: tuple[str, ...]  # the C tags
    n_builtin: int = 0  # E, the tags of the built-in model
    smoothed: Floats | None = None  # (n, C) smoothed labels
    grouped_by: str = "track"  # what the groups are: artist, album, title or track

    def __len__(self) -> int:
        return len(self.Y)

    def rows(self, rows: Places) -> "TrainingSet":
        """A part of the tracks, in memory."""
        return replace(
            self,
            X=np.array(opened(self.X)[rows]),
            Y=self.Y[rows],
            groups=self.groups[rows],
            smoothed=None if self.smoothed is None else self.smoothed[rows],
        )

    def inputs(self, hyperparameters: Hyperparameters) -> Floats:
        """What to learn from, (n, D) or (n, D + E)."""
        X = opened(self.X)
        return X if hyperparameters.more_inputs else X[:, : X.shape[1] - self.n_builtin]

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y

    def builtin(self, place: int) -> Floats:
        """The built-in model's probabilities of one of its tags, (n,)."""
        X = opened(self.X)
        return sigmoid(X[:, X.shape[1] - self.n_builtin + place])


def opened(table: Floats | Path) -> Floats:
    """The table as an array; raises FileNotFoundError if its file is not visible here."""
    return np.load(table, mmap_mode="r") if isinstance(table, Path) else table


def new_table(path: Path, n: int, width: int) -> Floats:
    """An empty table in a file, if there is room for it."""
    needed = 4 * n * width
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise DataError(
            f"Learning from {n:,} tracks needs {needed / 1e9:.1f} GB in {path.parent}, where "
            f"{free / 1e9:.1f} GB are free. Free some space, or set TMPDIR to another folder."
        )
    return open_memmap(path, "w+", np.float32, (n, width))


def read_training_set(
    library: Library, tracks: TaggedTracks, folder: Path | None = None
) -> TrainingSet:
    """The training set of tagged tracks.

    ``folder`` is where features go that do not fit in memory; None if they fit.
    """
    ids = tracks.ids
    groups, grouped_by = _read_groups(library, ids)
    tagger = Tagger(builtin_model()) if tracks.extractor == builtin_extractor() else None
    n_builtin = 0 if tagger is None else len(tagger.tags)
    n_features = library.tracks.features(ids[:1], extractor=tracks.extractor)[1].shape[1]
    shape = (len(ids), n_features + n_builtin)
    file = None if folder is None else folder / "X.npy"
    table = np.empty(shape, np.float32) if file is None else new_table(file, *shape)
    Y = np.empty((len(ids), len(tracks.tags)), np.float32)
    for block in row_blocks(len(ids)):
        present, X = library.tracks.features(ids[block], extractor=tracks.extractor)
        if len(present) != len(ids[block]):
            raise DataError("Features were removed from the library during training. Train again.")
        table[block, :n_features] = X
        if tagger is not None:
            table[block, n_features:] = log_odds(tagger.probabilities(X, music_only=False))
        Y[block] = tracks.labels(ids[block])
    return TrainingSet(
        X=table if file is None else file,
        Y=Y,
        groups=groups,
        tags=tracks.tags,
        n_builtin=n_builtin,
        grouped_by=grouped_by,
    )


class TrackNames(NamedTuple):
    """What tracks are grouped by."""

    id: int
    artist: str | None
    album: str | None
    title: str | None


def _read_groups(library: Library, ids: Ids) -> tuple[Ids, str]:
    """The number of each track's group, (n,); and what the groups are."""
    tracks = []
    for block in row_blocks(len(ids)):
        for track in library.tracks.many(ids[block]):
            names = TrackNames(
                id=track.id, artist=track.artist, album=track.album, title=track.title
            )
            tracks.append(names)
    groups, grouped_by = group_tracks(tracks)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups], np.int64), grouped_by


def group_tracks(tracks: Sequence[TrackNames]) -> tuple[list[str], str]:
    """Each track's group, which stays in one fold: artist, else album, else title; and which.

    Tracks by one artist sound alike, so a model that has seen one has half seen the others. If
    there are too few artists for folds, or one has too many tracks, albums are used instead.
    """
    for by in ("artist", "album", "title"):
        groups = [_group(track, by) for track in tracks]
        sizes = Counter(groups)
        if len(sizes) >= 2 * N_FOLDS and max(sizes.values()) <= len(tracks) / N_FOLDS:
            n_known = sum(getattr(track, by) is not None for track in tracks)
            return groups, by if 2 * n_known > len(tracks) else "track"
    return [str(track.id) for track in tracks], "track"


def _group(track: TrackNames, by: str) -> str:
    """The name of a track's group; a track without that tag is alone."""
    name = getattr(track, by)
    if not name:
        return f"#{track.id}"
    artist = artist_key(track.artist or "")
    if by == "artist":
        return f"artist {artist}"
    return f"{by} {artist}\n{name.strip().casefold()}"


def by_columns(function: Callable[..., NDArray[Any]], *tables: Floats) -> NDArray[Any]:
    """``function`` of tables (n, C), with a result for each column, a few columns at a time."""
    n, n_columns = tables[0].shape
    width = max(1, MAX_NUMBERS // max(n, 1))
    parts = []
    for first in range(0, n_columns, width):
        columns = slice(first, first + width)
        parts.append(function(*(np.asarray(table[:, columns]) for table in tables)))
    return np.concatenate(parts)
