"""The gradients of the MLP and of logistic regression against finite differences."""

import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.estimators.linear import LinearParams
from harmonium.rbm.gradients import Batch, log_probabilities
from harmonium.rbm.other_models import (
    CrossEntropy,
    MLPParams,
    logistic_logits,
    mlp_logits,
)

RNG = np.random.default_rng(0)
MLP = MLPParams(*(RNG.normal(size=s) for s in ((3, 2), (3, 4), (3,), (2,))))
LOGISTIC = LinearParams(*(RNG.normal(size=s) for s in ((2, 4), (2,))))
X = RNG.normal(size=(5, 4))
HARD = np.array([[0, 1], [1, 1], [np.nan, 0], [0, np.nan], [1, 0]])
SOFT = np.array([[0.2, 1], [0.7, 0.5], [np.nan, 0], [0.01, np.nan], [1, 0]])
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 0.0])


def loss(params, x, Y):
    """Mean over clips of the cross-entropy of the known tags, in NumPy."""
    if isinstance(params, MLPParams):
        logits = np.tanh(x @ params.W.T + params.c) @ params.U + params.d
    else:
        logits = x @ params.W.T + params.d
    p = 1 / (1 + np.exp(-logits))
    terms = Y * np.log(p) + (1 - Y) * np.log(1 - p)
    return -np.nansum(terms * WEIGHTS[:, None]) / WEIGHTS.sum()


@pytest.mark.parametrize("Y", [HARD, SOFT], ids=["labels", "probabilities"])
@pytest.mark.parametrize(
    ("params", "logits"),
    [(MLP, mlp_logits), (LOGISTIC, logistic_logits)],
    ids=["mlp", "logistic"],
)
def test_the_gradient_is_that_of_the_cross_entropy(params, logits, Y):
    arrays = (X, np.zeros((5, 0)), Y, WEIGHTS)
    batch = Batch(*(jnp.asarray(a, jnp.float32) for a in arrays))
    single = type(params)(*(jnp.asarray(a, jnp.float32) for a in params))
    gradient, found = CrossEntropy(logits)(single, batch, jnp.zeros((0, 5, 0)))
    assert -log_probabilities(found, batch).sum() / WEIGHTS.sum() == pytest.approx(
        loss(params, X, Y), rel=1e-5
    )
    for name in params._fields:
        array, step = getattr(params, name), 1e-5
        numeric = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            up, down = array.copy(), array.copy()
            up[index] += step
            down[index] -= step
            more, less = params._replace(**{name: up}), params._replace(**{name: down})
            numeric[index] = (loss(more, X, Y) - loss(less, X, Y)) / (2 * step)
        np.testing.assert_allclose(getattr(gradient, name), numeric, atol=1e-6)
