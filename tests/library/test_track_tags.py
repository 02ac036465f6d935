"""Why a tag has its probability, how tags relate, and what writing would add."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import polars as pl
import pytest
import small_library
from small_library import trained
from some_tracks import triples

from harmonium import TagSmoother
from harmonium.data import Triples
from harmonium.errors import DataError, UnknownTagError
from harmonium.library import Library
from harmonium.library import tags as module
from harmonium.library.answers import complete_track
from harmonium.library.learning.train import can_smooth, learn_smoothing
from harmonium.library.models import compare_models
from harmonium.library.store.opinions import judge
from harmonium.library.tagger import Tagger, log_odds, tag_library, tag_probabilities
from harmonium.library.tags import (
    pairwise_pull,
    related,
    said_together,
    suggest,
    tag_detail,
    tag_map,
    why,
)
from harmonium.library.write import wanted_tags


@pytest.fixture
def view(library):
    trained(library, tagged=30, artists=7)
    return library.snapshot()


YES, NO = ["rock", "hip hop"], ["live"]


@pytest.mark.parametrize("exact", [module.MAX_EXACT, 1])
def test_the_parts_add_up_to_the_probability(view, monkeypatch, exact):
    monkeypatch.setattr(module, "MAX_EXACT", exact)
    found = why(view, 40, "jazz", YES, NO, "me")
    total = np.log(found.usual / (1 - found.usual)) + found.sound["log_odds"]
    total += sum(part.log_odds for part in found.parts)
    assert 1 / (1 + np.exp(-total)) == pytest.approx(found.probability, abs=1e-6)
    completed = {one.tag: one for one in complete_track(view, 40, YES, NO, "me").tags}
    assert found.probability == pytest.approx(completed["jazz"].probability, abs=1e-4)
    assert found.sound["probability"] == pytest.approx(completed["jazz"].before, abs=1e-4)
    said = {part.tag: part.said for part in found.parts}
    assert said == {"rock": True, "hip hop": True, "live": False}


def test_a_part_is_the_mean_over_all_orders(view):
    tagger, observed = view.tagger, {"rock": 1.0, "hip hop": 1.0, "live": 0.0}
    x = view.library.tracks.features([40], extractor=tagger.extractor)[1]

    def value(tags):
        known = np.array([[observed[t] if t in tags else np.nan for t in tagger.tags]], np.float32)
        return float(log_odds(tagger.probabilities(x, known))[0, tagger.tags.index("jazz")])

    expected = dict.fromkeys(observed, 0.0)
    orders = list(permutations(observed))
    for order in orders:
        for k, tag in enumerate(order):
            expected[tag] += (value(order[: k + 1]) - value(order[:k])) / len(orders)
    found = {part.tag: part.log_odds for part in why(view, 40, "jazz", YES, NO, "me").parts}
    assert found == pytest.approx(expected, abs=1e-4)


def test_what_is_said_of_the_tag_itself_does_not_count(view):
    alone = why(view, 40, "jazz", ["rock"], [], "me")
    assert why(view, 40, "jazz", ["rock", "jazz"], [], "me") == alone
    with pytest.raises(UnknownTagError, match="no tag 'polka'"):
        why(view, 40, "polka", [], [], "me")
    with pytest.raises(DataError, match="cannot be both"):
        complete_track(view, 40, ["rock"], ["Rock"], "me")


def test_the_pull_of_two_tags_is_that_of_the_four_states():
    rng = np.random.default_rng(0)
    U, c = rng.normal(size=(4, 3)), rng.normal(size=4)

    def weight(y):  # Σ over hidden states of e^{hᵀUy + cᵀh}
        states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
        return np.exp(states @ (U @ y + c)).sum()

    J = pairwise_pull(U, c)
    for i in range(3):
        for j in range(3):
            if i != j:
                one, other = np.eye(3)[i], np.eye(3)[j]
                odds = weight(one + other) * weight(0 * one) / (weight(one) * weight(other))
                assert J[i, j] == pytest.approx(np.log(odds))
    assert np.array_equal(np.diag(J), np.zeros(3))


def test_the_map_links_what_excludes_each_other(view):
    found = tag_map(view)
    assert {one.tag for one in found.tags} == set(view.places)
    assert all(0 <= one.x <= 1 and 0 <= one.y <= 1 for one in found.tags)
    first = found.links[0]
    assert {first["a"], first["b"]} == {"rock", "jazz"}  # the one is the other's contrary
    assert first["weight"] < 0
    assert tag_map(view) == found


def test_examples_of_other_music_are_no_examples_of_ones_own(library):
    model, _, _ = trained(library, tagged=30)
    report = model.report | {"own": 2, "tags": [{"tag": "rock", "examples": 12}]}
    number = library.models.add(replace(model, report=report))
    tag_library(library, library.models.get(number))
    found = {one.tag: one for one in library.tags()}
    assert (found["rock"].owner, found["rock"].examples) == ("own", 12)
    library.say(1, "guitar", learn=False)  # which only the built-in model knows
    assert library.models.current(whole=False).id == number
    guitar = {one.tag: one for one in library.tags()}["guitar"]
    assert (guitar.owner, guitar.examples, guitar.auc) == ("people", 0, None)


def test_a_tag_in_detail(view):
    found = tag_detail(view, "Hip-Hop")
    assert found.tag == "hip hop"
    said = view.verdicts.agreement("hip hop")
    known = {*said.yes.tolist(), *said.no.tolist()}
    assert known.isdisjoint(one.track.id for one in [*found.surest, *found.doubtful])
    p = [one.probability for one in found.surest]
    assert p == sorted(p, reverse=True)
    with pytest.raises(UnknownTagError):
        tag_detail(view, "polka")


def test_models_side_by_side(library):
    model, _, _ = trained(library, tagged=30)
    report = {"tags": [{"tag": "rock", "auc": 0.7}, {"tag": "jazz", "auc": 0.8}]}
    first = library.models.add(replace(model, report=report), use=False)
    report = {"tags": [{"tag": "rock", "auc": 0.9}, {"tag": "live", "auc": 0.6}]}
    strict = np.where(model.thresholds > 1, 2, 0.9999).astype(np.float32)
    second = library.models.add(replace(model, report=report, thresholds=strict), use=False)
    assert library.models.current(whole=False).id == model.id
    assert compare_models(library, first, second).changed_tracks is None
    for number in (first, second):
        tag_library(library, library.models.get(number))
    found = compare_models(library, first, second)
    aucs = [tuple(one.values()) for one in found.tags]
    assert aucs == [("jazz", 0.8, None), ("live", None, 0.6), ("rock", 0.7, 0.9)]
    assert (found.better, found.worse) == (1, 0)
    assert (found.mean_a, found.mean_b, found.error) == (0.7, 0.9, None)  # of the only tag of both
    assert 0 < found.changed_tracks <= 60
    assert compare_models(library, first, first).changed_tracks == 0
    builtin = library.models.add(replace(model, report={**report, "own": 0}), use=False)
    assert [one.built_in for one in library.list_models()] == [True, False, False, False]
    found = compare_models(library, first, builtin)  # whose AUCs are of other music
    assert [tuple(one.values()) for one in found.tags] == [("jazz", 0.8, None), ("rock", 0.7, None)]


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


def test_smoothing_keeps_what_was_denied_and_suggestions_are_those_of_the_smoother():
    is_anns = pl.col("person") == "ann"
    assert can_smooth(opinions())  # which needs tracks that several people tagged
    assert not can_smooth(opinions().filter(is_anns))
    assert not can_smooth(opinions().filter(is_anns | (pl.col("track_id") < 20)))
    labels_of, together = learn_smoothing(opinions(), judge(opinions()), TAGS, seed=0)
    labels, rock = labels_of(np.arange(1, 41)), np.arange(1, 41) % 2 == 1
    assert labels[rock, 0].min() > labels[~rock, 0].max()  # what was left out is filled in
    assert labels[0, 3] == 0
    assert labels[2, 3] > 0
    said = opinions().filter(pl.col("value") > 0)
    tracks = said["track_id"].cast(pl.String)
    seen = opinions().select("person", "track_id").unique(maintain_order=True)
    smoother = TagSmoother(random_state=0, n_jobs=-1).fit(
        Triples.from_columns(said["person"], tracks, said["tag"], normalise=False),
        pairs=(seen["person"], seen["track_id"].cast(pl.String)),
    )
    order = [smoother.tags_.tolist().index(tag) for tag in TAGS]
    tagger, counts = Together(together), smoother._data.y[:, order]
    expected, found = smoother.suggest(["rock"]), suggest(tagger, counts, ["rock"])
    assert [one.tag for one in found] == expected["tag"].to_list()
    for name in ("probability", "usual"):
        np.testing.assert_allclose([getattr(one, name) for one in found], expected[name], atol=1e-3)
    expected, found = smoother.related("piano"), related(tagger, counts, "Piano")
    assert [one.tag for one in found] == expected["tag"].to_list()
    np.testing.assert_allclose([one.log_odds for one in found], expected["log_odds"], atol=1e-2)
    assert found[0].tag == "calm"
    assert found[-1].log_odds < 0


def test_with_one_person_the_model_itself_tells_what_goes_together(monkeypatch):
    monkeypatch.setattr("harmonium.library.tagger.words", lambda: None)
    tagger = Tagger(small_library.quick_model())
    first, *_, last = related(tagger, None, "rock")
    assert first.log_odds > 0
    assert last.tag == "jazz"
    found = suggest(tagger, None, ["rock", "mellow"], n=10)
    assert {one.tag for one in found} == {*tagger.tags} - {"rock", "mellow"}
    for tag, hint in (("jaz", "Did you mean jazz"), ("you know it.", "There are")):
        with pytest.raises(DataError, match=hint):
            related(tagger, None, tag)
    with pytest.raises(DataError, match="at least one tag"):
        suggest(tagger, None, [])


def test_what_people_said_counts_first_and_the_model_where_few_said_so(tmp_path):
    tagger = Tagger(small_library.quick_model())
    with Library.open(tmp_path / "library.db") as library:
        small_library.fill(library, 30, tagged=0)
        for track in range(1, 31):  # of 30 tracks with rock, 21 are mellow
            said = ["rock", "mellow"] if track <= 21 else ["rock"]
            library.opinions.say("ann", track, said, change=small_library.new_change(library))
        said = said_together(library, tagger.tags)
    assert said.shape == (30, len(tagger.tags))
    model = {one.tag: one.probability for one in suggest(tagger, None, ["rock"])}
    found = {one.tag: one.probability for one in suggest(tagger, said, ["rock"])}
    assert found["mellow"] == pytest.approx((21 + 30 * model["mellow"]) / 60)
    assert found["jazz"] == pytest.approx(30 * model["jazz"] / 60)
    nobody = {one.tag: one.probability for one in suggest(tagger, said, ["jazz"])}
    assert nobody == {
        one.tag: pytest.approx(one.probability) for one in suggest(tagger, None, ["jazz"])
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


def test_the_outline_of_writing_counts_what_would_be_written(view):
    """Here no file has any tag, as far as the library knows."""
    outline = view.library.outline_write(precision=0, rules={"ignore": ["mellow"]})
    counts = {one.tag: one for one in outline.tags}
    wanted, guessed = dict.fromkeys(counts, 0), 0
    for track in view.ids.tolist():
        said = view.verdicts.of_track(track)
        p = view.predictions.rows(np.array([track]))[0]
        for tag in wanted:
            place = view.places.get(tag)
            guess = place is not None and p[place] >= view.model.thresholds[place]
            wanted[tag] += said.get(tag, guess)
            guessed += guess and tag not in said and tag != "mellow"
    assert {tag: one.n for tag, one in counts.items()} == wanted
    assert not counts["mellow"].accepted
    assert not any(one.elsewhere for one in outline.tags)  # all are learnt from this library
    assert sum(one.n - one.n_said for one in outline.accepted) == guessed
    written = wanted_tags(view.library, view.ids.tolist())
    assert outline.tracks == sorted(one for one in written if set(written[one]) - {"mellow"})
