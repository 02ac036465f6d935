"""Only what is right often enough is wanted in files."""

import numpy as np
import pytest
from written_music import make_songs, predict

from harmonium.library import Library
from harmonium.library.filetags import Rules
from harmonium.library.learning.fitting import make_curve
from harmonium.library.write import imprecise_tags, plan_writes, wanted_tags


def curve_of(right_from):
    """Held-out tracks of 0.99, 0.98, …: all have the tag down to a probability, and none below."""
    p = np.arange(0.99, 0, -0.01, dtype=np.float32)
    return make_curve((p > right_from).astype(np.float32), p)


@pytest.fixture
def library(tmp_path):
    """Predictions: guitar 0.9, mellow 0.4, loud 0.2, hip hop 0.6, by thresholds 0.5, 0.3, 0.5."""
    with Library.open(tmp_path / "library.db") as library:
        make_songs(library, tmp_path, ["mp3"])
        # right from 0.8 on; nearly always; 0.5; and on five tracks, which prove nothing
        predict(library, curves=[curve_of(p) for p in (0.805, 0.105, 0.505, 0.945)])
        yield library


def wanted(library, precision):
    ids = library.tracks.ids().tolist()
    ((_, tags),) = wanted_tags(library, ids, people=False, precision=precision)
    return list(tags)


def test_a_tag_is_wanted_where_it_is_right_often_enough_and_others_are_named(library):
    assert wanted(library, None) == ["guitar", "hip hop", "mellow"]
    assert wanted(library, 0.8) == ["guitar", "mellow"]
    assert wanted(library, 0.95) == ["guitar"]  # a probability of 0.4 cannot be right so often
    assert wanted(library, 0.98) == []
    assert (imprecise_tags(library, 0.8), imprecise_tags(library, 0.5)) == (["hip hop"], [])


def test_a_plan_says_how_many_tags_will_be_wrong(library):
    ids = library.tracks.ids().tolist()
    plan = plan_writes(library, ids, Rules(), people=False, precision=0.8)
    assert plan.files[0].new_guesses == pytest.approx({"guitar": 0.9, "mellow": 0.4}, abs=1e-3)
    assert plan.n_guessed == 2
    assert plan.expected_wrong == pytest.approx(0.7, abs=1e-3)


def test_a_model_without_curves_keeps_its_thresholds(library):
    predict(library)
    assert wanted(library, 0.8) == ["guitar", "hip hop", "mellow"]
    assert imprecise_tags(library, 0.8) is None
