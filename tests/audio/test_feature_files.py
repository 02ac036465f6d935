"""Tables of features: to the bit, with every name, whole or not at all."""

import os

import numpy as np
import polars as pl
import pytest

from harmonium.audio import feature_files
from harmonium.audio.extraction import Extraction, UnusableFile
from harmonium.audio.feature_files import write_failures, write_features
from harmonium.errors import DataError

NAMES = ("timbre: mean, MFCC 0", "[μ], two; three", "plain")


def extraction(paths):
    X = np.random.default_rng(0).normal(size=(len(paths), 3)).astype(np.float32)
    X[:1] = [1e-38, -3.4e38, 1 / 3]
    return Extraction(
        X, tuple(paths), np.arange(len(paths)), NAMES, (), 0, np.zeros((len(paths), 0))
    )


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".PARQUET"])
def test_frames_to_the_bit(tmp_path, ending):
    done = extraction(["a/b.mp3", "two\nlines, and a comma.wav", "🎵.ogg"])
    file = tmp_path / f"features{ending}"
    write_features(file, done)
    frame = pl.read_csv(file) if ending == ".csv" else pl.read_parquet(file)
    assert frame.columns == ["path", *NAMES]
    assert frame["path"].to_list() == list(done.paths)
    X = frame.drop("path").to_numpy().astype(np.float32)
    assert X.tobytes("C") == done.features.tobytes()
    assert [file.name for file in tmp_path.iterdir()] == [file.name]


def test_npz_to_the_bit(tmp_path):
    done = extraction(["a/b.mp3", os.fsdecode(b"\xff\n.mp3")])
    write_features(tmp_path / "features.npz", done)
    with np.load(tmp_path / "features.npz") as data:
        assert tuple(data["path"]) == done.paths
        assert tuple(data["columns"]) == NAMES
        assert data["X"].dtype == np.float32
        assert data["X"].tobytes() == done.features.tobytes()


def test_names_that_are_not_utf8(tmp_path):
    done = extraction([os.fsdecode(b"caf\xe9.mp3"), "café.mp3"])
    write_features(tmp_path / "features.csv", done)
    assert pl.read_csv(tmp_path / "features.csv")["path"].to_list() == [r"caf\xe9.mp3", "café.mp3"]
    write_features(tmp_path / "features.parquet", done)
    frame = pl.read_parquet(tmp_path / "features.parquet")
    assert frame.columns == ["path", "path_bytes", *NAMES]
    assert frame["path_bytes"].to_list() == [os.fsencode(path) for path in done.paths]


def test_no_rows(tmp_path):
    write_features(tmp_path / "features.parquet", extraction([]))
    assert pl.read_parquet(tmp_path / "features.parquet").shape == (0, 4)


def test_failures(tmp_path):
    rows = [
        UnusableFile("a.mp3", "is empty."),
        UnusableFile(os.fsdecode(b"\xff"), 'said "no", twice'),
    ]
    write_failures(tmp_path / "bad.csv", rows)
    table = pl.read_csv(tmp_path / "bad.csv")
    assert table.rows() == [("a.mp3", "is empty."), (r"\xff", 'said "no", twice')]
    write_failures(tmp_path / "bad.csv", [])
    assert (tmp_path / "bad.csv").read_text() == "path,reason\n"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "features.csv"
    file.write_text("old")

    def fail(part, extraction):
        part.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(feature_files._WRITERS, ".csv", fail)
    with pytest.raises(DataError, match=r"features.csv' cannot be written: No space left"):
        write_features(file, extraction(["a"]))
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("features.xlsx", r"must end in \.parquet, \.csv, \.npz, got '.*features\.xlsx'"),
        ("features", "must end in"),
        ("none/features.csv", "there is no folder '.*none'. Create it first"),
        ("folder.csv", r"folder\.csv' is a folder"),
    ],
)
def test_what_is_refused(tmp_path, name, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=message):
        write_features(tmp_path / name, extraction(["a"]))
