"""Features in any units: predictions do not depend on them."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tagging_data import quick

from harmonium.errors import DataError
from harmonium.estimators import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.estimators.scaling import Scaling, best_scaling, scaling_of, standardising
from harmonium.estimators.stacked import signature
from harmonium.evaluation import auc_per_tag

UNITS = {
    "huge": (1e6, 0),
    "tiny": (1e-6, 0),
    "shifted": (1, 1e4),
    "each its own": (10.0 ** np.arange(-3, 3), 7.0),
    "beyond squares": (1e200, 0),
    "below squares": (1e-200, 0),
}


@pytest.mark.parametrize("units", UNITS)
def test_predictions_do_not_depend_on_the_units(train, held_out, units):
    scale, offset = UNITS[units]
    # pseudo-likelihood: no sampling, so that rounding stays small all through training
    one = quick(training="pl").fit(*train, eval_set=held_out)
    X, new = (clips.X * scale + offset for clips in (train, held_out))
    other = quick(training="pl").fit(X, train.Y, eval_set=(new, held_out.Y))
    found, expected = other.predict_proba(new), one.predict_proba(held_out.X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e5, 1e200, 1e-200])
def test_constant_features_are_not_blown_up_by_rounding(value):
    X = np.full((101, 2), value)
    assert np.abs(standardising(X)(X)).max() <= 1e-9


@pytest.mark.parametrize("model", [quick(), MLPTagger(n_hidden=8, max_epochs=3, random_state=0)])
def test_constant_features_change_nothing(train, held_out, model):
    X = train.X.copy()
    X[:, 2] = 0.1
    X[:, 3] = 0.0
    model = clone(model).fit(X, train.Y)
    assert np.isfinite(model.predict_proba(X)).all()
    new = np.concatenate([held_out.X[:, :2], X[:200, 2:4], held_out.X[:, 4:]], axis=1)
    expected = model.predict_proba(new)
    new[:, 2:4] = 1e6  # of which nothing could be learnt
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-5)


def test_features_too_large_to_compute_with_are_refused(train, fitted):
    X = train.X.copy()
    X[7, 3] = 1e200
    with pytest.raises(DataError, match=r"X\[7, 3\] is 1e\+200, too far from the training data"):
        fitted.predict_proba(X)
    with pytest.raises(DataError, match=r"X\[7, 3\] is 1e\+200.*scale them"):
        quick(scale_features="none").fit(X, train.Y)


@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 30),
    d=st.integers(1, 8),
    magnitude=st.sampled_from([1e-200, 1e-6, 1.0, 1e6, 1e200]),
)
@settings(deadline=None, max_examples=50)
def test_standardised_clips_have_mean_zero_with_a_norm_of_one(seed, n, d, magnitude):
    X = np.random.default_rng(seed).normal(size=(n, d)) * magnitude
    scaled = standardising(X)(X).astype(np.float64)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(axis=0), 1 / np.sqrt(d), rtol=1e-5)
    np.testing.assert_allclose((scaled**2).sum(axis=1).mean(), 1, rtol=1e-5)


@pytest.mark.parametrize(
    "make", [quick, MLPTagger, LogisticTagger, partial(LogisticTagger, solver="newton")]
)
def test_unit_norm_is_a_model_of_normalised_features(make, train, held_out, tmp_path):
    settings = {"random_state": 0, "max_epochs": 3}
    scaling = standardising(train.X)

    def normalised(X):
        X = (X - scaling.mean) / scaling.scale
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    one = make(unit_norm=True, scale_features="standard", **settings).fit(*train, eval_set=held_out)
    other = make(scale_features="none", **settings)
    other.fit(normalised(train.X), train.Y, eval_set=(normalised(held_out.X), held_out.Y))
    P = one.predict_proba(held_out.X)
    np.testing.assert_allclose(P, other.predict_proba(normalised(held_out.X)), atol=1e-5)
    one.save(tmp_path / "model.safetensors")
    again = type(one).load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.set_params(unit_norm=False).predict_proba(held_out.X), P)


def test_with_unit_norm_there_are_no_parameters_for_raw_features(train):
    model = quick(unit_norm=True).fit(*train)
    with pytest.raises(AttributeError, match="unit_norm=False"):
        _ = model.params_


def test_with_unit_norm_there_are_no_coefficients_for_raw_features(train):
    model = LogisticTagger(solver="newton", unit_norm=True).fit(*train)
    with pytest.raises(AttributeError, match="coef_ and intercept_ apply to raw features"):
        _ = model.coef_


def test_a_clip_without_features_has_no_norm():
    scaling = Scaling(np.zeros(3), np.ones(3), unit_norm=True)
    scaled = scaling(np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]]))
    np.testing.assert_allclose(scaled, [[0, 0, 0], [0.6, 0, 0.8]], atol=1e-7)


class TestQuantiles:
    @pytest.fixture
    def X(self):
        """Features whose logarithm is normal; half of the second are 0."""
        X = np.exp(np.random.default_rng(0).normal(size=(5000, 3)))
        X[:2500, 1] = 0.0
        return X

    def test_become_those_of_the_normal_distribution(self, X):
        scaled = scaling_of(X, "quantile")(X) * np.sqrt(3)
        expected = np.log(X[:, 0])
        usual = np.abs(expected) < 2.5  # what lies farther out is drawn in
        np.testing.assert_allclose(scaled[usual, 0], expected[usual], atol=0.15)
        np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)

    def test_of_equal_numbers_stay_equal(self, X):
        assert np.ptp(scaling_of(X, "quantile")(X)[:2500, 1]) == 0

    def test_come_back(self, X):
        scaling = scaling_of(X, "quantile")
        back = scaling.inverse(scaling(X[:, [0, 0, 0]]))
        middle = (X[:, 0] > 0.2) & (X[:, 0] < 5)
        np.testing.assert_allclose(back[middle, 0], X[middle, 0], rtol=1e-4)

    def test_of_numbers_beyond_all_others_are_finite(self, X):
        assert np.isfinite(scaling_of(X, "quantile")(np.full((1, 3), 1e300))).all()


class TestAModelOfQuantiles:
    @pytest.fixture
    def model(self, train):
        return quick(scale_features="quantile").fit(np.exp(train.X), train.Y)

    def test_does_not_depend_on_heavy_tails(self, model, train, held_out):
        P = model.predict_proba(np.exp(held_out.X))
        usual = quick().fit(*train).score(*held_out)
        assert abs(usual - auc_per_tag(held_out.Y, P).mean) < 0.02

    def test_is_saved_with_them(self, model, held_out, tmp_path):
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        X = np.exp(held_out.X)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))

    def test_has_no_parameters_for_raw_features(self, model):
        with pytest.raises(AttributeError, match="scale_features='standard'"):
            _ = model.params_


class TestWords:
    @pytest.fixture
    def scaled(self):
        """100 texts; the first word is in half of them, the second in one."""
        X = np.zeros((100, 2))
        X[:50, 0] = 1
        X[:1, 1] = 1
        return scaling_of(X, "idf")(X)

    def test_count_more_if_they_are_rare(self, scaled):
        expected = np.log(101) / np.log(3)
        np.testing.assert_allclose(scaled[0, 1] / scaled[0, 0], expected, rtol=1e-5)

    def test_give_each_text_the_same_norm(self, scaled):
        np.testing.assert_allclose(np.linalg.norm(scaled[:50], axis=1), 1, rtol=1e-6)
        assert not scaled[50:].any()


def words_of(train):
    return (np.quantile(train.X, 0.9) < train.X).astype(float)


@pytest.mark.parametrize(
    ("of_words", "n_hidden", "spread"),
    [(True, 300, 1.0), (False, 100, 0.3)],
    ids=["words", "others"],
)
def test_words_get_more_hidden_units_that_start_further_apart(
    train, tmp_path, of_words, n_hidden, spread
):
    X = words_of(train) if of_words else train.X
    model = DiscriminativeRBM(max_epochs=1, n_models=2, random_state=0).fit(X, train.Y)
    assert model._params.U.shape == (2, n_hidden, train.Y.shape[1])
    assert np.std(model._params.W) == pytest.approx(spread, rel=0.1)
    model.save(tmp_path / "model")
    again = DiscriminativeRBM.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_settings_decide_about_words_too(train):
    model = DiscriminativeRBM(7, init_scale=0.0, max_epochs=1, random_state=0)
    params = model.fit(words_of(train), train.Y)._params
    assert params.U.shape[1] == 7
    assert np.std(params.W) < 0.1


def test_models_of_words_are_stacked_apart_unless_their_size_is_set():
    usual, words = DiscriminativeRBM(), DiscriminativeRBM(scale_features="idf")
    assert signature(words) != signature(usual)
    assert signature(words.set_params(n_hidden=7)) == signature(usual.set_params(n_hidden=7))


@pytest.mark.parametrize("kind", ["standard", "quantile", "idf"])
def test_auto_chooses_by_the_features(train, kind):
    """Heavy tails go through their quantiles, and features that are mostly 0 are words."""
    rng = np.random.default_rng(0)
    heavy_tails = rng.standard_t(2, (500, 9)) * 1e200
    words = (rng.random((200, 30)) < 0.05).astype(float)
    X = {"standard": train.X, "quantile": heavy_tails, "idf": words}[kind]
    assert best_scaling(X) == kind
    np.testing.assert_array_equal(scaling_of(X, "auto")(X), scaling_of(X, kind)(X))


def test_constant_features_are_standardised():
    assert best_scaling(np.ones((5, 2))) == "standard"
