"""Processes that are killed while they write tags: every file is old or new, and undo restores."""

import json
import os
import subprocess
import sys

import pytest
from places import HELPERS

pytestmark = pytest.mark.long

SCRIPT = HELPERS / "killed_write_command.py"
TIMES = 8


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    folder = tmp_path_factory.mktemp("killed")
    arguments = [sys.executable, str(SCRIPT), str(folder), "2", str(TIMES)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_first_is_left_alone_and_the_others_are_killed(reports):
    assert [one["killed"] for one in reports] == [False] + [True] * TIMES
    assert set(reports[0]["songs"]) == {"new"}


def test_the_moments_are_all_over_the_write(reports):
    n_new = {one["songs"].count("new") for one in reports[1:]}
    assert len(n_new) > 3


def test_every_file_is_the_old_or_the_new_one(reports):
    assert not any("neither" in one["songs"] for one in reports)


def test_undo_restores_every_file_to_the_byte(reports):
    assert all(set(one["undone"]) == {"old"} for one in reports)


def test_writing_again_finishes_and_can_be_undone(reports):
    assert all(set(one["again"]) == {"new"} for one in reports)
    assert all(set(one["restored"]) == {"old"} for one in reports)


def test_nothing_is_left_behind(reports):
    assert all(one["left"] == [] for one in reports)
