"""Exact logistic regression: the minimum, against scikit-learn's and against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from harmonium.errors import TrainingWarning
from harmonium.estimators import LogisticTagger, newton
from harmonium.estimators.newton import logistic_regressions


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
    model = LogisticTagger(solver="newton", l2=l2, scale_features=False).fit(X, Y)
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
    np.testing.assert_allclose(
        model.intercept_ + model.coef_ @ X.mean(axis=0), intercept, atol=1e-3
    )


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
    solution = logistic_regressions(X, Y, l2)
    assert solution.converged.all()
    known = ~np.isnan(Y)
    p = expit(X @ solution.W.T + solution.d)
    residual = np.where(known, p - np.where(known, Y, 0), 0) / n_clips
    by_intercept = residual.sum(axis=0)
    by_weight = residual.T @ X / scale + l2 * solution.W / scale
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


def test_constant_and_repeated_features():
    X, Y = problem(60, 4, 2)
    X = np.hstack([X, X[:, :1], np.full((60, 1), 3.0)])
    coef, _ = scikit_learns(X, Y, 1e-2)
    model = LogisticTagger(solver="newton", l2=1e-2, scale_features=False).fit(X, Y)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-3)
    np.testing.assert_allclose(model.coef_[:, 0], model.coef_[:, 4], atol=1e-5)
    np.testing.assert_allclose(model.coef_[:, 5], 0, atol=1e-6)


def test_blocks_of_tags_do_not_change_the_solution(monkeypatch):
    X, Y = problem(50, 6, 7, unknown=0.2)
    whole = logistic_regressions(X, Y, 1e-2)
    monkeypatch.setattr(newton, "BLOCK", 3 * 50)
    parts = logistic_regressions(X, Y, 1e-2)
    np.testing.assert_allclose(parts.W, whole.W, atol=1e-4)
    np.testing.assert_allclose(parts.d, whole.d, atol=1e-4)
    assert parts.converged.shape == (7,)


def test_further_columns_are_used_only_where_allowed():
    X, Y = problem(120, 3, 2)
    more = np.random.default_rng(1).normal(size=(120, 2))
    allowed = np.array([[True, False], [False, False]])
    solution = logistic_regressions(X, Y, 1e-2, more=more, allowed=allowed)
    first, _ = scikit_learns(np.hstack([X, more[:, :1]]), Y[:, :1], 1e-2)
    second, _ = scikit_learns(X, Y[:, 1:], 1e-2)
    np.testing.assert_allclose(np.append(solution.W[0], solution.V[0, 0]), first[0], atol=1e-3)
    np.testing.assert_allclose(solution.W[1], second[0], atol=1e-3)
    assert (solution.V[~allowed] == 0).all()


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_features_of_any_scale_have_the_solution_of_that_scale(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    Y = (X @ rng.normal(size=(6, 3)) + rng.normal(size=(100, 3)) > 0).astype(float)
    expected = logistic_regressions(X, Y, 1e-3)
    found = logistic_regressions(scale * X, Y, 1e-3 * scale**2)
    np.testing.assert_allclose(scale * found.W, expected.W, rtol=1e-5)
    np.testing.assert_allclose(found.d, expected.d, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-21, 1e21])
def test_repeated_features_of_any_scale_have_finite_weights(scale):
    X, Y = problem(100, 4, 3)
    assert np.isfinite(logistic_regressions(scale * np.hstack([X, X]), Y, 1e-3).W).all()


def test_labels_that_are_hardly_ever_there_have_a_minimum():
    X, _ = problem(50, 4, 1)
    solution = logistic_regressions(X, np.where(np.arange(50) == 0, 1e-38, 0.0)[:, None], 1e-3)
    assert np.isfinite(solution.W).all()
    assert np.isfinite(solution.d).all()


def test_a_minimum_that_was_not_reached_is_told(monkeypatch):
    monkeypatch.setattr(newton, "MAX_NEWTON", 1)
    X, Y = problem(100, 5, 4)
    with pytest.warns(TrainingWarning, match="4 of 4 logistic regressions did not reach"):
        LogisticTagger(solver="newton", l2=1e-5).fit(X, Y)


@pytest.mark.parametrize("l2", [0.0, -1.0])
def test_a_penalty_is_needed(l2):
    with pytest.raises(ValueError, match="l2"):
        LogisticTagger(solver="newton", l2=l2).fit(*problem(10, 2, 1))
