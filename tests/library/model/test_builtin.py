"""The built-in model: alone, in a library, and beside a library's own."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import small_library
from small_library import builtin_sounds as sounds
from tag_rows import table_of

import harmonium.library.learning.train as training
from harmonium import DiscriminativeRBM
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.library import Library
from harmonium.library.doctor import examine
from harmonium.library.edits import hide_tags
from harmonium.library.learning.examples import Hyperparameters
from harmonium.library.learning.fitting import Candidate, FittedModel
from harmonium.library.learning.labels import TrainingOptions
from harmonium.library.learning.train import train
from harmonium.library.model import words as words_module
from harmonium.library.model.builtin import (
    BUILTIN_FILE,
    builtin_extractor,
    builtin_model,
    use_builtin,
)
from harmonium.library.model.model_file import ModelFile
from harmonium.library.model.odds import log_odds, mix
from harmonium.library.model.tag_table import NotWritten, TagTable, WriteDecision
from harmonium.library.model.tagger import PART, PLACES, Tagger, tag_library
from harmonium.library.search import Query, parse
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.tagging import TaggedFile, read_known
from harmonium.library.tags import related, suggest
from harmonium.library.teaching.say import keep_said
from harmonium.logistic import sigmoid


def tagged(probabilities):
    """A file with these probabilities by the built-in model."""
    tagger = Tagger(builtin_model())
    return TaggedFile("a.mp3", None, {}, {}, probabilities, tagger, TagTable.of_builtin())


def test_numpy_says_what_the_estimator_says():
    tagger, X = Tagger(builtin_model()), sounds(5)
    model = DiscriminativeRBM.load(BUILTIN_FILE)
    n = len(model.tags_)
    np.testing.assert_allclose(tagger.probabilities(X)[:, :n], model.predict_proba(X), atol=1e-5)


def test_numpy_says_what_the_estimator_says_given_observed_tags():
    tagger, X = Tagger(builtin_model()), sounds(5)
    model = DiscriminativeRBM.load(BUILTIN_FILE)
    n = len(model.tags_)
    known = np.full((5, len(tagger.tags)), np.nan, np.float32)
    known[:, tagger.place("jazz")], known[2:, tagger.place("voice")] = 1, 0
    found = tagger.probabilities(X, known)
    np.testing.assert_allclose(found[:, :n], model.complete(X, known[:, :n]), atol=1e-5)
    assert (found[:, tagger.place("jazz")] == 1).all()


def test_audio_features_are_values_that_are_never_listed():
    tagger = Tagger(builtin_model())
    features = sorted(AUDIO_FEATURES)
    places = [tagger.place(name) for name in features]
    table = TagTable.of_builtin()
    assert sorted(table.features) == features
    assert not any(table[name].predicted for name in features)
    assert [tagger.tags[tagger.place(word)] for word in ("energetic", "danceable", "positive")] == [
        *("energy", "danceability", "valence")
    ]
    X = sounds(30)
    P = tagger.probabilities(X)[:, places]
    assert ((P > 0) & (P < 1)).all()
    assert (P.std(axis=0) > 0.02).all()
    file = tagged(tagger.probabilities(X)[0])
    assert not {tag.name for tag, _ in file.predicted(top=500)} & set(features)
    assert not {one.tag for one in related(tagger, None, "metal", 20)} & set(features)


def test_what_is_no_music_has_no_tags_unless_people_gave_it_one():
    tagger = Tagger(builtin_model())
    arrays, _ = from_bytes(BUILTIN_FILE.read_bytes())
    w = arrays["music.W"][0]  # far out on the side of what is no music
    far = arrays["scaling.mean"] - arrays["scaling.scale"] * w * 20 / (w @ w)
    silence, music = np.repeat(far[None], 2, axis=0).astype(np.float32), sounds(2)
    P = tagger.probabilities(np.concatenate([silence, music]))
    assert [tagger.is_music(p) for p in P] == [False, False, True, True]
    assert not any(tagged(p).predicted() for p in P[:2])
    assert P[0, tagger.place("jazz")] == 0
    assert P[0, tagger.place("energy")] > 0
    assert tagged(P[0]).predicted(top=5) == []
    observed = np.full((2, len(tagger.tags)), np.nan, np.float32)
    observed[0, tagger.place("calm")], observed[1, tagger.place("calm")] = 1, 0
    P = tagger.probabilities(silence, observed)
    assert P[0, tagger.place("jazz")] > 0
    assert P[1, tagger.place("jazz")] == 0
    # one's own words may be about anything; genres are about music
    _, stored = beside(1.0, True)
    own = Tagger(stored)
    P = own.probabilities(silence)
    assert P[0, own.place("sunday")] > 0
    assert P[0, own.place("piano")] == 0


def test_tags_that_nearly_all_tracks_have_do_not_lead_a_list():
    tagger = Tagger(builtin_model())
    p = np.full(len(tagger.tags), 0.001, np.float32)
    for tag, probability in {"voice": 0.9, "jazz": 0.8, "sitar": 0.3}.items():
        p[tagger.place(tag)] = probability
    assert [tag.name for tag, _ in tagged(p).predicted()] == ["jazz", "sitar", "voice"]
    assert [tag.name for tag, _ in tagged(p).predicted(top=2)] == ["jazz", "sitar"]
    gain = tagger.information_gain(tagger.rates.astype(np.float32))
    np.testing.assert_allclose(gain, 0, atol=1e-3)
    assert tagger.information_gain(p)[tagger.place("calm")] < 0  # less likely than usual


def test_a_library_with_the_model_of_an_older_version_gets_the_present_one(tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        library.settings.set(EXTRACTOR, builtin_model().extractor)
        older = replace(builtin_model(), bytes=b"older")
        library.models.add(older)
        hide_tags(library, ["jazz"])
        model = use_builtin(library)
        assert (model.id, model.bytes) == (2, builtin_model().bytes)
        assert not library.snapshot().tags["jazz"].predicted
        assert use_builtin(library).id == 2


@pytest.fixture
def no_words(monkeypatch, tmp_path):
    monkeypatch.setattr(words_module, "WORDS_FILE", tmp_path / "words.safetensors")
    words_module.words.cache_clear()
    yield
    words_module.words.cache_clear()


def test_what_goes_with_a_tag_is_by_the_words():
    words, tagger = words_module.words(), Tagger(builtin_model())
    y = np.full((1, len(words.tags)), np.nan)
    y[0, words.tags.index("jazz")] = 1
    given = sigmoid(words(y)[0])
    found = {one.tag: one for one in suggest(tagger, None, ["jazz"], n=300)}
    for tag in ("blues", "piano", "sophisticated", "punk"):
        place = words.tags.index(tag)
        assert found[tag].probability == pytest.approx(given[place], abs=1e-6)
        assert found[tag].usual == pytest.approx(words.rates[place], abs=1e-6)
    assert found["blues"].probability > 2 * found["punk"].probability
    energetic, calm = (suggest(tagger, None, [tag], 300) for tag in ("energetic", "calm"))
    assert not {"energy", "valence"} & {one.tag for one in calm if one.probability}
    dance = [next(one for one in found if one.tag == "dance") for found in (energetic, calm)]
    assert dance[0].probability > 2 * dance[1].probability
    names = [one.tag for one in related(tagger, None, "hip hop", 5)]
    assert "hip hop" not in names
    assert len(names) == 10
    likely = {one.tag for one in related(tagger, None, "metal", 20) if one.log_odds > 0}
    assert {"heavy metal", "hard rock"} & likely


def test_without_the_words_the_built_in_model_serves(no_words):
    tagger = Tagger(builtin_model())
    observed = np.full(len(tagger.tags), np.nan, np.float32)
    observed[tagger.place("jazz")] = 1
    expected = ModelFile(builtin_model().bytes).together(observed)
    np.testing.assert_array_equal(tagger.without_sound(observed), expected)
    assert suggest(tagger, None, ["jazz"])[0].probability > 0


def test_where_the_words_cannot_tell_log_odds_change_as_the_models():
    tagger, words = Tagger(builtin_model()), words_module.words()
    at = {tagger.aliases.get(tag, tag): i for i, tag in enumerate(words.tags)}
    lacking = next(tag for tag in tagger.tags if tag not in at)
    apart = next(
        tag for tag in tagger.tags if tag in at and np.isnan(words.beside[at["metal"], at[tag]])
    )
    model = ModelFile(builtin_model().bytes)
    for observed, asked in ((["metal"], apart), ([lacking], "jazz"), (["pop", lacking], "jazz")):
        y = np.full(len(tagger.tags), np.nan, np.float32)
        y[[tagger.place(tag) for tag in observed if tag != "pop"]] = 1
        nothing = np.full_like(y, np.nan)
        by_model = log_odds(model.together(y)) - log_odds(model.together(nothing))
        first = nothing.copy()
        if "pop" in observed:
            y[tagger.place("pop")] = first[tagger.place("pop")] = 1
        found = log_odds(tagger.without_sound(y)) - log_odds(tagger.without_sound(first))
        place = tagger.place(asked)
        assert found[place] == pytest.approx(by_model[place], abs=1e-3)
        assert abs(by_model[place]) > 0.01


def test_its_words_are_understood_without_quotes():
    tagger = Tagger(builtin_model())
    for word, tag in {**{tag: tag for tag in tagger.tags}, **tagger.aliases}.items():
        assert parse(word, tagger.tags, tagger.aliases) == Query("TAG", tag=tag)
        asked = parse(f"calm {word} -drums", tagger.tags, tagger.aliases)
        assert asked == parse(f'"calm" AND "{tag}" AND NOT "drums"', tagger.tags), word
    known = read_known("female vocalists, -calmness, Rap", tagger)
    assert known == {"female voice": True, "calm": False, "hip hop": True}


def test_it_is_the_first_model(library):
    small_library.fill_for_builtin(library, 20, tagged=0)
    library.settings.set(EXTRACTOR, small_library.EXTRACTOR)
    assert use_builtin(library) is None  # it takes other features
    library.settings.set(EXTRACTOR, builtin_extractor())
    model = use_builtin(library)
    assert model.id == 1
    assert not model.has_own
    assert use_builtin(library).id == 1


def test_it_searches_before_anybody_has_tagged(library):
    small_library.fill_for_builtin(library, 20, tagged=0)
    library.settings.set(EXTRACTOR, builtin_extractor())
    model = use_builtin(library)
    assert tag_library(library) == 20
    found = library.search("calm piano -drums", limit=5)
    assert len(found.hits) == 5
    assert not found.people_only
    P = Tagger(model).probabilities(sounds(20))
    calm, piano, drums = (model.vocabulary.index(t) for t in ("calm", "piano", "drums"))
    best = np.argmax(P[:, calm] * P[:, piano] * (1 - P[:, drums]))
    assert found.hits[0].track.id == library.tracks.ids()[best]
    assert library.search("calm", owner="built-in").hits
    assert library.search("calm", owner="own").people_only == ["calm"]


def with_log_odds(X, P):
    return np.concatenate([X, log_odds(P)], axis=1)


def beside(weight, inputs):
    """A model with two words of its own, one of which the built-in one knows, too."""
    X = sounds(80, seed=1)
    Y = np.stack([X[:, 0] > np.median(X[:, 0]), X[:, 1] > np.median(X[:, 1])], axis=1)
    builtin = builtin_model()
    P = Tagger(builtin).probabilities(X)
    own = DiscriminativeRBM(n_hidden=4, max_epochs=3, validation_fraction=0.0, random_state=0)
    own.fit(with_log_odds(X, P) if inputs else X, Y.astype(float))
    others = [tag for tag in builtin.vocabulary if tag != "calm"]
    tags = ["sunday", "calm", *others]
    more = {
        PART: np.frombuffer(builtin.bytes, np.uint8),
        PLACES: np.array([tags.index(tag) for tag in builtin.vocabulary]),
        "own_weight": np.array([1.0, weight]),
    }
    about = {"vocabulary": tags, "thresholds": np.full(2 + len(others), 0.5, np.float32)}
    about["report"] = ModelReport(own=2)
    return own, replace(builtin, bytes=own.to_bytes(more), **about)


@pytest.mark.parametrize("inputs", [False, True])
def test_both_vocabularies_answer(inputs):
    own, stored = beside(0.25, inputs)
    tagger, builtin, X = Tagger(stored), Tagger(builtin_model()), sounds(6)
    P, others = tagger.probabilities(X), builtin.probabilities(X)
    mine = own.predict_proba(with_log_odds(X, others) if inputs else X)
    np.testing.assert_allclose(P[:, 0], mine[:, 0], atol=1e-4)
    piano = others[:, builtin.place("piano")]
    np.testing.assert_allclose(P[:, tagger.place("piano")], piano, atol=1e-6)
    mixed = mix(mine[:, 1], others[:, builtin.place("calm")], np.float32(0.25))
    np.testing.assert_allclose(P[:, 1], mixed, atol=1e-4)
    arrays, about = from_bytes(stored.bytes)
    assert arrays[PART].tobytes() == BUILTIN_FILE.read_bytes()
    assert Tagger(replace(stored, bytes=to_bytes(arrays, about))).n_own == 2


@pytest.mark.parametrize("inputs", [False, True])
def test_observed_tags_count_for_both_vocabularies(inputs):
    _, stored = beside(0.25, inputs)
    tagger, X = Tagger(stored), sounds(6)
    P = tagger.probabilities(X)
    observed = np.full(P.shape, np.nan, np.float32)
    observed[:, tagger.place("calm")] = 1
    given = tagger.probabilities(X, observed)
    assert (given[:, tagger.place("calm")] == 1).all()
    assert (given[:, tagger.place("peaceful")] > P[:, tagger.place("peaceful")]).all()
    assert not np.allclose(given[:, 0], P[:, 0])
    assert tagger.without_sound(observed[0]).shape == (len(tagger.tags),)


@pytest.mark.parametrize(("weight", "p"), [(1, 0.9), (0, 0.2), (0.5, 0.6)])  # √(9 · ¼) = 1.5
def test_own_answers_mix_with_the_prior_by_weight(weight, p):
    mixed = mix(np.array([0.9], np.float32), np.array([0.2], np.float32), np.float32(weight))
    assert mixed == pytest.approx(p, abs=1e-6)


def test_how_often_tags_that_people_checked_are_right():
    table = TagTable.of_builtin()
    jazz, piano = table["jazz"], table["piano"]
    written = jazz.written(0.8)
    assert jazz.threshold < written.threshold < 1
    assert jazz.precision_from(written.threshold) >= 0.8
    assert jazz.precision_from(0.01) < jazz.precision_from(jazz.threshold)
    assert piano.precision_from(0.99) is None
    for tag in table.predicted:
        low, high = tag.written(0.5).threshold, tag.written(0.8).threshold
        assert high is None or low <= high


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("piano", NotWritten.UNMEASURED), ("tender", NotWritten.UNCONFIRMED)],
)
@pytest.mark.parametrize("precision", [0.8, 0.5])
def test_built_in_tags_that_nobody_checked_are_not_written(tag, reason, precision):
    assert TagTable.of_builtin()[tag].written(precision) == WriteDecision(reason=reason)


def test_by_their_thresholds_built_in_tags_are_written_that_are_usually_right():
    table = TagTable.of_builtin()
    sure = [tag for tag in table.predicted if tag.written(None).threshold == tag.threshold]
    assert 0 < len(sure) < len(table.predicted)
    assert all(tag.quality.precision >= 0.8 for tag in sure)


def quick_fit(examples, **_):
    """A model with the built-in one's further inputs, at once; nothing is held out."""
    chosen = Hyperparameters(0.01, 0.1, more_inputs=True)
    X = examples.inputs(chosen)
    assert X.shape[1] == 400 + len(builtin_model().vocabulary)
    named = pl.DataFrame(examples.Y, schema=list(examples.tags))
    model = DiscriminativeRBM(n_hidden=8, max_epochs=60, validation_fraction=0.0, random_state=0)
    model.held_out_ = model.fit(X, named).predict_proba(X)
    return FittedModel(
        estimator=model,
        held_out=model.held_out_,
        folds=model.folds_,
        candidates=[Candidate(chosen, 0.9, 60)],
    )


@pytest.fixture
def trained_beside_builtin(library, monkeypatch):
    """The model of a library with both vocabularies."""
    small_library.fill_for_builtin(library, 60, telling=True)
    monkeypatch.setattr(training, "fit", quick_fit)
    return train(library, TrainingOptions(smooth=False))


def test_both_vocabularies_are_in_the_model(trained_beside_builtin):
    model = trained_beside_builtin
    own = {output.name for output in model.outputs if output.source == "tracks"}
    assert own == {*small_library.TAGS, small_library.NOISE}
    assert set(builtin_model().vocabulary) < set(model.vocabulary)
    assert len(set(model.vocabulary)) == len(model.vocabulary)
    assert {tag.tag for tag in model.report.tags} == own
    disco, shipped = table_of(model)["disco"], TagTable.of_builtin()["disco"]
    np.testing.assert_array_equal(disco.curve.thresholds, shipped.curve.thresholds)
    assert disco.quality == shipped.quality
    assert disco.written(0.8) == shipped.written(0.8)


def test_both_vocabularies_are_searched_together(library, trained_beside_builtin):
    tagger = Tagger(library.models.current())
    assert tag_library(library) == 60
    assert library.search("live piano").people_only == []
    assert library.search("piano", owner="own").people_only == ["piano"]
    assert examine(library).doubts is not None
    X = sounds(60, telling=True)
    P, found = Tagger(builtin_model()).probabilities(X), tagger.probabilities(X)
    piano = builtin_model().vocabulary.index("piano")
    np.testing.assert_allclose(found[:, tagger.place("piano")], P[:, piano], atol=1e-6)


def test_answers_refine_tags_of_both_vocabularies(library, trained_beside_builtin):
    """They are of one's own tag, of a built-in one, and of a word of neither."""
    tag_library(library)
    X = sounds(60, telling=True)
    for number in range(1, 7):
        keep_said(library, number, accepted=["sunday"], rejected=["piano", "live"])
    assert {one.name for one in library.learn().tags} == {"sunday", "piano", "live"}
    assert library.search("sunday", owner="own").people_only == []
    assert library.search("sunday", owner="built-in").people_only == ["sunday"]
    now = library.models.current()
    refined = Tagger(now, library).probabilities(X[50:])
    np.testing.assert_allclose(
        refined, library.predictions.probabilities(now.id, range(51, 61)), atol=1e-3
    )
