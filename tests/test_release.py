"""What ``make release`` checks and writes, and the container's files; nothing is built."""

import importlib
import json
import re
import tomllib
from fnmatch import fnmatch

import pytest
import yaml
from places import PROJECT

import harmonium
from harmonium.web.app import ServerSettings, create_app

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def release(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "release"))
    return importlib.import_module("release")


def test_the_changelog_knows_this_version():
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(
        rf"^## \[{re.escape(harmonium.__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M
    )


def test_the_citation_names_this_version_and_licence():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == harmonium.__version__
    assert citation["license"] == "BSD-3-Clause"
    assert "1103.2832" in citation["preferred-citation"]["identifiers"][0]["value"]


WORKFLOWS = sorted((PROJECT / ".github").rglob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_the_repository_host_reads_is_yaml(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_workflow_tests_every_python_of_a_release(release):
    workflow = yaml.safe_load((PROJECT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == list(release.PYTHONS)


def test_the_pythons_dependencies_and_tests_of_a_release(release):
    promised = [line.rpartition(":: ")[2] for line in PYPROJECT["classifiers"] if ":: 3." in line]
    assert list(release.PYTHONS) == promised
    assert PYPROJECT["requires-python"] == f">={promised[0]}"
    found = release.dependencies()
    assert len(found) > 20
    assert all(re.fullmatch(r">=[\d.]+", allowed) for _, allowed in found)
    assert all((PROJECT / "tests" / name).exists() for name in release.QUICK)


# The container, which `.ci/run` builds where it can.


@pytest.fixture(scope="module")
def steps():
    """(instruction, its words) of the Dockerfile."""
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_what_is_copied_is_there_and_not_ignored(steps):
    first, *rest = (PROJECT / ".dockerignore").read_text().split()
    sources = [word for step, words in steps if step == "COPY" for word in words.split()[:-1]]
    assert first == "*"
    assert {f"!{source}" for source in sources} == {line for line in rest if line[0] == "!"}
    assert all((PROJECT / source).exists() for source in sources)
    packed = (PROJECT / "pyproject.toml").read_text()
    folders = [source for source in sources if (PROJECT / source).is_dir()]
    assert all(f'"{folder}"' in packed for folder in folders)


def test_the_server_is_not_root_and_is_asked_for_its_health(steps, tmp_path):
    done = dict(steps)
    assert done["USER"] not in ("root", "0")
    order = [step for step, _ in steps]
    assert order.index("USER") < order.index("CMD")
    image = done["FROM"]
    assert fnmatch(image, "python:3.*-slim")  # no other registry than the usual one
    (address,) = re.findall(r"http://127.0.0.1:(\d+)(/[\w/]*)", done["HEALTHCHECK"])
    port, path = address
    json.loads(done["HEALTHCHECK"].partition("CMD ")[2])
    routes = create_app(ServerSettings(place=str(tmp_path / "library.db"))).openapi()["paths"]
    assert path in routes
    assert done["EXPOSE"] == port
    assert json.loads(done["CMD"])[0] == "serve"

    service = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    (volume,) = service["volumes"]
    (server,) = service["services"].values()
    assert f"{volume}:{done['VOLUME']}" in server["volumes"]
    assert done["ENV"].startswith(f"HARMONIUM_LIBRARY={done['VOLUME']}/")
    (published,) = server["ports"]
    assert published == f"127.0.0.1:{port}:{port}"
