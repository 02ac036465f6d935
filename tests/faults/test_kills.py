"""A command that ends at any statement of the database leaves all of its work or nothing.

`harmonium index`, `import`, `train`, `write`, `features` and `experiment run` have tests of their
own that kill real processes; here each statement of the shorter commands is tried, and a server.
"""

import gc
import shutil
import signal
import subprocess
import sys
import time

import httpx
import pytest
import sqlalchemy as sa
from killed import Killed, watch_moments
from some_tracks import say as put_tags
from tagged_files import untagged
from web_server import serving

from harmonium.library import Library
from harmonium.library.answers import keep_said, learn_answers
from harmonium.library.edits import forget, hide_tag, rename_tag
from harmonium.library.filetags import read_tags
from harmonium.library.models import use_model
from harmonium.library.store import database
from harmonium.library.store.schema import metadata
from harmonium.library.store.tracks import Track
from harmonium.library.tagger import tag_library

TIMES = {"at", "made_at", "added_at"}
LAST = "said just before"


def content(place):
    """All rows of all tables, without times."""
    with Library.open(place, create=False) as library, library.connect() as connection:
        return {
            table.name: sorted(
                connection.execute(sa.select(*(c for c in table.c if c.name not in TIMES))).all(),
                key=repr,
            )
            for table in metadata.sorted_tables
        }


def run(place, work, moment=None):
    """Do some work, up to a moment; how many moments there were."""
    with Library.open(place, create=False) as library:
        seen = watch_moments(library.engine, moment)
        work(library)
    return seen()


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """`kill` collects garbage often: without what other tests have left, that takes no time."""
    gc.collect()
    gc.freeze()


def kill(place, work, moment):
    """End the work at a moment; a process that ends lets go of the database."""
    with pytest.raises(Killed):
        run(place, work, moment)
    gc.collect()


WORK = {
    "say": lambda library: keep_said(library, 7, yes=["new word"], no=["jazz"]),
    "rename": lambda library: rename_tag(library, "rock", "stone"),
    "hide": lambda library: hide_tag(library, "rock"),
    "forget": lambda library: forget(library, [3, 4]),
    "use a model": lambda library: use_model(library, 1),
    "undo": lambda library: library.changes.undo(2),
}


@pytest.mark.parametrize("most", [5, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", WORK)
def test_a_change_is_whole_or_not_there(whole, tmp_path, monkeypatch, name, most):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    place, work = tmp_path / "library.db", WORK[name]
    shutil.copy(whole, place)
    before = content(place)
    total = run(place, work)
    after = content(place)
    for moment in range(1, total + 1, max(1, total // most)):
        shutil.copy(whole, place)
        kill(place, work, moment)
        left = content(place)
        assert left in (before, after), moment
        if left == before:
            run(place, work)
            assert content(place) == after


@pytest.mark.parametrize("work", [tag_library, learn_answers], ids=["tag", "learn"])
def test_what_can_be_computed_again_goes_on(whole, tmp_path, monkeypatch, work):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    start, place = tmp_path / "start.db", tmp_path / "library.db"
    shutil.copy(whole, start)
    with Library.open(start) as library:
        with library.begin() as connection:
            for table in ("prediction", "refined_prediction", "refined_tag", "completed_track"):
                connection.execute(sa.text(f"DELETE FROM {table}"))
        if work is learn_answers:
            tag_library(library)
    shutil.copy(start, place)
    total = run(place, work)
    after = content(place)
    for moment in range(1, total + 1, max(1, total // 5)):
        shutil.copy(start, place)
        kill(place, work, moment)
        run(place, work)
        now = content(place)
        for name in ("track", "opinion", "change", "model", "prediction", "refined_tag"):
            assert now[name] == after[name], (moment, name)


@pytest.mark.long
def test_a_killed_server_goes_on_where_it_was(tmp_path):
    """As tests/web/test_restart.py, but without any time to say good-bye."""
    place, n = tmp_path / "library.db", 60
    files = [tmp_path / "music" / f"{i:03}.flac" for i in range(n)]
    files[0].parent.mkdir()
    with Library.open(place) as library, library.begin():
        for i, file in enumerate(files):
            file.write_bytes(untagged("flac"))
            (number,) = library.tracks.put([Track(str(file), f"{i:064x}")])
            put_tags(library, "ann", number, present=["surf rock"])
    code = "from harmonium.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "-L", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        address = it.stdout.readline().split()[-1]
        with httpx.Client(base_url=f"{address}api/v1/", timeout=60) as client:
            client.post("tracks/1/say", json={"yes": [LAST]})
            job = client.post("write", json={"precision": 0}).json()
            while client.get(f"jobs/{job['id']}").json()["text"] != "Writing":
                time.sleep(0.02)
        it.send_signal(signal.SIGKILL)
    for file in files:  # each is the old one or the new one, and can be read
        assert set(read_tags(str(file)).genre) in (set(), {"surf rock"}, {"surf rock", LAST})
    with serving(place) as client:
        while (found := client.get(f"jobs/{job['id']}").json())["state"] not in ("done", "failed"):
            time.sleep(0.05)
        assert found["state"] == "done", found
        assert LAST in client.get("tracks/1").text
    assert all("surf rock" in read_tags(str(file)).genre for file in files)
