"""Shared fixtures. Tests that need the real datasets read their folder from HARMONIUM_DATA."""

import os
from pathlib import Path

import postgres_server
import pytest

from harmonium.collection import Library
from harmonium.collection.store import database


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public datasets; the test is skipped where there is none."""
    folder = os.environ.get("HARMONIUM_DATA")
    if not folder:
        pytest.skip("HARMONIUM_DATA is not set: the public datasets are not at hand")
    return Path(folder)


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
