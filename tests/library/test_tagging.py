"""Tags for whole libraries and for single files."""

import numpy as np
import pytest
import small_library
from small_library import NOISE, TAGS, new_change

from harmonium.errors import DataError, LibraryError
from harmonium.library import tagger
from harmonium.library.snapshot import TrackTag
from harmonium.library.tagger import Tagger, current_model, tag_library
from harmonium.library.tagging import chosen_places, read_known, stored_tags


@pytest.fixture
def world(library):
    model, ids, truth = small_library.trained(library, tagged=20)
    return library, model, ids, truth


def test_the_whole_library_is_tagged_block_by_block_and_only_once(library, monkeypatch):
    ids, X, _ = small_library.fill(library, tagged=20)
    model_id = library.models.add(small_library.quick_model())
    monkeypatch.setattr(tagger, "_PAGE", 16)
    steps = []
    assert tag_library(library, progress=lambda done, total: steps.append((done, total))) == 60
    assert steps[-1] == (60, 60)
    assert len(steps) == 4
    expected = Tagger(library.models.current()).probabilities(X)
    np.testing.assert_allclose(
        library.predictions.probabilities(model_id, ids), expected, atol=1e-4
    )
    assert tag_library(library) == 0
    assert tag_library(library, again=True) == 60


def test_an_interrupted_run_goes_on_where_it_was(library, monkeypatch):
    ids, _, _ = small_library.fill(library)
    model_id = library.models.add(small_library.quick_model())
    monkeypatch.setattr(tagger, "_PAGE", 16)

    def stop(done, total):
        if done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_library(library, progress=stop)
    so_far = len(library.predictions.columns(model_id, [0])[0])
    assert 30 < so_far < 60
    assert tag_library(library) == 60 - so_far
    assert not np.isnan(library.predictions.probabilities(model_id, ids)).any()


def test_a_tagged_track_is_completed_from_what_people_say(world):
    library, model, ids, _ = world
    tagger = Tagger(model)
    track = library.tracks.get(int(ids[50]))
    library.opinions.say("bob", track.id, ["rock", "birds"], ["live"], change=new_change(library))
    (with_people,) = library.tag(track.path)
    (by_sound,) = library.tag(track.path, sound_only=True)
    assert with_people.said == {"rock": True, "birds": True, "live": False}
    known = np.array([[1, np.nan, np.nan, np.nan, 0, np.nan]], np.float32)
    _, X = library.tracks.features([track.id], extractor=small_library.EXTRACTOR)
    np.testing.assert_allclose(with_people.probabilities, tagger.probabilities(X, known)[0])
    stored = library.predictions.probabilities(model.id, [track.id])[0]
    np.testing.assert_allclose(by_sound.probabilities, stored, atol=1e-4)
    assert with_people.probabilities[1] < by_sound.probabilities[1]  # rock leaves less of jazz
    rows = with_people.tags()
    assert [(row.tag, row.source) for row in rows[:2]] == [("birds", "people"), ("rock", "people")]
    assert "live" not in {row.tag for row in rows}


def test_what_is_given_goes_before_what_was_said(world):
    library, _, ids, _ = world
    track = library.tracks.get(int(ids[50]))
    library.opinions.say("bob", track.id, ["rock"], change=new_change(library))
    (tagged,) = library.tag(track.path, known="jazz, -rock")
    assert tagged.probabilities[:2].tolist() == [0, 1]
    rows = tagged.tags()
    assert rows[0] == TrackTag("jazz", "jazz", 1.0, "given")
    assert "rock" not in {row.tag for row in rows}


def test_which_tags_are_chosen():
    p = np.array([0.3, 0.9, 0.5, 0.99], np.float32)
    thresholds = np.array([0.2, 0.95, 0.4, 2.0], np.float32)
    assert chosen_places(p, thresholds).tolist() == [2, 0]
    assert chosen_places(p, thresholds, top=2).tolist() == [1, 2]
    assert chosen_places(p, thresholds, min_probability=0.5).tolist() == [1, 2]
    assert chosen_places(p, thresholds, top=1, min_probability=0.5).tolist() == [1]


def test_what_a_person_knows_is_read():
    tagger = Tagger(small_library.quick_model())
    assert read_known("Rock, -hip-hop,, jazz ", tagger) == {
        "rock": True,
        "hip hop": False,
        "jazz": True,
    }
    with pytest.raises(DataError, match=r"no tag 'rok'.*Did you mean rock"):
        read_known("rok", tagger)
    with pytest.raises(DataError, match="'rock' cannot be both"):
        read_known("rock, -rock", tagger)


def test_all_stored_tags_in_the_order_of_numbers(world):
    library, _, ids, truth = world
    library.tracks.set_state([int(ids[3])], "missing")
    everything = list(stored_tags(library, page=7))
    assert [one.track.id for one in everything] == np.delete(ids, 3).tolist()
    said = {tag for tag, holds in everything[0].said.items() if holds} - {NOISE}
    assert said == {TAGS[j] for j in np.flatnonzero(truth[0])}


def test_without_a_model_there_is_a_way_out(library):
    with pytest.raises(LibraryError, match="harmonium train"):
        current_model(library)
