"""The networks the RBMs are compared with, on the same training loop: MLP and logistic regression.

Their tags are independent given x, so the gradient is exact and unknown tags simply do not count.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from harmonium.rbm.gradients import Batch, log_probabilities, total_weight


class MLPParams(NamedTuple):
    """One hidden layer; letters and shapes as in the RBM."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    c: Array  # (n,)
    d: Array  # (C,)


class LogisticParams(NamedTuple):
    """No hidden layer."""

    W: Array  # (C, D)
    d: Array  # (C,)


def mlp_logits(params: MLPParams, x: Array) -> Array:
    """o = d + Uᵀ tanh(c + Wx), shape (B, C)."""
    return params.d[None, :] + jnp.tanh(params.c[None, :] + x @ params.W.T) @ params.U


def logistic_logits(params: LogisticParams, x: Array) -> Array:
    """o = d + Wx, shape (B, C)."""
    return params.d[None, :] + x @ params.W.T


@dataclass(frozen=True)
class CrossEntropy:
    """The gradient of the mean over clips of -Σ_j log p(y_j | x) over the known tags."""

    logits: Any  # (params, x) -> (B, C)

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """None: there is no sampling."""
        return 0, 0

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """By automatic differentiation; also the logits, (B, C)."""

        def loss(params: Any) -> tuple[Array, Array]:
            logits = self.logits(params, batch.u)
            return -jnp.sum(log_probabilities(logits, batch)) / total_weight(batch), logits

        gradient, logits = jax.grad(loss, has_aux=True)(params)
        return gradient, logits
