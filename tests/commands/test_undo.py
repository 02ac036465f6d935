"""Undoing changes with their files: changed since, moved, by later changes, in part, again."""

import json
import shutil

import mutagen
import pytest
from command_line import run
from tagged_files import tagged
from written_music import make_songs, predict, say

from harmonium.errors import LibraryError
from harmonium.library import write as writing
from harmonium.library.filetags import read_tags
from harmonium.library.store.tracks import Track
from harmonium.library.write import last_change

OLD = ("Rock", "Élan vital")


@pytest.fixture
def undo(place):
    return lambda *arguments: run("undo", *arguments, "-L", place)


@pytest.fixture
def write(place):
    return lambda: run("write", "--yes", "-L", place)


@pytest.fixture
def songs(library, tmp_path):
    paths = make_songs(library, tmp_path / "music", ["mp3", "flac", "wav"])
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    return paths


@pytest.fixture
def written(songs, write):
    assert write().exit_code == 0
    return songs


def is_old(songs):
    return {kind: path.read_bytes() == tagged(kind) for kind, path in songs.items()}


def add_genre(path, genre="Swing"):
    file = mutagen.File(path)
    file["genre"] = [*file["genre"], genre]
    file.save()


def one_line(text):
    return " ".join(text.split())


def test_step_by_step_back_to_the_beginning_and_forward_again(written, library, undo):
    new = {kind: path.read_bytes() for kind, path in written.items()}
    number = last_change(library).id
    assert "3 files restored" in undo().stdout
    undoing = library.changes.list(1)[0]
    assert undoing.undoes == number
    with pytest.raises(LibraryError, match="undone already"):
        undo(number)
    assert "3 tags removed" in undo().stdout
    assert library.opinions.triples().is_empty()
    with pytest.raises(LibraryError, match="nothing to undo"):
        undo()
    assert all(is_old(written).values())
    assert undo(library.changes.list(1)[0].id).exit_code == 0
    assert set(library.opinions.triples()["tag"]) == {"dreamy"}
    assert undo(undoing.id).exit_code == 0
    assert {kind: path.read_bytes() for kind, path in written.items()} == new
    assert library.changes.get(number).undone_by is None


def test_a_file_that_was_changed_since_is_left_and_does_not_block(written, library, undo):
    add_genre(written["flac"])
    changed, number = written["flac"].read_bytes(), last_change(library).id
    done = undo()
    assert done.exit_code == 1
    assert "it was changed since" in one_line(done.stderr)
    assert "partly undone: 2 files restored" in done.stdout
    assert is_old(written) == {"mp3": True, "flac": False, "wav": True}
    assert written["flac"].read_bytes() == changed
    undoing = library.changes.list(1)[0].id
    listed = undo("--list").stdout.splitlines()
    assert listed[1].endswith(f"partly undone by {undoing}, 1 left")
    assert last_change(library).id == number - 1
    assert "removed" in undo().stdout
    with pytest.raises(LibraryError, match=f"harmonium undo {number}"):
        undo()
    assert undo(number, "--fields-only").exit_code == 0
    assert library.changes.get(number).undone_by is not None


def test_the_fields_alone_of_a_file_that_was_changed_since(written, undo):
    file = mutagen.File(written["flac"])
    file["title"] = ["Another title"]
    file.save()
    assert undo("--fields-only").exit_code == 0
    assert read_tags(written["flac"]).genre == OLD
    assert read_tags(written["flac"]).title == "Another title"


def test_nothing_can_be_undone(written, undo):
    for kind, path in written.items():
        path.write_bytes(tagged(kind) + b"changed")
    assert undo().exit_code == 2


def test_what_a_file_is_called_does_not_change_the_reason(library, undo, write, tmp_path):
    song = tmp_path / "it was changed since.mp3"
    song.write_bytes(tagged("mp3"))
    library.tracks.put([Track(str(song), sound="a sound")])
    say(library, [("ann", "dreamy", 1)])
    write()
    song.chmod(0o444)
    done = undo()
    assert done.exit_code == 2
    assert f"{song.name}: it is read-only" in one_line(done.stderr)


def test_of_several_later_writes_the_last_has_to_be_undone_first(written, library, undo, write):
    numbers = [last_change(library).id]
    for tag in ("rainy", "sunny"):
        say(library, [("bob", tag, 1)])
        write()
        numbers.append(last_change(library).id)
    done = undo(numbers[0])
    assert done.exit_code == 2
    assert f"change {numbers[-1]} wrote to it later" in one_line(done.stderr)
    for number in reversed(numbers):
        assert undo(number).exit_code == 0
    assert all(is_old(written).values())


def test_a_later_write_that_was_undone_is_not_named(written, library, undo, write):
    first = last_change(library).id
    say(library, [("bob", "rainy", 1)])
    write()
    assert undo().exit_code == 0
    add_genre(written["flac"])
    done = undo(first)
    assert done.exit_code == 1
    assert "it was changed since" in one_line(done.stderr)
    assert "wrote to it later" not in one_line(done.stderr)


def test_a_file_that_was_moved_and_one_that_is_gone(written, library, undo, tmp_path):
    new = tmp_path / "elsewhere.flac"
    shutil.move(written["flac"], new)
    track = library.tracks.resolve("#2")
    library.tracks.put([Track(str(new), sound=track.sound)])
    written["mp3"].unlink()
    done = undo()
    assert done.exit_code == 1
    assert "harmonium index" in one_line(done.stderr)
    assert new.read_bytes() == tagged("flac")


class Second:
    """Does what it stands for once, and is interrupted then."""

    def __init__(self, work):
        self.work, self.calls = work, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        if self.calls == 2:
            raise KeyboardInterrupt
        return self.work(*arguments, **options)


def test_ctrl_c_while_writing_and_undoing(songs, undo, write, monkeypatch):
    """The second file is never written."""
    with monkeypatch.context() as patch:
        patch.setattr(writing, "apply_change", Second(writing.apply_change))
        done = write()
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Stopped. Each file is either the old or the new one." in done.stderr
    assert is_old(songs) == {"mp3": False, "flac": True, "wav": True}
    assert write().exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(writing, "undo", Second(writing.undo))
        done = undo()
    assert (done.exit_code, done.stderr) == (130, "Stopped. To continue: harmonium undo 3\n")
    assert sum(is_old(songs).values()) == 1
    for _ in range(2):
        assert undo().exit_code == 0
    assert all(is_old(songs).values())


def test_tags_that_a_later_change_touched_stay(songs, library, undo):
    with library.begin():
        change = library.changes.begin("say", "ann changes her mind")
        library.opinions.say("ann", 1, absent=["dreamy"], change=change)
    done = undo("1")
    assert done.exit_code == 1
    assert f"1 tag kept: change {change} came later." in done.stderr
    assert "partly undone: 2 tags removed" in done.stdout


def test_the_list_and_the_result_for_programs(written, undo):
    rows = [line.split("\t") for line in undo("--list").stdout.splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("2", "write", "tags written to 3 files"),
        ("1", "say", "3 tags"),
    ]
    done = json.loads(undo("--json").stdout)
    assert done == {"undone": 2, "change": 3, "tags": 0, "files": 3, "complete": True}
    found = json.loads(undo("--list", "--json").stdout)
    assert [one["undone_by"] for one in found] == [None, 3, None]
    assert found[0]["undoes"] == 2
