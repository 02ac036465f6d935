"""A stored model at work, by NumPy and by the estimator."""

import dataclasses

import numpy as np
import polars as pl
import pytest
import small_library
import soundfile
from small_library import new_change

from harmonium import DiscriminativeRBM
from harmonium.errors import DataError, ModelFileError
from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.library.model import tagger as module
from harmonium.library.model.model_file import unpack
from harmonium.library.model.tagger import Tagger, tag_library
from harmonium.library.snapshot import TrackTag
from harmonium.library.tagging import tags_over_time
from harmonium.synthetic import make_collection


def test_numpy_takes_features_of_unit_norm_as_the_model_does():
    X, truth = small_library.world()
    model = DiscriminativeRBM(n_hidden=3, max_epochs=3, unit_norm=True, random_state=0)
    model.fit(X, pl.DataFrame(truth.astype(np.float32), schema=small_library.TAGS))
    stored = dataclasses.replace(
        small_library.quick_model(), bytes=model.to_bytes(), vocabulary=small_library.TAGS
    )
    X = X[:20].copy()
    X[0] = model._scaling.mean  # all zeros when scaled
    few = Tagger(stored).probabilities(X)
    np.testing.assert_allclose(few, model.predict_proba(X), atol=1e-4)


def test_features_of_another_number_are_refused():
    with pytest.raises(DataError, match="6 features"):
        Tagger(small_library.quick_model()).probabilities(np.zeros((1, 7), np.float32))


@pytest.mark.parametrize("name", ["params.U", "params.W", "params.c", "scaling.scale"])
@pytest.mark.parametrize("value", [np.nan, np.inf, None], ids=["NaN", "infinite", "missing"])
def test_a_model_with_numbers_that_are_none_is_refused(name, value):
    arrays, about = from_bytes(small_library.quick_model().bytes)
    array = arrays.pop(name)
    more = {} if value is None else {name: np.full_like(array, value)}
    with pytest.raises(ModelFileError, match=name):
        unpack(to_bytes(arrays | more, about))


@pytest.fixture
def world(library):
    model, ids, truth = small_library.trained(library, tagged=20)
    return library, model, ids, truth


def test_tagging_goes_on_after_an_interruption(library, monkeypatch):
    ids, X, _ = small_library.fill(library, tagged=20)
    model_id = library.models.add(small_library.quick_model())
    monkeypatch.setattr(module, "PAGE", 16)

    def stop(done, total):
        if done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tag_library(library, progress=stop)
    so_far = len(library.predictions.columns(model_id, [0])[0])
    assert 30 < so_far < 60
    assert tag_library(library) == 60 - so_far
    expected = Tagger(library.models.current()).probabilities(X)
    found = library.predictions.probabilities(model_id, ids)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert tag_library(library) == 0


def test_the_library_is_tagged_block_by_block(library, monkeypatch):
    small_library.fill(library, tagged=20)
    library.models.add(small_library.quick_model())
    monkeypatch.setattr(module, "PAGE", 16)
    assert tag_library(library) == 60
    steps = []
    assert tag_library(library, again=True, progress=lambda *step: steps.append(step)) == 60
    assert (steps[-1], len(steps)) == ((60, 60), 4)


@pytest.fixture
def doubtful_track(world):
    """One that may be jazz, or not; bob has said other tags of it."""
    library, model, ids, _ = world
    doubt = np.abs(library.predictions.probabilities(model.id, ids)[20:, 1] - 0.5)
    track = library.tracks.get(int(ids[20 + doubt.argmin()]))
    library.opinions.say("bob", track.id, ["rock", "birds"], ["live"], change=new_change(library))
    return track


def test_a_tagged_track_is_completed_from_what_people_say(world, doubtful_track):
    library, model, _, _ = world
    tagger, track = Tagger(model), doubtful_track
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


def test_what_is_given_counts_before_what_people_say(world, doubtful_track):
    library, *_ = world
    (tagged,) = library.tag(doubtful_track.path, known="jazz, -rock")
    assert tagged.probabilities[:2].tolist() == [0, 1]
    rows = tagged.tags()
    assert TrackTag("jazz", "jazz", 1.0, "given") in rows
    assert "rock" not in {row.tag for row in rows}


def test_a_tag_is_strongest_in_the_half_where_it_belongs(tmp_path):
    collection = make_collection(11, 1)  # the last one is for strings, the ninth for machines
    halves = np.concatenate([collection.samples(10), collection.samples(8)])
    soundfile.write(tmp_path / "a.flac", halves, collection.rate)
    found = tags_over_time(None, tmp_path / "a.flac")
    first = np.array(found.ends) < 10.5
    assert (len(first), first.sum()) == (6, 3)
    for tag, there in (("classical", first), ("electronic", ~first)):
        p = np.array(found.tags[tag])
        assert p[there].min() > p[~there].max()
    (rare,) = tags_over_time(None, tmp_path / "a.flac", "Metal").tags
    assert rare == "metal"
    assert rare not in found.tags
