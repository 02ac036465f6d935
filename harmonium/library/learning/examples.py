"""What there is to learn from: which tags, and the features, labels and folds of tagged tracks.

Tables that are too large for memory are files in a temporary folder. Their tracks are in the order
of the folds, at random within each. After the last fold, the first ones follow once more: of the
folds 0 1 2 3 4 0 1 2, all but any one stand side by side, so that a model of them learns from one
piece of the file, and nothing is copied.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids
from harmonium.data.tag_names import artist_key
from harmonium.errors import DataError
from harmonium.library.library import Library
from harmonium.library.tagger import Tagger, builtin_extractor, builtin_model, log_odds

N_FOLDS = 5
MIN_TRACKS = 20
"""Nothing is learnt from fewer tagged tracks."""
MIN_EXAMPLES = 5
"""Tracks that a tag needs where fewer than `FEW_TRACKS` are tagged: a score of fewer is chance."""
USUAL_EXAMPLES = 10
"""Tracks that a tag needs where more are tagged."""
FEW_TRACKS = 100
BLOCK = 8192
"""Tracks that are read and written at a time."""
MAX_NUMBERS = 2**24
"""Numbers of a table that are in memory at a time, where tags are looked at one by one."""


# The tags. ----------------------------------------------------------------------------------------


class ExcludedTag(NamedTuple):
    """A tag that is not learnt."""

    tag: str
    examples: int
    missing: int
    """How many more tracks it needs: with it, or, if it is on most tracks, without it."""
    reason: str


def choose_vocabulary(
    judged: pl.DataFrame, n_tracks: int, *, min_examples: int | None = None, max_tags: int = 200
) -> tuple[tuple[str, ...], list[ExcludedTag]]:
    """The tags with enough tracks that have them and that lack them, and the others; by use.

    Parameters
    ----------
    judged : what `judge` gives of the tracks that can be learnt from
    n_tracks : how many those are
    min_examples : tracks that a tag needs; by default `USUAL_EXAMPLES`, or `MIN_EXAMPLES` where
        there are fewer than `FEW_TRACKS` tracks
    max_tags : take the most used ones

    Raises
    ------
    DataError
        where the tracks or the tags are too few, with how many more it takes
    """
    if n_tracks < MIN_TRACKS:
        raise DataError(
            f"{n_tracks:,} tracks have both features and tags; training needs at least "
            f"{MIN_TRACKS}. Tag {MIN_TRACKS - n_tracks:,} more, or import more tags."
        )
    usual = USUAL_EXAMPLES if n_tracks >= FEW_TRACKS else MIN_EXAMPLES
    needed = usual if min_examples is None else min_examples
    if needed < 2:
        raise DataError(f"'min_examples' must be at least 2, got {needed}.")
    table = (
        judged.group_by("tag")
        .agg(examples=(pl.col("label") == 1).sum(), unknown=pl.col("label").is_nan().sum())
        .filter(pl.col("examples") > 0)
        .sort("examples", "tag", descending=[True, False])
    )
    tags: list[str] = []
    excluded = []
    for tag, n, unknown in table.iter_rows():
        missing, reason = 0, f"only the {max_tags:,} most used tags are learnt"
        for there, which in ((n_tracks - n - unknown, "without it"), (n, "with it")):
            if there < needed:
                missing = needed - there
                reason = f"{missing:,} more {'track' if missing == 1 else 'tracks'} {which}"
        if missing or len(tags) == max_tags:
            excluded.append(ExcludedTag(tag, n, missing, reason))
        else:
            tags.append(tag)
    if not tags:
        message = f"No tag has {needed:,} tracks with it and {needed:,} without it to learn from."
        if excluded:
            near = min(excluded, key=lambda one: (one.missing, one.tag))
            message += f" The nearest is {near.tag!r}, which needs {near.reason}."
        raise DataError(f"{message} Tag more tracks, or ask for less with --min-examples.")
    return tuple(tags), excluded


# The tables. --------------------------------------------------------------------------------------


class Hyperparameters(NamedTuple):
    """Settings that are tried."""

    learning_rate: float
    l2: float
    smoothed: bool = False
    """Whether to learn from smoothed labels."""
    more_inputs: bool = False
    """Whether the built-in model's log-odds are inputs, too."""
    linear: bool = False
    """Whether it is a logistic regression, which has no learning rate."""


@dataclass(frozen=True)
class StoredRows:
    """Some rows and columns of a table, which are opened where they are needed."""

    path: str
    width: int
    """Columns of the whole table."""
    start: int
    stop: int
    columns: int
    """How many of the columns, from the first on, are meant."""

    def __len__(self) -> int:
        return self.stop - self.start

    def open(self, mode: str = "r") -> Floats:
        """The rows, mapped from the file; FileNotFoundError where it cannot be seen."""
        shape = (Path(self.path).stat().st_size // (4 * self.width), self.width)
        table = np.memmap(self.path, np.float32, mode, shape=shape)  # type: ignore[call-overload]
        return table[self.start : self.stop, : self.columns]


def opened(rows: Floats | StoredRows) -> Floats:
    """The rows as an array."""
    return rows.open() if isinstance(rows, StoredRows) else rows


class FoldTable:
    """A table of numbers in a file, (n, width), for tracks with these folds, in ascending order."""

    def __init__(self, path: Path, folds: Ids, width: int, columns: int = 0) -> None:
        self.path, self.n, self.width, self.columns = path, len(folds), width, columns or width
        n_folds = int(folds.max()) + 1
        self.starts = np.searchsorted(folds, np.arange(n_folds + 1))
        self.n_again = int(self.starts[max(0, n_folds - 2)])
        needed = 4 * width * (self.n + self.n_again)
        free = shutil.disk_usage(path.parent).free
        if needed > free:
            raise DataError(
                f"Learning from {self.n:,} tracks needs {needed / 1e9:.1f} GB in {path.parent}, "
                f"where {free / 1e9:.1f} GB are free. Make room, or name another folder by TMPDIR."
            )
        self._rows = np.memmap(path, np.float32, "w+", shape=(self.n + self.n_again, width))

    def put(self, rows: NDArray[np.intp], values: Floats) -> None:
        """Write some rows."""
        self._rows[rows] = values
        again = rows < self.n_again
        self._rows[rows[again] + self.n] = values[again]

    @property
    def values(self) -> Floats:
        """(n, columns), mapped from the file."""
        return self._rows[: self.n, : self.columns]

    def all(self, *, whole: bool = False) -> StoredRows:
        """All tracks; ``whole``: with the columns that `values` leaves out."""
        return self._piece(0, self.n, whole)

    def fold(self, fold: int, *, whole: bool = False) -> StoredRows:
        """The tracks of a fold."""
        return self._piece(int(self.starts[fold]), int(self.starts[fold + 1]), whole)

    def others(self, fold: int, n: int, *, whole: bool = False) -> StoredRows:
        """n tracks of the other folds."""
        first = 0 if fold == len(self.starts) - 2 else int(self.starts[fold + 1])
        return self._piece(first, first + n, whole)

    def _piece(self, start: int, stop: int, whole: bool) -> StoredRows:
        columns = self.width if whole else self.columns
        return StoredRows(str(self.path), self.width, start, stop, columns)


@dataclass(frozen=True, eq=False)
class TrainingFiles:
    """The files of a training set."""

    folder: Path
    X: FoldTable
    """Features, and then the built-in model's log-odds."""
    Y: FoldTable
    smoothed: FoldTable | None = None

    def new_table(self, n_columns: int) -> Floats:
        """A table for results, (n, n_columns)."""
        path = self.folder / f"table-{len(list(self.folder.iterdir()))}"
        return np.memmap(path, np.float32, "w+", shape=(self.X.n, n_columns))


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The tracks to learn from."""

    X: Floats
    """(n, D) features."""
    Y: Floats
    """(n, C) labels: 0, 1, NaN."""
    folds: Ids
    """(n,) fold of each track."""
    tags: tuple[str, ...]
    """The C tags."""
    smoothed: Floats | None = None
    """(n, C) smoothed labels."""
    builtin: Floats | None = None
    """(n, E) the built-in model's probabilities, if it takes these features."""
    files: TrainingFiles | None = None
    """Where these tables are too large for memory; the tracks are then in the order of folds."""

    def rows(self, rows: NDArray[np.intp]) -> "TrainingSet":
        """Some of the tracks, in memory."""
        tables = (self.X, self.Y, self.smoothed, self.builtin)
        X, Y, smoothed, builtin = (None if t is None else np.array(t[rows]) for t in tables)
        assert X is not None
        assert Y is not None
        return TrainingSet(X, Y, self.folds[rows], self.tags, smoothed, builtin)

    def new_table(self) -> Floats:
        """Room for a number for each track and tag, (n, C)."""
        if self.files is None:
            return np.empty(self.Y.shape, np.float32)
        return self.files.new_table(len(self.tags))

    def stored(
        self, hyperparameters: Hyperparameters, fold: int, n: int
    ) -> tuple[StoredRows, StoredRows, StoredRows]:
        """n inputs and labels of the other folds, and the inputs of a fold; for those in files."""
        assert self.files is not None
        X, Y, whole = self.files.X, self._labels_file(hyperparameters), hyperparameters.more_inputs
        return X.others(fold, n, whole=whole), Y.others(fold, n), X.fold(fold, whole=whole)

    def everything(
        self, hyperparameters: Hyperparameters
    ) -> tuple[Floats | StoredRows, Floats | StoredRows]:
        """Inputs and labels of all tracks."""
        if self.files is None:
            return self.inputs(hyperparameters), self.targets(hyperparameters)
        X = self.files.X.all(whole=hyperparameters.more_inputs)
        return X, self._labels_file(hyperparameters).all()

    def _labels_file(self, hyperparameters: Hyperparameters) -> FoldTable:
        assert self.files is not None
        smoothed = self.files.smoothed
        return smoothed if hyperparameters.smoothed and smoothed is not None else self.files.Y

    def inputs(self, hyperparameters: Hyperparameters) -> Floats:
        """What to learn from, (n, D) or (n, D + E)."""
        if self.files is not None:
            return self.files.X.all(whole=hyperparameters.more_inputs).open()
        if hyperparameters.more_inputs and self.builtin is not None:
            return np.concatenate([self.X, log_odds(self.builtin)], axis=1)
        return self.X

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y


def read_training_set(
    library: Library,
    extractor: str,
    ids: Ids,
    labels: Callable[[Ids], Floats],
    tags: tuple[str, ...],
    *,
    seed: int = 0,
    folder: Path | None = None,
) -> tuple[TrainingSet, NDArray[np.intp], Ids, str]:
    """The training set of tracks with these ascending ids.

    Parameters
    ----------
    labels : gives the labels (n, C) of tracks with ascending ids
    folder : where to put tables that are too large for memory; None if they are not

    Returns
    -------
    the training set, which of the ids each row is (n,), the numbers of what no two folds share
    (n,), and what that is
    """
    from harmonium.evaluation import grouped_folds

    def features(some: Ids) -> Floats:
        found, X = library.tracks.features(some, extractor=extractor)
        if len(found) != len(some):
            raise DataError(
                "Features were taken out of the library while it was read. Train again."
            )
        return X

    names, grouped_by = group_tracks(
        [
            (track.id, track.artist, track.album, track.title)
            for some in row_blocks(len(ids))
            for track in library.tracks.many(ids[some])
        ]
    )
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    groups = np.array([numbers[name] for name in names], np.int64)
    model = builtin_model() if extractor == builtin_extractor() else None
    tagger = None if model is None else Tagger(model)
    if folder is None:
        X, Y = features(ids), labels(ids)
        folds = grouped_folds(names, Y, n_folds=N_FOLDS, seed=seed)
        builtin = None if tagger is None else tagger.probabilities(X)
        examples = TrainingSet(X, Y, folds, tags, builtin=builtin)
        return examples, np.arange(len(ids)), groups, grouped_by
    rng = np.random.default_rng(seed)
    folds = even_folds(groups, rng)
    order = np.lexsort((rng.random(len(ids)), folds))
    place, folds = np.argsort(order), folds[order]
    n_features = features(ids[:1]).shape[1]
    n_more = 0 if tagger is None else len(tagger.tags)
    files = TrainingFiles(
        folder,
        FoldTable(folder / "X", folds, n_features + n_more, n_features),
        FoldTable(folder / "Y", folds, len(tags)),
    )
    builtin = None if tagger is None else files.new_table(n_more)
    for some in row_blocks(len(ids)):
        X = features(ids[some])
        if tagger is not None and builtin is not None:
            builtin[place[some]] = P = tagger.probabilities(X)
            X = np.concatenate([X, log_odds(P)], axis=1)
        files.X.put(place[some], X)
        files.Y.put(place[some], labels(ids[some]))
    tables = (files.X.values, files.Y.values, folds, tags)
    return TrainingSet(*tables, builtin=builtin, files=files), order, groups[order], grouped_by


def even_folds(groups: Ids, rng: np.random.Generator) -> Ids:
    """The fold of each track, (n,): groups whole, by chance, each to the fold with fewest tracks.

    Of so many tracks, every fold then has its share of each tag.
    """
    sizes, totals = np.bincount(groups), [0] * N_FOLDS
    fold_of = np.empty(len(sizes), np.int64)
    for group in rng.permutation(len(sizes)).tolist():
        fold_of[group] = fold = totals.index(min(totals))
        totals[fold] += int(sizes[group])
    return fold_of[groups]


def group_tracks(
    tracks: Sequence[tuple[int, str | None, str | None, str | None]],
) -> tuple[list[str], str]:
    """What no two folds share: the artist, else the album, else the title; and which it is.

    Tracks of one artist sound alike, and a model that has seen one has half seen the others. If
    artists are too few, or one has too many tracks to make folds of, albums have to do. ``tracks``
    are (number, artist, album, title).
    """
    for place, by in enumerate(("artist", "album", "title"), start=1):
        names = []
        for track in tracks:
            artist, value = artist_key(track[1] or ""), str(track[place] or "")
            name = f"{artist}\n{value.strip().casefold()}" if by != "artist" else artist
            names.append(f"{by} {name}" if value else f"#{track[0]}")
        sizes = Counter(names)
        if len(sizes) >= 2 * N_FOLDS and max(sizes.values()) <= len(tracks) / N_FOLDS:
            known = sum(track[place] is not None for track in tracks)
            return names, by if 2 * known > len(tracks) else "track"
    return [str(track[0]) for track in tracks], "track"


def by_columns(function: Callable[..., NDArray[Any]], *tables: Floats) -> NDArray[Any]:
    """``function`` of tables (n, C), whose result has a place for each column: some at a time."""
    n, n_columns = tables[0].shape
    width = max(1, MAX_NUMBERS // max(n, 1))
    parts = [
        function(*(np.asarray(table[:, j : j + width]) for table in tables))
        for j in range(0, n_columns, width)
    ]
    return np.concatenate(parts)


def row_blocks(n: int, size: int | None = None) -> list[slice]:
    """All of n rows, some at a time: by default `BLOCK`."""
    size = size or BLOCK
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
