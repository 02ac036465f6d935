"""The learner follows committed changes: after which verbs, when, how often, in which thread."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
import small_library
from answered import answer, column

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.learning import quick
from harmonium.library.model.tagger import tag_library


@pytest.fixture
def times(tagged, monkeypatch):
    """One entry for each time that the library is learnt from."""
    learnt, real = [], tagged.learner.learn

    def learn(*arguments):
        learnt.append("learn")
        return real(*arguments)

    monkeypatch.setattr(tagged.learner, "learn", learn)
    return learnt


def taught(library):
    """Tag → how many answers it has learnt from."""
    model = library.models.current(whole=False)
    return {one.name: one.n_yes + one.n_no for one in model.refinements}


def is_up_to_date(library):
    """Whether learning again would change nothing."""
    before = library.state()
    library.learn()
    return library.state() == before


def use_another_model(library):
    number = library.models.add(small_library.quick_model(), use=False)
    tag_library(library, library.models.get(number))
    library.models.use(number)


def import_opinions(library):
    table = Path(f"{library.place}.csv")
    table.write_text("user,path,tag\nbob,030.ogg,live\n")
    library.import_tags(table)


def tag_with_a_new_model(library):
    library.models.add(replace(small_library.quick_model(), made_at=datetime.now(UTC)))
    library.tag_all()


VERBS = {
    "say": lambda library: library.say(40, "live"),
    "answer": lambda library: library.review.answer(40, "live", True),
    "withdraw": lambda library: library.say(31, unsay=["jazz"]),
    "rename": lambda library: library.rename("jazz", "swing"),
    "merge": lambda library: library.rename("sunday", "live"),
    "hide": lambda library: library.hide("sunday"),
    "forget": lambda library: library.forget(31),
    "undo": lambda library: library.undo(),
    "use_model": use_another_model,
    "import": import_opinions,
    "tag": tag_with_a_new_model,
}


@pytest.mark.parametrize("verb", VERBS)
def test_after_a_verb_what_was_learnt_is_up_to_date(tagged, verb):
    answer(tagged, "sunday", yes=range(60, 66), command="say")
    answer(tagged, "jazz", yes=[31, 32])
    tagged.learn()
    assert taught(tagged) == {"sunday": 6, "jazz": 2}
    before = tagged.state()
    VERBS[verb](tagged)
    assert tagged.state() != before
    assert is_up_to_date(tagged)


def test_a_hidden_word_is_not_predicted_until_undo(tagged):
    answer(tagged, "sunday", yes=range(60, 66), command="say")
    tagged.learn()
    predicted = column(tagged, "sunday")
    tagged.hide("sunday")
    assert not tagged.snapshot().tags["sunday"].predicted
    tagged.undo()
    assert column(tagged, "sunday") == predicted


def test_a_hidden_word_is_not_predicted_before_that_is_learnt_either(tagged):
    answer(tagged, "sunday", yes=range(60, 66), command="say")
    tagged.learn()
    assert tagged.snapshot().tags["sunday"].predicted
    with tagged.learner.paused():
        tagged.hide("sunday")
        assert not tagged.snapshot().tags["sunday"].predicted
        assert tagged.search("sunday").people_only == ["sunday"]
        tagged.undo()
        assert tagged.snapshot().tags["sunday"].predicted
    assert is_up_to_date(tagged)


def test_a_withdrawal_in_the_change_that_said_it_is_learnt(tagged):
    change = tagged.say(31, "jazz").change
    assert tagged.snapshot().verdicts.of_track(31) == {"jazz": True}
    tagged.say(31, unsay=["jazz"], change=change)
    assert tagged.snapshot().verdicts.of_track(31) == {}
    assert taught(tagged) == {}


def test_learning_waits_for_the_end_of_a_pause(tagged, times):
    with tagged.learner.paused():
        tagged.review.answer(31, "jazz", True)
        tagged.say(32, "rock")
        assert tagged.learner.is_stale
    assert not times
    assert taught(tagged) == {}
    tagged.say(33, "-live")
    assert taught(tagged) == {"jazz": 1, "rock": 1, "live": 1}
    assert len(times) == 1
    assert not tagged.learner.is_stale


def test_a_pause_inside_a_pause_does_not_end_it(tagged, times):
    with tagged.learner.paused():
        with tagged.learner.paused():
            tagged.say(31, "jazz")
        tagged.say(32, "jazz")
    assert not times


def test_a_pause_ends_with_an_error(tagged, times):
    with pytest.raises(LibraryError), tagged.learner.paused():
        tagged.say(999, "jazz")
    tagged.say(31, "jazz")
    assert len(times) == 1


def test_a_pause_is_for_one_thread(tagged, times):
    with tagged.learner.paused():
        thread = Thread(target=tagged.say, args=(31, "jazz"))
        thread.start()
        thread.join()
    assert taught(tagged) == {"jazz": 1}
    assert len(times) == 1


def test_verbs_in_one_transaction_are_learnt_once_when_it_is_committed(tagged, times):
    with tagged.begin():
        tagged.say(31, "jazz")
        tagged.say(32, "jazz")
        assert not times
    assert len(times) == 1
    assert taught(tagged) == {"jazz": 2}


def test_what_is_not_committed_is_not_learnt(tagged, times):
    def say_and_fail():
        with tagged.begin():
            tagged.say(31, "jazz")
            tagged.say(999, "jazz")

    with pytest.raises(LibraryError):
        say_and_fail()
    assert not times
    tagged.say(32, "rock")
    assert taught(tagged) == {"rock": 1}


def test_a_verb_that_changes_nothing_teaches_nothing(tagged, times):
    tagged.say(31, "jazz")
    assert len(times) == 1
    assert tagged.say(31, "jazz").change is None
    assert len(times) == 1


def test_the_first_verb_learns_what_another_process_left(tagged, place):
    with tagged.learner.paused():
        tagged.say(31, "jazz")  # and then its process ends
    with Library.open(tagged.place) as again:
        again.say(32, "rock")
        assert taught(again) == {"jazz": 1, "rock": 1}


def test_a_server_learns_when_it_wants_to(tagged, times):
    asked = []
    tagged.learner.learn_by(lambda: asked.append("soon"))
    tagged.say(31, "jazz")
    tagged.hide("mellow")
    assert asked == ["soon", "soon"]
    assert not times
    tagged.learn()
    assert taught(tagged) == {"jazz": 1}


@contextmanager
def learning_fails(monkeypatch):
    def fail(_):
        raise LibraryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(quick, "learn_from_answers", fail)
        yield


def test_a_verb_succeeds_if_learning_fails(tagged, monkeypatch):
    with learning_fails(monkeypatch):
        assert tagged.say(31, "jazz").change is not None
        with pytest.raises(LibraryError, match="no room"):
            tagged.learn()


def test_the_next_verb_learns_what_could_not_be_learnt(tagged, monkeypatch):
    with learning_fails(monkeypatch):
        tagged.say(31, "jazz")
    assert taught(tagged) == {}
    tagged.say(32, "jazz")
    assert taught(tagged) == {"jazz": 2}


def test_an_answer_that_comes_meanwhile_is_learnt_too(tagged, monkeypatch):
    """Before what was learnt is stored, the library is looked at again."""
    real = quick.learn_from_answers

    def slow(library):
        learnt = real(library)
        monkeypatch.setattr(quick, "learn_from_answers", real)
        answer(library, "rock", no=[32])
        return learnt

    answer(tagged, "jazz", yes=[31])
    monkeypatch.setattr(quick, "learn_from_answers", slow)
    assert {one.name for one in tagged.learn().tags} == {"jazz", "rock"}
    assert is_up_to_date(tagged)


def test_learning_ends_though_others_never_pause(tagged, monkeypatch):
    real = quick.learn_from_answers

    def slow(library):
        learnt = real(library)
        answer(library, "rock", no=[32])
        answer(library, "rock", yes=[32])
        return learnt

    answer(tagged, "jazz", yes=[31])
    monkeypatch.setattr(quick, "learn_from_answers", slow)
    tagged.learn()
    assert taught(tagged).keys() == {"jazz", "rock"}
    assert tagged.learner.is_stale
