"""The list of tags, a tag in detail, and which tags go together."""

from dataclasses import replace

import numpy as np
import pytest
import small_library
from small_library import trained
from some_tracks import triples

from harmonium.errors import DataError, UnknownTagError
from harmonium.library import Library
from harmonium.library.model.tagger import Tagger, tag_library
from harmonium.library.store.reports import ModelReport, TagReport
from harmonium.library.tags import (
    pairwise_pull,
    related,
    said_together,
    suggest,
    tag_detail,
    tag_map,
)


@pytest.fixture
def view(library):
    trained(library, tagged=30, artists=7)
    return library.snapshot()


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
    assert {one.tag for one in found.tags} == {tag.name for tag in view.tags.predicted}
    assert all(0 <= one.x <= 1 and 0 <= one.y <= 1 for one in found.tags)
    first = found.links[0]
    assert {first["a"], first["b"]} == {"rock", "jazz"}  # the one is the other's contrary
    assert first["weight"] < 0
    assert tag_map(view) == found


def test_examples_of_other_music_are_no_examples_of_ones_own(library):
    model, _, _ = trained(library, tagged=30)
    tags = (TagReport(tag="rock", examples=12), TagReport(tag="jazz"))
    report = replace(model.report, own=2, tags=tags)
    number = library.models.add(replace(model, report=report))
    tag_library(library, library.models.get(number))
    found = {one.tag: one for one in library.tags.list()}
    assert (found["rock"].owner, found["rock"].examples) == ("own", 12)
    library.say(1, "guitar")  # which only the built-in model knows
    assert library.models.current(whole=False).id == number
    guitar = {one.tag: one for one in library.tags.list()}["guitar"]
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


def with_aucs(**aucs):
    """A report of the quick model's tags, some of which were evaluated."""
    names = [*small_library.TAGS, small_library.NOISE]
    return ModelReport(tags=tuple(TagReport(tag=name, auc=aucs.get(name)) for name in names))


def test_models_side_by_side(library):
    model, _, _ = trained(library, tagged=30)
    report = with_aucs(rock=0.7, jazz=0.8)
    first = library.models.add(replace(model, report=report), use=False)
    report = with_aucs(rock=0.9, live=0.6)
    strict = np.where(np.isnan(model.thresholds), np.nan, 0.9999).astype(np.float32)
    second = library.models.add(replace(model, report=report, thresholds=strict), use=False)
    assert library.models.current(whole=False).id == model.id
    assert library.models.compare(first, second).changed_tracks is None
    for number in (first, second):
        tag_library(library, library.models.get(number))
    found = library.models.compare(first, second)
    aucs = [tuple(one.values()) for one in found.tags if {one["auc_a"], one["auc_b"]} != {None}]
    assert aucs == [("jazz", 0.8, None), ("live", None, 0.6), ("rock", 0.7, 0.9)]
    assert (found.better, found.worse) == (1, 0)
    assert (found.mean_a, found.mean_b, found.error) == (0.7, 0.9, None)  # of the only tag of both
    assert 0 < found.changed_tracks <= 60
    assert library.models.compare(first, first).changed_tracks == 0
    builtin = library.models.add(replace(model, report=ModelReport(own=0)), use=False)
    assert [one.built_in for one in library.models.entries()] == [True, False, False, False]
    found = library.models.compare(first, builtin)  # whose AUCs are of other music
    aucs = [tuple(one.values()) for one in found.tags if one["auc_a"] is not None]
    assert aucs == [("jazz", 0.8, None), ("rock", 0.7, None)]


def test_with_one_person_the_model_itself_tells_what_goes_together(monkeypatch):
    monkeypatch.setattr("harmonium.library.model.tagger.words", lambda: None)
    tagger = Tagger(small_library.quick_model())
    first, *_, last = related(tagger, None, "rock")
    assert first.log_odds > 0
    assert last.tag == "jazz"
    found = suggest(tagger, None, ["rock", "mellow"], n=10)
    assert {one.tag for one in found} == {*tagger.tags} - {"rock", "mellow"}


@pytest.mark.parametrize(
    ("tag", "hint"), [("jaz", "Did you mean jazz"), ("you know it.", "There are")]
)
def test_an_unknown_tag_has_no_related_ones(tag, hint):
    with pytest.raises(DataError, match=hint):
        related(Tagger(small_library.quick_model()), None, tag)


def test_no_tag_suggests_nothing():
    with pytest.raises(DataError, match="at least one tag"):
        suggest(Tagger(small_library.quick_model()), None, [])


@pytest.fixture
def mostly_mellow_rock(tmp_path):
    """A tagger, and what people said together: of 30 tracks with rock, 21 are mellow."""
    tagger = Tagger(small_library.quick_model())
    with Library.open(tmp_path / "library.db") as library:
        small_library.fill(library, 30, tagged=0)
        for track in range(1, 31):
            said = ["rock", "mellow"] if track <= 21 else ["rock"]
            library.opinions.say("ann", track, said, change=small_library.new_change(library))
        return tagger, said_together(library, tagger.tags)


def test_what_people_said_counts_first(mostly_mellow_rock):
    tagger, said = mostly_mellow_rock
    assert said.shape == (30, len(tagger.tags))
    model = {one.tag: one.probability for one in suggest(tagger, None, ["rock"])}
    found = {one.tag: one.probability for one in suggest(tagger, said, ["rock"])}
    assert found["mellow"] == pytest.approx((21 + 30 * model["mellow"]) / 60)
    assert found["jazz"] == pytest.approx(30 * model["jazz"] / 60)


def test_the_model_counts_where_nobody_said_so(mostly_mellow_rock):
    tagger, said = mostly_mellow_rock
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
