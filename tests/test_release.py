"""What ``make release`` checks and writes, and the container's files; nothing is built."""

import importlib
import json
import re
import tomllib
from fnmatch import fnmatch

import pytest
import yaml
from command_line import run
from places import PROJECT
from sqlalchemy import make_url

import harmonium
from harmonium.library.store.database import is_url
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


def test_the_citation_is_of_this_release():
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


def test_the_pythons_of_a_release_are_those_promised(release):
    promised = [line.rpartition(":: ")[2] for line in PYPROJECT["classifiers"] if ":: 3." in line]
    assert list(release.PYTHONS) == promised
    assert PYPROJECT["requires-python"] == f">={promised[0]}"


def test_every_dependency_of_a_release_has_a_lowest_version(release):
    found = release.dependencies()
    assert len(found) > 20
    assert all(re.fullmatch(r">=[\d.]+", allowed) for _, allowed in found)


def test_the_quick_tests_of_a_release_exist(release):
    assert all((PROJECT / "tests" / name).exists() for name in release.QUICK)


STORY = (PROJECT / "release" / "story.py").read_text(encoding="utf-8")
HELP = re.findall(r'assert "(.+)" in harmonium\((.*"--help")\)', STORY)


@pytest.mark.parametrize(("text", "arguments"), HELP)
def test_the_story_of_a_release_looks_for_what_the_help_says(text, arguments):
    done = run(*json.loads(f"[{arguments}]"))
    assert text in done.stdout


# The container, which `.ci/run` builds where it can.


@pytest.fixture(scope="module")
def steps():
    """(instruction, its words) of the Dockerfile."""
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


@pytest.fixture
def sources(steps):
    """What the Dockerfile copies."""
    return [word for step, words in steps if step == "COPY" for word in words.split()[:-1]]


def test_only_what_is_copied_is_not_ignored(sources):
    first, *rest = (PROJECT / ".dockerignore").read_text().split()
    assert first == "*"
    assert {f"!{source}" for source in sources} == {line for line in rest if line[0] == "!"}


def test_what_is_copied_is_in_the_package(sources):
    assert all((PROJECT / source).exists() for source in sources)
    packed = (PROJECT / "pyproject.toml").read_text()
    folders = [source for source in sources if (PROJECT / source).is_dir()]
    assert all(f'"{folder}"' in packed for folder in folders)


def test_the_server_is_not_root(steps):
    done = dict(steps)
    assert done["USER"] not in ("root", "0")
    order = [step for step, _ in steps]
    assert order.index("USER") < order.index("CMD")


def test_the_image_is_from_the_usual_registry(steps):
    image = dict(steps)["FROM"]
    assert fnmatch(image, "python:3.*-slim")  # no other registry than the usual one


def test_the_server_is_asked_for_its_health(steps, tmp_path):
    done = dict(steps)
    (address,) = re.findall(r"http://127.0.0.1:(\d+)(/[\w/]*)", done["HEALTHCHECK"])
    port, path = address
    json.loads(done["HEALTHCHECK"].partition("CMD ")[2])
    routes = create_app(ServerSettings(place=str(tmp_path / "library.db"))).openapi()["paths"]
    assert path in routes
    assert done["EXPOSE"] == port
    assert json.loads(done["CMD"])[0] == "serve"


def test_the_service_keeps_its_library_on_a_volume(steps):
    done = dict(steps)
    service = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    (volume,) = service["volumes"]
    (server,) = service["services"].values()
    assert f"{volume}:{done['VOLUME']}" in server["volumes"]
    assert done["ENV"].startswith(f"HARMONIUM_LIBRARY={done['VOLUME']}/")


def test_the_service_is_published_on_this_machine_only(steps):
    port = dict(steps)["EXPOSE"]
    service = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    (server,) = service["services"].values()
    (published,) = server["ports"]
    assert published == f"127.0.0.1:{port}:{port}"


def test_the_database_of_the_container_is_the_one_that_the_server_opens():
    compose = yaml.safe_load((PROJECT / "compose.postgres.yaml").read_text(encoding="utf-8"))
    server = compose["services"]["harmonium"]
    database = compose["services"]["database"]
    url = make_url(re.sub(r"\$\{.*?\}", "password", server["environment"]["HARMONIUM_LIBRARY"]))
    assert is_url(url.render_as_string(hide_password=False))
    assert server["depends_on"] == {url.host: {"condition": "service_healthy"}}
    assert database["environment"]["POSTGRES_USER"] == url.username == url.database
    volume, _, _ = database["volumes"][0].partition(":")
    assert volume in compose["volumes"]
    dockerfile = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    assert "/source[postgres]" in dockerfile


# The licences of what the wheel has besides Python.

LICENCES = {
    "harmonium/audio/musicnn.LICENSE": "the text of a licence",
    "harmonium/audio/musicnn.safetensors": "ISC",
    "harmonium/data/*.toml": "BSD-3-Clause",
    "harmonium/data/datasets/*.toml": "BSD-3-Clause",
    "harmonium/library/builtin/card.md": "BSD-3-Clause",
    "harmonium/library/builtin/model.safetensors": "BSD-3-Clause",
    "harmonium/library/builtin/vocabulary.toml": "BSD-3-Clause",
    "harmonium/library/builtin/words-LICENSE.md": "the text of a licence",
    "harmonium/library/builtin/words.safetensors": "CC-BY-NC-SA-4.0",
    "harmonium/py.typed": "BSD-3-Clause",
    "harmonium/synthetic/*.toml": "BSD-3-Clause",
    "harmonium/web/static/*.css": "BSD-3-Clause",
    "harmonium/web/static/*.html": "BSD-3-Clause",
    "harmonium/web/static/*.svg": "BSD-3-Clause",
    "harmonium/web/static/*.js": "BSD-3-Clause",
    "harmonium/web/static/components/*.js": "BSD-3-Clause",
    "harmonium/web/static/views/*.js": "BSD-3-Clause",
    "harmonium/web/static/vendor/*.LICENSE": "the text of a licence",
    "harmonium/web/static/vendor/preact.js": "MIT AND Apache-2.0",  # Preact, and htm
    "recipes/*.toml": "BSD-3-Clause",
    "recipes/small/*.toml": "BSD-3-Clause",
}
"""Every file of the wheel that is not Python → its licence."""


def packaged_files():
    folders = ("harmonium", "beetsplug", "recipes")
    paths = [path for folder in folders for path in (PROJECT / folder).rglob("*")]
    return [
        path.relative_to(PROJECT)
        for path in paths
        if path.is_file() and path.suffix not in (".py", ".pyc") and ".mypy_cache" not in path.parts
    ]


@pytest.mark.parametrize("path", packaged_files(), ids=str)
def test_a_file_of_the_wheel_has_one_licence(path):
    matching = [
        pattern
        for pattern in LICENCES
        if path.parent.as_posix() == pattern.rpartition("/")[0] and path.match(pattern)
    ]
    assert len(matching) == 1, f"name the licence of {path} in LICENCES"


def test_the_licence_expression_names_the_licences_of_the_files():
    named = {name for licence in LICENCES.values() for name in licence.split(" AND ")}
    assert set(PYPROJECT["license"].split(" AND ")) == named - {"the text of a licence"}


def test_the_texts_of_the_licences_are_part_of_the_wheel():
    texts = {path for path, licence in LICENCES.items() if licence == "the text of a licence"}
    assert set(PYPROJECT["license-files"]) == {"LICENSE", *texts}
    for pattern in PYPROJECT["license-files"]:
        assert list(PROJECT.glob(pattern)), pattern
