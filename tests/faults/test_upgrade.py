"""Libraries of other versions: a newer one is left alone, an older one is upgraded under load."""

import json
import sqlite3
import threading
import time

import pytest
import sqlalchemy as sa
from command_line import run_main
from killed import Killed, watch_moments
from old_library import OLD, make_old_tables
from processes_in_tests import begin_together, start
from some_tracks import add_tracks, in_force, say

from harmonium.library import Library
from harmonium.library.store import database
from harmonium.library.store.schema import VERSION, table_version
from harmonium.library.store.upgrades import upgrade

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
    for command in ("search rock", "say 1 x", f"index {tmp_path}", "train", "undo"):
        done = run_main(*command.split(), "-L", place)
        assert done.exit_code == 2
        assert "newer version of Harmonium" in " ".join(done.stderr.split())
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["library.db"]


@pytest.mark.long
def test_an_old_library_is_upgraded_while_others_use_it(place):
    engine = make_old_tables(place)
    columns = "id, path, sound, state, file_tags, size, modified, added_at"
    values = "1, '/music/1.mp3', 's', 'present', '{}', 0, 0, 0"
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text(f"INSERT INTO track ({columns}) VALUES ({values})"))
    stop, written, read, failed = threading.Event(), [], [], []

    def write(connection):
        row = {"key": f"old {len(written)}", "value": json.dumps(len(written))}
        connection.execute(sa.text("INSERT INTO setting VALUES (:key, :value)"), row)
        written.append(str(len(written)))

    def look(connection):
        counting = sa.text("SELECT count(*) FROM setting")
        read.append(connection.scalar(counting) == connection.scalar(counting))

    def repeat(opened, work):
        try:
            while not stop.is_set():
                with opened(engine, place) as connection:
                    work(connection)
                time.sleep(0.005)
        except Exception as error:
            failed.append(error)

    both = ((database.writing, write), (database.reading, look))
    threads = [threading.Thread(target=repeat, args=work) for work in both]
    processes = [start("-c", ENTERS, place, name, stdin=-1) for name in ("ann", "bob", "eve")]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for thread in threads:
        thread.start()
    try:
        begin_together(processes)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert failed == []
    assert len(written) > 5
    assert read
    assert all(read)
    with Library.open(place, create=False) as library:
        assert len(in_force(library)) == 15
        assert sorted(library.settings.beginning_with("old ")) == sorted(written)
        with library.connect() as connection:
            assert connection.scalar(sa.select(table_version.c.version_num)) == VERSION
    engine.dispose()


def test_an_upgrade_that_is_killed_is_done_by_the_next_that_opens_it(tmp_path):
    """At any statement of the migrations; the library is then still of the old version."""
    whole = make_old_tables(tmp_path / "whole.db")
    count = watch_moments(whole, events=["before_cursor_execute"])
    with database.writing(whole, "x") as connection:
        upgrade(connection, "x")
    whole.dispose()
    total = count()
    for moment in range(2, total):
        place = tmp_path / f"{moment}.db"
        engine = make_old_tables(place)
        watch_moments(engine, moment, events=["before_cursor_execute"])
        with pytest.raises(Killed), database.writing(engine, "x") as connection:
            upgrade(connection, "x")
        engine.dispose()
        with sqlite3.connect(place) as connection:
            found = connection.execute(f"SELECT version_num FROM {table_version}").fetchall()
        connection.close()
        assert found == [(OLD,)]
        with Library.open(place, create=False) as library:
            assert library.tracks.count() == 0
