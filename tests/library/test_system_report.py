"""What a report of a fault says, and what it must not say."""

import json

import small_library
from command_line import run
from small_library import new_change

from harmonium.library.store.tracks import Track
from harmonium.library.system_report import system_report


def test_it_counts_what_the_library_has(library):
    ids, *_ = small_library.fill(library, 12)
    library.tracks.set_state([int(ids[1])], "missing")
    library.opinions.say("ann", int(ids[0]), ["rock", "jazz"], change=new_change(library))
    library.opinions.say("bob", int(ids[0]), ["rock"], change=new_change(library))
    before = library.opinions.triples()
    size = system_report(library).library
    assert (size.present, size.missing, size.unreadable) == (11, 1, 0)
    assert size.people == before["person"].n_unique()
    assert size.labels == before.height
    assert size.changes == len(library.changes.list())
    assert size.model == "none"
    assert size.database.startswith(library.engine.dialect.name)


def test_it_names_no_path_title_tag_or_person(library):
    library.tracks.put([Track("/secret/song.mp3", "s1", title="Hidden Title", artist="Ann Artist")])
    [track] = library.tracks.all()
    library.settings.set("folders", ["/secret"])
    library.settings.set("extractor", "onnx:/secret/model.onnx@1")
    library.opinions.say("Bob Person", track.id, ["own word"], change=new_change(library))
    report = system_report(library)
    text = json.dumps(report.to_dict()) + str(report.lines())
    for word in ("secret", "Hidden", "Artist", "Bob", "own word", library.place):
        assert word not in text
    assert report.library.extractor == "onnx:FILE"


def test_the_command_needs_no_library(tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_LIBRARY", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    report = json.loads(run("doctor", "--report", "--json").stdout)
    assert report["harmonium"]
    assert report["library"] is None


def test_a_damaged_library_is_a_line_of_the_report(tmp_path):
    place = tmp_path / "private.db"
    place.write_bytes(b"no database" * 1000)
    result = run("doctor", "--report", "--library", str(place))
    assert result.exit_code == 0
    assert "Error" in result.stdout
    assert "private" not in result.stdout
