"""Undoing finds each file of a change: as written, moved, restored already, changed or gone."""

import os
import shutil

import pytest
from noise_files import write as write_noise
from processes_in_tests import reports_of_killed
from tagged_files import PEOPLES, tagged
from written_music import change_title, reindex, say

from harmonium.errors import LibraryError
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store.tracks import Track

OLD = tuple(PEOPLES["genre"])


@pytest.fixture
def written(songs, library):
    library.write(precision=None)
    return songs


def reason(report):
    (why,) = report.files_left.values()
    return why


def test_steps_back_to_the_beginning_can_be_retraced(written, library, changed):
    new = {kind: path.read_bytes() for kind, path in written.items()}
    number = library.writer.last_change().id
    undoing = library.undo()
    assert undoing.files_restored == 3
    assert library.changes.get(undoing.change).undoes == number
    with pytest.raises(LibraryError, match="undone already"):
        library.undo(number)
    said = library.undo()
    assert said.ended == 3
    assert library.opinions.triples().is_empty()
    with pytest.raises(LibraryError, match="nothing to undo"):
        library.undo()
    assert changed() == []
    library.undo(said.change)
    assert set(library.opinions.triples()["tag"]) == {"dreamy"}
    library.undo(undoing.change)
    assert {kind: path.read_bytes() for kind, path in written.items()} == new
    assert library.changes.get(number).undone_by is None


def test_a_change_that_was_redone_twice_is_undone_only_as_its_files_are(written, library, changed):
    write = library.changes.list(1)[0].id
    first, redo, again = write + 1, write + 2, write + 3
    for number in (write, first, redo, first, again, write + 5):  # the last one undoes nothing
        assert library.undo(number).complete
    assert len(changed()) == 3
    assert library.changes.get(write).undone_by is None
    assert library.undo(write).complete
    assert changed() == []


def test_a_file_that_was_changed_since_is_left(written, library, changed):
    change_title(written["flac"])
    edited = written["flac"].read_bytes()
    report = library.undo()
    assert "it was changed since" in report.files_left[str(written["flac"])]
    assert report.files_restored == 2
    assert changed() == ["flac"]
    assert written["flac"].read_bytes() == edited


def test_a_file_that_was_changed_since_does_not_block(written, library):
    change_title(written["flac"])
    number = library.writer.last_change().id
    report = library.undo()
    change = library.changes.get(number)
    assert (change.undone_in_part_by, change.left) == (report.change, 1)
    assert library.writer.last_change().id == number - 1
    assert library.undo().ended
    with pytest.raises(LibraryError, match=f"harmonium undo {number}"):
        library.undo()


def test_the_fields_of_a_file_that_was_changed_since_are_restored_if_asked_for(written, library):
    change_title(written["flac"])
    number = library.writer.last_change().id
    library.undo(number)
    assert library.undo(number, exact=False).complete
    assert library.changes.get(number).undone_by is not None
    tags = read_tags(written["flac"])
    assert (tags.genre, tags.title) == (OLD, "Another title")


def test_what_a_file_is_called_does_not_change_the_reason(library, tmp_path):
    song = tmp_path / "it was changed since.mp3"
    song.write_bytes(tagged("mp3"))
    library.tracks.put([Track(str(song), sound=audio_digest(song))])
    say(library, [("ann", "dreamy", 1)])
    library.write()
    song.chmod(0o444)
    assert f"{song.name}: it is read-only" in reason(library.undo())


def test_after_an_undo_that_could_do_nothing_the_same_change_is_the_last_one(written, library):
    """It is tried again, rather than an older one that has nothing to do with it."""
    number = library.writer.last_change().id
    for path in written.values():
        path.chmod(0o444)
    for _ in range(2):
        report = library.undo()
        assert (report.n_done, report.n_left) == (0, 3)
        assert library.writer.last_change().id == number
    assert set(library.opinions.triples()["tag"]) == {"dreamy"}
    assert library.changes.get(number).undone_in_part_by is None
    for path in written.values():
        path.chmod(0o644)
    assert library.undo().files_restored == 3
    assert library.changes.get(number).undone_by is not None


def test_an_older_change_is_undone_if_it_is_named(written, library):
    for path in written.values():
        path.chmod(0o444)
    library.undo()
    assert library.undo(1).ended == 3


def test_the_last_of_several_writes_is_named_until_it_is_undone(written, library, changed):
    numbers = [library.writer.last_change().id]
    for tag in ("rainy", "sunny"):
        say(library, [("bob", tag, 1)])
        library.write(precision=None)
        numbers.append(library.writer.last_change().id)
    report = library.undo(numbers[0])
    assert report.n_done == 0
    for why in report.files_left.values():
        assert f"change {numbers[-1]} wrote to it later" in why
    for number in numbers[:0:-1]:
        assert library.undo(number).complete
    change_title(written["flac"])
    report = library.undo(numbers[0])
    assert "it was changed since" in reason(report)
    assert "wrote to it later" not in reason(report)
    assert changed() == ["flac"]


def test_a_file_that_was_moved_is_found(written, library, tmp_path):
    new = tmp_path / "elsewhere.flac"
    shutil.move(written["flac"], new)
    library.tracks.put([Track(str(new), sound=library.track("#2").sound)])
    assert library.undo().complete
    assert new.read_bytes() == tagged("flac")


def test_a_file_that_an_undo_of_a_later_write_restored_before_it_was_moved(
    written, library, changed, tmp_path
):
    write = library.writer.last_change().id
    undoing = library.undo(write).change
    again = library.write(precision=None).change
    library.undo(undoing)  # a redo, which finds the files as written
    library.undo(again)
    assert library.changes.get(write).undone_by is None
    new = tmp_path / "elsewhere.flac"
    shutil.move(written["flac"], new)
    library.tracks.put([Track(str(new), sound=library.track("#2").sound)])
    report = library.undo(write)
    assert report.complete, report
    assert report.files_restored == 0
    assert new.read_bytes() == tagged("flac")


def test_a_file_that_is_gone_is_named_with_a_way_to_find_it(written, library, changed):
    written["mp3"].rename(written["mp3"].with_name("elsewhere"))
    report = library.undo()
    assert report.files_restored == 2
    assert "the file is gone" in reason(report)
    assert "harmonium index" in reason(report)


def test_a_file_that_cannot_be_read_is_not_taken_for_one_that_is_gone(written, library):
    written["mp3"].unlink()
    written["mp3"].mkdir()
    report = library.undo()
    assert "not a file" in report.files_left[str(written["mp3"])]


def test_of_two_equal_files_that_changed_places_each_is_restored(library, copies):
    """Also if another program has written one of them anew: its inode does not tell."""
    first, second = copies
    before = first.read_bytes()
    library.write(str(first))
    moved = first.with_name("moving")
    first.rename(moved)
    second.rename(first)
    second.write_bytes(moved.read_bytes())
    moved.unlink()
    reindex(library)
    library.write(str(first))
    assert first.read_bytes() == second.read_bytes() != before
    assert library.undo().files_restored == 1
    assert library.undo().files_restored == 1
    assert first.read_bytes() == second.read_bytes() == before


def test_copies_are_restored_unless_they_were_changed(library, copies):
    before = [path.read_bytes() for path in copies]
    library.write()
    change_title(copies[1])
    edited = copies[1].read_bytes()
    report = library.undo()
    assert "it was changed since" in report.files_left[str(copies[1])]
    assert [copies[0].read_bytes(), copies[1].read_bytes()] == [before[0], edited]


@pytest.mark.parametrize("same", [True, False], ids=["the same bytes", "other titles"])
@pytest.mark.parametrize("which", [0, 1], ids=["the track's file", "the copy"])
def test_a_copy_that_was_renamed_is_found(library, copies, same, which):
    if not same:
        change_title(copies[0])
    before = [path.read_bytes() for path in copies]
    number = library.write().change
    moved = copies[which].with_name("renamed.flac")
    copies[which].rename(moved)
    kept = copies[1 - which]
    report = library.undo()  # the library does not know yet
    assert "the file is gone" in report.files_left[str(copies[which])]
    assert kept.read_bytes() == before[1 - which]
    assert read_tags(moved).genre == ("rock",)
    reindex(library)
    assert library.undo(number).complete
    assert moved.read_bytes() == before[which]
    assert kept.read_bytes() == before[1 - which]


def test_a_copy_that_has_another_ones_name_is_found(library, copies):
    before = copies[0].read_bytes()
    library.write(copies[0])
    spare = copies[0].with_suffix(".spare")
    for old, new in [(copies[0], spare), (copies[1], copies[0]), (spare, copies[1])]:
        old.rename(new)
    assert [read_tags(path).genre for path in copies] == [(), ("rock",)]
    reindex(library)
    assert library.undo().files_restored == 1
    assert [path.read_bytes() for path in copies] == [before, before]


@pytest.mark.parametrize("name", ["a first.flac", "z last.flac"])
def test_of_two_equal_files_the_one_that_was_written_is_restored(library, copies, name):
    """It was moved, and somebody had made a copy of it: the copy is theirs."""
    copies[1].unlink()
    before = copies[0].read_bytes()
    library.write(copies[0])
    written = copies[0].read_bytes()
    theirs = copies[0].with_name("m copy.flac")
    shutil.copy(copies[0], theirs)
    moved = copies[0].with_name(name)
    copies[0].rename(moved)
    reindex(library)
    report = library.undo()
    assert (report.files_restored, report.complete) == (1, True)
    assert moved.read_bytes() == before
    assert theirs.read_bytes() == written


def test_a_file_that_cannot_be_written_is_not_replaced_by_a_copy_of_it(library, copies):
    library.write(copies[0])
    shutil.copy(copies[0], copies[1])
    copies[0].chmod(0o444)
    written = copies[1].read_bytes()
    assert "read-only" in reason(library.undo())
    assert copies[1].read_bytes() == written


def test_two_equal_changes_are_undone_where_the_file_is_now(library, copies):
    other, spare = copies[0].with_stem("other"), copies[0].with_suffix(".spare")
    copies[1].unlink()
    write_noise(other, 99)
    reindex(library, copies[0].parent)
    before = copies[0].read_bytes()
    write = library.write(library.writer.plan(copies[0], predicted=False)).change
    assert library.undo(write).complete
    again = library.write(library.writer.plan(copies[0], predicted=False)).change
    assert library.undo(write + 1).complete  # redone: the file is so already
    for old, new in [(copies[0], spare), (other, copies[0]), (spare, other)]:
        old.rename(new)
    reindex(library)
    assert [library.undo(number).complete for number in (again, write)] == [True, True]
    assert other.read_bytes() == before


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_kill_at_any_moment_leaves_whole_files_that_undo_restores(tmp_path):
    reports = reports_of_killed("write", tmp_path, "2", "12")
    assert [report["killed"] for report in reports] == [False] + [True] * 12
    assert set(reports[0]["songs"]) == {"new"}
    moments = {report["songs"].count("new") for report in reports[1:]}
    assert len(moments) > 3  # all over the write
    for report in reports:
        assert "neither" not in report["songs"]
        assert set(report["undone"]) == set(report["restored"]) == {"old"}
        assert set(report["again"]) == {"new"}
        assert report["left"] == []
