"""Learning from a few answers: what tags and tracks gain, and that undoing leaves nothing."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import small_library
from answered import answer, column
from command_line import run
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from harmonium.library import Library
from harmonium.library.edits import hide_tags
from harmonium.library.learning.quick import OtherTracks, TagExamples, fit_answers, kernel
from harmonium.library.model.builtin import use_builtin
from harmonium.library.model.gains import BIAS_DEVIATION, SOUND_DEVIATION
from harmonium.library.model.tagger import Tagger, tag_library
from harmonium.library.sound import SoundVectors, update_sound_vectors
from harmonium.library.store.predictions import unpacked
from harmonium.library.store.schema import refined_tag
from harmonium.library.tagging import stored_tags
from harmonium.library.teaching.say import keep_said
from harmonium.library.writing.wanted import NO_TAGS, TagSources, wanted_tags


@pytest.fixture
def anywhere(library):
    """In both databases."""
    small_library.trained(library, n_tracks=90, tagged=20)
    return library


# The regression. -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_weights_are_the_most_probable_ones(n):
    """Of the same problem in b, the unused bias and w, by another method."""
    rng = np.random.default_rng(n)
    V = rng.normal(size=(n, 5))
    y, asked, offset = rng.random(n).round(), rng.random(n) < 0.6, rng.normal(size=n) * 3
    weight = rng.random(n) * 2
    columns = np.hstack([V, asked[:, None], ~asked[:, None]])
    deviation = np.array([SOUND_DEVIATION] * 5 + [BIAS_DEVIATION] * 2)

    def loss(theta):
        f = offset + columns @ theta
        return (weight * (np.logaddexp(0, f) - y * f)).sum() + ((theta / deviation) ** 2).sum() / 2

    best = minimize(loss, np.zeros(7), tol=1e-10).x
    a = fit_answers(kernel(V, asked), y, offset, weight)
    np.testing.assert_allclose(columns.T @ a * deviation**2, best, atol=1e-4)


def test_answers_far_from_what_the_model_says_are_no_trouble():
    V, y = np.eye(4)[[0, 0, 1, 1]], np.array([1.0, 1, 0, 0])
    offset = np.array([-40.0, -40, 40, 40])
    K = kernel(V, np.ones(4, bool))
    a = fit_answers(K, y, offset, np.ones(4))
    np.testing.assert_allclose(a, y - expit(offset + K @ a), atol=1e-8)  # where the slope is 0


@pytest.mark.parametrize("n_learnt", [0, 20])
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.booleans(),
)
def test_answers_move_the_other_tracks_by_no_more_than_they_say(n_learnt, seed, n, asked):
    """Unless they are further off than chance allows, see `max_change`."""
    rng = np.random.default_rng(seed)
    V, y = rng.normal(size=(60, 5)), rng.random(n).round()
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    offset = rng.normal(size=60) * 2 - 1
    rows, others = np.arange(n), np.arange(n, 60)
    flags = np.full(n, asked)
    examples = TagExamples(
        ids=rows,
        y=y,
        asked=flags,
        weight=np.ones(n),
        offset=offset[:n],
        vectors=V[:n],
        has_model=True,
        n_learnt=n_learnt,
        others=OtherTracks(n=len(others), offset=offset[others], vectors=V[others]),
    )
    a, bias = examples.fitted()
    after = expit(offset + SOUND_DEVIATION**2 * V @ (V[:n].T @ a) + bias)[others]
    r = y - expit(offset[:n])
    most = abs(r.sum()) + asked * len(others) * max(0, abs(r.mean()) - 1.5 / np.sqrt(n))
    assert abs((after - expit(offset[others])).sum()) <= most * 5 / (5 + n_learnt) + 1e-6


# Tags that the model knows. ----------------------------------------------------------------------


def surprising(library):
    """A track that ann has not tagged, and that the model says is no jazz."""
    probabilities = column(library, "jazz")
    return min((track for track in probabilities if track > 20), key=probabilities.get)


def test_tracks_that_sound_alike_follow(anywhere):
    before, surprise = column(anywhere, "jazz"), surprising(anywhere)
    update_sound_vectors(anywhere)
    sounds = SoundVectors.of(anywhere)
    alike = dict(zip(sounds.ids.tolist(), sounds.cosines(surprise).tolist(), strict=True))
    doubtful = [t for t in before if 0.001 < before[t] < 0.999 and t != surprise]
    near, far = max(doubtful, key=alike.get), min(doubtful, key=alike.get)
    answer(anywhere, "jazz", yes=[surprise])
    anywhere.learn()
    after = column(anywhere, "jazz")

    def gain(track):
        odds = [p / (1 - p) for p in (before[track], after[track])]
        return np.log(odds[1] / odds[0])

    assert gain(near) > gain(far) + 0.1
    assert gain(near) > 0.1
    assert column(anywhere, "rock")[near] == column(anywhere, "rock", refined=False)[near]


def test_what_is_learnt_is_reported_once(anywhere):
    answer(anywhere, "jazz", yes=[surprising(anywhere)])
    report = anywhere.learn()
    (learnt,) = report.tags
    assert (learnt.name, learnt.n_yes, learnt.n_no, learnt.has_model) == ("jazz", 1, 0, True)
    assert report.refreshed == ["jazz"]
    again = anywhere.learn()
    assert [one.name for one in again.tags] == ["jazz"]
    assert again.refreshed == []


def test_what_is_learnt_is_stored_beside_the_predictions(anywhere, place):
    before = column(anywhere, "jazz")
    answer(anywhere, "jazz", yes=[surprising(anywhere)])
    anywhere.learn()
    after = column(anywhere, "jazz")
    assert after != before
    with Library.open(place) as again:
        assert column(again, "jazz") == after
    assert column(anywhere, "jazz", refined=False) == before


def test_undoing_an_answer_leaves_nothing_of_it(anywhere):
    before = column(anywhere, "jazz")
    number = answer(anywhere, "jazz", yes=[surprising(anywhere)])
    anywhere.learn()
    anywhere.changes.undo(number)
    assert anywhere.learn().tags == []
    assert column(anywhere, "jazz") == before
    assert anywhere.fetch(refined_tag.select()) == []


def test_what_was_not_asked_for_tells_nothing_of_tracks_in_general(tagged):
    """Who says jazz of jazz tracks alone does not mean that there is more of it."""
    answer(tagged, "jazz", yes=[31, 32, 33, 34])
    answer(tagged, "rock", yes=[31, 32, 33, 34], command="say")
    tagged.learn()
    by_name = {one.name: one for one in tagged.models.current().refinements}
    assert by_name["rock"].bias == 0
    assert by_name["jazz"].bias > 0.1
    assert np.abs(by_name["rock"].weights).sum() > 0


def test_answers_that_the_model_was_trained_with_count_no_more(tagged):
    answer(tagged, "jazz", yes=[31])
    assert tagged.learn().n_answers == 1
    new = replace(small_library.quick_model(), made_at=datetime.now(UTC))
    tagged.models.add(new)
    tag_library(tagged)
    assert tagged.learn().tags == []
    answer(tagged, "jazz", yes=[32])
    assert tagged.learn().n_answers == 1
    tagged.settings.set("current_model", 1)
    assert tagged.learn().n_answers == 2


def test_new_tracks_have_what_was_learnt(anywhere):
    answer(anywhere, "jazz", yes=[31, 32, 33])
    answer(anywhere, "sunday", yes=range(40, 46), command="say")
    anywhere.learn()
    X, _ = small_library.world(5, seed=7)
    ids = anywhere.tracks.put([small_library.Track(f"/new {i}.ogg", f"new {i}") for i in range(5)])
    anywhere.tracks.put_features(ids, X, extractor=small_library.EXTRACTOR)
    assert tag_library(anywhere) == 5
    tagger = Tagger(anywhere.models.current(), anywhere)
    P, stored = tagger.probabilities(X), anywhere.predictions.probabilities(1, ids)
    np.testing.assert_allclose(stored, P, atol=1e-4)
    every, steps = anywhere.predictions.matrix(1)
    for tag, row in zip(tagger.tags, unpacked(steps).tolist(), strict=True):
        assert column(anywhere, tag) == dict(zip(every.tolist(), row, strict=True))
    anywhere.predictions.forget_tracks(ids[:1])
    assert np.isnan(anywhere.predictions.probabilities(1, ids[:1])).all()
    assert ids[0] not in column(anywhere, "sunday")
    assert ids[1] in column(anywhere, "sunday")


def test_the_other_tags_of_a_track_follow_from_what_was_said(anywhere):
    answer(anywhere, "rock", no=[31])
    answer(anywhere, "live", yes=[31])
    assert anywhere.learn().n_tracks == 1
    model = anywhere.models.current()
    _, X = anywhere.tracks.features([31], extractor=small_library.EXTRACTOR)
    known = np.full((1, len(model.vocabulary)), np.nan, np.float32)
    known[0, [0, 4]] = 0, 1
    given = Tagger(model).probabilities(X, known)[0]
    stored = anywhere.predictions.probabilities(model.id, [31])[0]
    np.testing.assert_allclose(stored[[1, 2, 3]], given[[1, 2, 3]], atol=1e-4)
    for j, tag in enumerate(model.vocabulary):
        assert column(anywhere, tag)[31] == stored[j]
    trained = anywhere.predictions.probabilities(model.id, [31], refined=False)[0]
    assert abs(stored[1] - trained[1]) > 1e-3
    # what was said itself is certain to search; the model's word only puts such tracks in order
    assert 0 < stored[4] < 1
    assert anywhere.search("live", limit=90).hits[0].probability == 1


# New words. --------------------------------------------------------------------------------------


def test_a_new_word_is_learnt_from_five_tracks(tagged):
    _, truth = small_library.world(90)
    yes = [t for t in range(31, 91) if truth[t - 1, 3]]
    answer(tagged, "Sunday", yes=yes[:4], command="say")
    assert tagged.learn().tags == []
    assert tagged.models.current().refinements == ()
    number = answer(tagged, "sunday", yes=yes[4:8], command="say")
    assert [one.has_model for one in tagged.learn().tags] == [False]
    model = tagged.models.current()
    assert model.outputs[-1].name == "sunday"
    sunday = tagged.snapshot().tags["sunday"]
    assert sunday.predicted
    assert (sunday.owner, sunday.learnt) == ("own", {"answers"})
    found = tagged.search("sunday", predicted=True, limit=10)
    assert not found.people_only
    right = [truth[hit.track.id - 1, 3] for hit in found.hits]
    assert np.mean(right) > truth[:, 3].mean() + 0.2
    names = {row.tag for one in stored_tags(tagged) for row in one.tags()}
    assert "sunday" in names
    tagged.changes.undo(number)
    tagged.learn()
    assert not tagged.snapshot().tags["sunday"].predicted
    assert tagged.search("sunday").people_only == ["sunday"]


def test_a_tag_that_training_did_not_learn_is_as_new(tagged):
    answer(tagged, small_library.NOISE, yes=range(31, 37), no=[38, 39])
    tagged.learn()
    noise = tagged.snapshot().tags[small_library.NOISE]
    assert (noise.predicted, noise.column) == (True, 5)
    assert np.isnan(tagged.models.current().thresholds[5])


def test_a_hidden_tag_is_not_learnt_from_answers(tagged):
    answer(tagged, small_library.NOISE, yes=range(31, 37), no=[38, 39])
    hide_tags(tagged, [small_library.NOISE])
    assert tagged.learn().tags == []
    assert not tagged.snapshot().tags[small_library.NOISE].predicted


def test_what_is_written_was_shown_by_held_out_tracks(tagged):
    """Answers may take a tag away from what is written, and add none."""

    def wanted():
        found = wanted_tags(tagged, list(range(31, 91)), TagSources(people=False))
        return {track: set(found.get(track, NO_TAGS).predicted) for track in range(31, 91)}

    before = wanted()
    answer(tagged, "jazz", yes=[40, 41, 42, 43, 44, 45])
    answer(tagged, "rock", no=[46, 47, 48, 49, 50, 51])
    answer(tagged, "sunday", yes=range(52, 60), command="say")
    tagged.learn()
    after = wanted()
    assert all(after[track] <= before[track] for track in before)
    assert sum(map(len, after.values())) < sum(map(len, before.values()))


def test_the_built_in_model_learns_from_all_that_was_said(tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        X = small_library.fill_for_builtin(library, 40, tagged=0)
        keep_said(library, 1, accepted=["jazz"])  # before there was a model
        use_builtin(library)
        tag_library(library)
        answer(library, "sunday", yes=range(3, 9), command="say")
        assert {one.name for one in library.learn().tags} == {"jazz", "sunday"}
        model = library.models.current()
        assert not model.has_own
        table = library.snapshot().tags
        assert [tag.name for tag in table.only("own").predicted] == ["sunday"]
        assert table["jazz"].learnt == {"built-in", "answers"}
        assert library.search("sunday", owner="own").hits
        P = library.predictions.probabilities(model.id, [20])
        found = Tagger(model, library).probabilities(X[19:20])
        np.testing.assert_allclose(found, P, atol=1e-3)


# The commands. -----------------------------------------------------------------------------------


def test_commands_learn_at_once(tagged):
    before = column(tagged, "jazz")
    done = run("say", "#50", "jazz", "-L", tagged.place)
    assert "jazz on all tracks from 1 answer" in done.stdout
    assert column(tagged, "jazz") != before
    run("undo", "-L", tagged.place)
    assert column(tagged, "jazz") == before
    answer(tagged, "sunday", yes=range(31, 37), command="say")
    tagged.models.add(replace(small_library.quick_model(), made_at=datetime.now(UTC)))
    assert not tagged.snapshot().tags["sunday"].predicted
    run("tag", "-L", tagged.place)  # a new model learns the words that it was not trained with
    assert tagged.models.current().outputs[-1].name == "sunday"
