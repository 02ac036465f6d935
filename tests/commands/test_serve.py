"""`harmonium serve` from the command line."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest
from command_line import run_main as run
from noise_files import write
from some_tracks import say as put_tags
from web_server import serving

from harmonium.commands import serve
from harmonium.library import Library
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store import database
from harmonium.library.store.tracks import Track
from harmonium.web import jobs, service
from harmonium.web.app import bind
from harmonium.web.guard import ServerSettings

CODE = "from harmonium.cli import main; main()"


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("serve", "--no-browser", "--port", port, "-L", tmp_path / "l.db")
    assert done.exit_code == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in " ".join(done.stderr.split())
    assert "--port" in done.stderr


def test_a_token_that_is_too_short(tmp_path):
    file = tmp_path / "token"
    file.write_text("short\n")
    done = run("serve", "--no-browser", "--token-file", file, "-L", tmp_path / "l.db")
    assert done.exit_code == 2
    assert "at least 16 characters, got 5" in " ".join(done.stderr.split())


def test_a_token_file_that_does_not_exist(tmp_path):
    missing = run("serve", "--no-browser", "--token-file", tmp_path / "none")
    assert "cannot be read" in " ".join(missing.stderr.split())


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to one process")
def test_another_address_wants_the_token_that_is_printed(tmp_path):
    place = str(tmp_path / "library.db")
    command = [sys.executable, "-c", CODE, "serve", "--no-browser", "--port", "0", "-L", place]
    with subprocess.Popen(
        [*command, "--host", "0.0.0.0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        address, _, token = server.stdout.readline().split()[-1].partition("#token=")
        assert len(token) >= 32
        library = f"{address}api/v1/library"
        assert httpx.get(f"{address}api/v1/health", timeout=60).status_code == 200
        assert httpx.get(library, timeout=60).status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(library, headers=headers, timeout=60).json()["empty"]
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    assert said.splitlines()[-1] == "Stopped. All changes are saved."
    assert token not in said
    assert server.returncode == 0
    assert not (tmp_path / "library.db").exists()


def test_a_folder_alone_is_indexed_by_a_server(tmp_path):
    (tmp_path / "Music").mkdir()
    place = tmp_path / "library.db"
    command = [sys.executable, "-c", CODE, str(tmp_path / "Music"), "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*command, "-L", str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        address = server.stdout.readline().split()[-1]
        found = httpx.get(f"{address}api/v1/library", timeout=60).json()
        server.terminate()
        server.communicate(timeout=60)
    assert [job["kind"] for job in found["jobs"]] == ["index"]
    assert place.exists()


def test_a_folder_that_does_not_exist(tmp_path):
    done = run("serve", tmp_path / "Musik", "-L", tmp_path / "library.db")
    assert done.exit_code == 2
    assert "'FOLDER'" in done.stderr


@pytest.mark.parametrize("state", ["newer", "locked", "not a library"])
def test_a_library_that_cannot_be_served_is_one_line(tmp_path, monkeypatch, state):
    place = tmp_path / "library.db"
    Library.open(place).close()
    if state == "not a library":
        place.write_bytes(b"something else" * 100)
    with sqlite3.connect(place, isolation_level=None) as other:
        if state == "newer":
            other.execute("UPDATE harmonium_version SET version_num = '9999'")
        elif state == "locked":
            monkeypatch.setattr(database, "BUSY_SECONDS", 0)
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN EXCLUSIVE")
        done = run("serve", "--no-browser", "--port", 0, "-L", place)
    other.close()
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: The library")


def test_the_token_is_not_on_the_browsers_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path))
    opened = []
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    serve._open_browser("http://127.0.0.1:8040/#token=very-secret")
    assert "secret" not in opened[0]
    page = Path(url2pathname(urlsplit(opened[0]).path))
    assert "url=http://127.0.0.1:8040/#token=very-secret" in page.read_text()
    assert page.stat().st_mode & 0o077 == 0


def test_answers_are_sent_at_once():
    """Of a socket whose protocol is 0, asyncio does not switch off the wait for more to send."""
    with bind(ServerSettings(port=0)) as found:
        assert found.proto == socket.IPPROTO_TCP


N_SONGS, LAST = 80, "said just before"


@pytest.fixture
def songs(tmp_path):
    """A library of songs that ann has tagged, and their files."""
    files = [tmp_path / "music" / f"{i:03}.flac" for i in range(N_SONGS)]
    files[0].parent.mkdir()
    with Library.open(tmp_path / "library.db") as library, library.begin():
        for i, file in enumerate(files):
            (number,) = library.tracks.put([Track(str(file), audio_digest(write(file, i)))])
            put_tags(library, "ann", number, present=["surf rock"])
    return tmp_path / "library.db", files


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_is_stopped_or_killed_goes_on_where_it_was(songs, how):
    place, files = songs
    command = [sys.executable, "-c", CODE, "serve", "--no-browser", "--port", "0", "-L", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        address = it.stdout.readline().split()[-1]
        with httpx.Client(base_url=f"{address}api/v1/", timeout=60) as client:
            client.post("tracks/1/say", json={"yes": [LAST]})
            job = client.post("write", json={"precision": 0}).json()
            while client.get(f"jobs/{job['id']}").json()["text"] != "Writing":
                time.sleep(0.02)
        it.send_signal(how)
        _, said = it.communicate(timeout=60)
    assert it.returncode in (0, -how)
    assert "Traceback" not in said
    genres = [set(read_tags(str(file)).grouping) for file in files]  # each can be read
    assert all(genre in (set(), {"surf rock"}, {"surf rock", LAST}) for genre in genres)
    with Library.open(place) as library:
        (record,) = library.settings.get(jobs.SETTING)
    if how == signal.SIGTERM:  # it is done where the machine was quicker
        assert record["state"] == ("done" if all(genres) else "waiting")
    with serving(place) as client:
        while (found := client.get(f"jobs/{job['id']}").json())["state"] not in ("done", "failed"):
            time.sleep(0.05)
        assert (found["state"], found["result"]["failed"]) == ("done", 0)
        assert LAST in client.get("tracks/1").text
    assert all("surf rock" in read_tags(str(file)).grouping for file in files)


def test_training_of_a_server_that_is_gone_is_not_begun_again(songs):
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
        library.settings.set(jobs.SETTING, records)
    with serving(place) as client:
        states = {job["id"]: job["state"] for job in client.get("jobs").json()["jobs"]}
        assert states == {1: "stopped", 2: "running", 3: "done"}
        assert "Start it again" in client.get("jobs/1").json()["error"]


@pytest.mark.parametrize("lives", [False, True])
def test_a_job_of_a_server_that_gives_no_sign_of_life_goes_on(songs, monkeypatch, lives):
    """It had another host name, or its number is that of another process now."""
    place, _ = songs
    monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.3)
    about = {"text": "", "done": 1, "total": 5, "seconds": 1.0, "result": None, "error": None}
    about |= {"started_at": "2026-01-01T00:00:00+00:00", "asked": {}, "kind": "tag", "beat": 1}
    servers = [{"pid": 1, "machine": "elsewhere"}, {"pid": 1, "machine": jobs.platform.node()}]
    with Library.open(place) as library:
        records = [
            {"id": i, "state": "running", "server": server, **about}
            for i, server in enumerate(servers)
        ]
        library.settings.set(jobs.SETTING, records)
        with serving(place) as client:
            assert {job["state"] for job in client.get("jobs").json()["jobs"]} == {"running"}
            end = time.monotonic() + (3 if lives else 60)
            while time.monotonic() < end and "running" in client.get("jobs").text:
                if lives:
                    for record in records:
                        record["beat"] += 1
                    library.settings.set(jobs.SETTING, records)
                time.sleep(0.1)
            ended = {"running"} if lives else {"done"}
            assert {job["state"] for job in client.get("jobs").json()["jobs"]} == ended


def test_a_job_that_cannot_be_saved_does_not_run(songs, monkeypatch):
    place, _ = songs
    begun = []
    monkeypatch.setattr(jobs, "RunningJob", lambda *_: begun.append(1))
    monkeypatch.setattr(service, "WAIT_SECONDS", 0.2)
    with serving(place) as client, Library.open(place) as other:
        with other.begin():
            answer = client.post("write", json={"precision": 0})
        assert answer.status_code == 503
        assert client.get("jobs").json()["jobs"] == []
    assert begun == []
