"""Emotify: emotions that listeners of a game felt, with the sound."""

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import fault, read_table, whole_numbers
from harmonium.data.name_columns import codes_in
from harmonium.data.triples import Triples

# In this order, a hundred excerpts each: track ids 1-100, 101-200, 201-300, 301-400.
GENRES = ("classical", "rock", "electronic", "pop")
PER_GENRE = 100
EMOTIONS = (
    "amazement",
    "solemnity",
    "tenderness",
    "nostalgia",
    "calmness",
    "power",
    "joyful_activation",
    "tension",
    "sadness",
)
PROFILE = ("age", "gender", "mother tongue", "mood")
COLUMNS = (
    *("track id", "genre", *EMOTIONS, "mood", "liked", "disliked"),
    *("age", "gender", "mother tongue"),
)
# Where the sound of excerpt N of a genre may be: short clips, or the published archive's layout.
AUDIO = ("clips/{genre}_{number}.ogg", "{genre}/{number}.mp3", "emotifymusic/{genre}/{number}.mp3")

INFO = INFOS["emotify"]


def load(folder: str | Path | None = None) -> Dataset:
    """Read data.csv, one row per listener and excerpt, and find the sound files."""
    path = locate(INFO, folder)["emotify"]
    table = _table(path / "data.csv")
    excerpts = table.unique("item").sort("number")
    items = excerpts["item"]
    marks = table.select(EMOTIONS).to_numpy()
    return Dataset(
        info=INFO,
        items=items,
        triples=(triples := _triples(table, items, marks)),
        counts=triples.counts(),
        tracks=items,
        audio=_audio(path, excerpts),
        listeners=np.bincount(codes_in(table["item"], items)).astype(np.int32),
        seen=table.select("user", "item"),
    )


def _table(path: Path) -> pl.DataFrame:
    """The rows with the excerpt's number and name (item), and the pseudo-user."""
    table = read_table(path, COLUMNS, header=True, separator=",")
    number = whole_numbers(path, table, "track id", low=1, high=PER_GENRE * len(GENRES))
    genre = np.array(GENRES)[(number - 1) // PER_GENRE]
    wrong = table["genre"].str.strip_chars() != pl.Series(genre)
    if wrong.any():
        row = wrong.arg_max() or 0
        raise fault(
            path,
            table["line"][row],
            f"track {number[row]} must be {genre[row]}, got '{table['genre'][row]}'.",
        )
    return table.with_columns(
        pl.Series("number", number),
        pl.Series("genre", genre),
        *(pl.Series(name, whole_numbers(path, table, name, high=1)) for name in EMOTIONS),
    ).with_columns(
        pl.format("{}_{}", "genre", (pl.col("number") - 1) % PER_GENRE + 1).alias("item"),
        _pseudo_user(),
    )


def _pseudo_user() -> pl.Expr:
    """Age, gender, mother tongue and mood, and a number from the second such listener on."""
    alike = pl.int_range(pl.len()).over("track id", *PROFILE) + 1
    profile = pl.format(
        "age {}, gender {}, {}, mood {}", *(pl.col(name).str.strip_chars() for name in PROFILE)
    )
    numbered = pl.format("{}, no. {}", profile, alike)
    return pl.when(alike == 1).then(profile).otherwise(numbered).alias("user")


def _triples(table: pl.DataFrame, items: pl.Series, marks: NDArray[np.int64]) -> Triples:
    """The marks as triples; listeners who never marked anything are among the users."""
    users = table["user"].unique().sort()
    row, tag = np.nonzero(marks)
    user, item = codes_in(table["user"], users)[row], codes_in(table["item"], items)[row]
    order = np.lexsort((user, tag, item))
    tags = pl.Series([name.replace("_", " ") for name in EMOTIONS])
    return Triples(
        user[order], item[order], tag[order].astype(np.int32), users=users, items=items, tags=tags
    )


def _audio(path: Path, excerpts: pl.DataFrame) -> list[Path] | None:
    """The sound file of each excerpt, n of them, or None where there is no sound at all."""
    numbers = (excerpts["number"] - 1) % PER_GENRE + 1
    for pattern in AUDIO:
        files = [
            path / pattern.format(genre=genre, number=number)
            for genre, number in zip(excerpts["genre"], numbers, strict=True)
        ]
        missing = [file for file in files if not file.is_file()]
        if not missing:
            return files
        if len(missing) < len(files):
            raise fault(
                missing[0],
                None,
                f"the file is missing, and so are {len(missing) - 1} others of {len(files)} "
                "excerpts. Copy them all, or none.",
            )
    return None
