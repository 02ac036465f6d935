"""Requests made up from the OpenAPI document: no 5xx, and no answer that it does not describe."""

from multiprocessing import Pipe
from unittest.mock import Mock

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import positive_data_acceptance
from small_library import trained
from web_server import root, serving

from harmonium.library import Library
from harmonium.web import jobs
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

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
