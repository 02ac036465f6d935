"""`harmonium index` and `harmonium import`, as they are called."""

import json
import os
import re

import polars as pl
import pytest
from noise_files import write
from typer.testing import CliRunner

from harmonium.cli import app
from harmonium.errors import LibraryError
from harmonium.library import Library


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs harmonium with a library and a cache of its own."""
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "library.db"))
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "cache"))

    def call(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments)])

    return call


@pytest.fixture
def index(call):
    return lambda *arguments: call("index", *arguments, "-e", "timbre", "--engine", "serial")


@pytest.fixture
def music(tmp_path):
    folder = tmp_path / "music"
    for k in range(2):
        write(folder / f"{k}.flac", k, tags=["Rock"], seconds=1)
    return folder


def counts(output):
    lines = (line.split("\t") for line in output.splitlines())
    return {name: int(number) for name, number in lines}


def test_indexing_as_json_and_what_cannot_be_used(index, music):
    (music / "bad.mp3").write_bytes(b"nonsense" * 100)
    done = index(music, "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert len(report["new"]) == 2
    assert report["unreadable"][0]["path"] == str(music / "bad.mp3")
    assert f"{music / 'bad.mp3'}: cannot be decoded" in done.stderr


def test_people_are_told_in_sentences(index, music, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10000")
    index(music)
    (music / "0.flac").rename(music / "zero.flac")
    (music / "1.flac").unlink()
    shown = index(music).stdout
    assert "1 moved, 1 missing; 1 track in the library" in shown
    assert f"{music / '0.flac'} → {music / 'zero.flac'}" in shown
    assert "Missing; people's tags are kept:" in shown


def test_hidden_folders_are_counted_and_named(index, music, monkeypatch):
    write(music / ".attic" / "old.flac", 7, seconds=1)
    assert counts(index(music).stdout)["hidden folders"] == 1
    assert json.loads(index("--json").stdout)["hidden"] == [str(music / ".attic")]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10000")
    shown = index(music).stdout
    assert f"Hidden folders, skipped; name one to index it:\n  {music / '.attic'}" in shown


def test_a_dry_run_says_what_would_be_new(call, index, music, tmp_path):
    index(music)
    for expected in (2, 0):
        assert counts(call("import", "--from-files", "--dry-run").stdout)["added"] == expected
        call("import", "--from-files")
    with Library.open(tmp_path / "library.db") as library:
        assert len(library.changes.list()) == 1


@pytest.mark.parametrize("path", [[], ["nowhere"]])
def test_nothing_to_index_is_an_error_and_makes_no_library(index, tmp_path, path):
    assert isinstance(index(*path).exception, LibraryError)
    assert not path or not (tmp_path / "library.db").exists()


def test_importing_a_table(call, index, music, tmp_path):
    index(music)
    table = tmp_path / "tags.csv"
    table.write_text("user,path,tag\nann,0.flac,Jazz\nann,9.flac,Jazz\n")
    trial = call("import", table, "--dry-run")
    assert counts(trial.stdout)["change"] == 0
    done = call("import", table, "--unmatched", tmp_path / "lost.csv")
    assert done.exit_code == 1
    assert counts(done.stdout) == {
        **{"rows": 2, "matched": 1, "added": 1},
        **{"tracks": 1, "tags": 1, "change": 1},
    }
    assert "1 row of 1 item without a track:" in done.stderr
    assert "9.flac: no such track" in done.stderr
    lost = pl.read_csv(tmp_path / "lost.csv")
    assert lost.columns == ["item", "artist", "title", "reason", "rows"]
    assert lost.select("item", "reason", "rows").rows() == [("9.flac", "no such track", 1)]
    report = json.loads(call("import", table, "--json").stdout)
    assert (report["n_added"], report["change"]) == (0, None)


def test_importing_what_the_files_say(call, index, music, tmp_path):
    index(music)
    done = call("import", "--from-files", "--person", "my files")
    assert done.exit_code == 0, done.output
    with Library.open(tmp_path / "library.db") as library:
        assert [person.name for person in library.opinions.people()] == ["my files"]
        assert library.opinions.tags().rows() == [("rock", 2, 1)]
    none = call("import", "--from-files", "--fields", "mood")
    assert none.exit_code == 2
    assert "Nothing to import: the files had no such tags" in none.stderr


def test_tags_that_harmonium_wrote_are_no_failure(call, index, music, tmp_path):
    for path in music.iterdir():
        path.unlink()
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
    assert "Nothing to import: the files have 1 tag, all written by Harmonium" in done.stderr


def test_an_import_is_not_done_where_the_rest_cannot_be_written(call, index, music, tmp_path):
    index(music)
    table = tmp_path / "tags.csv"
    table.write_text("user,path,tag\nann,0.flac,jazz\n")
    for place, reason in ((tmp_path / "no" / "x.csv", "there is no folder"), (music, "a folder")):
        done = call("import", table, "--unmatched", place)
        assert reason in str(done.exception)
    with Library.open(tmp_path / "library.db") as library:
        assert not len(library.opinions.tags())


def test_importing_both_or_nothing_is_wrong_usage(call, tmp_path):
    for arguments, word in (
        ([], "Name a table, or"),
        (["--from-files", tmp_path / "t.csv"], "not both"),
    ):
        done = call("import", *arguments)
        assert done.exit_code == 2
        assert word in done.output


def test_people_are_told_how_to_take_an_import_back(call, index, music, tmp_path, monkeypatch):
    index(music)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10000")
    table = tmp_path / "tags.csv"
    table.write_text("path,tag\n0.flac,jazz\n1.flac,jazz\n")
    shown = call("import", table, "--person", "me").stdout
    assert "2 of 2 rows matched: 2 tracks, 1 different tag, by me" in shown
    assert "2 new. To undo: harmonium undo 1" in shown
    again = call("import", table, "--person", "me").stdout
    assert "Nothing new" in again


def test_a_folder_that_has_gone_and_one_with_a_tilde(index, music, monkeypatch):
    monkeypatch.setenv("HOME", str(music.parent))
    said = counts(index("~/music").stdout)
    assert said["new"] == said["tracks in the library"] == 2
    assert counts(index().stdout)["unchanged"] == 2
    music.rename(music.with_name("elsewhere"))
    done = index(music)
    assert done.exit_code == 0, done.output
    assert counts(done.stdout)["missing"] == 2


def test_known_unreadable_files_are_no_news_and_one_copy_is_one(index, music, monkeypatch):
    (music / "bad.mp3").write_bytes(b"no music")
    (music / "copy.flac").write_bytes((music / "0.flac").read_bytes())
    for file in music.iterdir():
        os.utime(file, (1e9, 1e9))  # long ago, so that the time tells that it has not changed
    assert index(music).exit_code == 1
    monkeypatch.setenv("FORCE_COLOR", "1")
    again = index()
    assert again.exit_code == 0
    assert "bad.mp3" not in again.output
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", again.output).split())
    assert "1 copy, 1 unreadable as before, 2 unchanged" in words
