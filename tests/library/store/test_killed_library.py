"""`kill -9` while indexing and importing: the library opens, is whole, and the command goes on."""

import json
import subprocess
import sys

import pytest
from noise_files import write
from places import HELPERS

from harmonium.library import Library

pytestmark = pytest.mark.long


def test_a_process_that_is_killed_at_any_moment_loses_nothing(place, tmp_path):
    for k in range(4):
        write(tmp_path / "music" / f"{k}.flac", k)
    rows = [f"user {k % 3},{k % 4}.flac,tag {k}" for k in range(12)]
    (tmp_path / "tags.csv").write_text("\n".join(["user,path,tag", *rows]))
    Library.open(place).close()
    run = subprocess.run(
        [sys.executable, HELPERS / "killed.py", "library", place, tmp_path, "7", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert {one["command"] for one in reports} == {"index", "import"}
    assert all(one["killed"] for one in reports), reports
    assert all(one["finished"] for one in reports), reports
    assert all(not one["lost"] and not one["wrong"] for one in reports), reports
    # An import is there as a whole or not at all; there are 12 tags of 4 tracks with features.
    assert {one["n_kept"] for one in reports if one["command"] == "import"} <= {8, 20}
