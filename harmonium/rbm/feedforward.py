"""The networks the RBMs are compared with, on the same training loop: MLP and logistic regression.

Their tags are independent given x, so the gradient is exact and unknown tags simply do not count.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from harmonium.rbm.compilation import compiled
from harmonium.rbm.gradients import Batch, log_probabilities, total_weight


class MLPParams(NamedTuple):
    """One hidden layer; letters and shapes as in the RBM."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    c: Array  # (n,)
    d: Array  # (C,)


def mlp_logits(params: MLPParams, x: Array) -> Array:
    """o = d + Uᵀ tanh(c + Wx), shape (B, C)."""
    return params.d[None, :] + jnp.tanh(params.c[None, :] + x @ params.W.T) @ params.U


def logistic_logits(params: Any, x: Array) -> Array:
    """o = d + Wx, shape (B, C), of W (C, D) and d (C,)."""
    return params.d[None, :] + x @ params.W.T


@dataclass(frozen=True)
class Outputs:
    """p(y_j = 1 | x) of a network as one traceable function."""

    logits: Any  # (params, x) -> (B, C)

    def __call__(self, params: Any, x: Array) -> Array:
        """σ(o), shape (B, C)."""
        return jax.nn.sigmoid(self.logits(params, x))

    def numbers_per_clip(self, params: Any) -> int:
        """Numbers in the largest array that the tags of one clip need."""
        return len(params.d)


@compiled(static_argnames=("outputs",))
def outputs_of(outputs: Outputs, params: Any, x: Array) -> Array:
    """The same, compiled."""
    return outputs(params, x)


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
