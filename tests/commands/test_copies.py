"""Files with the same sound: each of their paths names the track, and tags go to each of them."""

import json

import pytest
from command_line import run
from noise_files import write

from harmonium.library.filetags import read_tags
from harmonium.library.index import index


@pytest.fixture
def files(library, tmp_path):
    """A copy that comes first in the alphabet, and the album's own file."""
    folder = tmp_path / "music"
    names = ("Downloads/copy of a song.flac", "Zappa/song.flac")
    paths = [folder / name for name in names]
    for path in paths:
        write(path, 1, seconds=1)
    index(library, [folder], extractor="timbre", engine="serial")
    assert library.tracks.count() == 1
    return paths


def test_every_path_names_the_track(library, place, files):
    for name in (*files, "Zappa/song.flac", "song", "copy of a song.flac"):
        assert library.tracks.resolve(str(name)).id == 1
        assert run("say", name, "--unsay", "rock", "-L", place).exit_code == 0
    assert library.tracks.find(str(files[1])).id == 1


def test_a_copy_is_new_once(library, files):
    """It is counted in every run, and listed where it is new."""
    first = index(library, [files[0].parents[1]], extractor="timbre", engine="serial")
    assert len(first.copies) == 1
    assert first.known_copies == {str(files[1])}
    other = write(files[0].with_name("another.flac"), 1, seconds=1)
    report = index(library, extractor="timbre", engine="serial")
    new = {path for path, _ in report.copies} - report.known_copies
    assert new == {str(other)}


def test_tags_are_written_to_each_and_taken_back_from_each(library, place, files):
    before = [path.read_bytes() for path in files]
    run("say", "#1", "rock", "-L", place)
    assert run("write", "--yes", "-L", place).exit_code == 0
    assert [read_tags(path).genre for path in files] == [("rock",)] * 2
    assert library.tracks.get(1).path == str(files[0])
    report = index(library, extractor="timbre", engine="serial")
    assert not report.moved
    assert run("undo", "-L", place).exit_code == 0
    assert [path.read_bytes() for path in files] == before


def test_tags_are_written_to_the_one_that_is_asked_for(library, place, files):
    run("say", "#1", "rock", "-L", place)
    for name in (files[1], files[1].parent):
        planned = json.loads(run("write", name, "--dry-run", "--json", "-L", place).stdout)
        assert [one["path"] for one in planned] == [str(files[1])]
    assert run("write", files[1], "-L", place).exit_code == 0
    assert [read_tags(path).genre for path in files] == [(), ("rock",)]
    assert run("undo", "-L", place).exit_code == 0
    assert read_tags(files[1]).genre == ()
