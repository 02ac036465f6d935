"""Learning from a few answers: what tags and tracks gain, and that undoing leaves nothing."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import small_library
from command_line import run
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from harmonium.library import Library
from harmonium.library.answers import (
    TagExamples,
    fit_answers,
    improvement,
    keep_said,
    kernel,
    learn_answers,
)
from harmonium.library.edits import hide_tags
from harmonium.library.store.models import unpacked
from harmonium.library.store.opinions import REVIEW
from harmonium.library.store.schema import refined_tag
from harmonium.library.store.tracks import SoundVectors, update_sound_vectors
from harmonium.library.tagger import (
    BIAS_DEVIATION,
    SOUND_DEVIATION,
    Tagger,
    tag_library,
    use_builtin,
)
from harmonium.library.tagging import stored_tags
from harmonium.library.write import wanted_tags


@pytest.fixture
def anywhere(library):
    """In both databases."""
    small_library.trained(library, n_tracks=90, tagged=20)
    return library


@pytest.fixture
def tagged(tmp_path):
    with Library.open(tmp_path / "tagged.db") as library:
        small_library.trained(library, n_tracks=90, tagged=20)
        yield library


def answer(library, tag, yes=(), no=(), command=REVIEW):
    """Answers about a tag, in one change; its number."""
    number = library.changes.begin(command, "tests")
    for track in [*yes, *no]:
        keep_said(library, track, **{"yes" if track in yes else "no": [tag]}, change=number)
    return number


def column(library, tag, refined=True):
    """Track → the probability of a tag."""
    model = library.models.current(whole=False)
    place = model.vocabulary.index(tag)
    ids, P = library.predictions.columns(model.id, [place], refined=refined)
    return dict(zip(ids.tolist(), P[:, 0].tolist(), strict=True))


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
        rows, y, flags, np.ones(n), offset[:n], V[:n], None, True,
        n_learnt, len(others), (offset[others], V[others]),
    )  # fmt: skip
    a, bias = examples.fitted()
    after = expit(offset + SOUND_DEVIATION**2 * V @ (V[:n].T @ a) + bias)[others]
    r = y - expit(offset[:n])
    most = abs(r.sum()) + asked * len(others) * max(0, abs(r.mean()) - 1.5 / np.sqrt(n))
    assert abs((after - expit(offset[others])).sum()) <= most * 5 / (5 + n_learnt) + 1e-6


# Tags that the model knows. ----------------------------------------------------------------------


def test_tracks_that_sound_alike_follow_and_undoing_leaves_nothing(anywhere, place):
    before = column(anywhere, "jazz")
    surprise = min((track for track in before if track > 20), key=before.get)
    update_sound_vectors(anywhere)
    sounds = SoundVectors.of(anywhere)
    alike = dict(zip(sounds.ids.tolist(), sounds.cosines(surprise).tolist(), strict=True))
    doubtful = [t for t in before if 0.001 < before[t] < 0.999 and t != surprise]
    near, far = max(doubtful, key=alike.get), min(doubtful, key=alike.get)
    number = answer(anywhere, "jazz", yes=[surprise])
    report = learn_answers(anywhere)
    (learnt,) = report.tags
    assert (learnt.name, learnt.n_yes, learnt.n_no, learnt.has_model) == ("jazz", 1, 0, True)
    assert report.refreshed == ["jazz"]
    assert learn_answers(anywhere).refreshed == []
    after = column(anywhere, "jazz")

    def gain(track):
        odds = [p / (1 - p) for p in (before[track], after[track])]
        return np.log(odds[1] / odds[0])

    assert gain(near) > gain(far) + 0.1
    assert gain(near) > 0.1
    with Library.open(place) as again:
        assert column(again, "jazz") == after
    assert column(anywhere, "jazz", refined=False) == before
    assert column(anywhere, "rock")[near] == column(anywhere, "rock", refined=False)[near]
    anywhere.changes.undo(number)
    assert learn_answers(anywhere).tags == []
    assert column(anywhere, "jazz") == before
    assert anywhere.fetch(refined_tag.select()) == []


def test_what_was_not_asked_for_tells_nothing_of_tracks_in_general(tagged):
    """Who says jazz of jazz tracks alone does not mean that there is more of it."""
    answer(tagged, "jazz", yes=[31, 32, 33, 34])
    answer(tagged, "rock", yes=[31, 32, 33, 34], command="say")
    learn_answers(tagged)
    by_name = {one.name: one for one in tagged.models.current().refinements}
    assert by_name["rock"].bias == 0
    assert by_name["jazz"].bias > 0.1
    assert np.abs(by_name["rock"].weights).sum() > 0


def test_answers_that_the_model_was_trained_with_count_no_more(tagged):
    answer(tagged, "jazz", yes=[31])
    assert learn_answers(tagged).n_answers == 1
    new = replace(small_library.quick_model(), made_at=datetime.now(UTC))
    tagged.models.add(new)
    tag_library(tagged)
    assert learn_answers(tagged).tags == []
    answer(tagged, "jazz", yes=[32])
    assert learn_answers(tagged).n_answers == 1
    tagged.settings.set("current_model", 1)
    assert learn_answers(tagged).n_answers == 2


def test_an_answer_that_comes_meanwhile_is_learnt_too(tagged, monkeypatch):
    answer(tagged, "jazz", yes=[31])
    real = tagged.refinements.put

    def slow(*work):
        monkeypatch.setattr(tagged.refinements, "put", real)
        answer(tagged, "rock", no=[32])
        real(*work)

    monkeypatch.setattr(tagged.refinements, "put", slow)
    assert {one.name for one in learn_answers(tagged).tags} == {"jazz", "rock"}


def test_new_tracks_have_what_was_learnt(anywhere):
    answer(anywhere, "jazz", yes=[31, 32, 33])
    answer(anywhere, "sunday", yes=range(40, 46), command="say")
    learn_answers(anywhere)
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
    assert learn_answers(anywhere).n_tracks == 1
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
    assert learn_answers(tagged).tags == []
    assert tagged.models.current().n_new == 0
    number = answer(tagged, "sunday", yes=yes[4:8], command="say")
    assert [one.has_model for one in learn_answers(tagged).tags] == [False]
    model = tagged.models.current()
    assert model.vocabulary[-1] == "sunday"
    assert model.learnt[-1]
    assert model.is_own[-1]
    found = tagged.search("sunday", predicted=True, limit=10)
    assert not found.people_only
    right = [truth[hit.track.id - 1, 3] for hit in found.hits]
    assert np.mean(right) > truth[:, 3].mean() + 0.2
    names = {row.tag for one in stored_tags(tagged) for row in one.tags()}
    assert "sunday" in names
    tagged.changes.undo(number)
    learn_answers(tagged)
    assert "sunday" not in tagged.models.current().vocabulary
    assert tagged.search("sunday").people_only == ["sunday"]


def test_a_tag_that_training_did_not_learn_is_as_new_and_a_hidden_one_stays_so(tagged):
    answer(tagged, small_library.NOISE, yes=range(31, 37), no=[38, 39])
    learn_answers(tagged)
    model = tagged.models.current()
    assert model.n_new == 0
    assert model.learnt[5]
    assert not model.as_trained().learnt[5]
    hide_tags(tagged, [small_library.NOISE])
    assert learn_answers(tagged).tags == []
    assert not tagged.models.current().learnt[5]


def test_what_is_written_was_shown_by_held_out_tracks(tagged):
    """Answers may take a tag away from what is written, and add none."""

    def wanted():
        found = wanted_tags(tagged, list(range(31, 91)), people=False)
        return {track: set(found.get(track, ())) for track in range(31, 91)}

    before = wanted()
    answer(tagged, "jazz", yes=[40, 41, 42, 43, 44, 45])
    answer(tagged, "rock", no=[46, 47, 48, 49, 50, 51])
    answer(tagged, "sunday", yes=range(52, 60), command="say")
    learn_answers(tagged)
    after = wanted()
    assert all(after[track] <= before[track] for track in before)
    assert sum(map(len, after.values())) < sum(map(len, before.values()))


def test_each_answer_is_guessed_from_those_before_it(tagged):
    """The answers say the contrary of the model: from the second on, that is known."""
    likely = [t for t, p in column(tagged, "jazz").items() if p > 0.6 and t > 20][:8]
    first = answer(tagged, "jazz", no=likely[:1])
    rest = answer(tagged, "jazz", no=likely[1:])
    gain = improvement(tagged)
    assert gain.n == len(likely)
    assert gain.right_before == 0
    assert gain.right_now > 0
    assert improvement(tagged, first) == (1, 0, 0)
    assert improvement(tagged, rest).n == len(likely) - 1
    assert improvement(tagged, 999) is None
    answer(tagged, "jazz", yes=[1, 2, 3], command="import")  # nobody was asked
    assert improvement(tagged).n == len(likely)


def test_the_built_in_model_learns_from_all_that_was_said(tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        X = small_library.fill_for_builtin(library, 40, tagged=0)
        keep_said(library, 1, yes=["jazz"])  # before there was a model
        use_builtin(library)
        tag_library(library)
        answer(library, "sunday", yes=range(3, 9), command="say")
        assert {one.name for one in learn_answers(library).tags} == {"jazz", "sunday"}
        model = library.models.current()
        assert model.n_own == 0
        assert model.is_own.tolist() == [False] * model.n_trained + [True]
        assert model.only("own").learnt.sum() == 1
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
    assert "sunday" not in tagged.models.current().vocabulary
    run("tag", "-L", tagged.place)  # a new model learns the words that it was not trained with
    assert tagged.models.current().vocabulary[-1] == "sunday"


def test_questions_about_tags_that_were_learnt_here_come_first(tagged):
    """And each says where its threshold is, by which it is doubtful."""
    model = tagged.models.current()
    number = tagged.models.add(replace(model, report=model.report | {"own": 1}))
    ids = tagged.tracks.ids()
    tagged.predictions.put(number, ids, tagged.predictions.probabilities(model.id, ids))
    questions = tagged.doubts(limit=5)
    assert {one.tag for one in questions} == {model.vocabulary[0]}
    for one in questions:
        assert one.guess == (one.probability >= one.threshold)
    assert len({one.tag for one in tagged.doubts(limit=60)}) > 1  # and then the others
