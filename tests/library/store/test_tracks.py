"""The rows of tracks."""

import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from some_tracks import add_tracks

from harmonium.errors import LibraryError
from harmonium.library.store.tracks import Track


def test_a_track_has_what_was_put(library):
    began = datetime.now(UTC)
    given = Track("/m/a.mp3", "s", 5, 6, "T", "A", "B", 1.5, {"genre": ["Rock"], "mood": []})
    (number,) = library.tracks.put([given])
    track = library.tracks.get(number)
    assert began <= track.added_at <= datetime.now(UTC)
    kept = {"id": number, "file_tags": {"genre": ["Rock"]}, "added_at": track.added_at}
    assert track == replace(given, **kept)
    assert track.name == "A - T"


def test_the_same_sound_is_the_same_track(library):
    (number,) = library.tracks.put([Track("/m/a.mp3", "s", title="T")])
    assert library.tracks.put([Track("/m/b.mp3", "s", title="new")]) == [number]
    track = library.tracks.get(number)
    assert (track.path, track.title, library.tracks.count()) == ("/m/b.mp3", "new", 1)


def test_odd_names_are_kept(library):
    paths = [os.fsdecode(b"/m/caf\xe9.mp3"), "/m/caf\\xe9.mp3", "/m/c.mp3"]
    titles = ["nul\0l", "\udce9", "日本語 'quoted' %_"]
    tracks = zip(paths, "abc", titles, strict=True)
    ids = library.tracks.put(Track(path, sound, title=title) for path, sound, title in tracks)
    assert [track.path for track in library.tracks.many(ids)] == paths
    assert [library.tracks.find(path).id for path in paths] == ids
    assert [track.title for track in library.tracks.many(ids)] == ["nul l", "?", titles[2]]


def test_tracks_by_state_page_by_page_in_order(library, monkeypatch):
    monkeypatch.setattr("harmonium.library.store.database.PAGE", 4)
    ids = add_tracks(library, 11)
    assert [track.id for track in library.tracks.all()] == ids
    assert [track.id for track in library.tracks.many(ids[::-1])] == ids[::-1]
    library.tracks.set_state(ids[1:3], "missing")
    library.tracks.set_state(ids[3:9], "unreadable", reason="is damaged.")
    assert library.tracks.ids().tolist() == [ids[0], *ids[9:]]
    assert [track.id for track in library.tracks.all(["missing", "unreadable"])] == ids[1:9]
    assert library.tracks.get(ids[3]).reason == "is damaged."
    assert (library.tracks.count(), library.tracks.count("missing")) == (11, 2)
    with pytest.raises(LibraryError, match="'state'"):
        library.tracks.count("gone")
    with pytest.raises(LibraryError, match="no track #99"):
        library.tracks.many([1, 99])
