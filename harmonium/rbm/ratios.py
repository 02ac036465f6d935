"""Sums of logs as logs of products: what makes belief propagation and pseudo-likelihood fast.

A product of eight factors, each between e^-10 and e^10, neither overflows nor underflows in
float32, so one log serves eight terms. Beyond :data:`RATIO_LIMIT` the log forms are the safe ones.
"""

import jax.numpy as jnp
from jax import Array

GROUP = 8
RATIO_LIMIT = 10.0
"""Largest |U| for the ratio forms."""


def sum_logs(r: Array, axis: int) -> Array:
    """Σ log r over ``axis``, whose length is a multiple of GROUP: log Π r = Σ log Π_group r."""
    groups = (*r.shape[:axis], r.shape[axis] // GROUP, GROUP, *r.shape[axis + 1 :])
    return jnp.sum(jnp.log(jnp.prod(r.reshape(groups), axis=axis + 1)), axis=axis)


def odds(x: Array) -> tuple[Array, Array]:
    """(t, s) with t / s = e^x and neither above 1, so that σ(x) = t / (t + s)."""
    return jnp.exp(jnp.minimum(x, 0.0)), jnp.exp(-jnp.maximum(x, 0.0))
