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


def test_stray_and_missing_files_are_named(release):
    archives = importlib.import_module("archives")
    archives._same("wheel", {"a"}, {"a"})
    with pytest.raises(archives.ReleaseError, match="wheel has stray files: b, c"):
        archives._same("wheel", {"a", "b", "c"}, {"a"})
    with pytest.raises(archives.ReleaseError, match="sdist has missing files: a"):
        archives._same("sdist", set(), {"a"})


def test_what_passed_is_kept_as_long_as_the_wheel_is_the_same(release, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "DIST", tmp_path)
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"one")
    results = {"wheel": "passed, 5 s", "sdist": release.FAILED}
    square = release.Square("3.12", release.LOWEST, results, {"numpy": "2.2.0"})
    assert square.failed
    release.keep(square, wheel)
    again = release.kept("3.12", release.LOWEST, wheel)
    assert again.results == {"wheel": "passed, 5 s"}  # the sdist is tried again
    assert again.versions == square.versions
    assert release.kept("3.12", release.NEWEST, wheel).results == {}
    wheel.write_bytes(b"two")
    assert release.kept("3.12", release.LOWEST, wheel).results == {}


def test_the_table_replaces_the_one_before(release, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "PAGE", tmp_path / "page.md")
    mark = "<!-- written by make release -->\n"
    release.PAGE.write_text(f"Text.\n{mark}old", encoding="utf-8")
    (tmp_path / "a.whl").write_bytes(b"x" * 2_000_000)
    results = {"wheel": "passed, 5 s", "sdist": "7 passed, 9 s"}
    squares = [release.Square("3.11", "lowest", results, {"python": "3.11.7", "numpy": "2.2.0"})]
    archives = importlib.import_module("archives").Archives(*[tmp_path / "a.whl"] * 2)
    release.write_page(archives, ["all is well"], squares)
    page = release.PAGE.read_text(encoding="utf-8")
    assert page.startswith(f"Text.\n{mark}\nBuilt: `a.whl` 2.0 MB")
    assert "- All is well." in page
    assert "| 3.11.7 | lowest | passed, 5 s | 7 passed, 9 s |" in page
    assert "old" not in page
