"""Clocks that jump: order comes from numbers, limits from a clock that cannot be set."""

import os
import re
import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from noise_files import LEVEL, LONG_AGO, write
from places import PROJECT
from some_tracks import add_tracks, in_force, say

from harmonium.library.index import index
from harmonium.library.store import values
from harmonium.web import sessions

NANOSECONDS = 10**9


def test_changes_are_undone_in_the_order_in_which_they_were_made(library, monkeypatch):
    def clock(years):
        class Clock(datetime):
            @classmethod
            def now(cls, zone=None):
                return datetime.now(zone) + years * timedelta(days=365)

        monkeypatch.setattr(values, "datetime", Clock)

    add_tracks(library, 1)
    clock(3)
    first = say(library, "ann", 1, ["rock"])
    clock(-3)
    second = say(library, "ann", 1, ["jazz"], ["rock"])
    assert in_force(library) == {("ann", 1, "rock"): -1, ("ann", 1, "jazz"): 1}
    assert [change.id for change in library.changes.list()] == [second, first]
    clock(10)
    library.changes.undo(second)
    assert in_force(library) == {("ann", 1, "rock"): 1}
    clock(-10)
    library.changes.undo(first)
    assert in_force(library) == {}


@pytest.mark.parametrize("ahead", [10**9, -(10**9)], ids=["from the future", "clock set back"])
def test_a_file_from_the_future_is_looked_at_again(library, tmp_path, monkeypatch, ahead):
    """Its time of change says nothing of whether it has changed since."""
    path = write(tmp_path / "music" / "a.flac", 1)
    if ahead > 0:
        os.utime(path, (LONG_AGO + ahead, LONG_AGO + ahead))
    else:
        real = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: real() + ahead * NANOSECONDS)
    when = path.stat().st_mtime
    index(library, [tmp_path / "music"], extractor=LEVEL, engine="serial", cache=None)
    (before,) = library.tracks.all()
    size = path.stat().st_size
    other = write(tmp_path / "b.flac", 2).read_bytes()
    path.write_bytes(other[:size].ljust(size, b"\0"))
    os.utime(path, (when, when))
    index(library, [tmp_path / "music"], extractor=LEVEL, engine="serial", cache=None)
    sounds = {track.sound for track in library.tracks.all()}
    assert sounds != {before.sound}


@pytest.fixture
def service(library):
    settings = SimpleNamespace(token="token")
    return SimpleNamespace(settings=settings, library_if_any=lambda: library)


def set_clock(monkeypatch, now):
    monkeypatch.setattr(sessions.time, "time", lambda: now)


def test_a_session_ends_when_the_clock_says_so(service, monkeypatch):
    now, cookie = time.time(), sessions.Sessions(service).begin()
    for days, is_open in ((-300, True), (29, True), (31, False), (300, False)):
        set_clock(monkeypatch, now + days * 24 * 3600)
        assert sessions.Sessions(service).look_up(cookie) == is_open


def test_a_new_session_removes_one_that_ended(service, library, monkeypatch):
    now, cookie = time.time(), sessions.Sessions(service).begin()
    set_clock(monkeypatch, now + 300 * 24 * 3600)
    assert not sessions.Sessions(service).look_up(cookie)
    other = sessions.Sessions(service).begin()
    assert sessions.Sessions(service).look_up(other)
    assert len(library.settings.beginning_with(sessions.SETTING)) == 1  # the first was removed


def test_nothing_else_reads_a_clock_that_can_be_set():
    """Time limits and progress use `time.monotonic`; these few say when something happened."""
    wall = re.compile(r"time\.time(_ns)?\(|datetime\.(now|utcnow|today)\(|date\.today\(")
    files = (PROJECT / "harmonium").rglob("*.py")
    found = {path for path in files if wall.search(path.read_text(encoding="utf-8"))}
    allowed = "audio/cache experiments/results library/examine library/store/values"
    allowed += " library/store/models web/sessions web/jobs"
    assert found == {PROJECT / "harmonium" / f"{name}.py" for name in allowed.split()}
