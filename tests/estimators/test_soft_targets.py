"""Probabilities as training targets, for every classifier; labels to judge by stay 0, 1 and NaN."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from tagging_data import easy_model, quick, tag_distribution

from harmonium.errors import DataError
from harmonium.estimators import ChainTagger, GenerativeRBM, LogisticTagger, MLPTagger, SVMTagger

NETWORKS = [
    LogisticTagger(learning_rate=0.1, max_epochs=30, random_state=0),
    MLPTagger(8, learning_rate=0.03, l2=0.0, max_epochs=30, random_state=0),
]
RBMS = [
    *(quick(training=way, max_epochs=30) for way in ("cd", "mean_field", "lbp", "pl")),
    quick(training="multi_prediction", max_epochs=30),
    quick(training="multi_prediction", generative_weight=0.01, max_epochs=30),
    quick(training="cd", generative_weight=0.01, max_epochs=30),
    GenerativeRBM(8, inference="mean_field", learning_rate=0.03, max_epochs=30, random_state=0),
]
SOLVED = [LogisticTagger(solver="newton"), ChainTagger(3, random_state=0)]
SVM = SVMTagger(max_examples=75, random_state=0)
BY_GRADIENT = [*NETWORKS, *RBMS]
EVERY = [*BY_GRADIENT, *SOLVED, SVM]


def name_of(model):
    more = model.get_params()
    name = f"{type(model).__name__} {more.get('training', '')}".strip()
    return name + (" hybrid" if more.get("generative_weight") else "")


@pytest.fixture(scope="module")
def soft(train):
    """p(y_j = 1 | x) of each clip, under the model its tags were drawn from."""
    states, p = tag_distribution(easy_model(), train.X)
    return np.clip(p @ states, 0, 1)


@pytest.mark.parametrize("model", EVERY, ids=name_of)
def test_probabilities_teach_what_labels_are_judged_by(model, train, held_out, soft):
    fitted = clone(model).fit(train.X, soft, eval_set=held_out)
    assert fitted.score(*held_out) > 0.9


@pytest.mark.parametrize("model", [*BY_GRADIENT, *SOLVED], ids=name_of)
def test_a_probability_is_not_rounded(model, train):
    """Tags that nothing tells of: what is predicted is the mean of the labels, not 0 or 1."""
    given = np.tile([0.1, 0.35, 0.6, 0.9], (len(train.X), 1))
    settings = {"validation_fraction": 0.0} if model in BY_GRADIENT else {}
    fitted = clone(model).set_params(**settings).fit(train.X, given)
    np.testing.assert_allclose(fitted.predict_proba(train.X).mean(axis=0), given[0], atol=0.1)


@pytest.fixture(params=[NETWORKS[0], RBMS[0]], ids=name_of)
def of_small_probabilities(request, train, soft):
    """A model of labels of which none reaches a half."""
    return clone(request.param).set_params(patience=3).fit(train.X, 0.4 * soft)


def test_held_out_probabilities_stop_training(of_small_probabilities):
    assert max(of_small_probabilities.history_["auc"]) > 0.6
    assert np.isfinite(of_small_probabilities.history_["auc"]).all()


def test_as_many_are_predicted_as_probabilities_say(of_small_probabilities, train):
    assert (of_small_probabilities.thresholds_ < 0.4).all()
    predicted = of_small_probabilities.predict(train.X).mean(axis=0)
    true = 0.4 * train.Y.mean(axis=0)
    assert (predicted > 0.5 * true).all()
    assert (predicted < 2 * true).all()


def test_exact_logistic_regression_finds_the_weights_behind_the_probabilities():
    rng = np.random.default_rng(0)
    X, W, d = rng.normal(size=(60, 5)), rng.normal(size=(3, 5)), rng.normal(size=3)
    model = LogisticTagger(solver="newton", l2=1e-9, scale_features="none")
    model.fit(X, expit(X @ W.T + d))
    np.testing.assert_allclose(model.coef_, W, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, d, atol=1e-4)


@pytest.mark.parametrize("solver", ["newton", "gradient"])
@pytest.mark.parametrize("p", [1e-30, 1e-6, 1 - 2**-24])
def test_probabilities_next_to_0_or_1(p, solver):
    X = np.random.default_rng(2).normal(size=(30, 4))
    model = LogisticTagger(solver=solver, max_epochs=2, random_state=0)
    P = model.fit(X, np.full((30, 1), p)).predict_proba(X)
    assert np.isfinite(P).all()
    assert np.abs(P - p).max() < 0.1


def test_the_svm_learns_from_the_extreme_probabilities(train, soft):
    by_labels = clone(SVM).fit(train.X, soft)
    top = np.argsort(-soft[:, 0])
    ternary = np.full((len(soft), 1), np.nan)
    ternary[top[:75]] = 1
    ternary[top[-75:]] = 0
    chosen = clone(SVM).fit(train.X, ternary)
    np.testing.assert_allclose(by_labels.coef_[0], chosen.coef_[0], atol=1e-6)


def test_the_svm_takes_probabilities_or_counts(train, soft):
    with pytest.raises(DataError, match=r"counts are given\. Got probabilities; pass them"):
        SVMTagger().fit(train.X, soft, counts=soft)


def test_the_svm_does_not_learn_from_unknown_probabilities():
    """Clips of unknown label, far from all others, would turn the hyperplane round."""
    x = np.linspace(-1, 1, 40)
    X = np.append(x, np.full(40, -100.0))[:, None]
    Y = np.append(expit(3 * x), np.full(40, np.nan))[:, None]
    model = SVMTagger(scale_features="none", random_state=0).fit(X, Y)
    assert (model.decision_function(X[:20]) < 0).all()
    assert (model.decision_function(X[20:40]) > 0).all()


def test_log_odds_of_the_mean_label_are_the_start():
    Y = np.full((98, 1), 0.3)
    model = LogisticTagger(max_epochs=1, learning_rate=1e-9, validation_fraction=0.0)
    start = model.fit(np.zeros((98, 1)), Y).predict_proba(np.zeros((1, 1)))
    assert logit(start[0, 0]) == pytest.approx(logit((0.3 * 98 + 1) / 100), abs=1e-5)
