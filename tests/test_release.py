"""What ``make release`` checks and writes, without building anything."""

import importlib
import re
import tomllib

import pytest
from places import PROJECT

import harmonium

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


def test_the_pythons_dependencies_and_tests_of_a_release(release):
    promised = [line.rpartition(":: ")[2] for line in PYPROJECT["classifiers"] if ":: 3." in line]
    assert list(release.PYTHONS) == promised
    assert PYPROJECT["requires-python"] == f">={promised[0]}"
    found = release.dependencies()
    assert len(found) > 20
    assert all(re.fullmatch(r">=[\d.]+", allowed) for _, allowed in found)
    assert all((PROJECT / "tests" / name).exists() for name in release.QUICK)
