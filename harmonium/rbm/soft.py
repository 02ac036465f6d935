"""Soft targets: labels p that are probabilities, of tags that are independent given the clip.

The loss of hard labels is -log p(y | u, a) = F(y) + log Z. For soft ones the RBMs descend

    F(p) + log Z  ≥  E_{y ~ p}[F(y)] + log Z = E_{y ~ p}[-log p(y | u, a)]

a bound, for F(y) = -dᵀy - Σ_k softplus(c_k + U_k y) is concave. Nothing changes in the gradients: a
soft label is clamped as it is, the hidden units see σ(c + Wu + Up), and a chain starts there. Only
the pseudo-likelihood flips single tags, and so needs tags that are 0 or 1: there they are drawn,
and the loss is the expectation itself. The cross-entropy of the networks is linear in y: for them
p gives the expectation without any of this.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from harmonium.rbm.generative import Hybrid
from harmonium.rbm.gradients import Batch, Gradient, PseudoLikelihood, Sum


def for_soft_targets(gradient: Gradient) -> Gradient:
    """The gradient of an RBM where some labels are probabilities."""
    if isinstance(gradient, Hybrid):
        return replace(gradient, discriminative=for_soft_targets(gradient.discriminative))
    if isinstance(gradient, Sum):
        first, second = for_soft_targets(gradient.first), for_soft_targets(gradient.second)
        return replace(gradient, first=first, second=second)
    return DrawnTags(gradient) if isinstance(gradient, PseudoLikelihood) else gradient


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
