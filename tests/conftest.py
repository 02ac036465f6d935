"""Shared fixtures. Tests that need the real datasets read their folder from HARMONIUM_DATA."""

import gc
import os
import shutil
from importlib.metadata import version
from pathlib import Path

import postgres_server
import pytest

from harmonium.files import user_cache_folder
from harmonium.library import Library
from harmonium.library.store import database

COMPILED = user_cache_folder() / "compiled-by-tests"
"""Programs that JAX compiled for tests before; pyproject.toml lets JAX's warning pass that it read
a file that another process was still writing."""
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Most programs run once, on little data: optimising them takes longer than it saves. The older
# emitters compile in half the time; a flag that XLA does not know would end the process.
unoptimised = os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") == "1"
if unoptimised and version("jaxlib").startswith("0.10."):
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_use_fusion_emitters=false".strip()

LONGEST_FIRST = (
    *("test_accessible", "test_page"),
    *("test_sklearn_checks", "test_drbm_methods", "test_drbm_training"),
    *("test_other_taggers", "test_smoother_conditions", "test_smoother", "test_stacked"),
    *("test_train", "test_run", "test_demo", "test_first_hours", "test_smooth"),
    *("test_write", "test_rbm_training", "test_extraction"),
)
"""Files that take long. One that starts last would keep the other workers waiting."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look at it again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure() -> None:
    """Nothing needs to be collected when Python ends."""
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public datasets; the test is skipped where there is none."""
    folder = os.environ.get("HARMONIUM_DATA")
    if not folder:
        pytest.skip("HARMONIUM_DATA is not set: the public datasets are not at hand")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def no_data_of_the_user(tmp_path_factory):
    """Nobody's own library or answers; for the processes that tests start, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data-home")))
        yield


@pytest.fixture
def data_home(tmp_path, monkeypatch) -> Path:
    """An empty data folder for this test's user, and the processes that it starts."""
    folder = tmp_path / "data-home"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def postgres():
    """The URL of a server that runs as long as the tests; skipped where there is none."""
    if reason := postgres_server.why_not():
        pytest.skip(reason)
    with postgres_server.restartable_server() as (url, _):
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a library is or can be made: a file, then a database of a server.

    Where the test also asks for `library`, an empty one is there already.
    """
    wanted = "library" in request.fixturenames
    if request.param == "sqlite":
        place = tmp_path / "library.db"
        if wanted:
            shutil.copyfile(request.getfixturevalue("empty_file"), place)
        yield str(place)
    elif wanted:
        yield request.getfixturevalue("empty_schemas")()
    else:
        with postgres_server.schema(request.getfixturevalue("postgres")) as url:
            yield url


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory) -> Path:
    """An empty library in a file, to be copied."""
    place = tmp_path_factory.mktemp("empty") / "library.db"
    Library.open(place).close()
    return place


@pytest.fixture(scope="session")
def empty_schemas(postgres):
    """A function that gives the URL of an empty library, which the last test no longer needs."""
    kept: list[postgres_server.EmptyLibrary] = []

    def empty() -> str:
        if not (kept and kept[0].empty()):
            kept[:] = [postgres_server.EmptyLibrary(postgres)]
        return kept[0].url

    return empty


@pytest.fixture
def library(place, monkeypatch):
    """An empty library, in SQLite and in PostgreSQL; neither waits for the disk."""
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    with Library.open(place) as library:
        yield library
