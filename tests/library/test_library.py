"""Opening libraries: new, old, newer, foreign, and by several at once."""

import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from processes_in_tests import end, start
from some_tracks import add_tracks, in_force, say

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library import library as library_module
from harmonium.library.store import database, migrations, people_counts
from harmonium.library.store.predictions import STEP
from harmonium.library.store.schema import BLOCK, VERSION, VERSION_TABLE, metadata

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


FIRST_VERSION = [
    *(
        f"INSERT INTO track (id, path, sound, state, file_tags, size, modified, added_at) "
        f"VALUES ({i}, '/{i}', 's{i}', 'present', '{{}}', 0, 0, 0)"
        for i in (1, 2, 3, BLOCK + 1)
    ),
    "INSERT INTO person (id, name, kind) VALUES (1, 'ann', 'person'), (2, 'bob', 'person')",
    "INSERT INTO tag (id, name) VALUES (1, 'rock'), (2, 'jazz')",
    "INSERT INTO change (id, at, command, summary) VALUES (1, 0, 'say', '')",
    "INSERT INTO opinion (track_id, tag_id, person_id, value, at, begun_by, ended_by) VALUES "
    "(1, 1, 1, 1, 0, 1, NULL), (1, 2, 1, 1, 0, 1, NULL), (1, 1, 2, -1, 0, 1, NULL), "
    f"(2, 1, 2, 1, 0, 1, 1), ({BLOCK + 1}, 1, 2, 1, 0, 1, NULL)",
    "INSERT INTO model (id, made_at, name, vocabulary, thresholds, extractor, bytes, report) "
    "VALUES (1, 0, 'm', '[]', :block, 'x', :block, '{}')",
    "INSERT INTO prediction (model_id, tag, block, probabilities) VALUES (1, 0, 0, :block)",
]
"""What a library of the first version held."""


def engine_of(place):
    if database.is_url(place):
        return database.postgresql_engine(place)
    return database.sqlite_engine(Path(place))


def test_a_new_library_is_empty_and_opens_again(place):
    with Library.open(place) as library:
        assert library.tracks.count() == 0
        library.settings.set("answer", {"of": 42})
    with Library.open(place, create=False) as library:
        assert library.settings.get("answer") == {"of": 42}
        assert library.settings.get("question", "none") == "none"


def test_the_migrations_make_the_tables_of_the_schema(library):
    with library.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, metadata) == []
        assert connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")) == VERSION
        indexes = {
            index["name"]
            for table in metadata.tables
            for index in sa.inspect(connection).get_indexes(table)
        }
    assert {index.name for table in metadata.tables.values() for index in table.indexes} <= indexes


def test_opening_a_library_that_is_up_to_date_needs_no_alembic(tmp_path):
    place = tmp_path / "library.db"
    Library.open(place).close()
    code = (
        "import sys\nfrom harmonium.library import Library\n"
        f"Library.open({str(place)!r}).close()\nassert 'alembic' not in sys.modules"
    )
    process = start("-c", code)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def test_an_older_library_is_migrated_and_keeps_what_it_has(place, tmp_path, monkeypatch):
    with Library.open(place) as library:
        add_tracks(library, 2)
        say(library, "ann", 1, ["rock"])
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_colours.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = '9999', '{VERSION}'\n"
        "def upgrade():\n"
        "    with op.batch_alter_table('track') as table:\n"
        "        table.add_column(sa.Column('colour', sa.Text))\n"
        "    op.execute(\"UPDATE track SET colour = 'red'\")\n"
    )
    real = migrations.upgrade
    monkeypatch.setattr(migrations, "upgrade", lambda connection: real(connection, folder=folder))
    monkeypatch.setattr(library_module, "VERSION", "9999")
    with Library.open(place, create=False) as library:
        with library.connect() as connection:
            assert connection.execute(sa.text("SELECT colour FROM track")).all() == [("red",)] * 2
        assert in_force(library) == {("ann", 1, "rock"): 1}
    monkeypatch.undo()
    with pytest.raises(LibraryError, match=r"newer version of Harmonium .*version 9999.*Upgrade"):
        Library.open(place)


def test_a_library_of_the_first_version_finds_what_it_found(place):
    engine = engine_of(place)
    probabilities = np.full(BLOCK, np.nan, "<f4")
    probabilities[1:4] = [0.25, 0.0, 1.0]
    with engine.connect() as connection, connection.begin():
        migrations.upgrade(connection, to="0001")
        for statement in FIRST_VERSION:
            connection.execute(sa.text(statement), {"block": probabilities.tobytes()})
    engine.dispose()
    with Library.open(place) as library:
        ids, columns = library.predictions.columns(1, [0])
        assert ids.tolist() == [1, 2, 3]
        np.testing.assert_allclose(columns[:, 0], probabilities[1:4], atol=STEP / 2)
        with library.connect() as connection:
            people = people_counts.people_of(connection, np.array([1, 2, BLOCK + 1, 9 * BLOCK]))
        assert people.tolist() == [2, 0, 1, 0]


def test_a_migration_that_fails_changes_nothing(place, tmp_path, monkeypatch):
    Library.open(place).close()
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_broken.py").write_text(
        f"from alembic import op\nrevision, down_revision = '9999', '{VERSION}'\n"
        "def upgrade():\n    op.drop_table('prediction')\n    raise RuntimeError('no further')\n"
    )
    real = migrations.upgrade
    monkeypatch.setattr(migrations, "upgrade", lambda connection: real(connection, folder=folder))
    monkeypatch.setattr(library_module, "VERSION", "9999")
    with pytest.raises(RuntimeError, match=r"no further"):
        Library.open(place)
    monkeypatch.undo()
    with Library.open(place) as library:
        assert library.predictions.columns(1, [0])[0].tolist() == []


def test_where_there_is_no_library_the_error_says_what_makes_one(place):
    with pytest.raises(LibraryError, match=r"no library at .* yet. `harmonium index FOLDER`"):
        Library.open(place, create=False)


def test_a_file_that_was_not_made_is_not_left_behind(tmp_path):
    with pytest.raises(LibraryError):
        Library.open(tmp_path / "no.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_another_programs_database_is_left_alone(place):
    engine = engine_of(place)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE theirs (x INTEGER)"))
    with pytest.raises(LibraryError, match=r"database of another program"):
        Library.open(place)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["theirs"]
        if engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
    engine.dispose()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    file = tmp_path / "song.mp3"
    file.write_bytes(b"ID3" + bytes(5000))
    with pytest.raises(LibraryError, match=r"song.mp3 cannot be used: file is not a database"):
        Library.open(file)
    assert file.read_bytes() == b"ID3" + bytes(5000)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(LibraryError, match=r"is a folder. Name a file"):
        Library.open(tmp_path)


@pytest.mark.parametrize("url", ["mysql://somewhere/db", "https://example.org/db"])
def test_other_servers_are_refused(url):
    with pytest.raises(LibraryError, match=r"a file or a PostgreSQL database"):
        Library.open(url)


def test_a_server_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(LibraryError, match=r"cannot be used: connection") as caught:
        Library.open(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_the_default_place(tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "mine.db"))
    with Library.open() as library:
        assert library.place == str(tmp_path / "mine.db")
    monkeypatch.delenv("HARMONIUM_LIBRARY")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert database.default_place() == str(tmp_path / "data" / "harmonium" / "library.db")


def test_sqlite_keeps_commits_and_references(tmp_path):
    with Library.open(tmp_path / "library.db") as library, library.connect() as connection:
        values = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_what_fails_in_a_transaction_leaves_nothing(library):
    add_tracks(library, 1)
    with pytest.raises(ZeroDivisionError), library.begin():  # noqa: PT012
        add_tracks(library, 3, start=1)
        library.settings.set("x", 1)
        assert library.tracks.count() == 4  # seen inside
        1 / 0  # noqa: B018
    assert library.tracks.count() == 1
    assert library.settings.get("x") is None


def test_a_reader_sees_one_state_while_another_writes(library):
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
        try:
            for writer in writers:
                assert writer.stdout.readline() == "open\n"
            for writer in writers:
                writer.stdin.write("\n")
                writer.stdin.flush()
            for writer in writers:
                _, errors = writer.communicate(timeout=120)
                assert writer.returncode == 0, errors
        finally:
            for writer in writers:
                if writer.poll() is None:
                    end(writer)
        assert library.settings.get("count") == 30  # none read what the other was about to replace
        assert len(in_force(library)) == 30
        assert len(library.changes.list()) == 30


def test_several_processes_make_the_same_library_at_once(place):
    code = "import sys\nfrom harmonium.library import Library\nLibrary.open(sys.argv[1]).close()"
    makers = [start("-c", code, place) for _ in range(2)]
    for maker in makers:
        _, errors = maker.communicate(timeout=120)
        assert maker.returncode == 0, errors
    with Library.open(place, create=False) as library:
        assert library.tracks.count() == 0


def test_a_library_that_is_written_to_all_the_while_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LibraryError, match=r"locked. Another program has been writing"):
            library.settings.set("x", 1)
        other.close()
