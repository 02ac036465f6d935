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
from harmonium.estimators.classifier import best_scaling, scaling_of, standardising
from harmonium.estimators.gradient_tagger import signature
from harmonium.estimators.model_files import Scaling
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


@pytest.mark.parametrize("model", [quick(), MLPTagger(n_hidden=8, max_epochs=3, random_state=0)])
def test_constant_features_change_nothing(train, held_out, model):
    for value in (0.0, 0.1, -3e5, 1e200, 1e-200):  # nor are they blown up by rounding
        X = np.full((101, 2), value)
        assert np.abs(standardising(X)(X)).max() <= 1e-9
    X = train.X.copy()
    X[:, 2], X[:, 3] = 0.1, 0.0
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
def test_standardising_gives_zero_mean_and_a_norm_of_one(seed, n, d, magnitude):
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


def test_with_unit_norm_no_weights_for_features_as_given_and_no_norm_without_features(train):
    model = quick(unit_norm=True).fit(*train)
    with pytest.raises(AttributeError, match="unit_norm=False"):
        _ = model.params_
    linear = LogisticTagger(solver="newton", unit_norm=True).fit(*train)
    with pytest.raises(AttributeError, match="coef_ and intercept_ apply to raw features"):
        _ = linear.coef_
    scaling = Scaling(np.zeros(3), np.ones(3), unit_norm=True)
    scaled = scaling(np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]]))
    np.testing.assert_allclose(scaled, [[0, 0, 0], [0.6, 0, 0.8]], atol=1e-7)


def test_quantiles_of_features_become_those_of_the_normal_distribution(train, held_out, tmp_path):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(5000, 3)))  # whose logarithm is normal
    X[:2500, 1] = 0.0  # half of a feature is one number
    scaled = scaling_of(X, "quantile")(X) * np.sqrt(3)
    expected = np.log(X[:, 0])
    usual = np.abs(expected) < 2.5  # what lies farther out is drawn in
    np.testing.assert_allclose(scaled[usual, 0], expected[usual], atol=0.15)
    assert np.ptp(scaled[:2500, 1]) == 0
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)
    scaling = scaling_of(X, "quantile")
    back = scaling.inverse(scaling(X[:, [0, 0, 0]]))
    middle = (X[:, 0] > 0.2) & (X[:, 0] < 5)
    np.testing.assert_allclose(back[middle, 0], X[middle, 0], rtol=1e-4)
    assert np.isfinite(scaling(np.full((1, 3), 1e300))).all()
    model = quick(scale_features="quantile").fit(np.exp(train.X), train.Y)
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    P = model.predict_proba(np.exp(held_out.X))
    np.testing.assert_array_equal(again.predict_proba(np.exp(held_out.X)), P)
    assert abs(quick().fit(*train).score(*held_out) - auc_per_tag(held_out.Y, P).mean) < 0.02
    with pytest.raises(AttributeError, match="scale_features='standard'"):
        _ = model.params_


def test_rare_words_count_more_and_each_text_has_the_same_norm():
    X = np.zeros((100, 2))
    X[:50, 0], X[:1, 1] = 1, 1
    scaled = scaling_of(X, "idf")(X)
    np.testing.assert_allclose(np.linalg.norm(scaled[:50], axis=1), 1, rtol=1e-6)
    assert not scaled[50:].any()
    np.testing.assert_allclose(scaled[0, 1] / scaled[0, 0], np.log(101) / np.log(3), rtol=1e-5)


def test_words_get_more_hidden_units_that_start_further_apart(train, tmp_path):
    words = (np.quantile(train.X, 0.9) < train.X).astype(float)
    usual = DiscriminativeRBM(max_epochs=1, n_models=2, random_state=0)
    for X, n_hidden, spread in ((words, 300, 1.0), (train.X, 100, 0.3)):
        model = usual.fit(X, train.Y)
        assert model._params.U.shape == (2, n_hidden, train.Y.shape[1])
        assert np.std(model._params.W) == pytest.approx(spread, rel=0.1)
        model.save(tmp_path / "model")
        again = DiscriminativeRBM.load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    chosen = DiscriminativeRBM(7, init_scale=0.0, max_epochs=1, random_state=0).fit(words, train.Y)
    assert chosen._params.U.shape[1] == 7
    assert np.std(chosen._params.W) < 0.1
    assert signature(DiscriminativeRBM(scale_features="idf")) != signature(usual)
    assert signature(DiscriminativeRBM(7, scale_features="idf")) == signature(DiscriminativeRBM(7))


def test_auto_tells_heavy_tails_and_words_from_other_features(train):
    rng = np.random.default_rng(0)
    words = (rng.random((200, 30)) < 0.05).astype(float)
    kinds = {"standard": train.X, "quantile": rng.standard_t(2, (500, 9)) * 1e200, "idf": words}
    for kind, X in kinds.items():
        assert best_scaling(X) == kind
        one, other = scaling_of(X, "auto"), scaling_of(X, kind)
        np.testing.assert_array_equal(one(X), other(X))
    assert best_scaling(np.ones((5, 2))) == "standard"
