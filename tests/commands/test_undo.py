"""Undoing changes with their files: changed since, moved, by later changes, in part, again."""

import json
import shutil

import mutagen
import pytest
from command_line import run
from tagged_files import tagged
from written_music import make_songs, predict, say

from harmonium.errors import LibraryError
from harmonium.library.filetags import Rules, read_tags
from harmonium.library.store.tracks import Track
from harmonium.library.write import last_change, plan_writes, undo_change, write_planned

OLD = ("Rock", "Élan vital")


@pytest.fixture
def songs(library, tmp_path):
    paths = make_songs(library, tmp_path / "music", ["mp3", "flac", "wav"])
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    return paths


@pytest.fixture
def written(songs, place):
    assert run("write", "--yes", "-L", place).exit_code == 0
    return songs


def is_old(songs):
    return {kind: path.read_bytes() == tagged(kind) for kind, path in songs.items()}


def add_genre(path, genre):
    file = mutagen.File(path)
    file["genre"] = [*file["genre"], genre]
    file.save()


def test_people_s_tags_come_back_too(songs, library, place):
    run("undo", "-L", place)
    assert library.opinions.triples().is_empty()
    done = run("undo", str(library.changes.list(1)[0].id), "-L", place)
    assert done.exit_code == 0
    assert set(library.opinions.triples()["tag"]) == {"dreamy"}


def test_step_by_step_back_to_the_beginning(written, library, place):
    first = run("undo", "-L", place)
    assert "3 files restored" in first.stdout
    second = run("undo", "-L", place)
    assert "3 tags removed" in second.stdout
    with pytest.raises(LibraryError, match="nothing to undo"):
        run("undo", "-L", place)
    assert all(is_old(written).values())


def test_undoing_the_undoing(written, library, place):
    new = {kind: path.read_bytes() for kind, path in written.items()}
    number = last_change(library).id
    run("undo", "-L", place)
    undoing = library.changes.list(1)[0]
    assert undoing.undoes == number
    assert run("undo", str(undoing.id), "-L", place).exit_code == 0
    assert {kind: path.read_bytes() for kind, path in written.items()} == new
    assert library.changes.get(number).undone_by is None


def test_a_change_is_undone_once(written, library, place):
    number = last_change(library).id
    run("undo", str(number), "-L", place)
    with pytest.raises(LibraryError, match="was undone already"):
        run("undo", str(number), "-L", place)


def test_a_file_that_was_changed_since_is_left(written, place):
    add_genre(written["flac"], "Swing")
    changed = written["flac"].read_bytes()
    done = run("undo", "-L", place)
    assert done.exit_code == 1
    assert "it was changed since" in " ".join(done.stderr.split())
    assert "partly undone: 2 files restored" in done.stdout
    assert is_old(written) == {"mp3": True, "flac": False, "wav": True}
    assert written["flac"].read_bytes() == changed


def test_the_fields_alone_of_a_file_that_was_changed_since(written, place):
    file = mutagen.File(written["flac"])
    file["title"] = ["Another title"]
    file.save()
    assert run("undo", "--fields-only", "-L", place).exit_code == 0
    assert read_tags(written["flac"]).genre == OLD
    assert read_tags(written["flac"]).title == "Another title"


def test_nothing_can_be_undone(written, place):
    for kind, path in written.items():
        path.write_bytes(tagged(kind) + b"changed")
    assert run("undo", "-L", place).exit_code == 2


def test_what_a_file_is_called_does_not_change_the_reason(library, place, tmp_path):
    name = "it was changed since.mp3"
    song = tmp_path / name
    song.write_bytes(tagged("mp3"))
    library.tracks.put([Track(str(song), sound="a sound")])
    say(library, [("ann", "dreamy", 1)])
    run("write", "--yes", "-L", place)
    song.chmod(0o444)
    done = run("undo", "-L", place)
    assert done.exit_code == 2
    assert f"{name}: it is read-only; make it writable" in " ".join(done.stderr.split())


def test_a_later_write_has_to_be_undone_first(written, library, place):
    first = last_change(library).id
    say(library, [("bob", "rainy", 1)])
    run("write", "--yes", "-L", place)
    later = last_change(library).id
    done = run("undo", str(first), "-L", place)
    assert done.exit_code == 2
    assert f"change {later} wrote to it later; undo that one first" in " ".join(done.stderr.split())
    for number in (later, first):
        assert run("undo", str(number), "-L", place).exit_code == 0
    assert all(is_old(written).values())


def test_of_several_later_writes_the_last_is_named(written, library, place):
    first = last_change(library).id
    for tag in ("rainy", "sunny"):
        say(library, [("bob", tag, 1)])
        run("write", "--yes", "-L", place)
    later = last_change(library).id
    done = run("undo", str(first), "-L", place)
    assert f"change {later} wrote to it later; undo that one first" in " ".join(done.stderr.split())


def test_a_later_write_that_was_undone_is_not_named(written, library, place):
    first = last_change(library).id
    say(library, [("bob", "rainy", 1)])
    run("write", "--yes", "-L", place)
    assert run("undo", "-L", place).exit_code == 0
    add_genre(written["flac"], "Swing")
    done = run("undo", str(first), "-L", place)
    assert done.exit_code == 1
    assert "it was changed since" in " ".join(done.stderr.split())
    assert "wrote to it later" not in " ".join(done.stderr.split())


def test_a_file_that_was_moved_is_found_by_its_track(written, library, place, tmp_path):
    new = tmp_path / "elsewhere.flac"
    shutil.move(written["flac"], new)
    track = library.tracks.resolve("#2")
    library.tracks.put([Track(str(new), sound=track.sound)])
    assert run("undo", "-L", place).exit_code == 0
    assert new.read_bytes() == tagged("flac")


def test_a_file_that_is_gone(written, place):
    written["mp3"].unlink()
    done = run("undo", "-L", place)
    assert done.exit_code == 1
    assert "'harmonium index' with its new folder finds it" in " ".join(done.stderr.split())


def test_what_was_undone_in_part_is_marked_and_does_not_block(written, library, place):
    add_genre(written["flac"], "Swing")
    number = last_change(library).id
    run("undo", "-L", place)
    undoing = library.changes.list(1)[0].id
    listed = run("undo", "--list", "-L", place).stdout.splitlines()
    assert listed[1].endswith(f"partly undone by {undoing}, 1 left")
    assert last_change(library).id == number - 1
    assert "removed" in run("undo", "-L", place).stdout
    with pytest.raises(
        LibraryError, match=f"To try change {number} again: harmonium undo {number}"
    ):
        run("undo", "-L", place)
    assert run("undo", number, "--fields-only", "-L", place).exit_code == 0
    assert library.changes.get(number).undone_by is not None


def test_an_interrupted_write_can_be_undone_and_goes_on(songs, library, place):
    plan = plan_writes(library, library.tracks.ids().tolist(), Rules())

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_planned(library, plan.files, progress=stop)
    assert last_change(library).summary == "tags written to 2 files"
    assert is_old(songs) == {"mp3": False, "flac": False, "wav": True}
    done = run("write", "--yes", "-L", place)
    assert "Tags written to 1 file; 2 already up to date." in done.stdout
    run("undo", "-L", place)
    assert is_old(songs) == {"mp3": False, "flac": False, "wav": True}
    run("undo", "-L", place)
    assert all(is_old(songs).values())


def test_ctrl_c_while_writing_and_undoing(songs, place, monkeypatch):
    """The second file is never written."""
    from harmonium.library import write

    class Second:
        """Does what it stands for once, and is interrupted then."""

        def __init__(self, work):
            self.work, self.calls = work, 0

        def __call__(self, *arguments, **options):
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return self.work(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(write, "apply_change", Second(write.apply_change))
        done = run("write", "--yes", "-L", place)
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Stopped. Each file is either the old or the new one." in done.stderr
    assert is_old(songs) == {"mp3": False, "flac": True, "wav": True}
    assert run("write", "--yes", "-L", place).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(write, "undo", Second(write.undo))
        done = run("undo", "-L", place)
    assert (done.exit_code, done.stderr) == (130, "Stopped. To continue: harmonium undo 3\n")
    assert sum(is_old(songs).values()) == 1
    for _ in range(2):
        assert run("undo", "-L", place).exit_code == 0
    assert all(is_old(songs).values())


def test_tags_that_a_later_change_touched_stay(songs, library, place):
    with library.begin():
        change = library.changes.begin("say", "ann changes her mind")
        library.opinions.say("ann", 1, absent=["dreamy"], change=change)
    done = run("undo", "1", "-L", place)
    assert done.exit_code == 1
    assert f"1 tag kept: change {change} came later. Undo that one first." in done.stderr
    assert "partly undone: 2 tags removed" in done.stdout


def test_an_interrupted_undo_goes_on(written, library):
    number = last_change(library).id

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        undo_change(library, number, progress=stop)
    assert sum(is_old(written).values()) == 1
    assert last_change(library).id == number
    report = undo_change(library, number)
    assert report.complete
    assert report.files_restored == 2
    assert all(is_old(written).values())


def test_the_list_for_programs(written, library, place):
    done = run("undo", "--list", "-L", place)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("2", "write", "tags written to 3 files"),
        ("1", "say", "3 tags"),
    ]
    run("undo", "-L", place)
    found = json.loads(run("undo", "--list", "--json", "-L", place).stdout)
    assert [one["undone_by"] for one in found] == [None, 3, None]
    assert found[0]["undoes"] == 2


def test_the_result_for_programs(written, place):
    found = json.loads(run("undo", "--json", "-L", place).stdout)
    assert found == {"undone": 2, "change": 3, "tags": 0, "files": 3, "complete": True}


def test_without_a_library(tmp_path):
    with pytest.raises(LibraryError, match="There is no library"):
        run("undo", "-L", tmp_path / "none.db")
