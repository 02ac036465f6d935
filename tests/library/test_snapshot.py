"""A library in memory says what the library says, whatever is changed meanwhile."""

import sys
import threading

import numpy as np
import pytest
from small_library import TAGS, trained
from some_tracks import say as said_by

from harmonium.data.genres import builtin_tree
from harmonium.library import Library
from harmonium.library.edits import forget, hide_tags, rename_tag
from harmonium.library.model.tagger import tag_library
from harmonium.library.snapshot import Question, Snapshot
from harmonium.library.store.schema import GENRES
from harmonium.library.teaching.say import keep_said
from harmonium.library.verdicts import VerdictTable, agreed_tags

PARTS = ("holding", "predictions", "trained", "absent", "verdicts", "ids", "tags")
QUESTIONS = ("rock", "rock -live", "(jazz OR live) AND NOT mellow", "-random", "random OR rock")


@pytest.fixture
def library(library):
    trained(library, tagged=30, people=("ann", "bob", "cy"), artists=7)
    return library


def assert_same(library):
    """Every question has the same answer from memory as from the library."""
    warm = library.snapshot()
    warm.search(Question("rock"), shown_tags=True)
    for text in QUESTIONS:
        for owner, like in ((None, None), ("own", None), (None, 12)):
            question = Question(text, like, owner=owner)
            cold = Snapshot(library, warm.version, warm.model_id)
            found = warm.search(question, 100)
            assert cold.search(question, 5, count=False).hits == found.hits[:5]
            assert cold.search(question, 100) == found


def test_the_answers_are_those_of_search(library):
    change = None
    for do in (
        lambda change: None,
        lambda change: keep_said(library, 40, accepted=["jazz"], rejected=["rock"]),
        lambda change: keep_said(library, 12, rejected=["live", "mellow"]),
        lambda change: library.changes.undo(change),
        lambda change: forget(library, [3, 4]),
        lambda change: tag_library(library, again=True),
        lambda change: library.changes.begin("review", "a sitting"),
        lambda change: keep_said(library, 31, accepted=["rock"], change=change),
        lambda change: keep_said(library, 31, accepted=["jazz"], change=change),
        lambda change: keep_said(library, 31, rejected=["rock"], change=change),
    ):
        change = do(change)
        assert_same(library)
    assert library.snapshot().verdicts.of_track(31) == {"jazz": True, "rock": False}


def test_what_has_not_changed_is_not_read_again(library):
    before = library.snapshot()
    before.search(Question("rock"), 5, shown_tags=True)
    keep_said(library, 40, accepted=["jazz"])
    after = library.snapshot()
    assert after is not before
    assert after.predictions is before.predictions
    assert after.ids is before.ids
    assert library.snapshot() is after


def test_changes_are_seen_at_once(library):
    library.snapshot().search(Question("rock"), 5, shown_tags=True)
    library.tracks.set_state([5], "missing")
    assert 5 not in library.snapshot().ids
    library.snapshot().find(Question("live"))
    rename_tag(library, "live", "concert")
    view = library.snapshot()
    assert view.tags["concert"].predicted
    assert len(view.find(Question("concert")).ids)
    hide_tags(library, ["rock"])
    assert not library.snapshot().tags["rock"].predicted
    assert library.snapshot().tags["rock"].hidden


@pytest.mark.parametrize("with_tree", [False, True])
def test_updated_verdicts_are_those_read_anew(library, with_tree):
    trained(library, tagged=30, people=("ann", "bob", "cy"))
    if with_tree:
        library.settings.set(GENRES, builtin_tree().to_dict())
    table, version = VerdictTable.read(library), library.version()
    said_by(library, "dee", 3, present=["bebop", "rock"], absent=["jazz"])
    said_by(library, "ann", 40, present=["hip-hop"])
    said_by(library, "ann", 3, retract=["rock"])
    newer, anew = table.updated(library, version), VerdictTable.read(library)
    agreed = agreed_tags(library.opinions.triples(), library.genres())
    for track in library.tracks.ids().tolist():
        assert newer.of_track(track) == anew.of_track(track) == agreed.get(track, {})
    names = [*TAGS, "bebop", "nobody said"]
    few = VerdictTable.read(library, names)
    for name in names:
        for one, other in zip(newer.agreement(name), few.agreement(name), strict=True):
            assert np.array_equal(one, other), name


def test_facets_count_the_tracks_that_have_a_tag(library):
    view = library.snapshot()
    found = view.find(Question("rock"))
    counts = {facet.tag: facet.n for facet in view.facets(found)}
    expected = dict.fromkeys(counts, 0)
    for track in found.matching.tolist():
        said = view.verdicts.of_track(track)
        (p,) = view.predictions.rows(np.array([track]))
        for name in expected:
            tag = view.tags[name]
            probability = None if tag.column is None else float(p[tag.column])
            expected[name] += view.tags.holds(tag, said, probability)
    assert counts == expected


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_ask_for_parts_in_any_order_do_not_wait_for_each_other(tmp_path, hasty):
    with Library.open(tmp_path / "library.db") as library:
        trained(library, n_tracks=20)
        for turn in range(15):
            library._snapshot = None
            view = library.snapshot()
            names = PARTS[turn % len(PARTS) :] + PARTS[: turn % len(PARTS)]
            begin = threading.Barrier(len(names))

            def ask(name, view=view, begin=begin):
                begin.wait()
                getattr(view, name)

            threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert not any(thread.is_alive() for thread in threads), f"turn {turn}"


def test_the_surest_tracks_are_put_in_order_as_they_are_needed(library):
    found = library.snapshot().find(Question("mellow"))
    assert found.score is not None
    order = found.ids[np.argsort(-found.score, kind="stable")]
    for begin, end in ((0, 3), (10, 30), (2, 4), (0, 1000)):
        assert np.array_equal(found.ids[found.rows(begin, end)], order[begin:end])
