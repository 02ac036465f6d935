"""Training data: the vocabulary, and the features, labels and groups of tagged tracks.

Features that do not fit in memory are in a temporary file.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Places
from harmonium.data.tag_names import NO_TAG, artist_key, kind_of, normalise_tag
from harmonium.errors import DataError
from harmonium.estimators.model_files import sigmoid
from harmonium.library.library import Library
from harmonium.library.store.opinions import is_asked
from harmonium.library.tagger import Tagger, builtin_extractor, builtin_model, log_odds

N_FOLDS = 5  # a model's members, each with its own held-out fold
MIN_TRACKS = 20  # nothing is learnt from fewer tagged tracks
MIN_EXAMPLES = 5  # of a tag: a score from fewer is chance
BLOCK = 8192  # tracks that are read and written at a time
MAX_NUMBERS = 2**24  # bytes of a table in memory at a time, when tags are handled one by one


class ExcludedTag(NamedTuple):
    """A tag that is not learnt."""

    tag: str
    examples: int
    missing: int  # how many more tracks it needs: with it, or, if it is on most tracks, without it
    reason: str


def choose_vocabulary(
    judged: pl.DataFrame, n_tracks: int, *, min_examples: int = MIN_EXAMPLES, max_tags: int = 200
) -> tuple[tuple[str, ...], list[ExcludedTag]]:
    """The tags with enough tracks with and without them, and the other tags; most used first.

    ``judged`` is `judge`'s result for the ``n_tracks`` tracks that can be learnt from. If there are
    too few tracks or tags, a DataError says how many more tracks are needed.
    """
    if n_tracks < MIN_TRACKS:
        raise DataError(
            f"{n_tracks:,} tracks have both features and tags; training needs at least "
            f"{MIN_TRACKS}. Tag {MIN_TRACKS - n_tracks:,} more, or import more tags."
        )
    if min_examples < 2:
        raise DataError(f"'min_examples' must be at least 2, got {min_examples}.")
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
            if there < min_examples:
                missing = min_examples - there
                reason = f"{missing:,} more {'track' if missing == 1 else 'tracks'} {which}"
        if missing or len(tags) == max_tags:
            excluded.append(ExcludedTag(tag, n, missing, reason))
        else:
            tags.append(tag)
    if not tags:
        enough = f"{min_examples:,} tracks with it and {min_examples:,} without it"
        message = f"No tag has {enough} to learn from."
        if excluded:
            near = min(excluded, key=lambda one: (one.missing, one.tag))
            message += f" The closest is {near.tag!r}, which needs {near.reason}."
        raise DataError(f"{message} Tag more tracks, or ask for less with --min-examples.")
    return tuple(tags), excluded


def tracks_without_genre(
    library: Library, ids: Ids, judged: pl.DataFrame, vague: Ids, kinds: Mapping[str, str]
) -> Ids:
    """The tracks whose genres are unknown: they may have any.

    If most tracks have exactly one genre, as in a column, these are all others: their cells may be
    empty. Otherwise they are tracks whose genre is a word that says nothing, such as Other: people
    used such a word for ``vague`` tracks; for the rest, the files decide.
    """
    given = judged.filter(pl.col("label") == 1).select("track_id", "tag").rows()
    known = Counter(number for number, tag in given if kind_of(tag, kinds) == "genre")
    in_column = 2 * len(known) > len(ids) and 3 * [*known.values()].count(1) > 2 * len(known)
    found = set(ids.tolist() if in_column else vague.tolist())
    for some in row_blocks(len(ids)) if len(found) < len(ids) else ():
        for track in library.tracks.many(ids[some]):
            names = [normalise_tag(text) for text in track.file_tags.get("genre", ())]
            if names and all(kind_of(name, kinds) == NO_TAG for name in names):
                found.add(track.id)
    return np.array(sorted(found - known.keys()), np.int64)


def tracks_with_only_genres(
    library: Library, opinions: pl.DataFrame, kinds: Mapping[str, str]
) -> Ids:
    """The tracks that nobody has described, but whose files name a genre; nothing else is known."""
    files = [one.name for one in library.opinions.people() if one.kind == "file"]
    genres = [tag for tag in opinions["tag"].unique() if kind_of(tag, kinds) == "genre"]
    from_files = pl.col("person").is_in(files) & pl.col("tag").is_in(genres)
    described = opinions.filter(~from_files & ~is_asked(library))["track_id"].to_numpy()
    return np.setdiff1d(opinions.filter(from_files)["track_id"].to_numpy(), described)


def count_without(judged: pl.DataFrame, ids: Ids, undescribed: Ids) -> dict[str, int]:
    """Tag → the tracks that lack it: the described ones without a vote for it, and rejections."""
    elsewhere = pl.col("track_id").is_in(pl.Series(undescribed).implode())
    absent = (pl.col("label") == 0).cast(pl.Int64)
    n = pl.when(elsewhere).then(absent).otherwise(absent - 1).sum() + len(ids) - len(undescribed)
    return dict(judged.group_by("tag").agg(n).iter_rows())


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
    n_more: int = 0  # E, the tags of the built-in model
    smoothed: Floats | None = None  # (n, C) smoothed labels

    def __len__(self) -> int:
        return len(self.Y)

    def rows(self, rows: Places) -> "TrainingSet":
        """A part of the tracks, in memory."""
        smoothed = None if self.smoothed is None else self.smoothed[rows]
        X = np.array(opened(self.X)[rows])
        return TrainingSet(X, self.Y[rows], self.groups[rows], self.tags, self.n_more, smoothed)

    def inputs(self, hyperparameters: Hyperparameters) -> Floats:
        """What to learn from, (n, D) or (n, D + E)."""
        X = opened(self.X)
        return X if hyperparameters.more_inputs else X[:, : X.shape[1] - self.n_more]

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y

    def builtin(self, place: int) -> Floats:
        """The built-in model's probabilities of one of its tags, (n,)."""
        X = opened(self.X)
        return sigmoid(X[:, X.shape[1] - self.n_more + place])


def opened(table: Floats | Path) -> Floats:
    """The table as an array; raises FileNotFoundError if its file is not visible here."""
    return np.load(table, mmap_mode="r") if isinstance(table, Path) else table


def new_table(path: Path, n: int, width: int) -> Floats:
    """An empty table in a file, if there is room for it."""
    needed, free = 4 * n * width, shutil.disk_usage(path.parent).free
    if needed > free:
        raise DataError(
            f"Learning from {n:,} tracks needs {needed / 1e9:.1f} GB in {path.parent}, where "
            f"{free / 1e9:.1f} GB are free. Free some space, or set TMPDIR to another folder."
        )
    return open_memmap(path, "w+", np.float32, (n, width))


def read_training_set(
    library: Library,
    extractor: str,
    ids: Ids,
    labels: Callable[[Ids], Floats],
    tags: tuple[str, ...],
    folder: Path | None = None,
) -> tuple[TrainingSet, str]:
    """The training set of tracks with these ascending ids, and what the groups are.

    ``labels`` returns the labels (n, C) of tracks with ascending ids. ``folder`` is where features
    go that do not fit in memory; None if they fit.
    """
    tracks = (track for some in row_blocks(len(ids)) for track in library.tracks.many(ids[some]))
    named = [(track.id, track.artist, track.album, track.title) for track in tracks]
    names, grouped_by = group_tracks(named)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    groups = np.array([numbers[name] for name in names], np.int64)
    tagger = Tagger(builtin_model()) if extractor == builtin_extractor() else None
    n_more = 0 if tagger is None else len(tagger.tags)
    n_features = library.tracks.features(ids[:1], extractor=extractor)[1].shape[1]
    shape, file = (len(ids), n_features + n_more), folder and folder / "X.npy"
    table = np.empty(shape, np.float32) if file is None else new_table(file, *shape)
    Y = np.empty((len(ids), len(tags)), np.float32)
    for some in row_blocks(len(ids)):
        found, rows = library.tracks.features(ids[some], extractor=extractor)
        if len(found) != len(ids[some]):
            raise DataError("Features were removed from the library during training. Train again.")
        table[some, :n_features] = rows
        if tagger is not None:
            table[some, n_features:] = log_odds(tagger.probabilities(rows, music_only=False))
        Y[some] = labels(ids[some])
    return TrainingSet(file or table, Y, groups, tags, n_more), grouped_by


def group_tracks(
    tracks: Sequence[tuple[int, str | None, str | None, str | None]],
) -> tuple[list[str], str]:
    """Each track's group, which stays in one fold: artist, else album, else title; and which.

    Tracks by one artist sound alike, so a model that has seen one has half seen the others. If
    there are too few artists for folds, or one has too many tracks, albums are used instead.
    ``tracks`` are (number, artist, album, title).
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
    """``function`` of tables (n, C), with a result for each column, a few columns at a time."""
    n, n_columns = tables[0].shape
    width = max(1, MAX_NUMBERS // max(n, 1))
    parts = [
        function(*(np.asarray(table[:, j : j + width]) for table in tables))
        for j in range(0, n_columns, width)
    ]
    return np.concatenate(parts)


def row_blocks(n: int, size: int | None = None) -> list[slice]:
    """Slices over n rows, by default of `BLOCK` rows."""
    size = size or BLOCK
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
