"""Audio features: their values, queries for them, and tracks ordered by them."""

import numpy as np
import pytest
import small_library
import sqlalchemy as sa
from small_library import new_change, trained

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError, UnknownTagError
from harmonium.library.search import Query, Range, parse, read_range
from harmonium.library.snapshot import Question
from harmonium.library.store.database import PREDICTIONS, bump_version
from harmonium.library.store.schema import prediction

N_TAGGED = 25


@pytest.fixture
def world(library):
    """A library, the values of its tracks by feature and track, and p(jazz) by track."""
    model, ids, _ = trained(library, tagged=N_TAGGED, features=True)
    P = library.predictions.probabilities(model.id, ids)
    rows = dict(zip(ids.tolist(), P, strict=True))
    return library, {
        name: {track: float(p[model.vocabulary.index(name)]) for track, p in rows.items()}
        for name in (*AUDIO_FEATURES, "jazz", "rock")
    }


def found(library, text, **options):
    return {hit.track.id: hit for hit in library.search(text, limit=100, **options)}


def test_a_track_has_values(world):
    library, values = world
    known = library.audio_features(7)
    assert list(known) == list(AUDIO_FEATURES)
    assert known == {name: values[name][7] for name in AUDIO_FEATURES}
    tagged = next(one for one in library.tagged() if one.track.id == 7)
    assert tagged.features == known
    outside = library.tracks.put([small_library.Track("/music/new.ogg", "new")])[0]
    assert library.audio_features(outside) == {}


def test_no_tag_has_one_of_these_names(world):
    library, _ = world
    tagged = next(one for one in library.tagged() if one.track.id == 7)
    assert not {one.tag for one in tagged.tags(top=100)} & set(AUDIO_FEATURES)
    assert not {one.tag for one in library.tags.list()} & set(AUDIO_FEATURES)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("energy:>0.5", lambda v: v["energy"] > 0.5),
        ("ENERGY:<=0.5", lambda v: v["energy"] <= 0.5),
        ("valence:0.3..0.6", lambda v: 0.3 <= v["valence"] <= 0.6),
        ("valence:..0.3", lambda v: v["valence"] <= 0.3),
        ("danceable:0.6..", lambda v: v["danceability"] >= 0.6),
        ("-energy:>0.5 liveness:>=0.5", lambda v: v["energy"] <= 0.5 <= v["liveness"]),
        ("energy:>0.8 OR (energy:<0.2 NOT valence:>0.5)",
         lambda v: v["energy"] > 0.8 or (v["energy"] < 0.2 and v["valence"] <= 0.5)),
    ],
)  # fmt: skip
def test_a_range_holds_or_not(world, text, holds):
    library, values = world
    tracks = values["energy"]
    expected = {t for t in tracks if holds({name: values[name][t] for name in values})}
    assert 0 < len(expected) < len(tracks)
    hits = found(library, text)
    assert hits.keys() == expected
    assert {(hit.probability, hit.source) for hit in hits.values()} == {(1.0, "model")}
    library.snapshot().predictions  # noqa: B018 - all of them are in memory from now on
    assert found(library, text) == hits


def test_a_range_combines_with_a_tag(world):
    library, values = world
    jazz = {track: p for track, p in values["jazz"].items() if track > N_TAGGED}
    hits = found(library, "energy:>0.5 jazz")
    for track, p in jazz.items():
        assert (track in hits) == (values["energy"][track] > 0.5)
        if track in hits:
            assert (hits[track].source, hits[track].tags) == ("model", {"jazz": pytest.approx(p)})
            assert hits[track].probability == pytest.approx(p)
            assert hits[track].features == {"energy": values["energy"][track]}
    quiet = max(values["energy"], key=lambda track: -values["energy"][track])
    library.opinions.say("bob", quiet, present=["jazz"], change=new_change(library))
    assert quiet not in found(library, "energy:>0.5 jazz")
    first = library.search("jazz energy:<0.5", limit=1).hits[0]
    assert (first.source, first.probability) == ("people", 1)
    assert found(library, "energy:>0.5 OR jazz")[quiet].source == "people"


def test_what_was_not_heard_is_in_no_range(world):
    library, _ = world
    new = library.tracks.put([small_library.Track("/music/new.ogg", "new")])[0]
    library.opinions.say("bob", new, present=["jazz"], change=new_change(library))
    assert new not in found(library, "jazz energy:0..1")
    hit = found(library, "jazz -energy:>0.5")[new]
    assert (hit.probability, hit.source, hit.features) == (1, "people", {})


def test_a_plain_name_is_a_tag_with_the_probability_as_it_is(world):
    library, values = world
    hits = found(library, "danceable -rock")
    dances = library.search("danceable", limit=100)
    assert not dances.people_only
    values_of = values["danceability"]
    assert all(hit.holds == (values_of[hit.track.id] >= 0.5) for hit in dances)
    for track in range(N_TAGGED + 1, 61):
        p = values["danceability"][track] * (1 - values["rock"][track])
        assert hits[track].probability == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("enrgy:>0.7", UnknownTagError, "energy"),
        ("energy:>high", DataError, "energy:>0.7"),
        ("energy:0.7", DataError, "0 to 1"),
        ("energy:>70", DataError, "0 to 1"),
        ("energy:0.8..0.4", DataError, "0 to 1"),
        ("energy:", DataError, "0 to 1"),
    ],
)
def test_a_range_that_cannot_be_read_is_refused(text, kind, word):
    with pytest.raises(kind, match=word):
        parse(text, {"jazz"})


def test_a_tag_with_a_colon_stays_a_tag():
    assert parse("decade:80", {"decade:80"}) == Query("TAG", tag="decade:80")
    assert parse('"energy:>0.7"', {"energy:>0.7"}) == Query("TAG", tag="energy:>0.7")
    assert read_range("energy:0.4..0.8") == Range("energy", *np.float32([0.4, 0.8]).tolist())


def test_tracks_are_ordered_by_a_feature(world):
    library, values = world
    by_energy = sorted(values["energy"], key=values["energy"].get)
    assert [hit.track.id for hit in library.search(order="-energy", limit=100)] == by_energy
    highest = library.search(order="energy", limit=3).hits
    assert [hit.track.id for hit in highest] == by_energy[::-1][:3]
    assert highest[0].features == {"energy": values["energy"][by_energy[-1]]}
    hits = library.search("jazz", order="valence", limit=100, features=True).hits
    for holds in (True, False):
        order = [hit.features["valence"] for hit in hits if hit.holds is holds]
        assert order == sorted(order, reverse=True)
    assert {hit.track.id for hit in hits} == found(library, "jazz").keys()
    assert list(hits[0].features) == list(AUDIO_FEATURES)
    with pytest.raises(DataError, match="energy"):
        library.search("jazz", order="enrgy")
    new = library.tracks.put([small_library.Track("/music/new.ogg", "new")])[0]
    library.tracks.set_state(by_energy[-1:], "missing")
    for order in ("energy", "-energy"):  # one without a value is the last one, whatever the order
        hits = [hit.track.id for hit in library.search(order=order, limit=100)]
        assert hits == [*by_energy[:-1][:: 1 if order[0] == "-" else -1], new]


@pytest.mark.parametrize("search", [{"text": "energy:>0.5"}, {"order": "energy"}])
def test_a_model_without_features_says_what_to_do(library, search):
    trained(library, tagged=N_TAGGED)
    assert library.audio_features(7) == {}
    with pytest.raises(DataError, match="built-in"):
        library.search(**search)


def test_a_model_that_has_predicted_nothing_yet_gives_no_values(world):
    library, _ = world
    with library.begin() as connection:
        connection.execute(sa.delete(prediction))
        bump_version(connection, PREDICTIONS)
    for shown_tags in (False, True):  # read from the library, then from memory
        hits = library.snapshot().search(Question(features=True), shown_tags=shown_tags).hits
        assert hits
        assert not any(hit.features for hit in hits)


def test_the_feature_stays_when_a_tag_of_its_name_changes(world):
    library, _ = world
    before = library.audio_features(7)
    library.opinions.say("bob", 7, present=["energy"], change=new_change(library))
    with library.learner.paused():
        library.rename("energy", "power")
        library.hide("valence")
    assert library.audio_features(7) == before
    assert found(library, "power").keys() == {7}
    model = small_library.quick_model(features=True).renamed({"energy": "power"})
    assert list(model.features) == list(AUDIO_FEATURES)


def test_the_built_in_model_has_them(library):
    small_library.fill_for_builtin(library, 3, tagged=0)
    library.tag_all()
    assert list(library.audio_features(1)) == list(AUDIO_FEATURES)
    assert len(library.search("energetic", limit=3)) == 3
    wanted = library.writer.plan(rules={"features": True})  # the files do not exist
    assert len(wanted.failures) == 3


def test_tags_of_these_names_are_moods(library):
    small_library.fill_for_builtin(library, 3, tagged=0)
    library.tag_all()
    assert {library.tags.kinds()[name] for name in ("energy", "energetic", "danceable")} == {"mood"}
