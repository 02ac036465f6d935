"""Training on less than is known, so that the model does well where less is known.

A smoother is asked about users it has not met, and for tags without any clip. In training every
user and clip is known: some of what conditions the model is hidden there at random.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from harmonium.rbm.gradients import Batch, Gradient


@dataclass(frozen=True)
class Blinded:
    """A gradient whose clips lose u, single parts of a, or all of both, each by chance.

    Attributes
    ----------
    gradient : the gradient of what is left
    u : the chance that u is hidden (0 stands in its place)
    a : the chance for each part of a, (S,)
    all : the chance that all of it is hidden
    """

    gradient: Gradient
    u: float
    a: tuple[float, ...]
    all: float

    def noise(self, params: Any, unknown: bool) -> tuple[int, int]:
        """One sweep more than the gradient takes."""
        sweeps, width = self.gradient.noise(params, unknown)
        return sweeps + 1, max(width, 2 + len(self.a))

    def __call__(self, params: Any, batch: Batch, noise: Array) -> tuple[Any, Array]:
        """The gradient at the batch with some of u and a hidden."""
        draws = noise[-1]  # (B, width)
        something = draws[:, :1] >= self.all
        u_known = something & (draws[:, 1:2] >= self.u)
        chances = jnp.asarray(self.a, draws.dtype)[None, :]
        a_known = something & (draws[:, 2 : 2 + len(self.a)] >= chances)
        blinded = batch._replace(
            u=jnp.where(u_known, batch.u, 0.0), a=jnp.where(a_known, batch.a, -1)
        )
        width = self.gradient.noise(params, False)[1]
        return self.gradient(params, blinded, noise[:-1, :, :width])
