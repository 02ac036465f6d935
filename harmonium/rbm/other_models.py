"""The models the conditional RBM is compared with, on the same training loop.

The generative RBM p(y, x) with Gaussian inputs x, and the hybrid of it with p(y | x):

    E(y, x, h) = ‖x - b‖² / 2s - hᵀWx - hᵀUy - cᵀh - dᵀy        (s: the variance of each input)
    p(x | h) = N(b + s Wᵀh, s I); p(y | x) is the discriminative RBM's with the same weights

And networks, the multi-layer perceptron and logistic regression, whose tags are independent given
x: their gradient is exact and unknown tags simply do not count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from harmonium.rbm import gradients
from harmonium.rbm.inference import fill_unknown, gibbs_sweep
from harmonium.rbm.model import Field, Params, condition, hidden_given_tags


class JointParams(NamedTuple):
    """The parameters of the conditional RBM, and the mean b of the inputs."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    V: Array  # (0, C)
    c: Array  # (n,)
    d: Array  # (C,)
    b: Array  # (D,)

    def conditional(self) -> Params:
        """The parameters of p(y | x)."""
        return Params(*self[:5])


def joint_free_energy(params: JointParams, x: Array, y: Array, variance: float) -> Array:
    """F(y, x) = ‖x - b‖² / 2s - dᵀy - Σ_k softplus(c_k + W_k x + U_k y), shape (B,)."""
    inputs = jnp.sum((x - params.b[None, :]) ** 2, axis=1) / (2 * variance)
    hidden = jax.nn.softplus(params.c[None, :] + x @ params.W.T + y @ params.U.T)
    return inputs - y @ params.d - jnp.sum(hidden, axis=1)


def joint_sweep(
    params: JointParams, x: Array, y: Array, noise: Array, variance: float
) -> tuple[Array, Array, Array]:
    """h ~ p(h | y, x), y ~ p(y | h), x ~ N(b + s Wᵀh, s I); gives (x, y, h).

    ``noise`` is uniform on [0, 1), (B, ≥ n + C + D).
    """
    y, h = gibbs_sweep(_field(params, x), y, noise)
    rest = noise[:, sum(params.U.shape) :][:, : params.W.shape[1]]
    # the inverse normal distribution is infinite at 0, which uniform numbers can be
    normal = jax.scipy.special.ndtri(jnp.maximum(rest, 2.0**-24))
    x = params.b[None, :] + variance * (h @ params.W) + variance**0.5 * normal
    return x, y, h


@dataclass(frozen=True)
class JointContrastiveDivergence(gradients.Gradient):
    """CD-K on -log p(y, x): the chain samples tags and inputs."""

    steps: int  # K
    variance: float  # of the inputs

    def noise(self, params: JointParams, unknown: bool) -> tuple[int, int]:
        """K sweeps for the chain, and some more to draw the unknown tags."""
        return self.steps + gradients.FILL_SWEEPS * unknown, sum(params.U.shape) + params.W.shape[1]

    def __call__(
        self, params: JointParams, batch: gradients.Batch, noise: Array
    ) -> tuple[JointParams, Array]:
        """∂F/∂θ at (y⁰, x⁰) less ∂F/∂θ at (y^K, x^K), the ends of the chain held constant."""
        field = _field(params, batch.u)
        start = batch.y
        if len(noise) > self.steps:
            start = fill_unknown(field, batch.y, noise[self.steps :])
        x, y, h = joint_sweep(params, batch.u, start, noise[0], self.variance)
        logits = field.d + h @ field.U
        if self.steps > 1:
            (x, y), _ = lax.scan(
                lambda state, u: (joint_sweep(params, *state, u, self.variance)[:2], None),
                (x, y),
                noise[1 : self.steps],
            )
        share = (batch.w / gradients.total_weight(batch))[:, None]
        h0, h1 = hidden_given_tags(field, start), hidden_given_tags(_field(params, x), y)
        w0, w1 = share * h0, share * h1
        gradient = JointParams(
            w1.T @ y - w0.T @ start,
            w1.T @ x - w0.T @ batch.u,
            jnp.zeros_like(params.V),
            jnp.sum(w1 - w0, axis=0),
            jnp.sum(share * (y - start), axis=0),
            jnp.sum(share * (x - batch.u), axis=0) / self.variance,
        )
        return gradient, logits


@dataclass(frozen=True)
class Hybrid(gradients.Gradient):
    """The gradient of -(α log p(y, x) + log p(y | x))."""

    weight: float  # α
    discriminative: gradients.Gradient
    generative: JointContrastiveDivergence

    def noise(self, params: JointParams, unknown: bool) -> tuple[int, int]:
        """The sweeps of both, one after the other."""
        joint, width = self.generative.noise(params, unknown)
        own, other = self.discriminative.noise(params, unknown)
        return joint + own, max(width, other)

    @property
    def is_persistent(self) -> bool:
        """As the discriminative gradient is."""
        return self.discriminative.is_persistent

    def advance(self, params: JointParams, batch: gradients.Batch, noise: Array) -> Any:
        """The chains of p(y | x)."""
        joint = self._joint_sweeps(params, noise)
        return self.discriminative.advance(params.conditional(), batch, noise[joint:])

    def _joint_sweeps(self, params: JointParams, noise: Array) -> int:
        """How many sweeps of the noise are for the generative gradient."""
        unknown = len(noise) > self.generative.steps + self.discriminative.noise(params, False)[0]
        return self.generative.noise(params, unknown)[0]

    def __call__(
        self, params: JointParams, batch: gradients.Batch, noise: Array
    ) -> tuple[JointParams, Array]:
        """α times the generative gradient plus the discriminative one; b has only the first."""
        joint = self._joint_sweeps(params, noise)
        first, logits = self.discriminative(params.conditional(), batch, noise[joint:])
        second, _ = self.generative(params, batch, noise[:joint])
        with_b = JointParams(**first._asdict(), b=jnp.zeros_like(params.b))
        return jax.tree.map(lambda d, g: d + self.weight * g, with_b, second), logits


def _field(params: JointParams, x: Array) -> Field:
    return condition(params.conditional(), x, jnp.zeros((x.shape[0], 0), jnp.int32))


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


def network_probabilities(
    logits: Callable[[Any, Array], Array], params: Any, x: Array, observed: Array | None = None
) -> Array:
    """p(y_j = 1 | x) = σ(o), shape (B, C), whatever tags are observed."""
    return jax.nn.sigmoid(logits(params, x))


@dataclass(frozen=True)
class CrossEntropy(gradients.Gradient):
    """The gradient of the mean over clips of -Σ_j log p(y_j | x) over the known tags."""

    logits: Any  # (params, x) -> (B, C)

    @property
    def weighs_labels(self) -> bool:
        """Always."""
        return True

    def __call__(self, params: Any, batch: gradients.Batch, noise: Array) -> tuple[Any, Array]:
        """By automatic differentiation; also the logits, (B, C)."""

        def loss(params: Any) -> tuple[Array, Array]:
            logits = self.logits(params, batch.u)
            total = jnp.sum(gradients.log_probabilities(logits, batch))
            return -total / gradients.total_weight(batch), logits

        gradient, logits = jax.grad(loss, has_aux=True)(params)
        return gradient, logits
