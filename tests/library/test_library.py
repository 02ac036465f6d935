"""Opening libraries: new, old, newer, foreign, and by several at once."""

import threading

import numpy as np
import pytest
import sqlalchemy as sa
from noise_files import write
from old_library import engine_of, load_old_library, make_old_tables
from processes_in_tests import begin_together, start
from some_tracks import add_tracks, in_force, write_table

from harmonium.errors import LibraryError
from harmonium.files import user_data_folder
from harmonium.library import Library
from harmonium.library import library as library_module
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store import database, opinions, upgrades
from harmonium.library.store.schema import VERSION, metadata, table_version
from harmonium.library.store.tracks import Track
from harmonium.library.writing.restore import undo_change

WRITER = """
import sys
from harmonium.library import Library
with Library.open(sys.argv[1]) as library:
    print("open", flush=True)
    sys.stdin.readline()
    for k in range(15):
        with library.begin():
            change = library.changes.begin("say", "x")
            library.opinions.say(sys.argv[2], 1, [f"tag {k}"], change=change)
            seen = library.settings.get("count", 0)
            library.settings.set("count", seen + 1)
"""


def tables_of(library):
    """Table → its columns, with types, and its indexes, in any order."""
    with library.connect() as connection:
        found = sa.inspect(connection)
        return {
            table: {
                *((c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)),
                *((i["name"], *i["column_names"], i["unique"]) for i in found.get_indexes(table)),
            }
            for table in found.get_table_names()
        }


def test_an_old_library_gets_the_tables_of_a_new_one(place, tmp_path):
    make_old_tables(place).dispose()
    load_old_library(tmp_path / "old.db")
    found = []
    for where in (tmp_path / "new.db", tmp_path / "old.db", place):
        with Library.open(where) as library:
            assert library.fetch(sa.select(table_version.c.version_num))[0][0] == VERSION
            found.append(tables_of(library))
    assert found[0] == found[1]
    assert found[0].keys() == found[2].keys() == {*metadata.tables, table_version.name}


def test_an_old_library_keeps_what_it_has(tmp_path):
    place = tmp_path / "library.db"
    load_old_library(place)
    with Library.open(place, create=False) as library:
        paths = [track.path for track in library.tracks.all()]
        assert paths == ["/music/copy.mp3", "/music/song2.mp3"]
        assert library.tracks.copies([1]) == {1: ["/music/song1.mp3"]}
        assert in_force(library) == {
            **{("files", track, "rock"): 1 for track in (1, 2)},
            **{("me", track, "mellow"): 1 for track in (1, 2)},
            **{("me", 1, "jazz"): -1, ("me", 2, "jazz"): 1},
        }
        assert library.tags.hidden() == {"rock"}
        assert library.tracks.features([1, 2], extractor="paper")[1].shape == (2, 389)
        with library.connect() as connection:
            assert opinions.people_of(connection, np.array([1, 2, 3])).tolist() == [2, 2, 0]
        assert len(library.changes.files(6)) == 3
        library.changes.undo(5)
        assert library.tracks.count("present") == 3


def open_later(place, monkeypatch, *statements):
    """Open a library with a later version, which has one more migration."""
    with monkeypatch.context() as later:
        later.setitem(upgrades.MIGRATIONS, "9999", statements)
        for module in (library_module, upgrades):
            later.setattr(module, "VERSION", "9999")
        return Library.open(place, create=False)


def test_a_migration_that_fails_changes_nothing(place, monkeypatch):
    with Library.open(place) as library:
        add_tracks(library, 2)
    with pytest.raises(LibraryError, match="syntax error"):
        open_later(place, monkeypatch, "DROP TABLE prediction", "no such statement")
    with Library.open(place) as library:
        assert library.predictions.columns(1, [0])[0].tolist() == []


def test_an_older_library_is_migrated(place, monkeypatch):
    with Library.open(place) as library:
        add_tracks(library, 2)
    colour = ("ALTER TABLE track ADD COLUMN colour TEXT", "UPDATE track SET colour = 'red'")
    with open_later(place, monkeypatch, *colour) as library, library.connect() as connection:
        assert connection.execute(sa.text("SELECT colour FROM track")).all() == [("red",)] * 2


def test_a_library_from_before_the_last_unreleased_version_is_refused(place):
    engine = make_old_tables(place)
    with engine.begin() as connection:
        connection.execute(sa.update(table_version).values(version_num="0007"))
    engine.dispose()
    with pytest.raises(LibraryError, match="0007"):
        Library.open(place)


def test_another_programs_database_is_left_alone(place):
    engine = engine_of(place)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE theirs (x INTEGER)"))
    with pytest.raises(LibraryError, match="another program's database"):
        Library.open(place)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["theirs"]
        if engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
    engine.dispose()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", "is a folder"),
        ("mysql://somewhere/db", "a file or a PostgreSQL database"),
    ],
)
def test_other_places_are_refused(place, message):
    with pytest.raises(LibraryError, match=message):
        Library.open(place)


def test_the_default_place(tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "mine.db"))
    assert database.default_place() == str(tmp_path / "mine.db")
    monkeypatch.delenv("HARMONIUM_LIBRARY")
    assert database.default_place() == str(user_data_folder() / "library.db")


def test_sqlite_has_safe_settings(tmp_path):
    with Library.open(tmp_path / "library.db") as library, library.connect() as connection:
        for name, value in {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}.items():
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value


def test_what_fails_in_a_transaction_leaves_nothing(library):
    add_tracks(library, 1)
    with pytest.raises(ZeroDivisionError), library.begin():  # noqa: PT012
        add_tracks(library, 3, start=1)
        library.settings.set("x", 1)
        assert library.tracks.count() == 4  # seen inside
        1 / 0  # noqa: B018
    assert library.tracks.count() == 1
    assert library.settings.get("x") is None


def test_a_reader_sees_one_state(library):
    add_tracks(library, 1)
    count = sa.text("SELECT count(*) FROM track")
    with library.connect() as connection:
        assert connection.scalar(count) == 1
        other = Library(library.engine, library.place)
        add_tracks(other, 2, start=1)
        assert connection.scalar(count) == 1
    assert library.tracks.count() == 3


def test_two_processes_write_at_once(place):
    with Library.open(place) as library:
        add_tracks(library, 1)
        writers = [start("-c", WRITER, place, name, stdin=-1) for name in ("ann", "bob")]
        for writer in writers:
            assert writer.stdout.readline() == "open\n"
        begin_together(writers)
        assert library.settings.get("count") == 30  # none read what the other was about to replace
        assert len(in_force(library)) == 30
        assert len(library.changes.list()) == 30


def test_several_processes_make_the_same_library_at_once(place):
    code = "import sys\nfrom harmonium.library import Library\n"
    code += "sys.stdin.readline()\nLibrary.open(sys.argv[1]).close()"
    begin_together([start("-c", code, place, stdin=-1) for _ in range(2)])
    with Library.open(place, create=False) as library:
        assert library.tracks.count() == 0


def test_a_library_that_is_written_to_all_the_while_is_an_error(place):
    with (
        Library.open(place, wait=0.2) as library,
        Library.open(place) as other,
        other.begin(),
        pytest.raises(LibraryError, match="Another program is still writing"),
    ):
        library.settings.set("x", 1)


def test_threads_that_wait_to_write_leave_connections_to_readers(place):
    """Each would hold one, until none is left."""
    with Library.open(place, wait=20) as library:
        written = [
            threading.Thread(target=library.settings.set, args=(str(k), k)) for k in range(9)
        ]
        with library.begin():
            for thread in written:
                thread.start()
            assert library.engine.pool.checkedout() == 1
        for thread in written:
            thread.join()
        assert library.settings.get("8") == 8


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:hush-hush@/music?host=/nowhere", "music"),
        ("postgresql://ann:hush-hush@nowhere.invalid/music", "music"),
        ("postgresql://ann:hush-hush@nowhere.invalid", "library"),
        ("postgresql://nowhere.invalid/music?password=hush-hush&connect_timeout=1", "music"),
        ("postgresql://ann:hush-hush@nowhere.invalid:abc/music", "library"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert database.place_name(url) == shown
    with pytest.raises(LibraryError, match=r"cannot be used|not a valid") as error:
        Library.open(url)
    assert "hush" not in str(error.value)


BEGIN = """
import sys
from harmonium.cli import main
sys.stdin.readline()
"""
ONCE = """
    try:
        main()
    except SystemExit as end:
        assert (end.code or 0) < 3, end.code
"""


def both(*lines):
    """Two processes, each with commands of its own, begun at the same moment; what they said."""
    processes = []
    for commands in lines:
        words = [["harmonium", *map(str, command)] for command in commands]
        processes.append(start("-c", f"{BEGIN}for sys.argv in {words!r}:{ONCE}", stdin=-1))
    return begin_together(processes)


@pytest.mark.long
def test_two_imports_of_a_table_keep_what_is_said_meanwhile(place, tmp_path):
    with Library.open(place) as library:
        add_tracks(library, 4)
    work = ["import", write_table(tmp_path, 400, 4), "-L", place]
    says = [
        [["say", "/music/000.mp3", f"{who} {k}", "-L", place, "--person", who] for k in range(4)]
        for who in ("ann", "bob")
    ]
    both([work, *says[0]], [*says[1], work])
    with Library.open(place) as library:
        said = in_force(library)
        assert len(said) == 400 + 8
        assert {tag for who, _, tag in said if who == "ann"} == {f"ann {k}" for k in range(4)}
        assert sorted(one.command for one in library.changes.list()) == ["import"] + ["say"] * 8


@pytest.mark.long
def test_two_that_write_tags_leave_whole_files_that_can_be_undone(place, tmp_path):
    songs = [tmp_path / f"{i}.flac" for i in range(12)]
    with Library.open(place) as library:
        for i, song in enumerate(songs):
            library.tracks.put([Track(str(song), audio_digest(write(song, i)))])
        change = library.changes.begin("say", "x")
        for number in range(1, 13):
            library.opinions.say("ann", number, ["surf rock"], change=change)
    before = [song.read_bytes() for song in songs]
    work = ["write", "-L", place, "--yes", "--precision", "0"]
    for _, errors in both([work], [work]):
        refused = [line for line in errors.splitlines() if line]
        assert all("another program" in line or "plan again" in line for line in refused), errors
    assert all(read_tags(song).grouping == ("surf rock",) for song in songs)
    with Library.open(place) as library:
        for change in library.changes.list():
            if change.command == "write":
                undo_change(library, change.id)
    assert [song.read_bytes() for song in songs] == before


def test_where_there_is_no_library_none_is_left_behind(place, tmp_path):
    with pytest.raises(LibraryError, match="no library at"):
        Library.open(place, create=False)
    assert list(tmp_path.iterdir()) == []
