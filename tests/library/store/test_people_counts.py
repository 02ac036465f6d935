"""How many people speak of a track is kept right whatever they say, take back, import and undo."""

import contextlib

import numpy as np
import pytest
from some_tracks import add_tracks, say, triples

from harmonium.errors import LibraryError
from harmonium.library.store import opinions

PEOPLE = [f"person {i}" for i in range(7)]


def counted(library, ids):
    """By what is in force."""
    said = library.opinions.triples()
    speakers = {i: set() for i in ids}
    for person, track in said.select("person", "track_id").rows():
        speakers[track].add(person)
    return [len(speakers[i]) for i in ids]


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

    def some_rows(n):
        return [
            (rng.choice(PEOPLE), int(rng.choice(ids)), f"tag {rng.integers(3)}", 1)
            for _ in range(n)
        ]

    def one():
        return rng.choice(PEOPLE), int(rng.choice(ids)), [f"tag {rng.integers(3)}"]

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
        assert kept(library, ids) == counted(library, ids)
        seen.add(tuple(kept(library, ids)))
    assert len(seen) > 20


def test_tracks_of_which_nobody_has_spoken_have_nobody(library):
    ids = add_tracks(library, 2)
    say(library, "ann", ids[0], ["rock"])
    assert kept(library, [*ids, 10**9]) == [1, 0, 0]
    assert kept(library, []) == []
