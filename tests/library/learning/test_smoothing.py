"""Smoothed labels, and what smoothing learns about tags that people give together."""

import numpy as np
import polars as pl
import pytest
from some_tracks import triples

from harmonium import TagSmoother
from harmonium.data import Triples
from harmonium.library.learning.smoothing import can_smooth, learn_smoothing
from harmonium.library.model.tagger import Tagger
from harmonium.library.tags import related, suggest
from harmonium.library.verdicts import judge
from harmonium.rbm.forward import tag_probabilities

TAGS = ("rock", "guitar", "piano", "calm")


def opinions(seed=0):
    """Three people tag 40 tracks: rock goes with guitar, piano with calm."""
    rng = np.random.default_rng(seed)
    kinds = {i: ("rock", "guitar") if i % 2 else ("piano", "calm") for i in range(1, 41)}
    rows = [
        (person, i, tag, 1)
        for person in ("ann", "bob", "cy")
        for i, tags in kinds.items()
        for tag in tags
        if rng.random() < 0.8
    ]
    return triples(*rows, ("ann", 1, "calm", -1))


class Together(Tagger):
    """A tagger of which nothing is asked but which tags go together."""

    def __init__(self, rbm):
        self.tags, self.aliases, self.rbm = TAGS, {}, rbm

    def without_sound(self, observed):
        return tag_probabilities(self.rbm, observed.astype(np.float64)).astype(np.float32)


def test_smoothing_needs_tracks_that_several_people_tagged():
    is_anns = pl.col("person") == "ann"
    assert can_smooth(opinions())
    assert not can_smooth(opinions().filter(is_anns))
    assert not can_smooth(opinions().filter(is_anns | (pl.col("track_id") < 20)))


@pytest.fixture(scope="module")
def smoothing():
    return learn_smoothing(opinions(), judge(opinions()), TAGS, seed=0)


def test_what_people_left_out_is_filled_in(smoothing):
    tracks = np.arange(1, 41)
    labels, is_rock = smoothing.labels(tracks), tracks % 2 == 1
    assert labels[is_rock, 0].min() > labels[~is_rock, 0].max()


def test_what_people_rejected_stays_absent(smoothing):
    labels = smoothing.labels(np.arange(1, 41))
    assert labels[0, 3] == 0
    assert labels[2, 3] > 0


def test_suggestions_are_those_of_the_smoother(smoothing):
    said = opinions().filter(pl.col("value") > 0)
    tracks = said["track_id"].cast(pl.String)
    pairs = opinions().select("person", "track_id").unique(maintain_order=True)
    smoother = TagSmoother(random_state=0, n_jobs=-1).fit(
        Triples.from_columns(said["person"], tracks, said["tag"], normalise=False),
        pairs=(pairs["person"], pairs["track_id"].cast(pl.String)),
    )
    order = [smoother.tags_.tolist().index(tag) for tag in TAGS]
    tagger, counts = Together(smoothing.together), smoother._data.y[:, order]
    expected, found = smoother.suggest(["rock"]), suggest(tagger, counts, ["rock"])
    assert [one.tag for one in found] == expected["tag"].to_list()
    for name in ("probability", "usual"):
        np.testing.assert_allclose([getattr(one, name) for one in found], expected[name], atol=1e-3)
    expected, found = smoother.related("piano"), related(tagger, counts, "Piano")
    assert [one.tag for one in found] == expected["tag"].to_list()
    np.testing.assert_allclose([one.log_odds for one in found], expected["log_odds"], atol=1e-2)
    assert found[0].tag == "calm"
    assert found[-1].log_odds < 0
