"""Decisions for a purpose: the thresholds of highest F1, and those that keep a promise."""

import numpy as np
import pytest
from sklearn.base import clone
from tagging_data import quick

import harmonium
from harmonium.errors import DataError
from harmonium.estimators import LogisticTagger, NaiveBayesTagger, SVMTagger, thresholds
from harmonium.estimators.thresholds import f1_thresholds, promised_thresholds
from harmonium.library.learning.scores import make_curve
from harmonium.precision_bound import DOUBT


def drawn(n, seed, sharpness=2.0):
    """Calibrated probabilities (n, 3) and labels drawn from them."""
    rng = np.random.default_rng(seed)
    P = 1 / (1 + np.exp(-sharpness * rng.normal(size=(n, 3)) + np.array([0.0, 1.0, 2.0])))
    return (rng.random(P.shape) < P).astype(np.float32), P.astype(np.float32)


def f1_at(y, said):
    return 2 * np.sum(said & (y == 1)) / (np.sum(said) + np.sum(y == 1))


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_has_a_higher_f1(seed):
    Y, P = drawn(40, seed)
    P = P.round(1)  # with equal scores
    Y[::7, 0] = np.nan
    for y, p, threshold in zip(Y.T, P.T, f1_thresholds(Y, P), strict=True):
        known = ~np.isnan(y)
        y, p = y[known], p[known]
        best = max(f1_at(y, p >= t) for t in np.linspace(0, 1, 101))
        assert f1_at(y, p >= threshold) == pytest.approx(best)


def test_weights_are_repetitions_for_every_purpose():
    Y, P = drawn(60, 0)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    weights = counts[:, None].astype(np.float32)
    np.testing.assert_allclose(f1_thresholds(Y, P, weights), f1_thresholds(Y[rows], P[rows]))
    # copies of a clip are right or wrong together
    np.testing.assert_allclose(
        promised_thresholds(Y, P, 0.7, weights),
        promised_thresholds(Y[rows], P[rows], 0.7, None, rows),
    )


def test_the_bound_is_that_of_the_library():
    Y, P = drawn(300, 1)
    artists = np.random.default_rng(1).integers(0, 60, 300)
    for y, p in zip(Y.T, P.T, strict=True):
        curve = make_curve(y, p, artists)
        [ranks] = thresholds._ranks(y[:, None], p[:, None], None, artists)
        places = np.searchsorted(ranks.chosen, curve.chosen)  # the curve has fewer ranks
        np.testing.assert_array_equal(ranks.chosen[places], curve.chosen)
        np.testing.assert_allclose(ranks.bound()[places], curve.bound, rtol=1e-6)


@pytest.mark.parametrize("precision", [0.6, 0.8])
def test_the_promise_is_kept_for_about_as_many_tags_as_it_says(precision):
    broken = []
    for seed in range(60):
        Y, P = drawn(200, seed)
        limits = promised_thresholds(Y, P, precision)
        Y_new, P_new = drawn(4000, 1000 + seed)
        for tag, limit in enumerate(limits):
            said = P_new[:, tag] >= limit
            if said.any():
                broken.append(Y_new[said, tag].mean() < precision)
    assert len(broken) > 100
    assert np.mean(broken) < DOUBT


def test_overconfident_probabilities_promise_less():
    Y, P = drawn(400, 0)
    overconfident = P**0.3
    plain = promised_thresholds(Y, P, 0.8)
    assert np.isfinite(plain[0])
    said = overconfident[:, 0] >= promised_thresholds(Y, overconfident, 0.8)[0]
    assert Y[said, 0].mean() >= 0.8


def test_noise_promises_nothing():
    _, P = drawn(400, 0)
    noise = np.random.default_rng(0).random(P.shape).astype(np.float32)
    assert np.isinf(promised_thresholds((noise < 0.3).astype(np.float32)[::-1], noise, 0.9)).all()


def test_clips_of_one_artist_promise_less():
    Y, P = drawn(200, 0)
    one_by_one = promised_thresholds(Y, P, 0.7)
    in_twenties = promised_thresholds(Y, P, 0.7, None, np.argsort(-P[:, 0]).argsort() // 20)
    assert in_twenties[0] > one_by_one[0]


@pytest.mark.filterwarnings("ignore:Training ended")
@pytest.mark.parametrize("n_models", [1, 3])
def test_the_decisions_of_a_model(n_models, train, held_out):
    settings = {"n_models": n_models, "max_epochs": 40, "calibrate": True}
    plain = quick(**settings).fit(*train)
    best = quick(decisions="f1", **settings).fit(*train)
    careful = quick(decisions="precision", precision=0.9, **settings).fit(*train)
    np.testing.assert_allclose(plain.predict_proba(train.X), best.predict_proba(train.X))
    assert (plain.thresholds_ != best.thresholds_).any()
    said = careful.predict(held_out.X) == 1
    assert said.any()
    assert held_out.Y[said].mean() > 0.85
    assert said.sum() < (plain.predict(held_out.X) == 1).sum()


@pytest.mark.parametrize(
    "model", [LogisticTagger(solver="newton"), NaiveBayesTagger(use_features=True)]
)
def test_an_eval_set_sets_them_for_solved_models(model, train, held_out, tmp_path):
    model = clone(model).set_params(decisions="precision", precision=0.95)
    with pytest.raises(DataError, match=r"precision.*eval_set"):
        model.fit(*train)
    careful = model.fit(*train, held_out).thresholds_
    model.save(tmp_path / "model.safetensors")
    loaded = harmonium.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.thresholds_, careful)
    assert loaded.decisions == "precision"
    often = model.set_params(decisions="f1").fit(*train).thresholds_
    assert (careful > often).all()


def test_a_promise_needs_held_out_clips(train):
    with pytest.raises(DataError, match=r"held-out.*n_models"):
        quick(decisions="precision", validation_fraction=0.0).fit(*train)


def test_a_promise_needs_probabilities(train):
    with pytest.raises(DataError, match="probabilities"):
        SVMTagger(decisions="precision").fit(*train)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_one_column_is_decided_at_one_half_unless_asked(train):
    labels = train.Y[:, 0]
    assert quick(max_epochs=3).fit(train.X, labels).thresholds_ == 0.5
    assert quick(max_epochs=3, decisions="f1").fit(train.X, labels).thresholds_ != 0.5
