"""`harmonium review`: which questions are asked, and what becomes of the answers."""

import numpy as np
import pytest
import small_library
from command_line import run
from some_tracks import in_force

from harmonium.commands import corrections
from harmonium.errors import DataError
from harmonium.library.doubts import doubtful
from harmonium.library.store.opinions import judge, label_matrix, only_answered_tracks


@pytest.fixture
def tagged(library):
    small_library.trained(library, tagged=20, artists=6)
    return library


@pytest.fixture
def press(monkeypatch):
    def press(keys):
        waiting = list(keys)
        monkeypatch.setattr(corrections, "has_reader", lambda: True)
        monkeypatch.setattr(corrections.typer, "getchar", lambda: waiting.pop(0))

    return press


def test_the_questions_are_open_doubtful_and_spread(tagged):
    model = tagged.models.current()
    asked = doubtful(tagged, n=10)
    assert len({one.track.id for one in asked}) == len(asked) == 10
    assert len({one.tag for one in asked}) >= 3
    said = {(track, tag) for _, track, tag in in_force(tagged)}
    assert not said & {(one.track.id, one.tag) for one in asked}
    places = {tag: j for j, tag in enumerate(model.vocabulary)}
    P = tagged.predictions.probabilities(model.id, tagged.tracks.ids())
    for one in asked:
        p = P[one.track.id - 1, places[one.tag]]
        assert one.probability == pytest.approx(p)
        assert one.guess == (p >= 0.4)
    distance = [abs(one.probability - 0.4) for one in asked]
    assert np.mean(distance) < np.abs(P[:, :5] - 0.4).mean() / 2


def test_questions_of_one_tag_and_those_to_skip(tagged):
    first = doubtful(tagged, "Hip-Hop", n=3)
    assert {one.tag for one in first} == {"hip hop"}
    skip = [(one.track.id, one.tag) for one in first]
    again = doubtful(tagged, "hip hop", n=3, skip=skip)
    assert not {one.track.id for one in first} & {one.track.id for one in again}
    with pytest.raises(DataError, match="has not learnt 'random'"):
        doubtful(tagged, "random")


def test_answers_are_kept_as_one_change(tagged, place, press):
    before, asked = in_force(tagged), doubtful(tagged, n=4)
    press("y ?nq")
    done = run("review", "-n", "4", "-L", place)
    assert done.exit_code == 0
    kept = {("me", asked[0].track.id, asked[0].tag): 1, ("me", asked[2].track.id, asked[2].tag): -1}
    assert in_force(tagged) == before | kept
    right = asked[0].guess + (not asked[2].guess)
    assert f"2 answers saved; the model had guessed {right} of them right" in done.stdout
    assert tagged.changes.list(1)[0].summary == "2 answers"
    run("undo", "-L", place)
    assert in_force(tagged) == before


def test_the_model_learns_on_the_way(tagged, place, press):
    press("n" * 10 + "yy")
    done = run("review", "-n", "12", "-L", place)
    lines = done.stdout.splitlines()
    learnt = [number for number, line in enumerate(lines) if line.startswith("Updated")]
    assert len(learnt) == 2  # after ten, and at the end
    assert "11/12" in lines[learnt[0] + 1]
    assert "12 answers saved" in done.stdout
    assert "As trained, it guesses" in done.stdout
    assert "of 12 right; learning from each answer before the next" in done.stdout.replace(
        "\n", " "
    )


def test_ctrl_c_loses_no_answer(tagged, place, press):
    before = len(in_force(tagged))
    press("yy\x03")
    done = run("review", "-L", place)
    assert done.exit_code == 130
    assert "2 answers saved" in done.stdout
    assert len(in_force(tagged)) == before + 2


def test_without_a_terminal(tagged, place):
    with pytest.raises(DataError, match="needs a terminal"):
        run("review", "-L", place)


def test_an_answer_says_nothing_of_other_tags(tagged):
    """Otherwise a yes to one tag would be a no to all others, at the next training."""
    asked = next(one for one in doubtful(tagged, n=10) if one.track.id > 20)
    tagged.answer(asked.track, asked.tag, True)
    opinions = tagged.opinions.triples()
    answered = only_answered_tracks(tagged, opinions)
    assert answered.tolist() == [asked.track.id]
    ids = np.array([1, asked.track.id])
    tags = small_library.TAGS
    Y = label_matrix(judge(opinions), ids, tags, only_answered=answered)
    assert not np.isnan(Y[0]).any()
    assert Y[1, tags.index(asked.tag)] == 1
    assert np.isnan(Y[1]).sum() == len(tags) - 1
