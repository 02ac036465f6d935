"""Soft targets: labels that are probabilities, for gradients that need tags to be 0 or 1.

With p_j the probability of tag j, independent of the other tags', the loss is

    E_{y ~ p}[-log p(y | u, a)],      p(y) = Π_j p_j^{y_j} (1 - p_j)^{1 - y_j}

whose gradient is the expectation of the gradient at drawn tags. Mean field has expectations in
place of samples everywhere: it takes p as it is. So does the cross-entropy of the networks, which
is linear in y.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from harmonium.rbm.gradients import Batch, Gradient, MeanField


def for_soft_targets(gradient: Gradient) -> Gradient:
    """The gradient of an RBM where some labels are probabilities."""
    return gradient if isinstance(gradient, MeanField) else DrawnTags(gradient)


def draw_tags(y: Array, noise: Array) -> Array:
    """y_j ~ Bernoulli(p_j): 0, 1 and NaN (unknown) stay as they are. Shapes (B, C).

    ``noise`` is uniform on [0, 1).
    """
    return jnp.where(jnp.isnan(y), y, (noise < y).astype(y.dtype))


@dataclass(frozen=True)
class DrawnTags:
    """A gradient at tags that are drawn from their probabilities, anew at each visit."""

    gradient: Gradient

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """One sweep more than the gradient takes."""
        sweeps, width = self.gradient.noise(params, unknown)
        return sweeps + 1, max(width, params.d.shape[0])

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """The gradient at y ~ p."""
        n_tags = batch.y.shape[1]
        drawn = batch._replace(y=draw_tags(batch.y, noise[-1, :, :n_tags]))
        width = self.gradient.noise(params, False)[1]
        return self.gradient(params, drawn, noise[:-1, :, :width])
