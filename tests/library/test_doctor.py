"""The health of a library."""

import dataclasses

import numpy as np
import pytest
import small_library
from hypothesis import given, settings
from hypothesis import strategies as st
from small_library import new_change

from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.library.doctor import examine, near_spellings, surprises
from harmonium.library.store.tracks import Track


def test_files_that_are_amiss(library):
    ids, *_ = small_library.fill(library, 30)
    library.tracks.set_state([int(ids[1])], "missing")
    library.tracks.set_state([int(ids[2])], "unreadable", reason="no sound in it")
    twins = [Track(f"/other/{i}.mp3", f"aa{i}", title="Song", artist="Ann") for i in range(2)]
    library.tracks.put(twins)
    health = examine(library)
    assert [track.id for track in health.missing] == [ids[1]]
    assert [(track.id, track.reason) for track in health.unreadable] == [(ids[2], "no sound in it")]
    assert not health.is_well
    assert [[track.path for track in tracks] for tracks in health.recordings] == [
        ["/other/0.mp3", "/other/1.mp3"]
    ]
    assert health.copies == []


def test_tags_that_are_amiss(library):
    ids, *_ = small_library.fill(library, 30)
    say = library.opinions.say
    say("ann", int(ids[0]), ["hiphop", "birds"], change=new_change(library))
    say("bob", int(ids[0]), ["gone"], change=new_change(library))
    say("bob", int(ids[0]), retract=["gone"], change=new_change(library))
    health = examine(library)
    assert health.once == ["birds", "hiphop"]
    assert health.unused == ["gone"]
    assert [(pair.tag, pair.other) for pair in health.spellings] == [("hiphop", "hip hop")]
    assert health.doubts is None


def test_wrong_tags_are_doubted_most(library):
    model, ids, truth = small_library.trained(library)
    P = library.predictions.probabilities(model.id, ids)
    wrong = int(np.argmin(P[:, 0]))  # what the model is surest about
    left_out = int(np.argmax(np.where(truth[:, 1], P[:, 1], 0)))
    library.opinions.say("ann", int(ids[wrong]), ["rock"], change=new_change(library))
    library.opinions.say("ann", int(ids[left_out]), retract=["jazz"], change=new_change(library))
    doubts = examine(library, doubts=4).doubts
    found = {(doubt.track.id, doubt.tag, doubt.said) for doubt in doubts}
    assert (int(ids[wrong]), "rock", True) in found
    assert len(doubts) <= 4
    assert [doubt.surprise for doubt in doubts] == sorted(
        (doubt.surprise for doubt in doubts), reverse=True
    )
    assert all(doubt.tag != small_library.NOISE for doubt in doubts)
    everything = examine(library, doubts=1000).doubts
    assert (int(ids[left_out]), "jazz", False) in {(d.track.id, d.tag, d.said) for d in everything}


def test_a_model_without_held_out_probabilities_judges_no_tags(library):
    small_library.fill(library, 30)
    model = small_library.quick_model()
    arrays, description = from_bytes(model.bytes)
    kept = {name: array for name, array in arrays.items() if not name.startswith("held_out.")}
    library.models.add(dataclasses.replace(model, bytes=to_bytes(kept, description)))
    health = examine(library)
    assert health.doubts is None
    assert health.to_dict()["doubts"] is None


def test_surprise_is_how_much_less_probable_than_usual_a_label_is():
    Y = np.array([[1, 0, np.nan]], np.float32)
    P = np.array([[0.1, 0.8, 0.5]], np.float32)
    found = surprises(Y, P, np.array([0.4, 0.6, 0.5]))
    np.testing.assert_allclose(found[0, :2], [np.log(4), np.log(0.4 / 0.2)], rtol=1e-5)
    assert found[0, 2] == -np.inf


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("hiphop", "hip hop", True),
        ("guitar", "guitars", True),
        ("pinao music", "piano music", True),
        ("1980s", "1990s", False),
        ("rock", "rick", False),
        ("male vocal", "female vocal", False),
    ],
)
def test_spellings(one, other, near):
    pairs = near_spellings({one: 2, other: 5})
    assert [(pair.tag, pair.other) for pair in pairs] == ([(one, other)] if near else [])


@given(st.text("abcdefg", min_size=6, max_size=10), st.integers(0, 5), st.sampled_from("xyz"))
@settings(deadline=None, max_examples=100)
def test_one_letter_more_less_or_other_is_found(word, at, letter):
    for other in (word[:at] + word[at + 1 :], word[:at] + letter + word[at:]):
        if other != word and min(len(other), len(word)) >= 6:
            assert len(near_spellings({word: 1, other: 1})) == 1
    changed = word[:at] + letter + word[at + 1 :]
    assert len(near_spellings({word: 1, changed: 1})) == 1
