"""A PostgreSQL server that stops and starts while a command or `harmonium serve` uses it."""

import time

import postgres_server
import pytest
import sqlalchemy as sa
from some_tracks import add_tracks, in_force, say, write_table
from web_server import serving

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.imports import import_table

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server():
    if reason := postgres_server.why_not():
        pytest.skip(reason)
    with postgres_server.restartable_server() as (url, control):
        yield url, control


@pytest.fixture
def place(server):
    return postgres_server.new_schema(server[0])[1]


@pytest.mark.parametrize(
    ("mode", "moment"), [("immediate", 0.0), ("fast", 0.5), ("immediate", 0.7), ("immediate", 1.0)]
)
def test_an_import_cut_off_by_a_restart_can_be_repeated(server, place, tmp_path, mode, moment):
    _, control = server
    table = write_table(tmp_path, 40, 4)
    with Library.open(place) as library:
        add_tracks(library, 4)
        seen = []
        sa.event.listen(library.engine, "before_cursor_execute", lambda *_: seen.append(1))
        import_table(library, table, dry_run=True)
        at = max(1, round(moment * len(seen)))
        seen.clear()

        def restart(*_):
            if len(seen) == at:
                control("restart", mode)

        sa.event.listen(library.engine, "before_cursor_execute", restart)
        try:
            import_table(library, table)
        except LibraryError as error:
            assert "Run the command again." in str(error)  # noqa: PT017
        assert len(in_force(library)) in (0, 40)
        import_table(library, table)
        assert len(in_force(library)) == 40
        assert len(library.changes.list()) == 1


def test_a_library_that_was_idle_does_not_notice(server, place):
    _, control = server
    with Library.open(place) as library:
        add_tracks(library, 1)
        control("restart", "fast")
        say(library, "ann", 1, ["rock"])
        assert in_force(library) == {("ann", 1, "rock"): 1}


def test_a_server_answers_again_when_the_database_does(server, place):
    _, control = server
    with Library.open(place) as library:
        add_tracks(library, 2)
    with serving(place) as client:
        assert client.post("tracks/1/say", json={"yes": ["rock"]}).status_code == 200
        control("restart", "immediate")
        for _ in range(3):
            answer = client.get("tracks/1")
            assert answer.status_code in (200, 503), answer.text
        assert client.get("tracks/1").status_code == 200
        control("stop", "fast")
        try:
            for path in ("tracks/1", "search?q=rock"):
                answer = client.get(path)
                assert answer.status_code in (200, 503), answer.text
            answer = client.post("tracks/2/say", json={"yes": ["jazz"]})
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert client.get("health").status_code == 200
        finally:
            control("start")
        end = time.monotonic() + 30
        while client.post("tracks/2/say", json={"yes": ["jazz"]}).status_code != 200:
            assert time.monotonic() < end
        assert "rock" in client.get("tracks/1").text
    with Library.open(place) as library:
        assert set(in_force(library)) == {("me", 1, "rock"), ("me", 2, "jazz")}
