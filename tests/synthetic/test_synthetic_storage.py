"""The generated collection on disk: complete, resumable, and the same to the byte."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

from harmonium.data import Triples
from harmonium.errors import DataError
from harmonium.synthetic import collection as module
from harmonium.synthetic import make_collection


@pytest.fixture
def collection():
    return make_collection(n_tracks=3, clips_per_track=2, n_users=4, clip_seconds=1)


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_written_is_the_collection(collection, tmp_path):
    assert collection.write(tmp_path / "a") == tmp_path / "a"
    clips = pl.read_csv(tmp_path / "a/clips.csv")
    assert clips.columns[0] == "item"
    for index, path in enumerate(clips["path"]):
        rate, samples = wavfile.read(tmp_path / "a" / path)
        assert rate == collection.rate
        assert samples.dtype == np.int16
        np.testing.assert_allclose(samples / 32_767, collection.samples(index), atol=1 / 32_767)
    rows = pl.read_csv(tmp_path / "a/triples.csv")
    triples = Triples.from_columns(rows["user"], rows["item"], rows["tag"])
    assert sorted(triples.frame().rows()) == sorted(collection.triples.frame().rows())
    truth = pl.read_csv(tmp_path / "a/truth.csv")
    assert truth.columns == ["item", *collection.tags]
    assert truth["item"].to_list() == clips["item"].to_list()
    np.testing.assert_array_equal(truth.drop("item").to_numpy(), collection.truth)


def test_two_writes_are_equal_to_the_byte_and_so_are_two_processes(collection, tmp_path):
    first = contents(collection.write(tmp_path / "one"))
    again = contents(collection.write(tmp_path / "two", jobs=2))
    assert first == again
    assert len(first) == 6 + 4


def test_progress_counts_every_clip_and_a_second_write_does_nothing(
    collection, tmp_path, monkeypatch
):
    reports = []
    collection.write(tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(done, 6) for done in range(7)]
    before = contents(tmp_path)
    monkeypatch.setattr(module, "render", None)
    collection.write(tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert reports[7:] == [(6, 6)]
    assert contents(tmp_path) == before


def test_a_larger_collection_adds_to_a_smaller_one(collection, tmp_path):
    before = contents(collection.write(tmp_path))
    larger = make_collection(n_tracks=4, clips_per_track=2, n_users=4, clip_seconds=1)
    after = contents(larger.write(tmp_path))
    assert len(after) == len(before) + 2
    assert all(after[name] == before[name] for name in before if name.endswith(".wav"))


def test_a_damaged_file_is_written_again_and_leftovers_are_cleared_away(collection, tmp_path):
    collection.write(tmp_path)
    before = contents(tmp_path)
    damaged = tmp_path / collection.clips["path"][2]
    damaged.write_bytes(b"RIFF")
    damaged.with_suffix(".wav.123.part").write_bytes(b"RIFF")
    collection.write(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "options",
    [{"seed": 1}, {"clip_seconds": 2}, {"n_tracks": 2}, {"clips_per_track": 1}],
)
def test_a_folder_with_another_collection_is_left_alone(collection, tmp_path, options):
    collection.write(tmp_path)
    before = contents(tmp_path)
    given = {"n_tracks": 3, "clips_per_track": 2, "n_users": 4, "clip_seconds": 1} | options
    with pytest.raises(DataError, match="another collection"):
        make_collection(**given).write(tmp_path)
    assert contents(tmp_path) == before


def test_a_folder_made_by_another_generator_is_left_alone(collection, tmp_path, monkeypatch):
    collection.write(tmp_path)
    monkeypatch.setattr(module, "GENERATOR", module.GENERATOR + 1)
    with pytest.raises(DataError, match="another collection"):
        collection.write(tmp_path)


def test_bad_folders_and_jobs_are_named(collection, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="'folder'"):
        collection.write(tmp_path / "file")
    (tmp_path / "collection.json").write_text("{")
    with pytest.raises(DataError, match="Delete it"):
        collection.write(tmp_path)
    with pytest.raises(DataError, match="'jobs'"):
        collection.write(tmp_path, jobs=0)


def test_an_interrupted_write_goes_on_where_it_was(collection, tmp_path, monkeypatch):
    whole = contents(collection.write(tmp_path / "whole"))
    render, calls = module.render, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return render(*arguments)

    monkeypatch.setattr(module, "render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collection.write(tmp_path / "part")
    part = contents(tmp_path / "part")
    assert len(part) == 1 + 2
    assert part.items() <= whole.items()
    collection.write(tmp_path / "part")
    assert contents(tmp_path / "part") == whole
    assert len(calls) == 3 + 4


SCRIPT = """
from harmonium.synthetic import make_collection
make_collection(n_tracks=200, clips_per_track=2, n_users=4, clip_seconds=1).write({folder!r})
"""


def test_a_killed_write_leaves_no_torn_file(tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(folder=str(folder))])
    try:
        while process.poll() is None and len(list(folder.rglob("*.wav"))) < 5:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    written = list(folder.rglob("*.wav"))
    assert len(written) >= 5
    for path in written:
        assert len(wavfile.read(path)[1]) == 22_050
    assert json.loads((folder / "collection.json").read_text())["n_tracks"] == 200
