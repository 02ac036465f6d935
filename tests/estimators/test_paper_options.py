"""The named options train as the paper says: a plain step after each clip."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

import harmonium
from harmonium import DiscriminativeRBM, LogisticTagger, paper_options
from harmonium.errors import DataError
from harmonium.estimators.paper import OPTIONS

# the steps of Table 1; the SVM has none
STEPS = {
    "DiscriminativeRBM": 0.01,
    "GenerativeRBM": 0.01,
    "MLPTagger": 0.001,
    "LogisticTagger": 2.0,
    "SVMTagger": None,
}


@pytest.fixture(scope="module")
def clips():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    return X, (X[:, :3] + rng.normal(size=(30, 3)) > 0).astype(float)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_estimator_of_the_paper_takes_its_options(name, clips):
    estimator = getattr(harmonium, name)
    options = paper_options(estimator)
    assert options == paper_options(name)
    assert options.get("learning_rate") == STEPS[name]
    model = estimator(**options)
    if "max_epochs" in model.get_params():
        model.set_params(max_epochs=2)
    X, Y = clips
    assert model.fit(X, Y).predict(X).shape == Y.shape


def test_the_training_is_a_step_after_each_clip():
    """W ← W - λ (p - y) xᵀ and d ← d - λ (p - y), in one of the orders of three clips."""
    X = np.array([[1.0, 5.0, 2.0], [3.0, 4.0, 8.0], [2.0, 9.0, 1.0]])
    Y = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    options = paper_options(LogisticTagger)
    model = LogisticTagger(**options, max_epochs=1, random_state=0).fit(X, Y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)

    def descended(order):
        start = LogisticTagger(**options | {"learning_rate": 1e-9}, max_epochs=1).fit(X, Y)
        W = start._params.W.astype(float)
        d = start._params.d.astype(float)
        for clip in order:
            error = expit(d + W @ scaled[clip]) - Y[clip]
            W = W - 2.0 * np.outer(error, scaled[clip])
            d = d - 2.0 * error
        return np.column_stack([W, d])

    found = np.column_stack([model._params.W, model._params.d])
    orders = [descended(order) for order in itertools.permutations(range(3))]
    assert not np.allclose(orders[0], orders[1], atol=1e-3)
    assert any(np.allclose(found, expected, atol=1e-5) for expected in orders)


def test_the_options_are_a_copy():
    paper_options()["batch_size"] = 20
    assert paper_options()["batch_size"] == 1


def test_options_of_an_estimator_that_the_paper_does_not_train():
    with pytest.raises(DataError, match="Did you mean 'MLPTagger'"):
        paper_options("MLPTager")
    with pytest.raises(DataError, match="DiscriminativeRBM, GenerativeRBM"):
        paper_options(harmonium.ChainTagger)


def test_the_paper_s_drbm_is_one_model_by_contrastive_divergence():
    model = DiscriminativeRBM(**paper_options())
    assert (model.training, model.training_steps, model.n_models) == ("cd", 1, 1)
