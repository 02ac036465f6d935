"""Tags from two games: MajorMiner's counts of tags per clip, and the emotions of Emotify."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.published import (
    check_option,
    locate,
    read_arrays,
    read_table,
    strings,
)
from harmonium.data.tables import codes_in, positions
from harmonium.data.triples import TagCounts, Triples
from harmonium.errors import DataError

N_MFCC = 104

GENRES = ("classical", "rock", "electronic", "pop")
"""Emotify has a hundred excerpts of each, in this order: tracks 1-100, 101-200, and so on."""
EMOTIONS = (
    *("amazement", "solemnity", "tenderness", "nostalgia", "calmness", "power"),
    *("joyful_activation", "tension", "sadness"),
)
PROFILE = ("age", "gender", "mother tongue", "mood")
AUDIO = ("clips/{genre}_{number}.ogg", "{genre}/{number}.mp3", "emotifymusic/{genre}/{number}.mp3")
"""Where the sound of an excerpt may be: short clips, or the layout of the published archive."""


def load_majorminer(
    folder: str | Path | None = None, *, features: Literal["mfcc", "all"] | None = "mfcc"
) -> Dataset:
    """Read majorminer.tsv and features.npz.

    Parameters
    ----------
    features : "mfcc", the first 104 columns; "all", every column; None, no features
    """
    check_option("features", features, ("mfcc", "all"))
    info = INFOS["majorminer"]
    needed = info if features else replace(info, files={"majorminer": ("majorminer.tsv",)})
    (path,) = locate(needed, folder)
    names = ("clip", "title", "artist", "album", "offset", "tag", "count")
    table = read_table(path / "majorminer.tsv", names).with_columns(
        pl.col("artist").str.strip_chars().replace("", "(unknown)")
    )
    clips = table.unique("clip", keep="first").sort("clip")
    counts = TagCounts.from_columns(
        table["clip"], table["tag"], table["count"], all_items=clips["clip"], normalise=False
    )
    X = columns = None
    if features is not None:
        arrays = read_arrays(path / "features.npz", ("clip_id", "X", "columns"))
        end = N_MFCC if features == "mfcc" else None
        rows = positions(clips["clip"], strings(arrays["clip_id"]), name="clips")
        X, columns = arrays["X"][rows, :end], strings(arrays["columns"][:end])
    return Dataset(
        info=info,
        items=clips["clip"],
        counts=counts,
        features=X,
        feature_names=columns,
        tracks=clips["artist"] + ": " + clips["title"],
        artists=clips["artist"],
    )


def load_emotify(folder: str | Path | None = None) -> Dataset:
    """Read data.csv, one row per listener and excerpt, and find the sound files."""
    info = INFOS["emotify"]
    (path,) = locate(info, folder)
    table = read_table(path / "data.csv", separator=",", quote='"')
    number = pl.col("track id").cast(pl.Int64) - 1
    table = (
        table.with_columns(pl.all().str.strip_chars())
        .with_columns(
            number.alias("track"),
            (number % 100 + 1).alias("number"),
            pl.col(EMOTIONS).cast(pl.Int8),
        )
        .with_columns(pl.format("{}_{}", "genre", "number").alias("item"), _pseudo_user())
    )
    excerpts = table.unique("item").sort("track")
    triples = _emotify_triples(table, excerpts["item"])
    return Dataset(
        info=info,
        items=triples.items,
        triples=triples,
        counts=triples.counts(),
        tracks=triples.items,
        audio=_emotify_audio(path, excerpts),
        listeners=np.bincount(codes_in(table["item"], triples.items)).astype(np.int32),
        seen=table.select("user", "item"),
    )


def _pseudo_user() -> pl.Expr:
    """Age, gender, mother tongue and mood, and a number from the second such listener on."""
    alike = pl.int_range(pl.len()).over("track id", *PROFILE) + 1
    profile = pl.format("age {}, gender {}, {}, mood {}", *PROFILE)
    numbered = pl.format("{}, no. {}", profile, alike)
    return pl.when(alike == 1).then(profile).otherwise(numbered).alias("user")


def _emotify_triples(table: pl.DataFrame, items: pl.Series) -> Triples:
    """The marks as triples; listeners who never marked anything are among the users."""
    users = table["user"].unique().sort()
    row, tag = np.nonzero(table.select(EMOTIONS).to_numpy())
    user, item = codes_in(table["user"], users)[row], codes_in(table["item"], items)[row]
    order = np.lexsort((user, tag, item))
    tags = pl.Series([name.replace("_", " ") for name in EMOTIONS])
    return Triples(user[order], item[order], tag[order].astype(np.int32), users, items, tags)


def _emotify_audio(path: Path, excerpts: pl.DataFrame) -> list[Path] | None:
    """The sound file of each excerpt, n of them, or None where there is no sound at all."""
    for pattern in AUDIO:
        files = [path / pattern.format(**row) for row in excerpts.iter_rows(named=True)]
        missing = [file for file in files if not file.is_file()]
        if not missing:
            return files
        if len(missing) < len(files):
            raise DataError(
                f"{missing[0]} is missing, and so are {len(missing) - 1} others of the "
                f"{len(files)} excerpts. Copy them all, or none."
            )
    return None
