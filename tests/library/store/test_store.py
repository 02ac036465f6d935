"""The parts of a library: tracks, features, people's tags, models, predictions."""

import contextlib
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from some_tracks import a_model, add_tracks, in_force, say, triples

from harmonium.errors import LibraryError
from harmonium.library.store import opinions
from harmonium.library.store.models import CURRENT, STEP
from harmonium.library.store.schema import BLOCK
from harmonium.library.store.tracks import Track

# Tracks


def test_a_track_has_what_was_put_and_the_same_sound_is_the_same_track(library):
    began = datetime.now(UTC)
    given = Track("/m/a.mp3", "s", 5, 6, "T", "A", "B", 1.5, {"genre": ["Rock"], "mood": []})
    (number,) = library.tracks.put([given])
    track = library.tracks.get(number)
    assert began <= track.added_at <= datetime.now(UTC)
    kept = {"id": number, "file_tags": {"genre": ["Rock"]}, "added_at": track.added_at}
    assert track == replace(given, **kept)
    assert track.name == "A - T"
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


def test_a_track_is_found_by_what_people_call_it(library, monkeypatch):
    monkeypatch.chdir("/tmp")
    add_tracks(library, 6)
    paths = ("/music/004.mp3", "004.mp3", "./004.mp3", "music/004", "004.MP3", "Music\\004")
    names = ("#5", "../music/004.mp3", "artist 1 - song 4", "ARTIST 1 – Song_4", "song 4")
    for text in (*paths, *names):
        assert library.tracks.resolve(text).id == 5
    one, two = library.tracks.put([Track("/m/x.mp3", "a"), Track("/m/x.mp3", "b")])
    library.tracks.set_state([one], "missing")  # which comes after a present one of its path
    for text in ("/m/x.mp3", "x.mp3", "x"):
        assert library.tracks.resolve(text).id == two


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("001.mp3", "any of 2 tracks: #2 /music/001"),
        ("002.mp", "Near it: #3 /music/002.mp3"),
        ("#17", "no track #17"),
        (f"#{10**30}", "no track .#1000"),
        ("01.mp3", "no track '01.mp3'"),  # the end of a name is not the end of a path
        ("02", "no track '02'"),
    ],
)
def test_what_is_not_found_is_told_with_what_comes_near(library, text, message):
    add_tracks(library, 3)
    library.tracks.put([Track("/other/001.mp3", "x", title="Song 1")])
    with pytest.raises(LibraryError, match=message):
        library.tracks.resolve(text)


# Features


def test_features_come_back_in_the_order_asked_and_extractors_are_kept_apart(library):
    ids = add_tracks(library, 4)
    matrix = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    library.tracks.put_features(ids[:3], matrix, extractor="paper@1")
    have, found = library.tracks.features([ids[2], ids[3], ids[0]], extractor="paper@1")
    assert have.tolist() == [ids[2], ids[0]]
    np.testing.assert_array_equal(found, matrix[[2, 0]])
    library.tracks.put_features(ids[:1], 0 * matrix[:1], extractor="paper@1")
    assert (library.tracks.features(ids[:1], extractor="paper@1")[1] == 0).all()
    library.tracks.put_features(ids[2:], [[1, 2], [3, 4]], extractor="paper@new")
    np.testing.assert_array_equal(
        library.tracks.features(ids, extractor="paper@1")[1][2], matrix[2]
    )
    assert library.tracks.features(ids, extractor="paper")[1].tolist() == [[1, 2], [3, 4]]
    assert library.tracks.features(ids, extractor="other")[0].tolist() == []
    with pytest.raises(LibraryError, match="'paper@new' gives 2 features per track, got 3"):
        library.tracks.put_features(ids[:1], [[1, 2, 3]], extractor="paper@new")
    with pytest.raises(LibraryError, match="'matrix' must have a row for each"):
        library.tracks.put_features(ids[:1], [[1], [2]], extractor="x")


# People's tags


def test_what_people_say(library):
    one, two = add_tracks(library, 2)
    say(library, "ann", one, ["Hip-Hop", "rock"], ["jazz"])
    say(library, "bob", one, ["jazz", "rock"])
    say(library, "bob", two, ["rock"], ["loud"])
    ann = {"hip hop": 1, "rock": 1, "jazz": -1}
    bob = {(one, "jazz"): 1, (one, "rock"): 1, (two, "rock"): 1, (two, "loud"): -1}
    bob = {("bob", *about): value for about, value in bob.items()}
    assert in_force(library) == {("ann", one, tag): value for tag, value in ann.items()} | bob
    assert library.opinions.tags().rows() == [("rock", 2, 2), ("hip hop", 1, 1), ("jazz", 1, 1)]
    people = [(p.name, p.kind, p.n_tags, p.n_tracks) for p in library.opinions.people()]
    assert people == [("ann", "person", 3, 1), ("bob", "person", 3, 2)]
    of_two = library.opinions.triples([two]).select("person", "tag", "value")
    assert of_two.rows() == [("bob", "rock", 1), ("bob", "loud", -1)]
    assert library.opinions.triples([]).height == 0


def test_nonsense_and_tags_of_a_track_or_change_that_is_not_there_are_refused(library):
    (one,) = add_tracks(library, 1)
    for said, word in (([["a"], ["A "]], "at once"), ([[" - "]], "must have a name")):
        with pytest.raises(LibraryError, match=word):
            say(library, "ann", one, *said)
    with pytest.raises(LibraryError, match="no change 77"):
        library.opinions.say("ann", one, ["rock"], change=77)
    with pytest.raises(LibraryError, match=r"(?i)foreign key"):
        say(library, "ann", 99, ["rock"])
    assert (in_force(library), library.changes.list()) == ({}, [])


def test_many_at_once(library, monkeypatch):
    monkeypatch.setattr("harmonium.library.store.database.CHUNK", 3)
    ids = add_tracks(library, 5)
    frame = triples(*[("ann", i, "Rock", 1) for i in ids], *[("bob", i, "pop", -1) for i in ids])
    change = library.changes.begin("import", "x")
    assert library.opinions.add_triples(frame, change=change) == 10
    assert library.opinions.add_triples(frame, change=change) == 0
    other = triples(("ann", ids[0], "rock", 1), ("ann", ids[0], "ROCK", -1), ("eve", ids[0], "", 1))
    assert library.opinions.add_triples(other, change=library.changes.begin("x", "y")) == 1
    found = in_force(library)
    assert len(found) == 10
    assert found["ann", ids[0], "rock"] == -1
    assert library.opinions.triples().schema["at"] == pl.Datetime("us", "UTC")
    assert library.opinions.people()[0].kind == "import"
    with pytest.raises(LibraryError, match=r"'value' must be 1 .* got 0"):
        library.opinions.add_triples(triples(("a", ids[0], "b", 0)), change=change)


# Models


def test_a_model_comes_back_whole(library):
    assert library.models.current() is None
    stored = a_model()
    number = library.models.add(stored)
    found = library.models.current()
    np.testing.assert_array_equal(found.thresholds, stored.thresholds)
    assert replace(found, thresholds=0) == replace(stored, id=number, thresholds=0)
    with pytest.raises(LibraryError, match="'thresholds'"):
        library.models.add(a_model(thresholds=np.zeros(2)))


def test_the_last_model_is_used_whatever_the_clock_said_or_the_one_chosen(library):
    first, second = (
        library.models.add(a_model(name=name, made_at=datetime.now(UTC) + timedelta(days)))
        for name, days in (("one", 999), ("two", -999))
    )
    assert library.models.current().name == "two"
    library.settings.set(CURRENT, first)
    assert library.models.current().name == "one"
    found = [(one.id, one.name, one.bytes) for one in library.models.list()]
    assert found == [(first, "one", b""), (second, "two", b"")]
    with pytest.raises(LibraryError, match=r"no model 9 in the library. There are 1, 2"):
        library.models.get(9)


# Predictions


def test_predictions_of_any_tracks_in_any_order(library):
    model = library.models.add(a_model())
    rng = np.random.default_rng(1)
    ids = np.array([5, 1, BLOCK + 3, BLOCK - 1, BLOCK, 7 * BLOCK + 12])
    probabilities = rng.random((6, 3)).astype(np.float32)
    library.predictions.put(model, ids[:4], 1 - probabilities[:4])
    library.predictions.put(model, ids[:3], probabilities[:3])  # in place of those before
    library.predictions.put(model, ids[3:], probabilities[3:])
    order = np.argsort(ids)
    numbers, columns = library.predictions.columns(model, [2, 0])
    np.testing.assert_array_equal(numbers, ids[order])
    np.testing.assert_allclose(columns, probabilities[order][:, [2, 0]], rtol=0, atol=STEP / 2)
    np.testing.assert_array_equal(
        library.predictions.probabilities(model, ids)[order][:, [2, 0]], columns
    )
    assert np.isnan(library.predictions.probabilities(model, [2, BLOCK + 1])).all()
    assert len(library.predictions.columns(model, [0])[0]) == 6


def test_predictions_of_different_models_are_kept_apart(library):
    one, two = library.models.add(a_model()), library.models.add(a_model(1))
    library.predictions.put(one, [1, 2], np.full((2, 3), 0.25))
    library.predictions.put(two, [2], [[0.75]])
    assert library.predictions.columns(two, [0])[0].tolist() == [2]
    library.predictions.forget_tracks([2])
    assert library.predictions.columns(one, [0])[0].tolist() == [1]
    assert library.predictions.columns(two, [0])[0].tolist() == []
    library.predictions.forget_tracks([1])
    assert library.predictions.columns(one, [0, 1])[1].shape == (0, 2)


def test_what_is_possible_is_stored_as_possible(library):
    model = library.models.add(a_model())
    given = np.array([[0.0, 1e-30, STEP / 3], [1.0, 1 - 1e-7, 1 - STEP / 3], [1.1, -0.1, np.nan]])
    library.predictions.put(model, [1, 2, 3], given)
    found = library.predictions.probabilities(model, [1, 2, 3])
    assert (found[0] > 0).tolist() == (found[1] < 1).tolist() == [False, True, True]
    np.testing.assert_allclose(found, np.clip(given, 0, 1), rtol=0, atol=STEP)


PEOPLE = [f"person {i}" for i in range(7)]


def kept(library, ids):
    with library.connect() as connection:
        return opinions.people_of(connection, np.array(ids)).tolist()


def import_(library, rows, *, replace=False):
    with library.begin():
        change = library.changes.begin("import", "rows")
        library.opinions.add_triples(triples(*rows), change=change, replace=replace)
    return change


@pytest.mark.parametrize("few", [opinions._MAX_SINGLE_TRACKS, 2], ids=["one by one", "by blocks"])
def test_whatever_is_done_the_numbers_are_those_of_what_is_in_force(library, few, monkeypatch):
    monkeypatch.setattr(opinions, "_MAX_SINGLE_TRACKS", few)
    ids = add_tracks(library, 12)
    rng = np.random.default_rng(few)
    changes = []

    def one():
        return rng.choice(PEOPLE), int(rng.choice(ids)), [f"tag {rng.integers(3)}"]

    def some_rows(n):
        return [(person, track, tag, 1) for person, track, (tag,) in (one() for _ in range(n))]

    def undo():
        if changes:
            with contextlib.suppress(LibraryError):  # later changes touched all of it
                library.changes.undo(changes.pop(rng.integers(len(changes))))

    doings = {
        "say": lambda: changes.append(say(library, *one())),
        "retract": lambda: changes.append(say(library, *one()[:2], retract=["tag 0", "tag 1"])),
        "import": lambda: changes.append(import_(library, some_rows(15))),
        "replace": lambda: changes.append(import_(library, some_rows(6), replace=True)),
        "undo": undo,
    }
    seen = set()
    for _ in range(60):
        doings[rng.choice(list(doings))]()
        said = library.opinions.triples().group_by("track_id").agg(pl.col("person").n_unique())
        assert kept(library, ids) == [dict(said.iter_rows()).get(i, 0) for i in ids]
        seen.add(tuple(kept(library, ids)))
    assert len(seen) > 20
    assert kept(library, [10**9]) == [0]
    assert kept(library, []) == []
