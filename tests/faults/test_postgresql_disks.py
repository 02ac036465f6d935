"""A PostgreSQL server whose disk is full, during commands that write."""

import postgres_server
import pytest
from command_line import run_main
from small_disks import can_mount, full
from some_tracks import add_tracks, in_force, write_table
from tagged_files import FORMATS
from written_music import make_songs, say

from harmonium.errors import LibraryError
from harmonium.library import Library

pytestmark = pytest.mark.long

ROWS = 4000
FREE = [0, 1 << 16]


@pytest.fixture(scope="module")
def server():
    """The server's address, and what makes it run again: it may have ended without room."""
    if reason := postgres_server.why_not():
        pytest.skip(reason)
    if not can_mount():
        pytest.skip("a file system of its own can be mounted by the superuser alone")
    with postgres_server.restartable_server(size="128m") as (url, control):
        yield url, lambda: control("restart")


@pytest.fixture(scope="module")
def disk(server):
    """The disk with the server's data."""
    return postgres_server.data_folder(server[0])


@pytest.fixture
def place(server):
    return postgres_server.new_schema(server[0])[1]


def one_line(done):
    """That a command that failed says so in one line."""
    said = " ".join(done.stderr.split())
    assert done.exit_code == 2
    assert said.startswith("Error: ")
    assert "Traceback" not in said
    assert "What was stored before is safe." in said


@pytest.mark.parametrize("free", FREE)
def test_an_import_is_whole_or_not_there(disk, server, place, tmp_path, free):
    table = write_table(tmp_path, ROWS, 20)
    with Library.open(place) as library:
        add_tracks(library, 20)
        say(library, [("ann", "calm", 1)])
        before = in_force(library)
    with full(disk, free):
        done = run_main("import", table, "-L", place)
        assert done.exit_code == 2 or free
        if done.exit_code:
            one_line(done)
    server[1]()
    with Library.open(place) as library:
        after = in_force(library)
        assert after.items() >= before.items()
        assert len(after) == len(before) + (0 if done.exit_code else ROWS)
    assert run_main("import", table, "-L", place).exit_code == 0
    with Library.open(place) as library:
        assert len(in_force(library)) == len(before) + ROWS
        assert len(library.changes.list()) == 2


@pytest.mark.parametrize("free", FREE)
def test_a_write_to_a_full_disk_can_be_undone(disk, server, place, tmp_path, free):
    with Library.open(place) as library:
        songs = make_songs(library, tmp_path / "music", FORMATS)
        say(library, [("ann", f"tag {i} {'x' * 60}", 1) for i in range(300)])
    before = {path: path.read_bytes() for path in songs.values()}
    with full(disk, free):
        done = run_main("write", "--yes", "-L", place)
        written = [path for path in before if path.read_bytes() != before[path]]
        assert free or not written
        if written:
            assert f"tags written to {len(written)} file" in done.stdout
            assert done.exit_code == (0 if len(written) == len(before) else 1)
        else:
            one_line(done)
        undone = run_main("undo", "-L", place)
        left = [path for path in before if path.read_bytes() != before[path]]
        assert len(left) <= len(written)
        if undone.exit_code == 2 and "Error:" in undone.stderr:
            assert left == written
    server[1]()
    with Library.open(place) as library:
        for change in library.changes.list():
            if change.command == "write" and change.undone_by is None:
                library.undo(change.id)
    assert {path: path.read_bytes() for path in before} == before


def test_reading_needs_no_room(disk, server, place):
    with Library.open(place) as library:
        add_tracks(library, 20)
        say(library, [("ann", "calm", 1)])
    with full(disk):
        for command in (["search", "calm"], ["search", "song"], ["undo", "--list"]):
            done = run_main(*command, "-L", place)
            assert (done.exit_code, done.stdout != "") == (0, True), done.stderr
        with Library.open(place) as library:
            try:
                library.say(1, "loud", person="bob")
                was_said = True
            except LibraryError:
                was_said = False
    server[1]()
    with Library.open(place) as library:
        assert (("bob", 1, "loud") in in_force(library)) == was_said
