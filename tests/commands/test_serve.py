"""`harmonium serve` from the command line."""

import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest
from command_line import run_main as run

from harmonium.web.app import bind
from harmonium.web.guard import ServerSettings

CODE = "from harmonium.cli import main; main()"


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("serve", "--no-browser", "--port", port, "-L", tmp_path / "l.db")
    assert done.exit_code == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in " ".join(done.stderr.split())
    assert "--port" in done.stderr


def test_a_token_that_is_too_short_is_refused(tmp_path):
    file = tmp_path / "token"
    file.write_text("short\n")
    done = run("serve", "--no-browser", "--token-file", file, "-L", tmp_path / "l.db")
    assert done.exit_code == 2
    assert "at least 16 characters, got 5" in " ".join(done.stderr.split())
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


def test_answers_are_sent_at_once():
    """Of a socket whose protocol is 0, asyncio does not switch off the wait for more to send."""
    with bind(ServerSettings(port=0)) as found:
        assert found.proto == socket.IPPROTO_TCP
