"""A server that is stopped finishes the file that it writes, and goes on when it starts again."""

import json
import signal
import subprocess
import sys
import time

import httpx
import pytest
from some_tracks import say
from tagged_files import untagged
from web_server import serving

from harmonium.library import Library
from harmonium.library.filetags import read_tags
from harmonium.library.store.tracks import Track
from harmonium.web import jobs

pytestmark = pytest.mark.long

N_SONGS = 80


@pytest.fixture
def songs(tmp_path):
    """A library of songs that ann has tagged, and their files."""
    files = [tmp_path / "music" / f"{i:03}.flac" for i in range(N_SONGS)]
    files[0].parent.mkdir()
    with Library.open(tmp_path / "library.db") as library, library.begin():
        for i, file in enumerate(files):
            file.write_bytes(untagged("flac"))
            (number,) = library.tracks.put([Track(str(file), f"{i:064x}")])
            say(library, "ann", number, present=["surf rock"])
    return tmp_path / "library.db", files


def test_a_stopped_server_goes_on_where_it_was(songs):
    place, files = songs
    code = "from harmonium.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "-L", place]
    with subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        address = server.stdout.readline().split()[-1]
        with httpx.Client(base_url=f"{address}api/v1/", timeout=60) as client:
            job = client.post("write", json={"precision": 0}).json()
            while client.get(f"jobs/{job['id']}").json()["text"] != "Writing":
                time.sleep(0.02)
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in said
    written = [read_tags(str(file)).genre == ("surf rock",) for file in files]  # each can be read
    with Library.open(place) as library:
        (record,) = library.settings.get(jobs.SETTING)
    if record["state"] == "done":  # the machine was quicker
        assert all(written)
        return
    assert record["state"] == "waiting"
    assert not all(written)
    with serving(place) as client:
        while (found := client.get(f"jobs/{job['id']}").json())["state"] != "done":
            assert found["state"] == "running", found
            time.sleep(0.05)
        assert found["result"]["failed"] == 0
    assert all(read_tags(str(file)).genre == ("surf rock",) for file in files)


def test_a_job_of_a_server_that_is_gone_is_shown_and_training_is_not_begun_again(songs):
    place, _ = songs
    with Library.open(place) as library:
        common = {"text": "", "done": 1, "total": 5, "seconds": 1.0, "result": None, "error": None}
        common |= {"started_at": "2026-01-01T00:00:00+00:00", "asked": {}}
        gone = {"pid": 2**22 + 1, "machine": jobs.platform.node()}
        elsewhere = {"pid": 1, "machine": "another machine"}
        records = [
            {"id": 1, "kind": "train", "state": "running", "server": gone, **common},
            {"id": 2, "kind": "index", "state": "running", "server": elsewhere, **common},
            {"id": 3, "kind": "write", "state": "done", "server": gone, **common},
        ]
        library.settings.set(jobs.SETTING, json.loads(json.dumps(records)))
    with serving(place) as client:
        states = {job["id"]: job["state"] for job in client.get("jobs").json()["jobs"]}
        assert states == {1: "stopped", 2: "running", 3: "done"}
        assert "Start it again" in client.get("jobs/1").json()["error"]
