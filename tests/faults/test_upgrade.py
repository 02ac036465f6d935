"""Libraries of other versions: a newer one is left alone, an older one is upgraded under load."""

import json
import sqlite3
import threading
import time

import pytest
import sqlalchemy as sa
from command_line import run_main
from moments import Killed, watch_moments
from old_library import OLD, make_old_tables
from processes_in_tests import PATIENCE, end, start
from some_tracks import add_tracks, in_force, say

from harmonium.library import Library
from harmonium.library.store import database
from harmonium.library.store.schema import VERSION, table_version

ENTERS = """
import sys
from harmonium.library import Library
print("ready", flush=True)
sys.stdin.readline()
with Library.open(sys.argv[1]) as library:
    for k in range(5):
        with library.begin():
            change = library.changes.begin("say", "x")
            library.opinions.say(sys.argv[2], 1, [f"tag {k}"], change=change)
    library.tracks.count()
"""


def test_a_library_of_a_newer_version_is_not_touched(tmp_path):
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        add_tracks(library, 2)
        say(library, "ann", 1, ["rock"])
    with sqlite3.connect(place) as connection:
        connection.execute(f"UPDATE {table_version} SET version_num = '9999'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = place.read_bytes()
    for command in (
        ["search", "rock"],
        ["say", "1", "x"],
        ["index", tmp_path],
        ["train"],
        ["undo"],
    ):
        done = run_main(*command, "-L", place)
        words = " ".join(done.stderr.split())
        assert done.exit_code == 2
        assert "newer version of Harmonium" in words
        assert f"known here up to {VERSION}" in words
        assert "Upgrade Harmonium" in words
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["library.db"]


@pytest.fixture
def old(place):
    """A library of the old version with a track, and settings that a program writes."""
    engine = make_old_tables(place)
    with engine.connect() as connection, connection.begin():
        connection.execute(
            sa.text(
                "INSERT INTO track (id, path, sound, state, file_tags, size, modified, added_at) "
                "VALUES (1, '/music/1.mp3', 's', 'present', '{}', 0, 0, 0)"
            )
        )
    yield engine, place
    engine.dispose()


@pytest.mark.long
def test_an_old_library_is_upgraded_while_others_read_write_and_open_it(old):
    engine, place = old
    stop, written, read, failed = threading.Event(), [], [], []

    def write():
        while not stop.is_set():
            key = f"old {len(written)}"
            try:
                with database.writing(engine, place) as connection:
                    row = {"key": key, "value": json.dumps(len(written))}
                    connection.execute(sa.text("INSERT INTO setting VALUES (:key, :value)"), row)
                written.append(key)
            except Exception as error:
                failed.append(error)
                return
            time.sleep(0.005)

    def look():
        while not stop.is_set():
            try:
                with database.reading(engine, place) as connection:
                    count = connection.scalar(sa.text("SELECT count(*) FROM setting"))
                    again = connection.scalar(sa.text("SELECT count(*) FROM setting"))
                    read.append(count == again)
            except Exception as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=work) for work in (write, look)]
    processes = [start("-c", ENTERS, place, name, stdin=-1) for name in ("ann", "bob", "eve")]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for thread in threads:
            thread.start()
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            _, errors = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, errors
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        for process in processes:
            if process.poll() is None:
                end(process)
    assert failed == []
    assert len(written) > 5
    assert read
    assert all(read)
    with Library.open(place, create=False) as library:
        assert len(in_force(library)) == 15
        assert sorted(library.settings.beginning_with("old ")) == sorted(
            key.removeprefix("old ") for key in written
        )
        with library.connect() as connection:
            assert connection.scalar(sa.select(table_version.c.version_num)) == VERSION


def test_an_upgrade_that_is_killed_is_done_by_the_next_that_opens_it(tmp_path):
    """At any statement of the migrations; the library is then still of the old version."""
    whole = make_old_tables(tmp_path / "whole.db")
    count = watch_moments(whole, events=["before_cursor_execute"])
    with database.writing(whole, "x") as connection:
        database.upgrade(connection, "x")
    whole.dispose()
    total = count()
    for moment in range(2, total):
        place = tmp_path / f"{moment}.db"
        engine = make_old_tables(place)
        watch_moments(engine, moment, events=["before_cursor_execute"])
        with pytest.raises(Killed), database.writing(engine, "x") as connection:
            database.upgrade(connection, "x")
        engine.dispose()
        with sqlite3.connect(place) as connection:
            found = connection.execute(f"SELECT version_num FROM {table_version}").fetchall()
        connection.close()
        assert found == [(OLD,)]
        with Library.open(place, create=False) as library:
            assert library.tracks.count() == 0
