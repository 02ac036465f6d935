"""Another rule for writing, in place of `Tag.written`, decides wherever predictions are written."""

import pytest
from written_music import make_songs, predict

from harmonium.library.export import export_tracks
from harmonium.library.filetags import read_tags
from harmonium.library.model.tag_table import NotWritten, Tag, WriteDecision
from harmonium.library.writing.wanted import TagSources

LONG = {"guitar", "mellow", "hip hop"}


def only_long_names(tag, precision):
    """Tags of six letters or more, even if they are unlikely."""
    if len(tag.name) < 6:
        return WriteDecision(reason=NotWritten.IMPRECISE)
    return WriteDecision(threshold=0.3, precision=0.5)


@pytest.fixture
def song(library, tmp_path, monkeypatch):
    """A file for which four tags are predicted; the new rule refuses *loud* alone."""
    paths = make_songs(library, tmp_path, ["flac"])
    predict(library, {"guitar": 0.9, "mellow": 0.4, "loud": 0.9, "hip hop": 0.6})
    monkeypatch.setattr(Tag, "written", only_long_names)
    return paths["flac"]


def test_the_plan_follows(song, library):
    [number] = library.tracks.ids().tolist()
    assert {*library.writer.wanted([number], TagSources(people=False))[number].predicted} == LONG
    plan = library.writer.plan()
    [planned] = plan.files
    assert {tag.tag for tag in planned.added} == LONG
    assert plan.expected_wrong == pytest.approx(0.5 * len(LONG))


def test_the_outline_follows(song, library):
    outline = library.writer.outline()
    assert {tag.tag for tag in outline.tags} == LONG
    assert outline.not_written["loud"].reason == NotWritten.IMPRECISE


def test_files_follow(song, library):
    library.write()
    tags = read_tags(song)
    written = {name.lower() for name in (*tags.genre, *tags.mood)}
    assert "mellow" in written
    assert "loud" not in written


def test_exports_follow(song, library, tmp_path):
    library.write()
    export_tracks(library, tmp_path / "list.csv", [str(song)])
    text = (tmp_path / "list.csv").read_text(encoding="utf-8").lower()
    assert "mellow" in text
    assert "loud" not in text
