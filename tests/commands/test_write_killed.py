"""Processes that are killed while they write tags: every file is old or new, and undo restores."""

import json
import os
import subprocess
import sys

import pytest
from places import HELPERS

pytestmark = pytest.mark.long

TIMES = 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_every_file_is_old_or_new_and_undo_restores_it(tmp_path):
    arguments = [sys.executable, HELPERS / "killed.py", "write", tmp_path, "2", str(TIMES)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["killed"] for one in reports] == [False] + [True] * TIMES
    assert set(reports[0]["songs"]) == {"new"}
    assert len({one["songs"].count("new") for one in reports[1:]}) > 3  # moments all over the write
    for one in reports:
        assert "neither" not in one["songs"]
        assert set(one["undone"]) == set(one["restored"]) == {"old"}
        assert set(one["again"]) == {"new"}
        assert one["left"] == []
