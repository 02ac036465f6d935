"""Whatever happens while a file is written, there is the old one or the new one."""

import errno
import fcntl
import io
import os
import random
import re
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from processes_in_tests import reports_of_killed
from tagged_files import tagged
from written_music import files_limited_to

from harmonium.errors import FileChangedError, FileTagError
from harmonium.library.filetags import UndoRecord, apply_change, plan_write, read_tags, undo
from harmonium.library.filetags import replace as replacing
from harmonium.library.filetags.flac import Flac

PART = re.compile(r"\.harmonium-[0-9a-f]{16}\.part")


@pytest.fixture
def song(tmp_path):
    path = tmp_path / "song.flac"
    path.write_bytes(tagged("flac"))
    return path


def assert_untouched(song):
    assert song.read_bytes() == tagged("flac")
    assert [path.name for path in song.parent.iterdir()] == [song.name]


def write(song, **options) -> UndoRecord:
    return apply_change(plan_write(song, ["jazz"]), **options)


@pytest.mark.parametrize("kind", ["mp3", pytest.param("ogg", marks=pytest.mark.long)])
def test_a_process_that_is_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path, kind):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "original").write_bytes(tagged(kind))
    reports = reports_of_killed("write_file", folder, tmp_path / "original")
    for way in ("old", "new"):
        some = [report for report in reports if report["from"] == way]
        assert len(some) > 20
        assert {report["song"] for report in some} == {"old", "new"}
        assert [report["killed"] for report in some] == [True] * (len(some) - 1) + [False]
        assert all(report["undone"] for report in some)
        names = {name for report in some for name in report["folder"]}
        assert len([name for name in names if PART.fullmatch(name)]) == 2
        assert {name for name in names if not PART.fullmatch(name)} == {"song", "kept", "kept.new"}
        assert not any(map(PART.fullmatch, some[-1]["folder"]))


def test_only_what_a_killed_process_left_is_removed(song):
    names = (".harmonium-0123456789abcdef.part", ".harmonium-fedcba9876543210.part", ".part")
    dead, alive, other = (song.with_name(name) for name in names)
    for path in (dead, alive, other):
        path.write_bytes(b"half a file")
    with alive.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write(song)
        assert [path.exists() for path in (dead, alive, other)] == [False, True, True]
    assert apply_change(plan_write(song, ["pop"])) is not None
    assert not alive.exists()


def part_of(song):
    """Where the new file is written before it takes the old one's place."""
    seen = []

    def look(record):
        seen.extend(path for path in song.parent.iterdir() if PART.fullmatch(path.name))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(song, keep=look)
    assert_untouched(song)  # as whenever the record cannot be kept
    (part,) = seen
    return part


@pytest.fixture
def victim(tmp_path_factory):
    """A file elsewhere that must stay as it is."""
    victim = tmp_path_factory.mktemp("elsewhere") / "victim"
    victim.write_bytes(b"precious")
    victim.chmod(0o600)
    os.utime(victim, ns=(10**18, 10**18))
    yield victim
    status = victim.stat()
    assert (victim.read_bytes(), status.st_mode & 0o777) == (b"precious", 0o600)
    assert status.st_mtime_ns == 10**18


@pytest.mark.parametrize("kind", ["leading nowhere", "to a file", "to a pipe", "a folder"])
def test_what_is_no_file_is_neither_followed_nor_removed(song, victim, kind):
    part = part_of(song)
    target = victim if kind == "to a file" else victim.with_name("target")
    if kind == "a folder":
        part.mkdir()
    else:
        part.symlink_to(target)
    if kind == "to a pipe":
        os.mkfifo(target)
    with pytest.raises(FileTagError, match=rf"remove {re.escape(part.name)}"):
        write(song)
    assert song.read_bytes() == tagged("flac")
    assert part.is_dir() if kind == "a folder" else part.is_symlink()
    assert target.exists() == (kind in ("to a file", "to a pipe"))


def test_a_planted_hard_link_is_removed_without_its_file(song, victim):
    part = part_of(song)
    part.hardlink_to(victim)
    write(song)
    assert not part.exists()


def test_a_part_that_is_swept_away_before_it_is_locked_is_made_again(song, monkeypatch):
    swept = []
    lock = replacing.try_lock

    def sweep_first(descriptor, *rest, **options):
        if not swept:
            swept.append(part)
            part.unlink()
        return lock(descriptor, *rest, **options)

    part = part_of(song)
    monkeypatch.setattr(replacing, "try_lock", sweep_first)
    undo(song, write(song))
    assert swept
    assert_untouched(song)


def test_a_link_that_takes_the_place_of_the_new_file_is_not_touched(song, victim, monkeypatch):
    song.chmod(0o646)
    part = part_of(song)

    def swap(target):
        part.unlink()
        part.symlink_to(victim)

    damaging(monkeypatch, swap)
    with pytest.raises(FileTagError, match="removed the new file"):
        write(song)
    assert_untouched(song)


def test_what_a_killed_process_left_is_removed_where_there_are_no_locks(song, monkeypatch):
    monkeypatch.setattr(replacing, "_IS_WINDOWS", True)
    part_of(song).write_bytes(b"half a file")
    undo(song, write(song))
    assert_untouched(song)


def test_two_programs_do_not_write_to_one_file_at_once(song, monkeypatch):
    monkeypatch.setattr(replacing, "WAIT_SECONDS", 0)
    seen = []

    def second(record):
        seen.append((record, song.read_bytes()))
        with pytest.raises(FileTagError, match="another program"):
            write(song)

    record = write(song, keep=second)
    assert seen == [(record, tagged("flac"))]  # it is kept before the file changes
    assert read_tags(song).genre[-1] == "jazz"
    assert [path.name for path in song.parent.iterdir()] == [song.name]


def edit_in_place(path, status):
    """What another program may do: other bytes, the same size and the same time; the new bytes."""
    with path.open("r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"0123456789")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "opus", "m4a", "wav", "aiff"])
@pytest.mark.parametrize("coarse", [False, True], ids=["", "times in whole seconds"])
@pytest.mark.parametrize("undoing", [False, True], ids=["write", "undo"])
def test_an_edit_that_shows_only_in_the_bytes_is_not_lost(
    tmp_path, monkeypatch, kind, coarse, undoing
):
    if coarse:  # as on a file system where an edit within the second does not show
        monkeypatch.setattr(replacing, "_OF_CONTENT", ("st_ino", "st_size"))
    song = tmp_path / "song"
    song.write_bytes(tagged(kind))
    work = partial(undo, record=write(song)) if undoing else write
    status = song.stat()
    edited = []

    def edit(_):
        edited.append(edit_in_place(song, status))

    with pytest.raises(FileTagError, match="changed it during the write"):
        work(song, keep=edit)
    assert song.read_bytes() == edited[0]
    assert list(tmp_path.iterdir()) == [song]


def test_an_edit_just_before_undo_opens_the_file_is_not_lost(song, monkeypatch):
    record = write(song)
    opens = replacing.open_file

    def edit_first(path):
        edited.append(edit_in_place(song, song.stat()))
        return opens(path)

    edited = []
    monkeypatch.setattr(replacing, "open_file", edit_first)
    with pytest.raises(FileChangedError):
        undo(song, record)
    assert song.read_bytes() == edited[-1]


def test_undo_waits_for_a_write_that_is_not_finished(song):
    """The record is kept, and the file is not written yet: it only seems to be as before."""
    undone = []

    def keep(record):
        thread = threading.Thread(target=lambda: undone.append(undo(song, record)))
        thread.start()
        thread.join(0.3)
        threads.append(thread)

    threads = []
    write(song, keep=keep)
    threads[0].join()
    assert undone[0] is not None
    assert_untouched(song)


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "m4a", "wav", "aiff"])
def test_where_there_is_no_room_nothing_changes(tmp_path, kind):
    """Whatever is written when the disk is full: some of it is in the file, some in a buffer."""
    song = tmp_path / "song"
    before = tagged(kind, picture=True)
    song.write_bytes(before)
    change = plan_write(song, ["jazz"])
    for size in range(0, min(len(tagged(kind, picture=True)), 1 << 16), 512):
        with files_limited_to(size):
            with pytest.raises(FileTagError, match="song cannot be read or written"):
                apply_change(change)
            assert song.read_bytes() == before
            assert list(tmp_path.iterdir()) == [song]


@pytest.mark.parametrize("kind", ["mp3", "ogg", "m4a"])
def test_where_there_is_no_room_nothing_is_undone(tmp_path, kind):
    song = tmp_path / "song"
    song.write_bytes(tagged(kind, picture=True))
    record = write(song)
    written = song.read_bytes()
    for size in range(0, min(len(tagged(kind, picture=True)), 1 << 16), 512):
        with files_limited_to(size):
            with pytest.raises(FileTagError, match="song cannot be read or written"):
                undo(song, record)
            assert song.read_bytes() == written
            assert list(tmp_path.iterdir()) == [song]
    undo(song, record)
    assert song.read_bytes() == tagged(kind, picture=True)


def test_a_name_that_is_free_again_just_after_it_was_taken_is_tried_again(song, monkeypatch):
    """The other process has finished between our attempt and a look at what it has made."""
    part = part_of(song)
    opens = os.open

    def take_it_for_a_moment(path, *rest):
        if path == part and not taken:
            taken.append(part)
            raise FileExistsError(errno.EEXIST, "exists", path)
        return opens(path, *rest)

    taken = []
    monkeypatch.setattr(replacing.os, "open", take_it_for_a_moment)
    undo(song, write(song))
    assert taken
    assert_untouched(song)


def test_a_folder_is_listed_once_for_all_files_of_a_run(song, monkeypatch):
    other = song.with_name("other.flac")
    other.write_bytes(song.read_bytes())
    left = song.with_name(".harmonium-0123456789abcdef.part")
    left.write_bytes(b"half a file")
    listed = []
    scandir = os.scandir

    def look(folder):
        listed.append(folder)
        return scandir(folder)

    monkeypatch.setattr(replacing.os, "scandir", look)
    swept = set()
    for path in (song, other):
        undo(path, write(path, swept=swept), swept=swept)
    assert listed == [song.parent]
    assert not left.exists()


@pytest.mark.parametrize(
    ("name", "number"), [("fsync", errno.ENOSPC), ("fsync", errno.EIO), ("open", errno.EACCES)]
)
def test_errors_of_the_disk_are_reported(song, monkeypatch, name, number):
    def fail(path, flags=os.O_CREAT, *rest):
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return opens(path, flags, *rest)

    opens = os.open
    monkeypatch.setattr(replacing.os, name, fail)
    with pytest.raises(FileTagError, match=f"song.flac cannot be .*: {os.strerror(number)}"):
        write(song)
    assert_untouched(song)


def test_what_the_file_system_knows_of_a_file_stays(song):
    song.chmod(0o640)
    os.utime(song, ns=(10**18, 10**18))
    with suppress(OSError):  # for the superuser alone
        os.chown(song, 12345, 54321)
    owner = (song.stat().st_uid, song.stat().st_gid)
    with suppress(OSError):  # a file system without them
        os.setxattr(song, "user.rating", b"5")
    attributes = os.listxattr(song)
    record = write(song)
    assert song.stat().st_mtime_ns > 10**18  # players see that it has changed
    undo(song, record)
    status = song.stat()
    assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o640, *owner)
    assert os.listxattr(song) == attributes


def test_a_read_only_file_stays(song):
    song.chmod(0o444)
    with pytest.raises(FileTagError, match="read-only"):
        write(song)
    assert_untouched(song)


def test_a_symbolic_link_stays(song, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    link = other / "link.flac"
    link.symlink_to(song)
    record = write(link)
    assert link.is_symlink()
    assert read_tags(song).genre[-1] == "jazz"
    undo(link, record)
    assert song.read_bytes() == tagged("flac")
    assert link.is_symlink()
    assert list(other.iterdir()) == [link]


def test_a_hard_link_keeps_the_old_content(song, tmp_path):
    link = tmp_path / "hard.flac"
    link.hardlink_to(song)
    write(song)
    assert read_tags(song).genre[-1] == "jazz"
    assert link.read_bytes() == tagged("flac")


def test_a_long_name_of_any_bytes_can_be_written(tmp_path):
    name = os.fsdecode(b"\xe9" + b"x" * 249 + b".flac")
    song = tmp_path / name
    song.write_bytes(tagged("flac"))
    record = UndoRecord.from_bytes(write(song).to_bytes())
    assert record.change.path == str(song)
    undo(song, record)
    assert_untouched(song)


def damaging(monkeypatch, damage):
    whole = Flac.write

    def write(self, source, target, edits, options):
        whole(self, source, target, edits, options)
        damage(target)

    monkeypatch.setattr(Flac, "write", write)


@pytest.mark.parametrize(
    ("old", "new", "word"), [(None, b"?", "sound"), (b"GENRE=jazz", b"GENRE=jizz", "jizz")]
)
def test_a_write_that_turns_out_otherwise_is_given_up(song, monkeypatch, old, new, word):
    def damage(target):
        target.seek(0)
        data = target.read()
        target.seek(0)
        target.write(data[:-5] + new + data[-4:] if old is None else data.replace(old, new))

    damaging(monkeypatch, damage)
    with pytest.raises(FileTagError, match=rf"left as it is.*{word}|{word}.*left as it is"):
        write(song)
    assert_untouched(song)


def test_a_record_that_does_not_lead_back_undoes_nothing(song):
    record = write(song)
    written = song.read_bytes()
    with pytest.raises(FileTagError, match="inconsistent"):
        undo(song, replace(record, steps=((0, 10),), literal=b""))
    assert song.read_bytes() == written
    undo(song, record)
    assert_untouched(song)


NOISE = random.Random(0).randbytes(2 * replacing.WINDOW)


def way(old: bytes, new: bytes) -> tuple[replacing.Steps, bytes]:
    """The steps and bytes that lead back."""
    steps, literal = replacing.difference(io.BytesIO(old), io.BytesIO(new))
    back = io.BytesIO()
    replacing.patch(steps, literal, io.BytesIO(new), back)
    assert back.getvalue() == old
    return steps, literal


PIECES = st.sampled_from([b"", b"\0" * 100, NOISE[:90], NOISE[500:900], b"TAG" * 30, NOISE[:33]])


@settings(deadline=None, max_examples=100)
@given(st.lists(PIECES | st.binary(max_size=80)), st.lists(PIECES | st.binary(max_size=80)))
@example([b"a"], [])
@example([], [b"a"])
def test_any_file_is_restored_from_any_other(old, new):
    steps, literal = way(b"".join(old), b"".join(new))
    assert sum(n for start, n in steps if start == replacing.LITERAL) == len(literal)


@pytest.mark.parametrize("size", [replacing.STRIDE - 1, replacing.STRIDE, 2 * replacing.STRIDE + 1])
def test_equal_files_need_no_bytes(size):
    assert way(NOISE[:size], NOISE[:size]) == (((0, size),), b"")


PAGES = [NOISE[i : i + 4000] for i in range(0, len(NOISE), 4000)]
TEXT = b"text" * 20


@pytest.mark.parametrize(
    ("old", "new", "most"),
    [
        (NOISE[:1000] + b"old" + NOISE[1000:], NOISE[:1000] + b"longer" * 300 + NOISE[1000:], 67),
        (b"RIFF\1\1\1\1" + NOISE + b"end", b"RIFF\2\2\2\2" + NOISE + b"another end", 36),
        (
            b"head" + b"".join(b"%08d" % i + page for i, page in enumerate(PAGES)),
            b"a longer head" + b"".join(b"%08d" % i + page for i, page in enumerate(PAGES, 5555)),
            12 * len(PAGES),
        ),
        (b"<" + NOISE[:5000] + b">" + TEXT, TEXT + b"<" + NOISE[:5000] + b">", 144),
        (bytes(2000) + NOISE[:50_000] + bytes(10), NOISE[:50_000] + bytes(4000), 64),
        (NOISE + NOISE[::-1], NOISE[: replacing.WINDOW], 2 * len(NOISE)),
    ],
    ids=(
        *("replaced", "a number at the beginning", "renumbered pages", "swapped", "padding"),
        "far larger than the window",
    ),
)
def test_only_what_differs_is_kept(old, new, most):
    assert len(way(old, new)[1].strip(b"\0")) < most
