"""What the other classifiers have in common with DiscriminativeRBM."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tagging_data import N_FEATURES, N_TAGS, quick

from harmonium import estimators
from harmonium.errors import DataError

SOLVED = [
    estimators.LogisticTagger(solver="newton"),
    estimators.SVMTagger(random_state=0),
    estimators.ChainTagger(3, random_state=0),
    estimators.NaiveBayesTagger(),
]
NETWORKS = [
    estimators.GenerativeRBM(
        8, inference="mean_field", learning_rate=0.03, max_epochs=3, random_state=0
    ),
    estimators.MLPTagger(8, learning_rate=0.03, l2=0.0, max_epochs=3, random_state=0),
    estimators.LogisticTagger(learning_rate=0.1, max_epochs=3, random_state=0),
]
FEATURES = [f"mfcc {i}" for i in range(N_FEATURES)]
TAGS = ["rock", "jazz", "piano", "slow"]


def name_of(model: Any) -> str:
    return type(model).__name__


each_model = pytest.mark.parametrize("model", SOLVED, ids=name_of)
every_model = pytest.mark.parametrize("model", [*SOLVED, *NETWORKS], ids=name_of)


def scores(model: Any, X: Any) -> Any:
    use = getattr(model, "predict_proba", None) or model.decision_function
    return use(X)


@every_model
def test_log_odds_say_what_the_probabilities_say(model, train):
    fitted = clone(model).fit(*train)
    odds = fitted.decision_function(train.X)
    assert odds.shape == train.Y.shape
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(expit(odds), fitted.predict_proba(train.X), atol=1e-6)
        column = clone(model).fit(train.X, train.Y[:, 0])
        assert column.decision_function(train.X).shape == (300,)


@every_model
def test_log_probabilities_say_what_the_probabilities_say(model, train):
    fitted = clone(model).fit(*train)
    if not hasattr(fitted, "predict_proba"):
        assert not hasattr(fitted, "predict_log_proba")
        return
    P = fitted.predict_proba(train.X)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(train.X)), P, rtol=1e-5)
    column = clone(model).fit(train.X, train.Y[:, 0])
    assert column.predict_log_proba(train.X).shape == (300, 2)


@pytest.mark.filterwarnings("error")
def test_certain_probabilities_have_finite_logarithms(train, monkeypatch):
    model = clone(SOLVED[0]).fit(*train)
    certain = np.tile(np.array([0, 1, 1e-30, 0.5], np.float32), (300, 1))
    monkeypatch.setattr(model, "_scores", lambda X: certain)
    odds = model.decision_function(train.X)[0]
    assert np.isfinite(odds).all()
    assert odds[0] < odds[2] < odds[3] == 0 < odds[1]
    assert np.isfinite(model.predict_log_proba(train.X)).all()


class TestAModelOfFrames:
    @pytest.fixture(params=[pd.DataFrame, pl.DataFrame])
    def frames(self, request, train):
        return [
            request.param(dict(zip(names, array.T, strict=True)))
            for names, array in ((FEATURES, train.X), (TAGS, train.Y))
        ]

    @pytest.fixture(params=[*SOLVED, *NETWORKS], ids=name_of)
    def model(self, request):
        return request.param

    def test_has_their_names(self, model, frames):
        named = clone(model).fit(*frames)
        assert named.tags_.tolist() == TAGS
        assert named.feature_names_in_.tolist() == FEATURES

    def test_is_that_of_their_values(self, model, frames, train):
        """Which is also that of the same seed again."""
        named = clone(model).fit(*frames)
        numbered = clone(model).fit(*train)
        np.testing.assert_array_equal(scores(named, frames[0]), scores(numbered, train.X))

    def test_comes_back_from_its_file(self, model, frames, tmp_path):
        named = clone(model).fit(*frames)
        named.save(tmp_path / "model.safetensors")
        again = type(model).load(tmp_path / "model.safetensors")
        assert again.tags_.tolist() == TAGS
        assert again.feature_names_in_.tolist() == FEATURES
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(scores(again, frames[0]), scores(named, frames[0]))
        np.testing.assert_array_equal(again.predict(frames[0]), named.predict(frames[0]))
        for name in ("nu_", "orders_"):
            if hasattr(named, name):
                np.testing.assert_array_equal(getattr(again, name), getattr(named, name))


def with_number(array: Any, place: Any, value: float) -> Any:
    changed = array.copy()
    changed[place] = value
    return changed


BAD = {
    "NaN in X": lambda X, Y: (with_number(X, (0, 0), np.nan), Y),
    "a label of 2": lambda X, Y: (X, with_number(Y, (3, 1), 2)),
    "an unknown tag": lambda X, Y: (X, with_number(Y, (slice(None), 2), np.nan)),
    "fewer labels than clips": lambda X, Y: (X, Y[:-1]),
    "three classes": lambda X, Y: (X, np.arange(len(X)) % 3),
    "one class": lambda X, Y: (X, np.zeros(len(X))),
    "no labels": lambda X, Y: (X, None),
}


@pytest.mark.parametrize("name", BAD)
@every_model
def test_the_same_bad_inputs_have_the_same_errors_as_the_drbm(model, name, train):
    X, Y = BAD[name](*train)
    with pytest.raises(ValueError, match=r".") as wanted:
        quick(max_epochs=1).fit(X, Y)
    with pytest.raises(ValueError, match=r".") as got:
        clone(model).fit(X, Y)
    assert type(got.value) is type(wanted.value)
    wanted_text = str(wanted.value).replace("DiscriminativeRBM", type(model).__name__)
    assert str(got.value) == wanted_text


@every_model
def test_later_features_must_be_as_many_as_the_models(model, train):
    with pytest.raises(ValueError, match=r"5 features, but .* is expecting 6"):
        clone(model).fit(*train).predict(train.X[:, :5])


@every_model
def test_later_tags_must_be_the_models(model, train):
    with pytest.raises(DataError, match=f"each of the model's {N_TAGS} tags. Got 3 columns"):
        clone(model).fit(*train).score(train.X, train.Y[:, :3])


@every_model
def test_an_eval_set_has_two_parts(model, train):
    with pytest.raises(DataError, match="eval_set must be a pair"):
        clone(model).fit(*train, eval_set=train.X)


@each_model
def test_unknown_labels_are_left_out(model, train):
    """Labels of pure noise on some clips spoil a model; the same labels made unknown do not."""
    rng = np.random.default_rng(0)
    X = np.vstack([train.X, rng.normal(size=(600, N_FEATURES))])
    wrong = np.vstack([train.Y, 1 - (X[300:, :N_TAGS] > 0)])
    unknown = np.vstack([train.Y, np.full((600, N_TAGS), np.nan)])
    assert clone(model).fit(X, wrong).score(*train) < 0.5
    assert clone(model).fit(X, unknown).score(*train) > 0.95


@each_model
def test_thresholds_come_from_the_validation_clips(model, train, held_out):
    """With all of them positive, every clip should be found; with few, few."""
    easy = clone(model).fit(*train, eval_set=held_out)
    none_absent = np.where(held_out.Y == 0, np.nan, 1.0)
    generous = clone(model).fit(*train, eval_set=(held_out.X, none_absent))
    known = generous.predict(held_out.X)[held_out.Y == 1]
    assert known.all()
    assert generous.predict(held_out.X).sum() >= easy.predict(held_out.X).sum()


# The generative RBM and the hybrid.

QUICK: dict[str, Any] = {"max_epochs": 40, "patience": 40, "random_state": 0}


def test_the_hybrid_is_saved_with_its_input_means(train, tmp_path):
    model = quick(generative_weight=0.1).fit(*train)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(train[0]), model.predict_proba(train[0]))


def test_a_hybrid_cannot_go_on_as_another_model(train):
    model = quick(generative_weight=0.1).fit(*train)
    model.set_params(generative_weight=0.0, warm_start=True)
    with pytest.raises(DataError, match="settings ask for"):
        model.fit(*train)


class TestTheGenerativeRBM:
    """Two tags that agree nine times in ten, and a third on its own; the features say nothing."""

    @pytest.fixture(scope="class")
    @staticmethod
    def clips():
        rng = np.random.default_rng(0)
        first, third = rng.random(600) < 0.5, rng.random(600) < 0.2
        second = first ^ (rng.random(600) < 0.1)
        return rng.normal(size=(600, 3)), np.stack([first, second, third], axis=1).astype(float)

    @pytest.fixture(scope="class")
    @staticmethod
    def model(clips):
        model = estimators.GenerativeRBM(
            6,
            learning_rate=0.03,
            training_steps=10,
            max_epochs=60,
            validation_fraction=0,
            inference="exact",
            random_state=0,
        )
        return model.fit(*clips)

    @pytest.mark.parametrize(("first", "second"), [(1.0, 0.9), (0.0, 0.1)])
    def test_completes_tags_from_one_another(self, model, clips, first, second):
        known = np.tile([first, np.nan, np.nan], (600, 1))
        p = model.complete(clips[0], known).mean(axis=0)
        np.testing.assert_allclose(p[1:], [second, 0.2], atol=0.08)

    def test_samples_tags_as_they_occur(self, model):
        _, y = model.sample(2000, steps=200, random_state=0)
        np.testing.assert_allclose((y[:, 0] == y[:, 1]).mean(), 0.9, atol=0.08)
        np.testing.assert_allclose(y.mean(0), [0.5, 0.5, 0.2], atol=0.1)

    def test_draws_at_least_one_sample(self, model):
        with pytest.raises(DataError, match="n_samples"):
            model.sample(0)


def test_samples_of_features_have_their_scale(train):
    X, Y = train
    shifted = 100 + 5 * X
    model = estimators.GenerativeRBM(8, **QUICK).fit(shifted, Y)
    samples, tags = model.sample(500, steps=200, random_state=0)
    assert samples.shape == (500, X.shape[1])
    assert tags.shape == (500, N_TAGS)
    np.testing.assert_allclose(samples.mean(0), shifted.mean(0), atol=0.5 * shifted.std(0).max())
    np.testing.assert_allclose(samples.std(0), shifted.std(0), rtol=0.5)


def test_the_hidden_representation_is_a_transformer_output(train):
    pipeline = make_pipeline(
        estimators.GenerativeRBM(8, **QUICK), estimators.LogisticTagger(**QUICK)
    )
    hidden = pipeline[:1].fit_transform(*train)
    assert hidden.shape == (len(train[0]), 8)
    assert list(pipeline[0].get_feature_names_out())[:2] == ["generativerbm0", "generativerbm1"]
    assert pipeline.fit(*train).score(*train) > 0.6
