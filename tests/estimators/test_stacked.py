"""Models fitted as a stack are the models that `fit` gives."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.errors import DataError
from harmonium.estimators import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.estimators.stacked import fit_stacked
from harmonium.evaluation import auc_per_tag
from harmonium.rbm.inference import InferenceOptions, _mean_auc, marginals

# Adam divides by the gradient's size, so that where it is nearly zero rounding decides part of a
# step: a hundredth of the longest, 0.03.
ROUNDING = 3e-4

# belief propagation takes another form in a stack, and stops early on another path
RBM = partial(DiscriminativeRBM, 5, inference="mean_field")
KINDS = {
    "logistic": LogisticTagger,
    "mlp": partial(MLPTagger, 5),
    "mlp of unit norm": partial(MLPTagger, 5, unit_norm=True),
    **{f"drbm by {w}": partial(RBM, training=w) for w in ("mean_field", "pl", "multi_prediction")},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(3, 2, size=(120, 6)).astype(np.float32)
    Y = (X[:, :4] + rng.normal(0, 1, size=(120, 4)) > 3).astype(np.float32)
    return X, Y


def splits(n, n_models, n_train):
    orders = [np.random.default_rng(i).permutation(n) for i in range(n_models)]
    return [order[:n_train] for order in orders], [order[n_train:] for order in orders]


def assert_equal_models(stacked, alone):
    for name, array in stacked._params._asdict().items():
        np.testing.assert_allclose(array, getattr(alone._params, name), atol=ROUNDING)
    for name, atol in (("auc", 1e-6), ("log_likelihood", 1e-5)):
        np.testing.assert_allclose(stacked.history_[name], alone.history_[name], atol=atol)
    assert stacked.best_epoch_ == alone.best_epoch_
    np.testing.assert_allclose(stacked.thresholds_, alone.thresholds_, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_trains_each_model_as_fit_does(data, kind):
    X, Y = data
    # 80 clips in batches of 20: then the minibatches are those of fit
    train, valid = splits(len(X), 3, 80)
    rates = [0.01, 0.03, 0.003]

    def model(i):
        return KINDS[kind](random_state=i, learning_rate=rates[i], max_epochs=6, l2=0.01 * i)

    together = [model(i) for i in range(3)]
    fit_stacked(together, X, Y, train, valid)
    for i, (stacked, t, v) in enumerate(zip(together, train, valid, strict=True)):
        assert_equal_models(stacked, model(i).fit(X[t], Y[t], (X[v], Y[v])))


@pytest.mark.parametrize("kind", ["logistic", "drbm by mean_field"])
def test_each_model_of_a_stack_may_learn_from_other_targets(data, kind):
    """Smoothed tags differ from fold to fold; a probability is no label, and some are labels."""
    X, Y = data
    rng = np.random.default_rng(0)
    train, valid = splits(len(X), 3, 80)
    smoothed = [np.abs(Y - rng.uniform(0, 0.4, Y.shape).astype(np.float32)) for _ in range(2)]
    targets = [*smoothed, smoothed[0]]

    def model(i):
        return KINDS[kind](random_state=i, max_epochs=4)

    together = [model(i) for i in range(3)]
    fit_stacked(together, X, Y, train, valid, targets=targets)
    for i, (stacked, t, v) in enumerate(zip(together, train, valid, strict=True)):
        assert_equal_models(stacked, model(i).fit(X[t], targets[i][t], (X[v], Y[v])))


@pytest.mark.parametrize("inference", ["gibbs", "exact"])
def test_a_stack_judges_by_the_inference_that_it_is_asked_for(data, inference):
    X, Y = data
    train, valid = splits(len(X), 2, 80)

    def model(i):
        settings = {"training": "cd", "max_epochs": 4, "random_state": i, "averaging": 0}
        return DiscriminativeRBM(5, inference=inference, learning_rate=0.1, **settings)

    together = [model(0), model(1)]
    fit_stacked(together, X, Y, train, valid)
    for i, (stacked, t, v) in enumerate(zip(together, train, valid, strict=True)):
        assert_equal_models(stacked, model(i).fit(X[t], Y[t], (X[v], Y[v])))


def test_a_stack_that_is_too_large_to_enumerate_is_refused(data):
    X, Y = data
    Y = np.tile(Y, (1, 6))
    models = [DiscriminativeRBM(21, inference="exact", random_state=i) for i in range(2)]
    with pytest.raises(DataError, match="inference='exact'"):
        fit_stacked(models, X, Y, *splits(len(X), 2, 80))


@pytest.mark.parametrize("method", ["gibbs", "exact"])
def test_sampling_or_enumeration_is_not_replaced_by_belief_propagation(method):
    with pytest.raises(ValueError, match=method):
        marginals(InferenceOptions(method), None, None)


def test_the_history_of_words_is_the_auc(data):
    """Although the likelihood counts, too, when the epoch is chosen."""
    X, Y = data
    words = (X > 4).astype(np.float32)
    train, valid = splits(len(X), 2, 80)
    models = [RBM(random_state=i, max_epochs=3, scale_features="idf") for i in range(2)]
    fit_stacked(models, words, Y, train, valid)
    for i, (stacked, t, v) in enumerate(zip(models, train, valid, strict=True)):
        alone = RBM(random_state=i, max_epochs=3, scale_features="idf")
        alone.fit(words[t], Y[t], (words[v], Y[v]))
        np.testing.assert_allclose(stacked.history_["auc"], alone.history_["auc"], atol=1e-6)


def test_models_may_have_clips_of_their_own(data):
    X, Y = data
    Y = Y.copy()
    Y[::7, 1] = np.nan
    train = [np.arange(0, 50), np.arange(10, 101)]
    valid = [np.arange(60, 120), np.arange(101, 120)]
    models = [LogisticTagger(random_state=i, max_epochs=30) for i in range(2)]
    fit_stacked(models, X, Y, train, valid)
    for model, v in zip(models, valid, strict=True):
        best = max(model.history_["auc"])
        assert auc_per_tag(Y[v], model.predict_proba(X[v])).mean == pytest.approx(best, abs=1e-6)
        assert model.history_["auc"][model.best_epoch_ - 1] == pytest.approx(best, abs=1e-6)


def test_models_that_differ_in_size_are_refused(data):
    X, Y = data
    with pytest.raises(DataError, match="differ only in learning_rate"):
        fit_stacked([MLPTagger(3), MLPTagger(4)], X, Y, *splits(len(X), 2, 80))


def test_models_that_have_far_fewer_clips_than_others_are_refused(data):
    X, Y = data
    train, valid = [np.arange(4), np.arange(90)], [np.arange(90, 120)] * 2
    with pytest.raises(DataError, match="got 4 to 90"):
        fit_stacked([LogisticTagger(), LogisticTagger()], X, Y, train, valid)


def test_the_auc_on_the_device_is_that_of_auc_per_tag():
    rng = np.random.default_rng(0)
    Y = rng.choice(np.array([0, 1, np.nan], np.float32), (30, 7))
    Y[:, 6] = 1.0  # no pair
    S = np.round(rng.random((30, 7)), 1).astype(np.float32)
    S[:, 0] = 1.0
    expected = auc_per_tag(Y, S).mean
    assert float(_mean_auc(jnp.asarray(Y), jnp.asarray(S))) == pytest.approx(expected, abs=1e-6)


def test_scoring_a_few_models_at_a_time_changes_nothing(data, monkeypatch):
    X, Y = data
    train, valid = splits(len(X), 3, 80)

    def fitted():
        options = {"training": "mean_field", "max_epochs": 3, "random_state": 0}
        models = [DiscriminativeRBM(5, l2=l2, **options) for l2 in (0.0, 0.1, 0.3)]
        fit_stacked(models, X, Y, train, valid)
        return models

    together = fitted()
    monkeypatch.setattr("harmonium.estimators.stacked.MAX_MESSAGES", 1)
    for one, other in zip(fitted(), together, strict=True):
        np.testing.assert_allclose(one.history_["auc"], other.history_["auc"], atol=1e-6)


def test_a_stack_cross_fits_each_model_as_fit_does(data):
    X, Y = data
    folds = np.repeat(np.arange(6), 20)
    train = [np.flatnonzero(folds != test) for test in (0, 4)]

    def model(i):
        scaling = ("standard", "quantile")[i]
        return MLPTagger(5, n_models=5, random_state=i, max_epochs=6, scale_features=scaling)

    together = [model(i) for i in range(2)]
    fit_stacked(together, X, Y, train, [], folds=folds)
    for i, (stacked, own) in enumerate(zip(together, train, strict=True)):
        alone = model(i).fit(X[own], Y[own], groups=folds[own])
        assert stacked._params.W.shape == (5, 5, 6)
        assert stacked.n_iter_ == alone.n_iter_
        P, Q = stacked.predict_proba(X), alone.predict_proba(X)
        assert abs(auc_per_tag(Y, P).mean - auc_per_tag(Y, Q).mean) < 0.01
        architecture = stacked._architecture()
        for fold, params in enumerate(stacked._member_params()):
            held = stacked.folds_ == fold
            assert set(folds[own][held]) == {np.unique(folds[own])[fold]}
            expected = architecture.probabilities(params, stacked._scaling(X[own][held]))
            found = stacked.recalibration_ and stacked.held_out_[held]
            one, other = (auc_per_tag(Y[own][held], P).mean for P in (found, expected))
            assert one == pytest.approx(other)
