"""Full and read-only disks: real file systems, small ones in memory."""

import shutil

import pytest
from command_line import run_main
from noise_files import write
from small_disks import full, leave, make_room, mount, read_only, unmount
from small_library import EXTRACTOR, fill, trained
from some_tracks import in_force, write_table
from tagged_files import FORMATS
from web_server import serving
from written_music import make_songs, say

from harmonium.errors import LibraryError, counted
from harmonium.library import Library
from harmonium.web.jobs import SETTING

ROWS = 2000


@pytest.fixture
def disk(tmp_path):
    """A disk of 3 MiB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount(folder, "3m"):
        pytest.skip("a file system of its own can be mounted by the superuser alone")
    yield folder
    unmount(folder)


@pytest.fixture
def place(disk):
    """A library of 20 tracks on that disk."""
    with Library.open(disk / "library.db") as library:
        fill(library, 20)
    return disk / "library.db"


@pytest.fixture
def table(tmp_path):
    """Tags of 20 tracks, enough to need some room."""
    return write_table(tmp_path, ROWS, 20, "ogg")


def said(place):
    with Library.open(place, create=False) as library:
        return in_force(library)


@pytest.mark.parametrize("free", [0, 1 << 12, 1 << 15, 1 << 16, 3 << 16, 1 << 19])
def test_an_import_to_a_full_disk_is_all_or_nothing(disk, place, table, free):
    before = said(place)
    leave(disk, free)
    done = run_main("import", table, "-L", place)
    assert done.exit_code == (2 if free < 1 << 19 else 0)
    if done.exit_code:
        assert "What was stored before is safe." in " ".join(done.stderr.split())
    leave(disk, 1 << 20)
    assert len(said(place)) == len(before) + (0 if done.exit_code else ROWS)
    assert before.items() <= said(place).items()
    again = run_main("import", table, "-L", place)
    assert again.exit_code == 0, again.stderr
    assert len(said(place)) == len(before) + ROWS


def test_a_write_that_a_full_disk_ends_tells_what_was_written(disk, tmp_path):
    with Library.open(disk / "library.db") as library:
        songs = make_songs(library, tmp_path / "music", FORMATS)
        say(library, [("ann", f"tag {i} {'x' * 60}", 1) for i in range(200)])
    before = {path: path.read_bytes() for path in songs.values()}
    written = []
    for pages in range(12, 60, 4):  # until it is enough for the first files
        leave(disk, pages << 12)
        done = run_main("write", "--yes", "-L", disk / "library.db")
        written = [path for path in songs.values() if path.read_bytes() != before[path]]
        if written:
            break
        assert done.exit_code == 2
    assert 0 < len(written) < len(songs)
    assert done.exit_code == 1
    assert f"tags written to {len(written)} file" in done.stdout
    assert done.stderr.count("The disk is full") == len(songs) - len(written)
    make_room(disk)
    assert run_main("undo", "-L", disk / "library.db").exit_code == 0
    assert {path: path.read_bytes() for path in songs.values()} == before


@pytest.fixture
def searched(disk):
    """A library on that disk with a model and sound vectors, and no free byte beside it."""
    with Library.open(disk / "library.db") as library:
        trained(library, tagged=15, features=True)
        library.similar(1)
    leave(disk, 0)
    return disk / "library.db"


def test_reading_needs_no_room(searched):
    content = searched.read_bytes()
    for command in (
        ["search", "rock"],
        ["search", "--like", "#3"],
        ["tag", "#2"],
        ["suggest", "rock"],
        ["models"],
        ["undo", "--list"],
    ):
        done = run_main(*command, "-L", searched)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout
    done = run_main("say", "#1", "new", "-L", searched)
    assert done.exit_code == 2
    assert "The disk is full" in " ".join(done.stderr.split())
    assert searched.read_bytes() == content


def test_playlists_beside_a_full_library(disk, place, tmp_path):
    """Those that would not change need no room; each of the others has its reason."""
    with Library.open(place) as library:
        library.say(1, "calm")
        library.save_search("Calm", "calm")
    folder = tmp_path / "lists"
    assert run_main("playlists", folder, "-L", place).exit_code == 0
    with full(disk):
        assert run_main("playlists", folder, "-L", place).exit_code == 0
        (folder / "Calm.m3u8").unlink()
        done = run_main("playlists", folder, "-L", place)
        assert done.exit_code == 1
        assert "Saved search 'Calm'" in done.stderr
        assert "The disk is full" in " ".join(done.stderr.split())
        assert list(folder.iterdir()) == []
    assert run_main("playlists", folder, "-L", place).exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["Calm.m3u8"]


def test_search_goes_on_without_the_sounds_that_there_is_no_room_for(disk):
    with Library.open(disk / "library.db") as library:
        ids, X, _ = fill(library, 20)
        library.similar(1)
        library.tracks.put_features(ids[5:6], X[5:6], extractor=EXTRACTOR)
    leave(disk, 0)
    done = run_main("search", "--like", "#1", "-n", "30", "-L", disk / "library.db")
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 18  # not the track itself, and not the sixth


def test_a_server_reads_without_room(searched):
    with serving(searched) as client:
        assert client.get("search", params={"q": "rock"}).json()["hits"]


def test_a_server_writes_as_soon_as_there_is_room(disk, searched):
    with serving(searched) as client:
        refused = client.post("tracks/1/say", json={"yes": ["rock"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        assert "The disk is full" in refused.json()["error"]["message"]
        make_room(disk)
        assert client.post("tracks/1/say", json={"yes": ["rock"]}).status_code == 200
    with Library.open(searched) as library:
        assert ("me", 1, "rock") in in_force(library)


@pytest.fixture
def two_disks(disk, tmp_path):
    """A library of songs in all formats, half of them on a small disk."""
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        here = make_songs(library, tmp_path / "music", FORMATS[::2])
        there = make_songs(library, disk / "music", FORMATS[1::2])
        say(library, [("ann", "dreamy", 1)])
    return place, list(here.values()), list(there.values())


@pytest.mark.parametrize("free", [0, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16])
def test_a_full_music_disk_does_not_stop_the_writes_to_another(disk, two_disks, free):
    place, here, there = two_disks
    before = {path: path.read_bytes() for path in (*here, *there)}
    leave(disk, free)
    done = run_main("write", "--yes", "-L", place)
    written = [path for path in before if path.read_bytes() != before[path]]
    left = [path for path in before if path not in written]
    assert set(here) <= set(written)
    assert done.exit_code == (1 if left else 0)
    assert f"written to {len(written)} files" in done.stdout
    assert done.stderr.count("No space left on device") == len(left)
    assert all(str(path) in done.stderr.replace("\n", "") for path in left)
    make_room(disk)
    if left:
        again = run_main("write", "--yes", "-L", place)
        assert f"written to {counted(len(left), 'file')}" in again.stdout
        assert run_main("undo", "-L", place).exit_code == 0
    assert run_main("undo", "-L", place).exit_code == 0
    assert {path: path.read_bytes() for path in before} == before


def test_an_undo_restores_what_it_can_where_one_of_two_disks_is_full(disk, two_disks):
    place, here, there = two_disks
    before = {path: path.read_bytes() for path in (*here, *there)}
    run_main("write", "--yes", "-L", place)
    leave(disk, 0)
    with serving(place) as client:
        undone = client.post("changes/2/undo").json()
        assert (undone["done"], undone["left"]) == (len(here), len(there))
    assert all(path.read_bytes() == before[path] for path in here)
    make_room(disk)
    assert run_main("undo", "2", "-L", place).exit_code == 0
    assert {path: path.read_bytes() for path in before} == before


def test_an_undo_on_a_read_only_disk_is_tried_again_by_the_next(disk, two_disks):
    """It does not undo an older change instead."""
    place, _, there = two_disks
    before = {path: path.read_bytes() for path in there}
    run_main("write", *there, "--yes", "-L", place)
    opinions = said(place)
    with read_only(disk):
        for _ in range(2):
            done = run_main("undo", "-L", place)
            assert (done.exit_code, done.stderr.count("read-only")) == (2, len(there))
    assert said(place) == opinions
    assert run_main("undo", "-L", place).exit_code == 0
    assert {path: path.read_bytes() for path in there} == before


def test_a_library_on_a_read_only_disk_is_read(disk, place, table):
    before, content = said(place), place.read_bytes()
    with read_only(disk):
        assert said(place) == before
        found = run_main("search", "rock", "-L", place)
        assert (found.exit_code, "/music/" in found.stdout) == (0, True)
        for command in (["import", table], ["say", "/music/001.ogg", "new"], ["hide", "rock"]):
            done = run_main(*command, "-L", place)
            assert done.exit_code == 2
            assert "read-only" in " ".join(done.stderr.split())
    assert place.read_bytes() == content


def test_a_library_on_a_read_only_disk_is_served(disk, place):
    job = {"id": 1, "kind": "tag", "state": "waiting", "asked": {}, "text": "", "done": 0}
    job |= {"total": None, "started_at": "2026-01-01T00:00:00+00:00", "seconds": 1.0}
    with Library.open(place) as library:  # with a job that an earlier server has not finished
        library.settings.set(SETTING, [job | {"result": None, "error": None}])
    with read_only(disk), serving(place) as client:
        assert client.get("search").json()["total"] == 20
        assert client.get("library").status_code == 200
        refused = client.post("tracks/1/say", json={"yes": ["rock"]})
        assert refused.status_code in (409, 503)
        assert "read-only" in refused.json()["error"]["message"]


def test_a_session_on_a_read_only_disk_ends_with_its_server(disk, place):
    token = "a token that is long enough"
    with read_only(disk), serving(place, token=token) as client:
        del client.headers["Authorization"]
        assert client.get("library").status_code == 401
        assert client.post("session", json={"token": token}).status_code == 204
        assert client.get("library").status_code == 200
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}
        assert client.delete("session").status_code == 204
        client.cookies.clear()
        assert client.get("library", headers=cookie).status_code == 401


def test_signing_out_without_room_is_refused(disk, place):
    token = "a token that is long enough"
    with serving(place, token=token) as client:
        del client.headers["Authorization"]
        client.post("session", json={"token": token})
        leave(disk, 0)
        assert client.delete("session").status_code == 503
        assert client.get("library").status_code == 200
        make_room(disk)
        assert client.delete("session").status_code == 204


def test_what_a_killed_process_left_on_a_read_only_disk_is_read_or_refused(disk, place):
    """A log beside the file holds what was said last: without it, the file would be old."""
    with Library.open(place) as library:
        library.settings.set("last", "word")
        for name in ("library.db", "library.db-wal"):
            (disk / "copy").mkdir(exist_ok=True)
            shutil.copy(disk / name, disk / "copy" / name)
    with read_only(disk), pytest.raises(LibraryError, match="read-only"):
        Library.open(disk / "copy" / "library.db", create=False)
    with Library.open(disk / "copy" / "library.db", create=False) as library:
        assert library.settings.get("last") == "word"


def test_new_files_on_a_read_only_disk_are_refused(disk, tmp_path):
    write(tmp_path / "music" / "a.flac", 1)
    with read_only(disk):
        for command in (
            ["index", tmp_path / "music", "-L", disk / "new.db"],
            ["index", tmp_path / "music", "-L", disk / "folder" / "new.db"],
            ["features", tmp_path / "music", "-o", disk / "f.parquet"],
            ["features", tmp_path / "music", "-o", tmp_path / "f.csv", "--cache", disk / "cache"],
        ):
            done = run_main(*command)
            assert done.exit_code == 2
            assert done.stderr.startswith("Error: ")
            assert "Traceback" not in done.stderr
    assert list(disk.iterdir()) == []
