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


class TestATagWithOneKindOfLabel:
    @pytest.fixture
    def labelled(self):
        """The first tag is always absent, and the third is always present where it is known."""
        X, Y = problem(40, 5, 3)
        Y[:, 0] = 0
        Y[:, 2] = 1
        Y[10:, 2] = np.nan
        return X, Y

    def test_has_one_probability(self, labelled):
        X, Y = labelled
        P = LogisticTagger(solver="newton").fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(P[:, 0], 1 / 42, rtol=1e-6)
        np.testing.assert_allclose(P[:, 2], 11 / 12, rtol=1e-6)

    def test_does_not_change_the_others(self, labelled):
        X, Y = labelled
        together = LogisticTagger(solver="newton").fit(X, Y)
        alone = LogisticTagger(solver="newton").fit(X, Y[:, 1:2])
        np.testing.assert_allclose(together.coef_[1], alone.coef_[0], rtol=1e-4, atol=1e-6)

    def test_may_be_the_only_one(self, labelled):
        X, Y = labelled
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


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_features_of_any_scale_have_its_solution(scale):
    X, Y = problem(100, 6, 3)
    expected = logistic_regressions(X, Y, 1e-3)
    found = logistic_regressions(scale * X, Y, 1e-3 * scale**2)
    np.testing.assert_allclose(scale * found.W, expected.W, rtol=1e-5)
    np.testing.assert_allclose(found.d, expected.d, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-21, 1e21])
def test_repeated_features_have_finite_weights(scale):
    X, Y = problem(100, 6, 3)
    assert np.isfinite(logistic_regressions(scale * np.hstack([X, X]), Y, 1e-3).W).all()


def test_tiny_labels_have_finite_weights():
    X, _ = problem(100, 6, 3)
    tiny = np.where(np.arange(100) == 0, 1e-38, 0.0)[:, None]
    found = logistic_regressions(X, tiny, 1e-3)
    assert np.isfinite(found.W).all()
    assert np.isfinite(found.d).all()


def test_a_minimum_that_was_not_reached_is_told(monkeypatch):
    monkeypatch.setattr(newton, "MAX_NEWTON", 1)
    X, Y = problem(100, 5, 4)
    with pytest.warns(TrainingWarning, match="4 of 4 logistic regressions did not reach") as told:
        LogisticTagger(solver="newton", l2=1e-5).fit(X, Y)
    assert told[0].filename == __file__  # the line that called fit


@pytest.mark.parametrize("l2", [0.0, -1.0])
def test_a_penalty_is_needed(l2):
    X, Y = problem(100, 5, 4)
    with pytest.raises(ValueError, match="l2"):
        LogisticTagger(solver="newton", l2=l2).fit(X, Y)
