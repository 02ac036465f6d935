"""Requests made up from the OpenAPI document: no 5xx, and no answer that it does not describe.

The examples of docs/web.md run, and the page names every route.
"""

import json
import re
import shutil
import subprocess
from multiprocessing import Pipe
from unittest.mock import Mock

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from places import DOCS
from schemathesis.checks import positive_data_acceptance
from small_library import trained
from web_server import root, serving

from harmonium.library import Library
from harmonium.web import jobs
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

PAGE = (DOCS / "web.md").read_text(encoding="utf-8")
schema = schemathesis.openapi.from_dict(create_app(ServerSettings()).openapi())


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server whose jobs do nothing: a made-up folder may be a real one."""
    file = tmp_path_factory.mktemp("openapi") / "library.db"
    with Library.open(file) as library:
        trained(library, tagged=30, artists=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "RunningJob", NoProcess)
        with serving(file) as client:
            yield client


class NoProcess:
    """A job that is done at once."""

    def __init__(self, record, place):
        self.record, self.began = record, 0.0
        self.pipe, theirs = Pipe()
        theirs.send(("done", {}))
        self.process = Mock(exitcode=0)

    def stop(self):
        """It has."""


@schema.exclude(path_regex="/events$").parametrize()
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_described(case, client):
    # a request may be well formed and ask for a tag that there is not
    not_meant = [positive_data_acceptance]
    case.call_and_validate(base_url=root(client), excluded_checks=not_meant)


@pytest.fixture
def shown(library, place):
    """A server of a library in SQLite, then in PostgreSQL."""
    trained(library, tagged=30, artists=7)
    with serving(place) as client:
        yield client


def block(language, shown):
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    return code.replace("127.0.0.1:8040", f"127.0.0.1:{shown.base_url.port}")


def test_the_curl_examples_run(shown):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    lines = block("sh", shown).strip().splitlines()
    answers = []
    for line in lines:
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
        answers.append(json.loads(done.stdout))
    assert not [answer for answer in answers if "error" in answer]
    assert len(answers[0]["hits"]) == 3
    assert answers[3]["change"] == 2  # which the last line undoes
    assert answers[4]["complete"]


def test_the_python_example_runs(shown, capsys):
    exec(compile(block("python", shown), "docs/web.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Artist \d - Song \d+ 1.0", first)
    assert second.startswith("These moved most: ")


def test_every_route_is_named():
    for path in create_app(ServerSettings()).openapi()["paths"]:
        assert path.removeprefix("/api/v1") in PAGE, path
