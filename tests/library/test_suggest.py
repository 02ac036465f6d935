"""Which tags go together, as the smoother says it, without the smoother."""

import numpy as np
import polars as pl
import pytest
import small_library
from some_tracks import triples

from harmonium import TagSmoother
from harmonium.data import Triples
from harmonium.errors import DataError
from harmonium.library import Library
from harmonium.library.learning.train import can_smooth, learn_smoothing
from harmonium.library.store.opinions import judge
from harmonium.library.tagger import Tagger, tag_probabilities
from harmonium.library.tags import related_by, said_together, suggest_by

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


@pytest.fixture(scope="module")
def smoothed():
    labels_of, together = learn_smoothing(opinions(), judge(opinions()), TAGS, seed=0)
    return labels_of(np.arange(1, 41)), together


def test_smoothing_fills_in_what_was_left_out_and_keeps_what_was_denied(smoothed):
    rock = np.arange(1, 41) % 2 == 1
    assert smoothed[0][rock, 0].min() > smoothed[0][~rock, 0].max()
    assert smoothed[0][0, 3] == 0
    assert smoothed[0][2, 3] > 0


def order(smoother):
    return [smoother.tags_.tolist().index(tag) for tag in TAGS]


def test_suggestions_and_relations_are_those_of_the_smoother(smoothed):
    said = opinions().filter(pl.col("value") > 0)
    tracks = said["track_id"].cast(pl.String)
    seen = opinions().select("person", "track_id").unique(maintain_order=True)
    smoother = TagSmoother(random_state=0, n_jobs=-1).fit(
        Triples.from_columns(said["person"], tracks, said["tag"], normalise=False),
        pairs=(seen["person"], seen["track_id"].cast(pl.String)),
    )
    tagger, counts = Together(smoothed[1]), smoother._data.y[:, order(smoother)]
    expected, found = smoother.suggest(["rock"]), suggest_by(tagger, counts, ["rock"])
    assert [one.tag for one in found] == expected["tag"].to_list()
    for name in ("probability", "usual"):
        np.testing.assert_allclose([getattr(one, name) for one in found], expected[name], atol=1e-3)
    expected, found = smoother.related("piano"), related_by(tagger, "Piano", said=counts)
    assert [one.tag for one in found] == expected["tag"].to_list()
    np.testing.assert_allclose([one.log_odds for one in found], expected["log_odds"], atol=1e-2)
    assert found[0].tag == "calm"
    assert found[-1].log_odds < 0


def test_with_one_person_the_model_itself_tells_what_goes_together():
    tagger = Tagger(small_library.quick_model())
    first, *_, last = related_by(tagger, "rock")
    assert first.log_odds > 0
    assert last.tag == "jazz"
    found = suggest_by(tagger, None, ["rock", "mellow"], n=10)
    assert {one.tag for one in found} == {*tagger.tags} - {"rock", "mellow"}


def test_a_tag_that_the_model_does_not_have():
    tagger = Tagger(small_library.quick_model())
    for tag, hint in (("jaz", "Did you mean jazz"), ("you know it.", "There are")):
        with pytest.raises(DataError, match=hint):
            related_by(tagger, tag)
    with pytest.raises(DataError, match="at least one tag"):
        suggest_by(tagger, None, [])


def test_smoothing_needs_tracks_that_several_people_tagged():
    said = opinions()
    assert can_smooth(said)
    assert not can_smooth(said.filter(pl.col("person") == "ann"))
    assert not can_smooth(said.filter((pl.col("person") == "ann") | (pl.col("track_id") < 20)))


def test_what_people_said_counts_first_and_the_model_where_few_said_so(tmp_path):
    tagger = Tagger(small_library.quick_model())
    with Library.open(tmp_path / "library.db") as library:
        small_library.fill(library, 30, tagged=0)
        for track in range(1, 31):  # of 30 tracks with rock, 21 are mellow
            said = ["rock", "mellow"] if track <= 21 else ["rock"]
            library.opinions.say("ann", track, said, change=small_library.new_change(library))
        said = said_together(library, tagger.tags)
    assert said.shape == (30, len(tagger.tags))
    model = {one.tag: one.probability for one in suggest_by(tagger, None, ["rock"])}
    found = {one.tag: one.probability for one in suggest_by(tagger, said, ["rock"])}
    assert found["mellow"] == pytest.approx((21 + 30 * model["mellow"]) / 60)
    assert found["jazz"] == pytest.approx(30 * model["jazz"] / 60)
    nobody = {one.tag: one.probability for one in suggest_by(tagger, said, ["jazz"])}
    assert nobody == {
        one.tag: pytest.approx(one.probability) for one in suggest_by(tagger, None, ["jazz"])
    }


def test_the_genres_of_files_go_with_what_a_person_says(library):
    """Two people are no crowd: their tags of a track belong together."""
    small_library.fill(library, 4, tagged=0)
    said = triples(("files", 1, "rock", 1), ("me", 1, "calm", 1), ("me", 2, "calm", 1))
    library.opinions.add_triples(said, change=small_library.new_change(library))
    assert said_together(library, ["rock", "calm"]).toarray().tolist() == [[1, 1], [0, 1]]
    more = triples(("bob", 3, "calm", 1))
    library.opinions.add_triples(more, change=small_library.new_change(library))
    assert said_together(library, ["rock", "calm"]).shape == (4, 2)
