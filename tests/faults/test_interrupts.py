"""Ctrl-C at any moment: no half of a change, and no lock that stays."""

import gc
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing

import pytest
import small_library
from command_line import run
from noise_files import write as write_noise
from processes_in_tests import PATIENCE, end, start, wait_until
from some_tracks import add_tracks, in_force

from harmonium.library import Library
from harmonium.library.store import database


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    with Library.open(tmp_path / "library.db") as library:
        add_tracks(library, 3)
    return tmp_path / "library.db"


def calls_until(work, interrupt_at=None):
    """Do some work, with Ctrl-C at a call or a return of a function; how many there were."""
    seen = 0

    def watch(frame, event, argument):
        nonlocal seen
        seen += 1
        if seen == interrupt_at:
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def say(library):
    library.say([1, 2], "rock", "-jazz")


@pytest.mark.parametrize("n_moments", [40, pytest.param(1500, marks=pytest.mark.long)])
def test_ctrl_c_in_a_change_leaves_all_or_nothing_to_the_next_writer(place, tmp_path, n_moments):
    with Library.open(place) as library:
        total = calls_until(lambda: say(library))
        library.undo()
    whole = 4  # opinions
    left = set()
    for moment in range(1, total, max(1, total // n_moments)):
        copy = tmp_path / "copy.db"
        shutil.copy(place, copy)
        with Library.open(copy) as library, Library.open(copy, wait=0) as other:
            gc.disable()
            try:
                calls_until(lambda library=library: say(library), moment)
            except KeyboardInterrupt as interrupt:
                caught = interrupt  # with its traceback, as an interactive session keeps it
                other.settings.set("another program", "may write")
                left.add(len(in_force(other)))
                del caught
            finally:
                gc.enable()
    assert left == {0, whole}


def test_ctrl_c_while_another_program_writes_ends_the_wait(place):
    other = sqlite3.connect(place, isolation_level=None)
    with Library.open(place, wait=60) as library, closing(other):
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            library.settings.set("x", 1)
        timer.join()
        assert time.monotonic() - began < 30


def ctrl_c(*command, when, what):
    """Run a command in a process, press Ctrl-C when something is so; its exit code and errors."""
    process = start("-m", "harmonium", *command)
    try:
        wait_until(lambda: when() or process.poll() is not None, what)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        end(process)
    return process.returncode, errors


@pytest.mark.long
def test_ctrl_c_in_a_training_keeps_the_first_model(tmp_path):
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        small_library.fill(library, 400, tagged=300)
        code, errors = ctrl_c("train", "-L", place, when=library.models.list, what="a first model")
        assert code == 130
        assert errors.startswith("Stopped. The first model (1) is in use")
        assert errors.count("\n") == 1
        assert [model.name for model in library.models.list()] == ["LogisticTagger"]
        library.settings.set("another program", "may write")


@pytest.mark.long
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_in_an_index_keeps_the_tracks_that_were_read(tmp_path, jobs):
    place = tmp_path / "library.db"
    for number in range(400):
        write_noise(tmp_path / "music" / f"{number}.flac", number)
    with Library.open(place) as library:
        code, errors = ctrl_c(
            *("index", tmp_path / "music", "-L", place, "--jobs", jobs),
            when=lambda: library.tracks.count() > 0,
            what="some tracks",
        )
        assert code == 130
        assert errors.startswith("Stopped")
        assert "Traceback" not in errors
        n_read = library.tracks.count()
        assert 0 < n_read < 400
        library.settings.set("another program", "may write")
    done = run("index", tmp_path / "music", "-L", place)
    assert done.exit_code == 0
    with Library.open(place) as library:
        assert library.tracks.count() == 400
