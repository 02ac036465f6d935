"""The command `harmonium smooth`."""

import re
from functools import partial

import numpy as np
import polars as pl
import pytest
from command_line import output_of

from harmonium import TagSmoother
from harmonium.errors import DataError


@pytest.fixture(scope="module")
def triples():
    """Rock and calm songs, of which users say some of what holds; two clips to a track."""
    rng = np.random.default_rng(0)
    words = (["rock", "loud", "guitar"], ["calm", "piano", "slow"])
    rows = [
        (f"user{user}", f"clip{clip:02d}", word, f"track{clip // 2:02d}")
        for clip in range(40)
        for user in rng.choice(10, 3, replace=False)
        for word in words[clip // 2 % 2]
        if rng.random() < 0.6
    ]
    return pl.DataFrame(rows, schema=["user", "item", "tag", "track"], orient="row")


@pytest.fixture
def file(triples, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    triples.write_csv(tmp_path / "triples.csv")
    return tmp_path / "triples.csv"


run = partial(output_of, "smooth")


@pytest.fixture(scope="module")
def smoothed(triples, tmp_path_factory):
    """What the command prints, and the folder with its table and its model."""
    folder = tmp_path_factory.mktemp("smoothed")
    triples.write_csv(folder / "triples.csv")
    arguments = ["--epochs", 30, "--hidden", 4, "--track", "track", "--model", folder / "m"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        return run(folder / "triples.csv", "-o", folder / "out.parquet", *arguments), folder


def test_the_table(smoothed, triples):
    _, folder = smoothed
    table = pl.read_parquet(folder / "out.parquet")
    assert table.columns == ["item", *triples["tag"].unique(maintain_order=True)]
    assert len(table) == triples["item"].n_unique()


def test_the_model(smoothed):
    _, folder = smoothed
    table = pl.read_parquet(folder / "out.parquet")
    assert TagSmoother.load(folder / "m").smooth().frame().equals(table)


def test_the_summary(smoothed, triples):
    output, _ = smoothed
    n_clips = triples["item"].n_unique()
    assert f"{len(triples):,} triples of 10 users and {n_clips} clips of 20 tracks" in output
    assert re.search(r"Log-likelihood per tag of held-out users: -0\.\d+", output)
    assert f"{n_clips} clips × 6 tags in" in output


def test_a_long_csv_from_other_columns(file, triples):
    """Of some tags, with the tracks in another table."""
    bare = file.with_name("t.txt")
    tracks = file.with_name("tracks.csv")
    out = file.with_name("out.csv")
    columns = triples.select("tag", "item", "user")
    columns.write_csv(bare, include_header=False, separator=";")
    triples.select("item", "track").unique(maintain_order=True).write_csv(tracks)
    output = run(bare, "-o", out, "--no-header", "--delimiter", ";", "--user", 2, "--item", 1,
                 "--tag", 0, "--show", 0, "--long", "--tracks", tracks, "--tags", 3,
                 "--epochs", 2, "--hidden", 4)  # fmt: skip
    assert "of 20 tracks" in output
    table = pl.read_csv(out)
    assert table.columns == ["item", "tag", "probability"]
    assert table["probability"].is_between(0, 1).all()
    assert set(table["item"]) == set(triples["item"])
    assert set(table["tag"]) < set(triples["tag"])
    assert table["tag"].n_unique() == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "{}/out.xlsx"), "must end in .parquet or .csv"),
        (("-o", "{}/nowhere/out.csv"), "there is no folder"),
        (("-o", "{}/out.csv", "--model", "{}"), "is a folder"),
        (("-o", "{}/out.csv", "--user", "listener"), "no column 'listener' for 'user'"),
        (("-o", "{}/out.csv", "--track", "user"), "two values"),
    ],
    ids=["format", "folder", "model", "column", "tracks"],
)
def test_what_cannot_be_is_refused_before_any_work(file, tmp_path, arguments, message):
    with pytest.raises(DataError, match=message):
        run(file, *(argument.format(tmp_path) for argument in arguments))
    assert not (tmp_path / "out.csv").exists()
