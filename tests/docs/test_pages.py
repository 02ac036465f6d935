"""The examples of the README and of the pages run, and the pages name all that there is."""

import dataclasses
import doctest
import importlib
import json
import re
import shutil
import subprocess
import tomllib

import pytest
import small_library
from command_line import run
from mutagen.id3 import ID3, TCON
from noise_files import write
from places import DOCS, PROJECT
from tagged_files import untagged
from web_server import serving

from harmonium.audio import extractors
from harmonium.data.tables import USUAL_NAMES
from harmonium.library.filetags import FIELDS, MODES, Rules, plan_write
from harmonium.library.filetags.formats import supported_formats
from harmonium.library.filetags.rules import RULE_NAMES, make_rules
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

README = (PROJECT / "README.md").read_text(encoding="utf-8")
LIBRARY, FILETAGS, WEB = (
    (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("library", "filetags", "web")
)


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


# README.md


def test_the_library_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    assert len(README.splitlines()) <= 120
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "Music" / "song.flac", 1, tags=["Rock"], seconds=1)
    exec(blocks(README)[0], {})
    assert capsys.readouterr().out.splitlines() == [f"{tmp_path / 'Music' / 'song.flac'} 1.0"]


def test_the_model_example_of_the_readme_learns_something(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    _, code = blocks(README)
    exec(code, names)
    auc = float(capsys.readouterr().out.splitlines()[0].removeprefix("mean AUC "))
    (said,) = re.findall(r"on other tracks: (0\.\d+)", code)
    assert auc == pytest.approx(float(said), abs=0.05)
    assert "harmonium.load(" in code


def test_the_search_of_a_library_of_genres_finds_something(library, place):
    """Its tags are genres that files have, not tags of a model that is not installed."""
    own = README.partition("With tags of your own")[2]
    (query,) = re.findall(r"^    harmonium search (.*?) +#", own, flags=re.MULTILINE)
    ids, *_ = small_library.fill(library, 4, tagged=0)
    change = small_library.new_change(library)
    for number, tag in zip(ids[:2].tolist(), ("Jazz", "Rock"), strict=True):
        library.opinions.say("files", number, [tag], change=change)
    done = run("search", *query.split(), "-L", place)
    assert done.exit_code == 0
    assert [line.split("\t")[-1] for line in done.stdout.splitlines()] == ["/music/000.ogg"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_links_of_the_readme_lead_somewhere(link):
    path, _, _ = link.partition("#")
    assert (PROJECT / path).exists()


# Examples of pages, and of docstrings


@pytest.fixture
def registry(monkeypatch):
    """Examples may register extractors."""
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))


@pytest.mark.parametrize("page", ["guide", "features"])
def test_the_examples_of_a_page_print_what_they_say(page, registry, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "".join(blocks((DOCS / f"{page}.md").read_text(encoding="utf-8")))
    exec(compile(code, page, "exec"), {})
    said = re.findall(r"^print\(.*\)(?:  |\n)# (.*)$", code, re.M)
    assert len(said) >= 4
    assert capsys.readouterr().out.splitlines() == said


MODULES = [path.relative_to(PROJECT) for path in sorted((PROJECT / "harmonium").rglob("*.py"))]


@pytest.mark.parametrize(
    "path", [path for path in MODULES if ">>>" in (PROJECT / path).read_text()]
)
def test_the_examples_of_docstrings_run(path, registry):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# docs/library.md


def test_the_example_of_a_library_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for k in range(2):
        write(tmp_path / "music" / f"{k}.flac", k, tags=["Rock"], seconds=1)
    code = next(code for code in blocks(LIBRARY) if "say" in code)
    exec(compile(code, "docs/library.md", "exec"), {})
    said = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == said


def test_every_name_of_a_column_is_listed():
    assert [n for names in USUAL_NAMES.values() for n in names if f"`{n}`" not in LIBRARY] == []


def test_every_rule_of_writing_is_listed():
    (text,) = blocks(LIBRARY, "toml")
    rules = make_rules([tomllib.loads(text)])
    assert rules.fields == {"instrument": "comment", "mellow": "grouping"}
    assert rules.aliases == {"hip hop": "Hip-Hop"}
    table = LIBRARY.partition("## Write")[2].partition("```toml")[0]
    assert {*re.findall(r"\| `\[?(\w+)\]?` \|", table)} == {*RULE_NAMES} - {"separator", "kinds"}


# docs/filetags.md


def test_the_example_of_file_tags_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "song.mp3").write_bytes(untagged("mp3"))
    tag = ID3()
    tag.add(TCON(encoding=3, text=["Rock"]))
    tag.save(tmp_path / "song.mp3")
    (code,) = blocks(FILETAGS)
    exec(compile(code, "docs/filetags.md", "exec"), {})
    said = re.findall(r"^print\(.*\)  # (.*)$|^    # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == [one or other for one, other in said]


@pytest.mark.parametrize("field", dataclasses.fields(Rules), ids=lambda field: field.name)
def test_every_rule_has_its_default(field):
    (row,) = re.findall(rf"^\| `{field.name}` \| (.*?) \|", FILETAGS, re.M)
    value = getattr(Rules(), field.name)
    assert row == "none" if value in ({}, (), None) else eval(row.strip("`")) == value


def test_every_mode_of_writing_is_named():
    assert re.findall(r"^\| `([a-z-]+)` \| (?:what|the tags)", FILETAGS, re.M) == list(MODES)


def test_every_format_of_files_is_named():
    for form in supported_formats():
        assert form.name in FILETAGS


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "opus", "m4a", "wav", "aiff"])
def test_every_place_is_named(tmp_path, kind):
    path = tmp_path / "song"
    path.write_bytes(untagged(kind))
    for name in FIELDS:
        change = plan_write(path, {"a": 0.5}, Rules(default_field=name, scores=True))
        field, scores = change.fields
        assert f"`{field.places[0]}`" in FILETAGS
        assert f"`{scores.places[0].replace(name.upper(), 'GENRE')}`" in FILETAGS


# docs/web.md


@pytest.fixture
def served(library, place):
    """The blocks of the page in a language, with the address of a server."""
    small_library.trained(library, tagged=30, artists=7)
    with serving(place) as client:
        at = f"127.0.0.1:{client.base_url.port}"
        yield lambda language: blocks(WEB, language)[0].replace("127.0.0.1:8040", at)


def test_the_curl_examples_run(served):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    answers = []
    for line in served("sh").strip().splitlines():
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
        answers.append(json.loads(done.stdout))
    assert not [answer for answer in answers if "error" in answer]
    assert len(answers[0]["hits"]) == 3
    assert answers[3]["change"] == 2  # which the last line undoes
    assert answers[4]["complete"]


def test_the_python_example_of_the_server_runs(served, capsys):
    exec(compile(served("python"), "docs/web.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Artist \d - Song \d+ 1.0", first)
    assert second.startswith("These moved most: ")


def test_every_route_is_named():
    for path in create_app(ServerSettings()).openapi()["paths"]:
        assert path.removeprefix("/api/v1") in WEB, path
