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


def test_a_table_a_model_and_a_summary(file, triples, tmp_path):
    output = run(file, "-o", tmp_path / "out.parquet", "--model", tmp_path / "m", "--epochs", 30,
                 "--hidden", 4, "--track", "track")  # fmt: skip
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == ["item", *triples["tag"].unique(maintain_order=True)]
    assert len(table) == triples["item"].n_unique()
    model = TagSmoother.load(tmp_path / "m")
    assert model.smooth().frame().equals(table)
    assert f"{len(triples):,} triples of 10 users and {len(table)} clips of 20 tracks" in output
    assert re.search(r"Log-likelihood per tag of held-out users: -0\.\d+", output)
    assert f"{len(table)} clips × 6 tags in" in output


def test_a_long_csv_of_some_tags_of_other_columns_and_tracks_of_another_table(file, triples):
    bare, tracks, out = (file.with_name(name) for name in ("t.txt", "tracks.csv", "out.csv"))
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
