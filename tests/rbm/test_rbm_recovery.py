"""Each way of training finds the distribution its data were drawn from.

The truth is a DRBM of 5 tags, 3 hidden units and 3 features. Its tags depend on the features (a
model that knows only how frequent each tag is has a divergence of about 0.57) and on one another
(the product of the true marginals has 0.036): below 0.03, a model has learnt both.
"""

from functools import cache

import numpy as np
import pytest
from enumeration import Model, as_params, states

from harmonium.rbm import gradients
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.model import Params
from harmonium.rbm.training import Schedule, train

pytestmark = pytest.mark.long

DTYPE_PROMOTION = "standard"  # optax's Adam is not strict

N_TAGS, N_FEATURES = 5, 3
N_TRAIN, N_VALID, N_TEST = 4000, 1000, 1000
EPOCHS, SEED = 25, 0

SIGNS = np.array([[1.0, 1, -1, 0, 0], [0, -1, 1, 1, 0], [1, 0, 0, -1, 1]])
W = 5 * np.array([[1, 0.3, 0], [0, 1, 0.3], [0.3, 0, 1]])
TRUTH = Model(2 * SIGNS, W, np.zeros((0, N_TAGS)), -SIGNS.sum(1), -SIGNS.sum(0) - 0.5)


def log_conditional(model, X):
    """log p(y | x) of every tag vector: log Σ_h exp(-E), hidden unit by hidden unit; (N, 2^C)."""
    y = states(N_TAGS)
    inputs = (model.c + X @ model.W.T)[:, None, :] + (y @ model.U.T)[None]
    log_weights = y @ model.d + np.logaddexp(0, inputs).sum(axis=2)
    return log_weights - np.logaddexp.reduce(log_weights, axis=1, keepdims=True)


@cache
def data(seed):
    """X (N, D), log p of every tag vector (N, 2^C), the number of the one drawn; thrice."""
    rng = np.random.default_rng(seed)
    sets = []
    for size in (N_TRAIN, N_VALID, N_TEST):
        X = rng.normal(size=(size, N_FEATURES))
        log_p = log_conditional(TRUTH, X)
        drawn = [rng.choice(2**N_TAGS, p=p / p.sum()) for p in np.exp(log_p)]
        sets.append((X, log_p, np.array(drawn)))
    return sets


def as_model(params):
    return Model(*(np.asarray(array, np.float64) for array in params))


def fit(gradient, n_hidden, rate, Y, seed):
    """Training with early stopping on the exact likelihood of held-out clips."""
    (X, _, _), (X_valid, _, drawn), _ = data(seed)
    rng = np.random.default_rng(seed)
    p = np.nanmean(Y, axis=0)
    U, W = rng.normal(0, 0.1, (n_hidden, N_TAGS)), rng.normal(0, 5, (n_hidden, N_FEATURES))
    start = Model(U, W, np.zeros((0, N_TAGS)), np.zeros(n_hidden), np.log(p / (1 - p)))

    def held_out(params):
        log_q = log_conditional(as_model(params), X_valid)
        return float(log_q[np.arange(N_VALID), drawn].mean())

    none = Params(*[np.float32(0)] * 5)
    a = np.zeros((N_TRAIN, 0), np.int32)
    batch = gradients.Batch(np.float32(X), a, np.float32(Y), np.ones(N_TRAIN, np.float32))
    options = {"optimiser": Optimiser(), "schedule": Schedule("cosine", rate, EPOCHS)}
    options |= {"batch_size": 100, "max_epochs": EPOCHS, "patience": 8, "seed": seed}
    options |= {"gradient": gradient, "penalty": Penalty(none, none), "score": held_out}
    return as_model(train(as_params(start), batch, **options).params)


# Mean field underestimates how tags vary together, a bias that more data do not cure: it learns the
# dependence on the features only, and that with more hidden units than the truth has.
METHODS = [
    pytest.param(gradients.PseudoLikelihood(), 3, 0.05, 0.03, 0.04, id="pl"),
    pytest.param(gradients.ContrastiveDivergence(1), 3, 0.05, 0.03, 0.04, id="cd"),
    pytest.param(gradients.PersistentContrastiveDivergence(5), 3, 0.05, 0.03, 0.04, id="pcd"),
    pytest.param(gradients.Exact(), 3, 0.05, 0.03, 0.04, id="exact"),
    pytest.param(gradients.BeliefPropagation(10, 0.5), 3, 0.05, 0.03, 0.04, id="lbp"),
    pytest.param(gradients.MeanField(5), 24, 0.01, 0.09, 0.06, id="mean_field"),
]


@pytest.mark.parametrize("unknown", [0.0, 0.3], ids=["all tags known", "some unknown"])
@pytest.mark.parametrize(("gradient", "n_hidden", "rate", "largest", "error"), METHODS)
def test_a_trained_model_comes_close_to_the_truth(
    gradient, n_hidden, rate, largest, error, unknown
):
    (_, _, drawn), _, (X, log_p, _) = data(SEED)
    Y = states(N_TAGS)[drawn]
    Y[np.random.default_rng(SEED).random(Y.shape) < unknown] = np.nan
    log_q = log_conditional(fit(gradient, n_hidden, rate, Y, SEED), X)
    assert np.sum(np.exp(log_p) * (log_p - log_q), axis=1).mean() < largest
    assert np.abs((np.exp(log_p) - np.exp(log_q)) @ states(N_TAGS)).mean() < error
