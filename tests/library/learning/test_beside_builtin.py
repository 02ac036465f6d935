"""Training one's own words beside the built-in model."""

import numpy as np
import polars as pl
import pytest
import small_library

import harmonium.library.learning.train as training
from harmonium import DiscriminativeRBM
from harmonium.estimators.model_files import from_bytes
from harmonium.library import Library
from harmonium.library.answers import keep_said, learn_answers
from harmonium.library.doctor import examine
from harmonium.library.learning.fitting import (
    Candidate,
    Hyperparameters,
    TrainingSet,
)
from harmonium.library.learning.train import TrainingOptions, train, with_prior
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.tagger import (
    BUILTIN_FILE,
    Tagger,
    builtin_extractor,
    builtin_model,
    log_odds,
    precision_curves,
    tag_library,
)


def sounds(n):
    """Features such as the built-in model takes, and which of TAGS fit, as a few of them show."""
    arrays, _ = from_bytes(BUILTIN_FILE.read_bytes())
    deviation = arrays["scaling.scale"] / np.sqrt(400)
    _, truth = small_library.world(n)
    noise = np.random.default_rng(0).normal(size=(n, 400))
    noise[:, :5] += 3 * truth
    return (arrays["scaling.mean"] + noise * deviation).astype(np.float32)


@pytest.fixture
def library(tmp_path):
    with Library.open(tmp_path / "library.db") as opened:
        ids, _, _ = small_library.fill(opened, 60)
        opened.tracks.put_features(ids, sounds(60), extractor=builtin_extractor())
        opened.settings.set(EXTRACTOR, builtin_extractor())
        yield opened


def quick_fit(examples, **_):
    """A model with the built-in one's further inputs, at once; nothing is held out."""
    chosen = Hyperparameters(0.01, 0.1, more_inputs=True)
    X = examples.inputs(chosen)
    assert X.shape[1] == 400 + len(builtin_model().vocabulary)
    named = pl.DataFrame(examples.Y, schema=list(examples.tags))
    model = DiscriminativeRBM(n_hidden=8, max_epochs=60, validation_fraction=0.0, random_state=0)
    model.held_out_ = model.fit(X, named).predict_proba(X)
    return model, [Candidate(chosen, 0.9, 60)]


def test_both_vocabularies_are_in_the_model_and_searched_together(library, monkeypatch):
    monkeypatch.setattr(training, "fit", quick_fit)
    model = train(library, TrainingOptions(smooth=False))
    assert set(model.vocabulary[: model.n_own]) == {*small_library.TAGS, small_library.NOISE}
    assert set(builtin_model().vocabulary) < set(model.vocabulary)
    assert len(set(model.vocabulary)) == len(model.vocabulary)
    assert len(model.report["tags"]) == model.n_own
    assert len(precision_curves(model)) == len(model.vocabulary)
    curve, shipped = (
        precision_curves(one)[one.vocabulary.index("disco")] for one in (model, builtin_model())
    )
    np.testing.assert_array_equal(curve.thresholds, shipped.thresholds)
    tagger = Tagger(library.models.current())
    assert tag_library(library) == 60
    assert library.search("live piano").people_only == []
    assert library.search("piano", owner="own").people_only == ["piano"]
    assert examine(library).doubts is not None
    P = Tagger(builtin_model()).probabilities(sounds(60))
    found = tagger.probabilities(sounds(60))
    piano = builtin_model().vocabulary.index("piano")
    np.testing.assert_allclose(found[:, tagger.place("piano")], P[:, piano], atol=1e-6)
    # answers: of one's own tag, of a built-in one, and a word of neither
    for number in range(1, 7):
        keep_said(library, number, yes=["sunday"], no=["piano", "live"])
    assert {one.name for one in learn_answers(library).tags} == {"sunday", "piano", "live"}
    assert library.search("sunday", owner="own").people_only == []
    assert library.search("sunday", owner="built-in").people_only == ["sunday"]
    now = library.models.current()
    refined = Tagger(now, library).probabilities(sounds(60)[50:])
    np.testing.assert_allclose(
        refined, library.predictions.probabilities(now.id, range(51, 61)), atol=1e-3
    )


def test_a_prior_is_used_where_it_ranks_better_and_weighs_less_with_examples():
    rng, n = np.random.default_rng(0), 200
    vocabulary = builtin_model().vocabulary
    y = (np.arange(n) < 15).astype(np.float32)
    P = np.full((n, len(vocabulary)), 0.5, np.float32)
    calm = np.clip(0.3 + 0.5 * y + 0.05 * rng.normal(size=n), 0.01, 0.99)
    P[:, vocabulary.index("calm")] = calm
    Y = np.stack([y, y], axis=1)
    own = rng.uniform(0.3, 0.7, size=(n, 2)).astype(np.float32)
    examples = TrainingSet(log_odds(P), Y, np.arange(n), ("calm", "sunday"), P.shape[1])
    held_out, weights = with_prior(examples, own, vocabulary)
    assert weights.tolist() == [pytest.approx(15 / 20), 1.0]
    np.testing.assert_array_equal(held_out[:, 1], own[:, 1])
    assert np.corrcoef(held_out[:, 0], y)[0, 1] > np.corrcoef(own[:, 0], y)[0, 1] + 0.2
    examples.X[:] *= -1
    _, weights = with_prior(examples, own, vocabulary)
    assert weights[0] == 1.0
