"""Classifier chains and completion by counting, against loops and against scikit-learn."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB

from harmonium.errors import DataError, ModelFileError
from harmonium.estimators import (
    ChainTagger,
    CooccurrenceTagger,
    LogisticTagger,
    NaiveBayesTagger,
    completers,
)
from harmonium.estimators.completers import pair_rates
from harmonium.estimators.model_files import read_model, write_model


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
    monkeypatch.setattr(completers, "BLOCK", 7 * model.orders_.size)
    np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-6)


def orders(seed):
    X, Y = np.zeros((20, 1)), np.tile([[0.0], [1.0]], (10, 30))
    return ChainTagger(4, random_state=seed).fit(X, Y).orders_


def test_orders_follow_the_seed():
    np.testing.assert_array_equal(orders(0), orders(0))
    assert (orders(0) != orders(1)).any()


def test_orders_of_chains_differ():
    assert len({tuple(order) for order in orders(0)}) == 4


def test_a_file_with_impossible_orders_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    ChainTagger(2).fit(*copies(50)).save(path)
    arrays, about = read_model(path)
    write_model(path, {**arrays, "orders": np.zeros((2, 2), np.int64)}, about)
    with pytest.raises(ModelFileError, match="orders must hold each tag once"):
        ChainTagger.load(path)


def test_chains_too_large_for_any_machine_are_refused():
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
@pytest.mark.parametrize("present", [True, False])
def test_rates_are_shares_among_the_clips_on_which_both_tags_are_known(unknown, soft, present):
    _, Y = some_labels(unknown=unknown, soft=soft)
    rates = pair_rates(Y, 2.5)
    found = rates.present if present else rates.absent
    for j in range(4):
        for k in range(4):
            wanted = rate_by_counting(Y, j, k, present=present, smoothing=2.5)
            assert found[j, k] == pytest.approx(wanted, rel=1e-12)


class TestCooccurrence:
    """Of the third tag with the first two, of which one, both or none is known to hold."""

    OBSERVED = np.array(
        [[1, NAN, NAN, NAN], [1, 1, NAN, NAN], [0, 1, NAN, 0], [NAN, 0, NAN, NAN], [NAN] * 4]
    )

    @pytest.fixture
    def labelled(self):
        return some_labels(unknown=0.2)

    @staticmethod
    def third_tag(Y):
        """Its rate with the first tag, with the second, and in all."""
        first, second = (rate_by_counting(Y, j, 2, present=True, smoothing=2.0) for j in (0, 1))
        return first, second, (np.nansum(Y[:, 2]) + 1) / (np.sum(~np.isnan(Y[:, 2])) + 2)

    def test_is_the_mean_of_what_each_true_tag_says(self, labelled):
        X, Y = labelled
        model = CooccurrenceTagger(smoothing=2.0).fit(X, Y)
        first, second, rate = self.third_tag(Y)
        expected = [first, (first + second) / 2, second, rate, rate]
        completed = model.complete(X[:5], self.OBSERVED)
        np.testing.assert_allclose(completed[:, 2], expected, rtol=1e-5)

    def test_may_be_the_noisy_or(self, labelled):
        X, Y = labelled
        model = CooccurrenceTagger(smoothing=2.0, combination="noisy_or").fit(X, Y)
        first, second, rate = self.third_tag(Y)
        expected = [first, 1 - (1 - first) * (1 - second), second, rate, rate]
        completed = model.complete(X[:5], self.OBSERVED)
        np.testing.assert_allclose(completed[:, 2], expected, rtol=1e-5)

    def test_does_not_depend_on_the_features(self, labelled):
        X, Y = labelled
        P = CooccurrenceTagger().fit(X, Y).predict_proba(X)
        assert np.ptp(P, axis=0).max() == 0


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


@pytest.fixture
def bayes():
    """Naive Bayes beside the regression that it starts from; X and Y."""
    X, Y = some_labels(unknown=0.1)
    model = NaiveBayesTagger(smoothing=2.0, l2=0.01, evidence_weight=0.7).fit(X, Y)
    return model, LogisticTagger(solver="newton", l2=0.01).fit(X, Y), X, Y


def test_naive_bayes_begins_with_the_odds_by_the_features(bayes):
    model, regression, X, _ = bayes
    np.testing.assert_allclose(model.predict_proba(X), regression.predict_proba(X), rtol=1e-5)


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_known_tag_changes_the_odds_by_its_likelihood_ratio(bayes, value):
    model, regression, X, Y = bayes
    observed = np.full(Y.shape, NAN)
    observed[:, 0] = value
    p, q = (rate_by_counting(Y, 1, 0, present=present, smoothing=2.0) for present in (1, 0))
    ratio = np.log(p / q) if value else np.log((1 - p) / (1 - q))
    before = logit(regression.predict_proba(X)[:, 1].astype(float))
    expected = expit(before + 0.7 * ratio)
    np.testing.assert_allclose(model.complete(X, observed)[:, 1], expected, rtol=1e-4)


by_counting = pytest.mark.parametrize("model", [CooccurrenceTagger(), NaiveBayesTagger()], ids=str)


@by_counting
def test_a_saved_model_completes_alike(model, tmp_path):
    X, Y = some_labels(unknown=0.1)
    model = clone(model).fit(X, Y)
    model.save(tmp_path / "model.safetensors")
    again = type(model).load(tmp_path / "model.safetensors")
    observed = np.where(np.random.default_rng(1).random(Y.shape) < 0.5, Y, NAN)
    np.testing.assert_array_equal(again.complete(X, observed), model.complete(X, observed))


@by_counting
def test_known_tags_must_be_the_models(model):
    X, Y = some_labels()
    with pytest.raises(DataError, match=r"each of the model's 4 tags. Got 3 columns"):
        clone(model).fit(X, Y).complete(X, Y[:, :3])


@by_counting
def test_known_tags_must_be_those_of_the_clips(model):
    X, Y = some_labels()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, Y).complete(X, Y[:5])
