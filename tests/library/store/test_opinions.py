"""The rows of what people say, and how many people have said something about each track."""

import contextlib

import numpy as np
import polars as pl
import pytest
from some_tracks import add_tracks, in_force, say, triples

from harmonium.errors import LibraryError
from harmonium.library.store import opinions


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


@pytest.mark.parametrize(
    ("present", "absent", "message"),
    [(["a"], ["A "], "at once"), ([" - "], [], "must have a name")],
    ids=["present and absent", "no name"],
)
def test_tags_that_make_no_sense_are_refused(library, present, absent, message):
    (track,) = add_tracks(library, 1)
    with pytest.raises(LibraryError, match=message):
        say(library, "ann", track, present, absent)
    assert (in_force(library), library.changes.list()) == ({}, [])


def test_an_unknown_change_is_refused(library):
    (track,) = add_tracks(library, 1)
    with pytest.raises(LibraryError, match="no change 77"):
        library.opinions.say("ann", track, ["rock"], change=77)
    assert in_force(library) == {}


def test_an_unknown_track_is_refused(library):
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
