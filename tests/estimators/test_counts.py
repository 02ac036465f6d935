"""Completion by counting, against loops over clips and against small tables counted by hand."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.naive_bayes import BernoulliNB

from harmonium.errors import DataError
from harmonium.estimators import CooccurrenceTagger, LogisticTagger, NaiveBayesTagger
from harmonium.estimators.linear import pair_rates

NAN = np.nan


def some_labels(*, unknown=0.0, soft=False, seed=0, n=80, n_tags=4):
    rng = np.random.default_rng(seed)
    hidden = rng.random((n, 1)) < 0.5
    P = np.where(hidden, 0.7, 0.15) * np.ones(n_tags)
    Y = P + rng.uniform(-0.1, 0.1, P.shape) if soft else (rng.random(P.shape) < P).astype(float)
    Y[rng.random(Y.shape) < unknown] = NAN
    return rng.normal(size=(n, 3)), Y


def rate_by_counting(Y, j, k, *, present, smoothing):
    """p(y_k = 1 | y_j), clip by clip."""
    known_k = [y for y in Y[:, k] if not np.isnan(y)]
    usual = (sum(known_k) + 1) / (len(known_k) + 2)
    both = given = 0.0
    for y in Y:
        if not np.isnan(y[j]) and not np.isnan(y[k]):
            weight = y[j] if present else 1 - y[j]
            given += weight
            both += weight * y[k]
    return (both + smoothing * usual) / (given + smoothing)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("soft", [False, True])
def test_rates_are_shares_among_the_clips_on_which_both_tags_are_known(unknown, soft):
    _, Y = some_labels(unknown=unknown, soft=soft)
    found = pair_rates(Y, 2.5)
    for j in range(4):
        for k in range(4):
            for rates, present in zip(found, (True, False), strict=True):
                wanted = rate_by_counting(Y, j, k, present=present, smoothing=2.5)
                assert rates[j, k] == pytest.approx(wanted, rel=1e-12)


def test_cooccurrence_is_the_mean_or_the_noisy_or_of_what_each_true_tag_says():
    X, Y = some_labels(unknown=0.2)
    observed = np.array(
        [[1, NAN, NAN, NAN], [1, 1, NAN, NAN], [0, 1, NAN, 0], [NAN, 0, NAN, NAN], [NAN] * 4]
    )
    mean = CooccurrenceTagger(smoothing=2.0).fit(X, Y)
    either = CooccurrenceTagger(smoothing=2.0, combination="noisy_or").fit(X, Y)
    by_first, by_second = (rate_by_counting(Y, j, 2, present=True, smoothing=2.0) for j in (0, 1))
    rate = (np.nansum(Y[:, 2]) + 1) / (np.sum(~np.isnan(Y[:, 2])) + 2)
    alone = [by_first, (by_first + by_second) / 2, by_second, rate, rate]
    np.testing.assert_allclose(mean.complete(X[:5], observed)[:, 2], alone, rtol=1e-5)
    alone[1] = 1 - (1 - by_first) * (1 - by_second)
    np.testing.assert_allclose(either.complete(X[:5], observed)[:, 2], alone, rtol=1e-5)
    known = ~np.isnan(observed)
    np.testing.assert_array_equal(mean.complete(X[:5], observed)[known], observed[known])
    assert np.ptp(mean.predict_proba(X), axis=0).max() == 0


def test_naive_bayes_is_scikit_learns():
    """On the other tags as inputs, but for the class's prior and how counts are smoothed."""
    _, Y = some_labels(n=4000)
    model = NaiveBayesTagger(use_features=False, smoothing=1e-6).fit(np.zeros((4000, 1)), Y)
    observed = Y[:50].copy()
    observed[:, 3] = NAN
    theirs = BernoulliNB(alpha=1e-9, force_alpha=True).fit(Y[:, :3], Y[:, 3])
    wanted = theirs.predict_proba(observed[:, :3])[:, 1]
    found = model.complete(np.zeros((50, 1)), observed)[:, 3]
    np.testing.assert_allclose(found, wanted, atol=2e-3)


def test_naive_bayes_begins_with_the_odds_by_the_features():
    X, Y = some_labels(unknown=0.1)
    model = NaiveBayesTagger(smoothing=2.0, l2=0.01, evidence_weight=0.7).fit(X, Y)
    sound = LogisticTagger(solver="newton", l2=0.01).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), sound, rtol=1e-5)
    for value in (1.0, 0.0):
        observed = np.full(Y.shape, NAN)
        observed[:, 0] = value
        p, q = (rate_by_counting(Y, 1, 0, present=present, smoothing=2.0) for present in (1, 0))
        ratio = np.log(p / q) if value else np.log((1 - p) / (1 - q))
        wanted = expit(logit(sound[:, 1].astype(float)) + 0.7 * ratio)
        np.testing.assert_allclose(model.complete(X, observed)[:, 1], wanted, rtol=1e-4)


def test_a_tag_that_always_goes_with_another_is_observed_by_it():
    rng = np.random.default_rng(0)
    first = rng.random(300) < 0.3
    Y = np.column_stack([first, first, rng.random(300) < 0.3]).astype(float)
    X = np.zeros((2, 1))
    observed = [[1.0, NAN, NAN], [0.0, NAN, NAN]]
    for model in (NaiveBayesTagger(use_features=False), CooccurrenceTagger()):
        P = model.fit(np.zeros((300, 1)), Y).complete(X, observed)
        assert P[0, 1] > 0.9
        assert P[0, 2] == pytest.approx(Y[first, 2].mean(), abs=0.05)
    assert NaiveBayesTagger().fit(np.zeros((300, 1)), Y).complete(X, observed)[1, 1] < 0.1


@pytest.mark.parametrize("model", [CooccurrenceTagger(), NaiveBayesTagger()], ids=str)
def test_a_saved_model_completes_alike(model, tmp_path):
    X, Y = some_labels(unknown=0.1)
    model.fit(X, Y).save(tmp_path / "model.safetensors")
    again = type(model).load(tmp_path / "model.safetensors")
    observed = np.where(np.random.default_rng(1).random(Y.shape) < 0.5, Y, NAN)
    np.testing.assert_array_equal(again.complete(X, observed), model.complete(X, observed))
    with pytest.raises(DataError, match=r"each of the model's 4 tags. Got 3 columns"):
        model.complete(X, Y[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.complete(X, Y[:5])
