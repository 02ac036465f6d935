"""The example of docs/filetags.md runs, and the page names every option, mode and place."""

import dataclasses
import re

import pytest
from mutagen.id3 import ID3, TCON
from places import DOCS
from tagged_files import untagged

from harmonium.library.filetags import FIELDS, MODES, Rules, plan_write
from harmonium.library.filetags.formats import KNOWN

PAGE = (DOCS / "filetags.md").read_text(encoding="utf-8")


@pytest.fixture
def song(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "song.mp3"
    path.write_bytes(untagged("mp3"))
    tag = ID3()
    tag.add(TCON(encoding=3, text=["Rock"]))
    tag.save(path)
    return path


def test_the_example_prints_what_it_says(song, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    exec(compile(code, "docs/filetags.md", "exec"), {})
    said = re.findall(r"^print\(.*\)  # (.*)$|^    # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == [one or other for one, other in said]


def test_every_rule_is_described_with_its_default():
    for field in dataclasses.fields(Rules):
        (row,) = re.findall(rf"^\| `{field.name}` \| (.*?) \|", PAGE, re.M)
        value = getattr(Rules(), field.name)
        assert row == "none" if value in ({}, (), None) else eval(row.strip("`")) == value


def test_every_mode_is_described():
    assert re.findall(r"^\| `([a-z-]+)` \| (?:what|the tags)", PAGE, re.M) == list(MODES)


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "opus", "m4a", "wav", "aiff"])
def test_every_place_is_named(tmp_path, kind):
    path = tmp_path / "song"
    path.write_bytes(untagged(kind))
    for name in FIELDS:
        change = plan_write(path, {"a": 0.5}, Rules(default_field=name, scores=True))
        field, scores = change.fields
        assert f"`{field.places[0]}`" in PAGE
        assert f"`{scores.places[0].replace(name.upper(), 'GENRE')}`" in PAGE


def test_every_format_is_named():
    for name in KNOWN.replace(" and ", ", ").split(", "):
        assert name.split(" (")[0] in PAGE
