"""Classifier chains and completion by counting, against loops and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB

from harmonium.errors import DataError, ModelFileError, TrainingWarning
from harmonium.estimators import (
    ChainTagger,
    CooccurrenceTagger,
    LogisticTagger,
    NaiveBayesTagger,
    linear,
    newton,
)
from harmonium.estimators.linear import pair_rates
from harmonium.estimators.model_files import read_model, write_model
from harmonium.estimators.newton import logistic_regressions


def copies(n_clips):
    """Tag 1 is tag 0 with some errors; tag 0 follows the feature a little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_clips, 2))
    first = rng.random(n_clips) < expit(X[:, 0])
    second = np.where(rng.random(n_clips) < 0.95, first, ~first)
    return X, np.column_stack([first, second]).astype(float)


def test_one_chain_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.logistic(size=(300, 3)) > 0).astype(float)
    ours = ChainTagger(1, l2=1e-2, scale_features="none", random_state=0).fit(X, Y)
    logistic = LogisticRegression(C=1 / (300 * 1e-2), tol=1e-10, max_iter=10_000)
    theirs = ClassifierChain(logistic, order=ours.orders_[0], chain_method="predict_proba")
    for place, link in enumerate(theirs.fit(X, Y).estimators_):
        tag, before = ours.orders_[0, place], ours.orders_[0, :place]
        coef = np.append(ours.params_.W[0, tag], ours.params_.V[0, tag, before])
        np.testing.assert_allclose(coef, link.coef_[0], atol=1e-3)
        np.testing.assert_allclose(ours.params_.d[0, tag], link.intercept_[0], atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_the_probabilities_are_the_mean_over_the_chains_by_the_definition():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), (rng.random((60, 4)) < 0.4).astype(float)
    partial = np.where(rng.random(Y.shape) < 0.5, Y, np.nan)
    model = ChainTagger(5, random_state=0).fit(X, Y)
    W, V, d = model.params_
    means = np.zeros_like(Y)
    for chain, order in enumerate(model.orders_):
        for clip in range(60):
            fed = np.zeros(4)
            for tag in order:
                p = expit(d[chain, tag] + W[chain, tag] @ X[clip] + V[chain, tag] @ fed)
                fed[tag] = p if np.isnan(partial[clip, tag]) else partial[clip, tag]
                means[clip, tag] += p / 5
    wanted = np.where(np.isnan(partial), means, partial)
    np.testing.assert_allclose(model.complete(X, partial), wanted, atol=1e-6)


def test_unknown_tags_before_a_tag_are_filled_with_their_probabilities():
    X, Y = copies(400)
    model = ChainTagger(1, l2=1e-2, random_state=0)
    first, second = model.fit(X, Y).orders_[0]
    Y[::3, first] = np.nan
    model.fit(X, Y)
    filled = LogisticTagger(solver="newton", l2=1e-2).fit(X, Y).predict_proba(X)
    before = np.where(np.isnan(Y[:, first]), filled[:, first], Y[:, first])
    scaled = (X - X.mean(axis=0)) / (X.std(axis=0) * np.sqrt(2))
    link = LogisticRegression(C=1 / (400 * 1e-2), tol=1e-10)
    link.fit(np.column_stack([scaled, before]), Y[:, second])
    assert model.params_.V[0, second, first] == pytest.approx(link.coef_[0, 2], abs=1e-3)


def test_blocks_of_clips_do_not_change_the_probabilities(monkeypatch):
    X, Y = copies(50)
    model = ChainTagger(3, random_state=0).fit(X, Y)
    whole = model.predict_proba(X)
    monkeypatch.setattr(linear, "BLOCK", 7 * model.orders_.size)
    np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-6)


def test_orders_differ_and_follow_the_seed():
    X, Y = np.zeros((20, 1)), np.tile([[0.0], [1.0]], (10, 30))
    a, b, c = (ChainTagger(4, random_state=seed).fit(X, Y).orders_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    assert len({tuple(order) for order in a}) == 4


def test_files_with_impossible_orders_and_chains_too_large_for_any_machine_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    ChainTagger(2).fit(*copies(50)).save(path)
    arrays, about = read_model(path)
    write_model(path, {**arrays, "orders": np.zeros((2, 2), np.int64)}, about)
    with pytest.raises(ModelFileError, match="orders must hold each tag once"):
        ChainTagger.load(path)
    X, Y = np.zeros((20, 2)), np.tile([[0.0], [1.0]], (10, 10_000))  # 10⁹ weights between tags
    with pytest.raises(DataError, match="10 chains of 10,000 tags"):
        ChainTagger(random_state=0).fit(X, Y)


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
    rows = [1, NAN, NAN, NAN], [1, 1, NAN, NAN], [0, 1, NAN, 0], [NAN, 0, NAN, NAN], [NAN] * 4
    observed = np.array(rows)
    mean = CooccurrenceTagger(smoothing=2.0).fit(X, Y)
    either = CooccurrenceTagger(smoothing=2.0, combination="noisy_or").fit(X, Y)
    by_first, by_second = (rate_by_counting(Y, j, 2, present=True, smoothing=2.0) for j in (0, 1))
    rate = (np.nansum(Y[:, 2]) + 1) / (np.sum(~np.isnan(Y[:, 2])) + 2)
    alone = [by_first, (by_first + by_second) / 2, by_second, rate, rate]
    np.testing.assert_allclose(mean.complete(X[:5], observed)[:, 2], alone, rtol=1e-5)
    alone[1] = 1 - (1 - by_first) * (1 - by_second)
    np.testing.assert_allclose(either.complete(X[:5], observed)[:, 2], alone, rtol=1e-5)
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


# Exact logistic regression: the minimum, against scikit-learn's and against its definition.


def problem(n_clips, n_features, n_tags, *, unknown=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_clips, n_features)) + rng.normal(size=n_features)
    weights = rng.normal(size=(n_features, n_tags)) / np.sqrt(n_features)
    Y = (2 * X @ weights + rng.logistic(size=(n_clips, n_tags)) > 1).astype(float)
    Y[rng.random(Y.shape) < unknown] = np.nan
    return X, Y


def scikit_learns(X, Y, l2):
    """Coefficients (C, D) and intercepts (C,) of one LogisticRegression for each tag."""
    models = []
    for y in Y.T:
        known = ~np.isnan(y)
        model = LogisticRegression(C=1 / (len(X) * l2), tol=1e-10, max_iter=10_000)
        models.append(model.fit(X[known], y[known]))
    return np.vstack([m.coef_ for m in models]), np.hstack([m.intercept_ for m in models])


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("l2", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("n_clips", "n_features"), [(200, 8), (40, 60)])
def test_equals_scikit_learns_solution(n_clips, n_features, l2, unknown):
    X, Y = problem(n_clips, n_features, 4, unknown=unknown)
    model = LogisticTagger(solver="newton", l2=l2, scale_features="none").fit(X, Y)
    coef, intercept = scikit_learns(X, Y, l2)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-3)


def test_the_penalty_acts_on_scaled_features():
    X, Y = problem(200, 8, 3)
    X *= np.logspace(-3, 3, 8)
    scale = X.std(axis=0) * np.sqrt(8)
    coef, intercept = scikit_learns((X - X.mean(axis=0)) / scale, Y, 1e-3)
    model = LogisticTagger(solver="newton", l2=1e-3).fit(X, Y)
    np.testing.assert_allclose(model.coef_ * scale, coef, atol=1e-3)
    found = model.intercept_ + model.coef_ @ X.mean(axis=0)
    np.testing.assert_allclose(found, intercept, atol=1e-3)


def test_gradient_descent_goes_to_the_same_minimum():
    X, Y = problem(200, 4, 3, unknown=0.2)
    plain = {"optimizer": "sgd", "momentum": 0, "averaging": 0, "validation_fraction": 0}
    settings = {"learning_rate": 8.0, "batch_size": 200, "max_epochs": 300, "random_state": 0}
    descent = LogisticTagger(l2=1e-2, **plain, **settings).fit(X, Y)
    exact = LogisticTagger(solver="newton", l2=1e-2).fit(X, Y)
    np.testing.assert_allclose(descent.predict_proba(X), exact.predict_proba(X), atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_clips=st.integers(6, 60),
    n_features=st.integers(1, 30),
    log_l2=st.floats(-6, 1),
    log_scale=st.floats(-3, 3),
)
def test_the_gradient_is_zero_at_the_solution(seed, n_clips, n_features, log_l2, log_scale):
    X, Y = problem(n_clips, n_features, 3, unknown=0.2, seed=seed)
    scale, l2 = 10**log_scale, 10**log_l2
    Y[0], Y[1] = 0, 1
    X, l2 = X * scale, l2 * scale**2
    W, _, d, converged = logistic_regressions(X, Y, l2)
    assert converged.all()
    known = ~np.isnan(Y)
    p = expit(X @ W.T + d)
    residual = np.where(known, p - np.where(known, Y, 0), 0) / n_clips
    by_intercept = residual.sum(axis=0)
    by_weight = residual.T @ X / scale + l2 * W / scale
    np.testing.assert_allclose(by_intercept, 0, atol=1e-5)
    np.testing.assert_allclose(by_weight, 0, atol=1e-5)


def test_a_tag_with_one_kind_of_label_has_one_probability():
    X, Y = problem(40, 5, 3)
    Y[:, 0], Y[:, 2] = 0, 1
    Y[10:, 2] = np.nan
    model = LogisticTagger(solver="newton").fit(X, Y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P[:, 0], 1 / 42, rtol=1e-6)
    np.testing.assert_allclose(P[:, 2], 11 / 12, rtol=1e-6)
    alone = LogisticTagger(solver="newton").fit(X, Y[:, 1:2])
    np.testing.assert_allclose(model.coef_[1], alone.coef_[0], rtol=1e-4, atol=1e-6)
    assert (LogisticTagger(solver="newton").fit(X, 0 * Y[:, :2]).coef_ == 0).all()


def test_blocks_of_tags_do_not_change_the_solution(monkeypatch):
    X, Y = problem(50, 6, 7, unknown=0.2)
    whole = logistic_regressions(X, Y, 1e-2)
    monkeypatch.setattr(newton, "BLOCK", 3 * 50)
    parts = logistic_regressions(X, Y, 1e-2)
    for part, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-4)
    assert parts[3].shape == (7,)


def test_further_columns_are_used_only_where_allowed():
    X, Y = problem(120, 3, 2)
    more = np.random.default_rng(1).normal(size=(120, 2))
    allowed = np.array([[True, False], [False, False]])
    W, V, _, _ = logistic_regressions(X, Y, 1e-2, more=more, allowed=allowed)
    first, _ = scikit_learns(np.hstack([X, more[:, :1]]), Y[:, :1], 1e-2)
    second, _ = scikit_learns(X, Y[:, 1:], 1e-2)
    np.testing.assert_allclose(np.append(W[0], V[0, 0]), first[0], atol=1e-3)
    np.testing.assert_allclose(W[1], second[0], atol=1e-3)
    assert (V[~allowed] == 0).all()


def test_features_of_any_scale_have_its_solution_and_repeated_ones_finite_weights():
    X, Y = problem(100, 6, 3)
    expected_W, _, expected_d, _ = logistic_regressions(X, Y, 1e-3)
    for scale in (1e-20, 1e20):
        W, _, d, _ = logistic_regressions(scale * X, Y, 1e-3 * scale**2)
        np.testing.assert_allclose(scale * W, expected_W, rtol=1e-5)
        np.testing.assert_allclose(d, expected_d, rtol=1e-5)
    for scale in (1e-21, 1e21):
        assert np.isfinite(logistic_regressions(scale * np.hstack([X, X]), Y, 1e-3)[0]).all()
    W, _, d, _ = logistic_regressions(X, np.where(np.arange(100) == 0, 1e-38, 0.0)[:, None], 1e-3)
    assert np.isfinite(W).all()
    assert np.isfinite(d).all()


def test_a_minimum_that_was_not_reached_is_told_and_a_penalty_is_needed(monkeypatch):
    monkeypatch.setattr(newton, "MAX_NEWTON", 1)
    X, Y = problem(100, 5, 4)
    with pytest.warns(TrainingWarning, match="4 of 4 logistic regressions did not reach"):
        LogisticTagger(solver="newton", l2=1e-5).fit(X, Y)
    for l2 in (0.0, -1.0):
        with pytest.raises(ValueError, match="l2"):
            LogisticTagger(solver="newton", l2=l2).fit(X, Y)
