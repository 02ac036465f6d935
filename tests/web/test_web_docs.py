"""The examples of docs/web.md run, and the page names every route and every attack's test."""

import json
import re
import shutil
import subprocess

import pytest
from places import DOCS
from small_library import trained
from web_server import serving

from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

PAGE = (DOCS / "web.md").read_text(encoding="utf-8")


@pytest.fixture
def client(library, place):
    """A server of a library in SQLite, then in PostgreSQL."""
    trained(library, tagged=30, artists=7)
    with serving(place) as client:
        yield client


def block(language, client):
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    return code.replace("127.0.0.1:8040", f"127.0.0.1:{client.base_url.port}")


def test_the_curl_examples_run(client):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    lines = block("sh", client).strip().splitlines()
    answers = []
    for line in lines:
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
        answers.append(json.loads(done.stdout))
    assert not [answer for answer in answers if "error" in answer]
    assert len(answers[0]["hits"]) == 3
    assert answers[3]["change"] == 2  # which the last line undoes
    assert answers[4]["complete"]


def test_the_python_example_runs(client, capsys):
    exec(compile(block("python", client), "docs/web.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Artist \d - Song \d+ 1.0", first)
    assert second.startswith("These moved most: ")


def test_every_route_is_named():
    for path in create_app(ServerSettings()).openapi()["paths"]:
        assert path.removeprefix("/api/v1") in PAGE, path
