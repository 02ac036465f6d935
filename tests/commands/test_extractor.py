"""`harmonium extractor`, and which extractor `harmonium index` takes."""

import json

import numpy as np
import pytest
from command_line import run, run_main
from odd_extractors import kept_in_cache
from processes_in_tests import PATIENCE, end, start, wait_until
from sound_files import timed_noise, write_sndfile

from harmonium.audio import musicnn
from harmonium.audio.extractors import get_extractor
from harmonium.errors import DataError
from harmonium.library import Library
from harmonium.library.store.schema import EXTRACTOR


@pytest.fixture
def music(tmp_path):
    folder = tmp_path / "music"
    folder.mkdir()
    for k in range(2):
        write_sndfile(folder / f"{k}.wav", timed_noise(4, 8_000, seed=k), 8_000)
    return folder


@pytest.fixture
def index(tmp_path, monkeypatch, data_home):
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "library.db"))
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "cache"))
    return lambda *arguments: run_main("index", *arguments, "--engine", "serial")


def used(tmp_path):
    """The extractor that the library was indexed with."""
    with Library.open(str(tmp_path / "library.db")) as library:
        return library.settings.get(EXTRACTOR).partition("@")[0]


@pytest.mark.parametrize("content", [None, b"RIFF" + bytes(1000)])
def test_without_usable_weights_the_old_features_work(content, index, music, tmp_path, monkeypatch):
    file = tmp_path / "musicnn.safetensors"
    if content:
        file.write_bytes(content)
    monkeypatch.setattr(musicnn, "FILE", file)
    musicnn.load_networks.cache_clear()
    done = index(music)
    assert (done.exit_code, done.stderr.count("Error:")) == (2, 1)
    assert "Install Harmonium again" in " ".join(done.stderr.split())
    assert index(music, "--extractor", "timbre").exit_code == 0
    assert used(tmp_path) == "timbre"


def test_a_new_library_is_indexed_with_musicnn(index, music, tmp_path):
    done = index(music, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert used(tmp_path) == "musicnn"
    with Library.open(str(tmp_path / "library.db")) as library:
        assert library.tracks.features(library.tracks.ids(), extractor="musicnn")[1].shape[1] == 400


def test_a_library_keeps_its_extractor_until_another_is_named(index, music, tmp_path):
    index(music, "--extractor", "timbre")
    done = index("--json")
    assert "keeps the features of timbre" in done.stderr
    assert used(tmp_path) == "timbre"
    index("--extractor", "musicnn")
    assert used(tmp_path) == "musicnn"
    assert index("--json").stderr == ""
    assert used(tmp_path) == "musicnn"


def test_windows_are_as_many_as_before_unless_others_are_named(index, music, tmp_path):
    index(music, "--windows", "1")
    assert used(tmp_path) == "paper"
    assert index("--windows", "3", "--json").stderr == ""
    assert used(tmp_path) == "paper*3"
    index("--json")
    assert used(tmp_path) == "paper*3"
    assert "chooses its windows itself" in index("-e", "musicnn", "--windows", "3").stderr


def test_the_list_says_how_good_and_how_fast():
    records = {one["name"]: one for one in json.loads(run("extractor", "list", "--json").stdout)}
    assert records["paper"]["features"] == 389
    assert records["musicnn"]["features"] == 400
    assert records["musicnn"]["heads"] == 100
    assert records["musicnn"]["auc"] > records["paper"]["auc"] > 0.6
    assert records["musicnn"]["milliseconds"] > 0


def test_seconds_are_not_for_windows_of_its_own(music, tmp_path):
    with pytest.raises(DataError, match="'musicnn' sets its own windows"):
        run("features", music, "-o", tmp_path / "a.csv", "-e", "musicnn", "--seconds", 5)


@pytest.mark.long
def test_killed_and_resumed_it_has_the_features_of_an_undisturbed_run(index, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(8):
        write_sndfile(folder / f"{k}.wav", timed_noise(7, 8_000, seed=k), 8_000)
    command = ("-c", "from harmonium.cli import main; main()", "index", folder, "-j", 2)
    process = start(*command)
    try:
        wait_until(lambda: kept_in_cache(tmp_path / "cache") >= 3, "some files in the cache")
    finally:
        end(process)
    process = start(*command)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert kept_in_cache(tmp_path / "cache") == 8
    extractor = get_extractor("musicnn")
    with Library.open(str(tmp_path / "library.db")) as library:
        tracks = list(library.tracks.all())
        ids = [track.id for track in tracks]
        X = library.tracks.features(ids, extractor="musicnn")[1]
    assert len(tracks) == 8
    for track, x in zip(tracks, X, strict=True):
        np.testing.assert_allclose(x, extractor.hear_file(track.path)[:400], atol=1e-6)
