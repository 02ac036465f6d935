"""MajorMiner: the game's counts of tags per clip, with descriptors of the sound."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import (
    fault,
    feature_matrix,
    not_empty,
    read_arrays,
    read_table,
    strings,
    whole_numbers,
)
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataError

COLUMNS = ("clip", "title", "artist", "album", "offset", "tag", "count")
N_MFCC = 104

INFO = INFOS["majorminer"]


def load(
    folder: str | Path | None = None, *, features: Literal["mfcc", "all"] | None = "mfcc"
) -> Dataset:
    """Read majorminer.tsv and features.npz.

    Parameters
    ----------
    features : "mfcc", the first 104 columns; "all", every column; None, no features
    """
    if features not in ("mfcc", "all", None):
        raise DataError(f"'features' must be 'mfcc', 'all' or None, got {features!r}.")
    needed = INFO if features else replace(INFO, files={"majorminer": ("majorminer.tsv",)})
    path = locate(needed, folder)["majorminer"]
    table = _table(path / "majorminer.tsv")
    clips = table.unique("clip").sort("clip")
    X, names = _features(path / "features.npz", clips["clip"], features)
    return Dataset(
        info=INFO,
        items=clips["clip"],
        counts=TagCounts.from_columns(
            table["clip"], table["tag"], table["count"], all_items=clips["clip"], normalise=False
        ),
        features=X,
        feature_names=names,
        tracks=clips["artist"] + ": " + clips["title"],
        artists=clips["artist"],
    )


def _table(path: Path) -> pl.DataFrame:
    """The rows of the file, each clip with one title and artist and each tag at most once."""
    table = read_table(path, COLUMNS, header=False)
    table = table.with_columns(
        not_empty(path, table, "clip"),
        not_empty(path, table, "tag"),
        pl.col("artist").str.strip_chars().replace("", "(unknown)"),
        pl.Series("count", whole_numbers(path, table, "count", low=1)),
    )
    changed = table.filter(pl.struct("title", "artist").n_unique().over("clip") > 1)
    if len(changed):
        clip, line = changed["clip"][0], changed["line"][0]
        raise fault(path, line, f"clip '{clip}' has another title or artist in another line.")
    twice = table.filter(pl.struct("clip", "tag").is_duplicated())
    if len(twice):
        clip, tag, line = twice["clip"][0], twice["tag"][0], twice["line"][0]
        raise fault(path, line, f"the tag '{tag}' is given to clip '{clip}' more than once.")
    return table


def _features(
    path: Path, clips: pl.Series, which: str | None
) -> tuple[np.ndarray | None, pl.Series | None]:
    """The features of these clips, (n, 104 or 1022), and their names."""
    if which is None:
        return None, None
    arrays = read_arrays(path, ["clip_id", "X"], ["columns"])
    names = strings(arrays["columns"])
    X = feature_matrix(path, arrays["X"], len(names))
    row_of = {clip: row for row, clip in enumerate(arrays["clip_id"].tolist())}
    missing = [clip for clip in clips if clip not in row_of]
    if missing:
        raise fault(path, None, f"{len(missing)} clips have no features, '{missing[0]}' first.")
    X = X[[row_of[clip] for clip in clips]]
    return (X[:, :N_MFCC].copy(), names[:N_MFCC]) if which == "mfcc" else (X, names)
