"""`harmonium index` and `harmonium import`, as they are called."""

import json
import os
import re
import shutil
from functools import partial

import polars as pl
import pytest
from command_line import run, run_main
from noise_files import write
from sound_files import timed_noise, write_sndfile

from harmonium.audio import musicnn
from harmonium.errors import DataError, LibraryError
from harmonium.library import Library
from harmonium.library.store.schema import EXTRACTOR


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs harmonium with a library and a cache of its own."""
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "library.db"))
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "cache"))
    return partial(run, catch_exceptions=True)


@pytest.fixture
def index(call):
    return lambda *arguments: call("index", *arguments, "-e", "timbre", "--engine", "serial")


@pytest.fixture
def music(tmp_path):
    folder = tmp_path / "music"
    for k in range(2):
        write(folder / f"{k}.flac", k, tags=["Rock"], seconds=1)
    return folder


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10000")


def counts(output):
    lines = (line.split("\t") for line in output.splitlines())
    return {name: int(number) for name, number in lines}


@pytest.fixture
def with_a_bad_file(music):
    (music / "bad.mp3").write_bytes(b"nonsense" * 100)
    return music


def test_the_report_as_json(index, with_a_bad_file):
    music = with_a_bad_file
    done = index(music, "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert len(report["new"]) == 2
    assert report["unreadable"][0]["path"] == str(music / "bad.mp3")


def test_unreadable_files_are_listed(index, with_a_bad_file):
    music = with_a_bad_file
    done = index(music, "--json")
    assert f"{music / 'bad.mp3'}: cannot be decoded" in done.stderr


def test_people_are_told_in_sentences(index, music, terminal):
    write(music / ".attic" / "old.flac", 7, seconds=1)
    index(music)
    (music / "0.flac").rename(music / "zero.flac")
    (music / "1.flac").unlink()
    shown = index(music).stdout
    assert "1 moved, 1 missing; 1 track in the library" in shown
    assert f"{music / '0.flac'} → {music / 'zero.flac'}" in shown
    assert "Missing; people's tags are kept:" in shown
    assert f"Hidden folders, skipped; name one to index it:\n  {music / '.attic'}" in shown
    assert json.loads(index("--json").stdout)["hidden"] == [str(music / ".attic")]


@pytest.mark.parametrize("path", [[], ["nowhere"]])
def test_nothing_to_index_makes_no_library(index, tmp_path, path):
    assert isinstance(index(*path).exception, LibraryError)
    assert not path or not (tmp_path / "library.db").exists()


@pytest.fixture
def table(index, music, tmp_path):
    """A table of two tags, one of which is of no track; the music is indexed."""
    index(music)
    table = tmp_path / "tags.csv"
    table.write_text("user,path,tag\nann,0.flac,Jazz\nann,9.flac,Jazz\n")
    return table


@pytest.mark.parametrize(
    ("place", "reason"), [("no/x.csv", "there is no folder"), ("music", "a folder")]
)
def test_a_place_where_unmatched_rows_cannot_go(call, table, tmp_path, place, reason):
    assert reason in str(call("import", table, "--unmatched", tmp_path / place).exception)


def test_importing_a_table(call, table, tmp_path):
    trial = call("import", table, "--dry-run")
    assert counts(trial.stdout)["change"] == 0
    done = call("import", table, "--unmatched", tmp_path / "lost.csv")
    assert done.exit_code == 1
    ones = ("matched", "added", "tracks", "tags", "change")
    assert counts(done.stdout) == {"rows": 2, **dict.fromkeys(ones, 1)}
    assert "1 row of 1 item without a match:" in done.stderr
    assert "9.flac: no such track" in done.stderr
    lost = pl.read_csv(tmp_path / "lost.csv")
    assert lost.columns == ["item", "artist", "title", "reason", "rows"]
    assert lost.select("item", "reason", "rows").rows() == [("9.flac", "no such track", 1)]
    report = json.loads(call("import", table, "--json").stdout)
    assert (report["n_added"], report["change"]) == (0, None)


def test_importing_what_the_files_say(call, index, music, tmp_path):
    index(music)
    arguments = ("import", "--from-files", "--person", "my files")
    assert counts(call(*arguments, "--dry-run").stdout)["added"] == 2
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    assert counts(call(*arguments, "--dry-run").stdout)["added"] == 0
    assert call(*arguments).exit_code == 0
    with Library.open(tmp_path / "library.db") as library:
        assert len(library.changes.list()) == 1
        assert [person.name for person in library.opinions.people()] == ["my files"]
        assert library.opinions.tags().rows() == [("rock", 2, 1)]


def test_importing_a_field_that_no_file_has(call, index, music):
    index(music)
    none = call("import", "--from-files", "--fields", "mood")
    assert none.exit_code == 2
    assert "Nothing to import: no such tags" in none.stderr


def test_tags_that_harmonium_wrote_are_no_failure(call, index, music, tmp_path):
    shutil.rmtree(music)
    write(music / "0.flac", 0, seconds=1)
    index(music)
    table = tmp_path / "tags.csv"
    table.write_text("user,path,tag\nann,0.flac,jazz\n")
    call("import", table)
    assert call("write", "--people", "--yes").exit_code == 0
    index(music)
    done = call("import", "--from-files")
    assert done.exit_code == 0, done.output
    assert counts(done.stdout)["matched"] == 0
    assert "Nothing to import: 1 tag, all written by Harmonium" in done.stderr


@pytest.mark.parametrize("arguments", ["", "--from-files t.csv", "t.csv --features e.npz"])
def test_an_import_has_one_source(call, arguments):
    done = call("import", *arguments.split())
    assert done.exit_code == 2
    assert "Name one" in done.output


def test_people_are_told_how_to_take_an_import_back(call, index, music, tmp_path, terminal):
    index(music)
    table = tmp_path / "tags.csv"
    table.write_text("path,tag\n0.flac,jazz\n1.flac,jazz\n")
    shown = call("import", table, "--person", "me").stdout
    assert "2 of 2 rows matched: 2 tracks, 1 different tag, by me" in shown
    assert "2 new. To undo: harmonium undo 1" in shown
    again = call("import", table, "--person", "me").stdout
    assert "Nothing new" in again


def test_known_unreadable_files_are_no_news(index, music, monkeypatch):
    (music / "bad.mp3").write_bytes(b"no music")
    for file in music.iterdir():
        os.utime(file, (1e9, 1e9))  # long ago, so that the time tells that it has not changed
    assert index(music).exit_code == 1
    monkeypatch.setenv("FORCE_COLOR", "1")
    again = index()
    assert again.exit_code == 0
    assert "bad.mp3" not in again.output
    assert "1 unreadable as before, 2 unchanged" in without_styles(again.output)


def test_one_copy_is_a_copy(index, music, monkeypatch):
    (music / "copy.flac").write_bytes((music / "0.flac").read_bytes())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "1 copy; 2 tracks" in without_styles(index(music).output).replace("2 new, ", "")


def without_styles(output):
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", output).split())


@pytest.fixture
def songs(tmp_path):
    folder = tmp_path / "music"
    folder.mkdir()
    for k in range(2):
        write_sndfile(folder / f"{k}.wav", timed_noise(4, 8_000, seed=k), 8_000)
    return folder


@pytest.fixture
def index_by(call, data_home):
    return lambda *arguments: run_main("index", *arguments, "--engine", "serial")


def used(tmp_path):
    """The extractor that the library was indexed with."""
    with Library.open(str(tmp_path / "library.db")) as library:
        return library.settings.get(EXTRACTOR).partition("@")[0]


@pytest.mark.parametrize("content", [None, b"RIFF" + bytes(1000)])
def test_without_weights_the_old_features_work(content, index_by, songs, tmp_path, monkeypatch):
    file = tmp_path / "musicnn.safetensors"
    if content:
        file.write_bytes(content)
    monkeypatch.setattr(musicnn, "FILE", file)
    musicnn.load_networks.cache_clear()
    done = index_by(songs)
    assert (done.exit_code, done.stderr.count("Error:")) == (2, 1)
    assert "Install Harmonium again" in " ".join(done.stderr.split())
    assert index_by(songs, "--extractor", "timbre").exit_code == 0
    assert used(tmp_path) == "timbre"


def test_musicnn_for_a_new_library_that_keeps_its_extractor(index_by, songs, tmp_path):
    done = index_by(songs, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert used(tmp_path) == "musicnn"
    with Library.open(str(tmp_path / "library.db")) as library:
        assert library.tracks.features(library.tracks.ids(), extractor="musicnn")[1].shape[1] == 400
    assert index_by("--json").stderr == ""
    assert used(tmp_path) == "musicnn"
    index_by("--extractor", "timbre")
    assert "keeps the features of timbre" in index_by("--json").stderr
    assert used(tmp_path) == "timbre"


def test_windows_are_as_many_as_before_unless_others_are_named(index_by, songs, tmp_path):
    index_by(songs, "--windows", "1")
    assert used(tmp_path) == "paper"
    assert index_by("--windows", "3", "--json").stderr == ""
    assert used(tmp_path) == "paper*3"
    index_by("--json")
    assert used(tmp_path) == "paper*3"


def test_windows_of_an_extractor_that_chooses_them_itself(index_by, songs):
    done = index_by(songs, "-e", "musicnn", "--windows", "3")
    assert "chooses its windows itself" in done.stderr


def test_seconds_of_an_extractor_that_chooses_its_windows_itself(songs, tmp_path):
    with pytest.raises(DataError, match="'musicnn' sets its own windows"):
        run("features", songs, "-o", tmp_path / "a.csv", "-e", "musicnn", "--seconds", 5)
