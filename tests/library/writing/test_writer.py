"""Files are written one by one, as one change: what is reported, and what the library knows."""

import os
import shutil
import signal
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from noise_files import write as write_noise
from sqlalchemy import select
from tagged_files import PEOPLES, tagged
from written_music import files_limited_to, reindex, say

from harmonium.errors import LibraryError
from harmonium.library import Library, filetags
from harmonium.library.filetags import Rules, UndoRecord, audio_digest, read_tags
from harmonium.library.filetags import replace as replacing
from harmonium.library.store.schema import track
from harmonium.library.writing.wanted import TagSources

OLD = tuple(PEOPLES["genre"])


class Killed(BaseException):
    """The process ends here."""


def test_the_parts_of_a_write_can_be_called_one_by_one(songs, library, changed):
    writer = library.writer
    assert writer.wanted([1], TagSources(predicted=False))[1].said == ("dreamy",)
    assert writer.rules({"mode": "append"}).mode == "append"
    assert writer.rules(Rules(scores=True)) == Rules(scores=True)
    outline = writer.outline(precision=None, skip=[2])
    plan = writer.plan(precision=None, skip=[2])
    assert outline.n_files == len(plan.files) == 2
    report = writer.write(plan)
    assert changed() == ["mp3", "m4a"]
    assert writer.last_change().id == report.change
    assert writer.undo(report.change).files_restored == 2
    assert changed() == []


def test_fields_are_remembered(songs, library):
    library.writer.set_fields({"mood": "comment", "Rainy": "mood"})
    assert library.writer.fields()["mood"] == "comment"
    assert library.writer.fields()["rainy"] == "mood"
    library.writer.set_fields({"mood": None})
    assert library.writer.fields()["mood"] == "mood"


def test_while_it_is_written_the_change_says_how_far(songs, library):
    summaries = []
    plan = library.writer.plan(precision=None)
    library.write(plan, progress=lambda *_: summaries.append(library.changes.list(1)[0].summary))
    assert summaries == [f"tags written to {n} of 3 files" for n in (1, 2, 3)]
    assert library.changes.list(1)[0].summary == "12 tags written to 3 files"


def test_a_file_that_cannot_be_read_or_written_does_not_stop_the_others(songs, library):
    songs["flac"].chmod(0o444)
    songs["m4a"].unlink()
    plan = library.writer.plan(precision=None)
    assert "read-only" in plan.failures[str(songs["flac"])]
    assert plan.failures.keys() == {str(songs["flac"]), str(songs["m4a"])}
    report = library.write(plan)
    assert (report.paths, report.failures) == ([str(songs["mp3"])], {})
    assert read_tags(songs["mp3"]).genre != OLD
    assert songs["flac"].read_bytes() == tagged("flac")


def test_a_write_without_any_file_is_no_change(songs, library):
    for path in songs.values():
        path.unlink()
    before = library.changes.list()
    assert library.write().change is None
    assert library.changes.list() == before


@pytest.mark.parametrize("redo", [False, True])
def test_the_rows_of_the_library_are_up_to_date(songs, library, redo):
    query = select(track.c.size, track.c.modified, track.c.tag_version).order_by(track.c.id)
    library.write(precision=None)
    if not redo:
        library.undo()
    now = [path.stat() for path in songs.values()]
    versions = ["ID3v2.4", "Vorbis comment", "MP4"]
    found = [tuple(row) for row in library.fetch(query)]
    assert found == [
        (status.st_size, status.st_mtime_ns, version)
        for status, version in zip(now, versions, strict=True)
    ]
    assert library.tracks.get(2).file_tags["genre"][-1] == ("hip hop" if redo else OLD[1])


@pytest.mark.parametrize("spare", [1, 512, 4096, 8192, 65_536])
def test_files_for_which_there_is_no_room_do_not_stop_the_others(library, tmp_path, spare):
    """The disk of the large ones is full: no file of their size can be written."""
    for number in range(3):
        write_noise(tmp_path / "music" / f"{number}-large.wav", number, seconds=70)
        write_noise(tmp_path / "music" / f"{number}-small.wav", number + 5, seconds=1)
    reindex(library, tmp_path / "music")
    small, large = ([*(tmp_path / "music").glob(f"*{size}*")] for size in ("small", "large"))
    say(library, [("ann", "rock", 1)])
    before = {path: path.read_bytes() for path in (*small, *large)}
    room = min(path.stat().st_size for path in large) - spare

    with files_limited_to(room):
        report = library.write()
    assert sorted(report.paths) == sorted(map(str, small))
    assert report.failures.keys() == set(map(str, large))
    assert all("cannot be read or written" in why for why in report.failures.values())
    assert library.changes.get(report.change).summary == "3 tags written to 3 files"
    assert library.writer.outline().n_files == 3

    again = library.write()
    assert sorted(again.paths) == sorted(map(str, large))
    with files_limited_to(room):
        undone = library.undo(again.change)
        assert (undone.files_restored, undone.files_left.keys()) == (0, set(map(str, large)))
        assert library.undo(report.change).files_restored == 3
    assert library.undo(again.change).files_restored == 3
    assert {path: path.read_bytes() for path in before} == before


def test_an_undo_with_one_of_two_disks_full_restores_what_it_can(library, tmp_path):
    for number in range(2):
        write_noise(tmp_path / "music" / f"{number}-large.wav", number, seconds=70)
        write_noise(tmp_path / "music" / f"{number}-small.wav", number + 5, seconds=1)
    reindex(library, tmp_path / "music")
    say(library, [("ann", "rock", 1)])
    number = library.write().change
    with files_limited_to(1_000_000):
        report = library.undo()
    assert report.files_restored == 2
    assert len(report.files_left) == 2
    assert library.changes.get(number).left == 2
    assert library.undo(number).complete


def test_each_write_or_undo_lists_a_folder_once(library, tmp_path, monkeypatch):
    for number in range(5):
        write_noise(tmp_path / "music" / f"{number}.flac", number, seconds=1)
    reindex(library, tmp_path / "music")
    for number in range(1, 6):
        library.say(number, "rock")
    listed = []
    scandir = os.scandir

    def look(folder):
        listed.append(folder)
        return scandir(folder)

    monkeypatch.setattr(replacing.os, "scandir", look)
    assert len(library.write().paths) == 5
    assert len(listed) == 1
    assert library.undo().files_restored == 5
    assert len(listed) == 2


@pytest.mark.parametrize("event", ["begin", "before_cursor_execute", "commit"])
def test_ctrl_c_in_a_transaction_lets_the_file_be_completed(songs, library, place, changed, event):
    """Nothing is cut in two, so there is no lock and no write without its record."""

    def interrupt_once(*_):
        if library._writing.locked() and not interrupted:
            interrupted.append(event)
            signal.raise_signal(signal.SIGINT)

    def after_the_first_file(n_done, total):
        if n_done == 1:
            sa.event.listen(library.engine, event, interrupt_once)

    interrupted = []
    with pytest.raises(KeyboardInterrupt) as caught:
        library.write(progress=after_the_first_file)
    assert changed() == ["mp3", "flac"]
    assert library.changes.list(1)[0].summary.endswith(" written to 2 files")
    with Library.open(place, wait=0) as other:
        other.settings.set("another program", "may write")
    assert caught.value.__traceback__ is not None


def test_an_undo_during_a_write_restores_all_of_it(songs, library, place, changed):
    def undo_after_two(n_done, total):
        if n_done == 2:
            with Library.open(place) as other:
                reports.append(other.undo())

    reports = []
    written = library.write(progress=undo_after_two)
    assert reports[0].complete
    assert (reports[0].files_restored, len(written.paths), len(written.failures)) == (2, 2, 1)
    assert f"change {reports[0].change} undoes it" in next(iter(written.failures.values()))
    assert changed() == []
    assert library.changes.get(written.change).undone_by == reports[0].change


def test_an_undo_stops_a_review(songs, library):
    change = library.review.answer(1, "rainy", True)
    library.undo(change)
    with pytest.raises(LibraryError, match="undoes it"):
        library.review.answer(2, "rainy", True, change=change)


def kill_at_the_rename(library, monkeypatch, n_files_before):
    """Write, and die when the record is kept, and the file is not replaced."""
    with monkeypatch.context() as patched:
        replaces = replacing.Path.replace
        seen = []

        def die(part, place):
            seen.append(place)
            if len(seen) > n_files_before:
                raise Killed
            return replaces(part, place)

        patched.setattr(replacing.Path, "replace", die)
        patched.setattr("harmonium.library.writing.undoable.UndoableWrites.finish", lambda _: None)
        with pytest.raises(Killed):
            library.write(predicted=False)


@pytest.mark.parametrize("command", ["index", "write", "undo"])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_write_that_did_not_happen_leaves_no_record(
    songs, library, monkeypatch, changed, command, n_before
):
    """The process was killed between the record and the rename."""
    kill_at_the_rename(library, monkeypatch, n_before)
    change = library.changes.list(1)[0].id
    assert len(library.changes.files(change)) == n_before + 1
    if command == "index":
        reindex(library, songs["mp3"].parents[1])
    elif command == "write":
        library.write(library.writer.plan(songs["m4a"], predicted=False))
    else:
        library.undo(1)  # what ann said
    assert [file.path for file in library.changes.files(change)] == [str(songs["mp3"])][:n_before]
    expected = f"tags written to {n_before} file{'s' * (n_before != 1)}, then stopped"
    assert library.changes.get(change).summary == expected
    assert not library.changes.pending_files()


def test_the_record_of_a_write_that_happened_just_before_a_kill_stays(
    songs, library, monkeypatch, changed
):
    finish = "harmonium.library.writing.undoable.UndoableWrites.finish"
    with monkeypatch.context() as patched:
        patched.setattr(finish, lambda _: None)
        report = library.write(library.writer.plan(songs["mp3"], predicted=False))
    assert len(library.changes.pending_files()) == 1
    library.writer.settle()
    assert not library.changes.pending_files()
    assert len(library.changes.files(report.change)) == 1
    assert library.undo().files_restored == 1
    assert changed() == []


def test_a_write_under_way_is_not_settled_by_another_process(songs, library, place, changed):
    """Another process looks between the record and the rename, and waits."""
    apply = filetags.apply_change
    waiting = []

    def look_meanwhile(change, *, keep, swept):
        def keep_and_look(record: UndoRecord):
            keep(record)
            with patch.object(replacing, "WAIT_SECONDS", 0), Library.open(place) as other:
                other.writer.settle()
                waiting.append(len(other.changes.pending_files()))

        return apply(change, keep=keep_and_look, swept=swept)

    with patch.object(filetags, "apply_change", look_meanwhile):
        report = library.write(library.writer.plan(songs["mp3"], predicted=False))
    assert waiting == [1]
    assert len(library.changes.files(report.change)) == 1
    library.undo()
    assert changed() == []


def test_copies_get_the_tags_too(library, copies):
    assert len(library.write().paths) == 2
    assert [read_tags(path).genre for path in copies] == [("rock",)] * 2
    assert library.tracks.get(1).path == str(copies[0])
    assert not reindex(library).moved
    assert not library.write().paths


@pytest.mark.parametrize("named", ["the file", "its folder"])
def test_tags_are_written_only_to_the_file_that_is_named(library, copies, named):
    name = copies[1] if named == "the file" else copies[1].parent
    planned = library.writer.plan(name)
    assert [file.change.path for file in planned.files] == [str(copies[1])]
    library.write(name)
    assert [read_tags(path).genre for path in copies] == [(), ("rock",)]
    library.undo()
    assert read_tags(copies[1]).genre == ()


def test_a_file_is_written_once_beside_a_link_to_it(library, copies):
    link = copies[0].with_name("a link.flac")
    link.symlink_to(copies[0])
    reindex(library)
    report = library.write()
    assert sorted(report.paths) == [str(path) for path in copies]
    assert not report.failures
    assert library.writer.outline().n_files == 0
    assert link.is_symlink()
    assert read_tags(link).genre == ("rock",)


def test_a_file_that_has_another_sound_since_it_was_indexed_is_left(library, copies):
    write_noise(copies[1], 2, seconds=1)
    other = copies[1].read_bytes()
    report = library.write()
    assert "another sound" in report.failures[str(copies[1])]
    assert read_tags(copies[0]).genre == ("rock",)
    assert copies[1].read_bytes() == other
    library.undo(progress=lambda *_: write_noise(copies[0], 3, seconds=1))  # and another meanwhile
    reindex(library)
    sounds = {track.path: track.sound for track in library.tracks.all()}
    assert sounds == {str(path): audio_digest(path) for path in copies}


def test_what_a_copy_holds_is_known_when_it_was_copied_after_the_write(library, copies):
    library.write(copies[0])
    other = copies[0].with_name("later.flac")
    shutil.copy(copies[0], other)
    reindex(library)
    assert library.writer.outline().n_files == 1  # the copy without the tag
    assert [file.change.path for file in library.writer.plan().files] == [str(copies[1])]
