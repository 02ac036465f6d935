"""Libraries for tests, in SQLite and in a real PostgreSQL."""

import postgres_server
import pytest

from harmonium.collection import Library, database


@pytest.fixture(scope="session")
def postgres():
    """The URL of a server that runs as long as the tests; skipped where there is none."""
    if reason := postgres_server.why_not():
        pytest.skip(reason)
    with postgres_server.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a new library can be made: a file, then a database of a server."""
    if request.param == "sqlite":
        yield str(tmp_path / "library.db")
        return
    with postgres_server.schema(request.getfixturevalue("postgres")) as url:
        yield url


@pytest.fixture
def library(place, monkeypatch):
    """A new library, in SQLite and in PostgreSQL; neither waits for the disk."""
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    with Library.open(place) as library:
        yield library
