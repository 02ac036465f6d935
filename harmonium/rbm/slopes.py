"""What a tag's log-odds depend on: their gradient in the features and in the known tags."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from harmonium.rbm.gradients import unrolled
from harmonium.rbm.model import Params, compiled, condition


@compiled(static_argnames=("log_odds",))
def slopes(
    log_odds: tuple[Callable[..., Array], Any], params: Any, x: Array, y: Array, tag: Array
) -> tuple[Array, Array]:
    """∂ log-odds of a tag / ∂x, (B, D), and / ∂y of the known tags, (B, C); 0 for unknown ones.

    ``log_odds`` is a function such as :func:`unrolled_log_odds` and its first argument.
    """
    function, options = log_odds

    def of_tag(x: Array, y: Array) -> Array:
        return jnp.sum(function(options, params, x, y)[:, tag])

    by_feature, by_tag = jax.grad(of_tag, argnums=(0, 1))(x, y)
    return by_feature, jnp.where(jnp.isnan(y), 0.0, by_tag)


def unrolled_log_odds(steps: int, params: Any, x: Array, y: Array) -> Array:
    """The log-odds of the unknown tags after K steps of mean field, (B, C)."""
    no_rows = jnp.zeros((len(x), 0), jnp.int32)
    logits, _, _ = unrolled(condition(Params(*params[:5]), x, no_rows), y, steps)
    return logits


def network_log_odds(logits: Callable[..., Array], params: Any, x: Array, y: Array) -> Array:
    """Those of a network, (B, C), which do not depend on known tags."""
    return logits(params, x)
