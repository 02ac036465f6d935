"""Exact inference by enumeration, the yardstick for every approximation.

Given one side of the bipartite graph the other factorises, so 2^min(n, C) terms are enough.
Terms are streamed in blocks with a running maximum: log space, bounded memory. The functions work
in the precision of their input; with large weights float32 energies are too coarse, and
:func:`harmonium.rbm.infer.infer` therefore calls them in float64.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike

from harmonium.rbm.model import Field, clamp, free_energy, unclamp

MAX_UNITS = 20
"""Enumeration of more units than this on the smaller side is refused (2²⁰ terms per clip)."""

_BLOCK_BITS = 10


class Exact(NamedTuple):
    """Marginals and log partition function of each clip."""

    y: Array  # (B, C), p(y_j = 1)
    h: Array  # (B, n), p(h_k = 1)
    log_z: Array  # (B,), log Σ_{y, h} exp(-E(y, h)) over the unknown tags


class _Sums(NamedTuple):
    peak: Array  # (), the largest log weight so far
    z: Array  # (), Σ exp(log weight - peak)
    left: Array  # (m,), the same sum weighted by the enumerated side's states
    right: Array  # (r,), and by the other side's conditional probabilities


def exact(field: Field, y: Array) -> Exact:
    """p(y_j = 1), p(h_k = 1) and log Z given the known tags; NaN in ``y`` (B, C) is unknown."""
    free = clamp(field, y)
    n, n_tags = field.U.shape
    if n_tags <= n:
        tags, hidden, log_z = _enumerate(field.U.T, free.d, free.c)
    else:
        hidden, tags, log_z = _enumerate(field.U, free.c, free.d)
    known_bias = jnp.sum(jnp.where(jnp.isnan(y), 0.0, field.d * y), axis=1)
    return Exact(unclamp(tags, y), hidden, log_z + known_bias)


def log_likelihood(field: Field, y: Array) -> Array:
    """log p(y) = -F(y) - log Z for fully known ``y`` (B, C), shape (B,)."""
    return -free_energy(field, y) - exact(field, jnp.full_like(y, jnp.nan)).log_z


def _enumerate(M: Array, left_bias: Array, right_bias: Array) -> tuple[Array, Array, Array]:
    """Σ over states s of the left side of exp(bᵀs + Σ_r softplus(b_r + M_rᵀ s)); M is (m, r)."""
    m = M.shape[0]
    bits = min(m, _BLOCK_BITS)
    low = _states(jnp.arange(2**bits), m, M.dtype)  # (S, m): one block of states
    starts = jnp.arange(2 ** (m - bits)) * 2**bits

    def one_clip(biases: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        left, right = biases

        def add_block(sums: _Sums, start: Array) -> tuple[_Sums, None]:
            states = low + _states(start[None], m, M.dtype)  # (S, m)
            input_right = right[None, :] + states @ M  # (S, r)
            log_w = states @ left + jnp.sum(jax.nn.softplus(input_right), axis=1)  # (S,)
            peak = jnp.maximum(sums.peak, jnp.max(log_w))
            w, old = jnp.exp(log_w - peak), jnp.exp(sums.peak - peak)
            return _Sums(
                peak,
                old * sums.z + _weighted_sum(w, jnp.ones_like(w)[:, None])[0],
                old * sums.left + _weighted_sum(w, states),
                old * sums.right + _weighted_sum(w, jax.nn.sigmoid(input_right)),
            ), None

        empty = _Sums(jnp.asarray(-jnp.inf, M.dtype), jnp.asarray(0, M.dtype), 0 * left, 0 * right)
        sums, _ = lax.scan(add_block, empty, starts)
        return sums.left / sums.z, sums.right / sums.z, sums.peak + jnp.log(sums.z)

    return lax.map(one_clip, (left_bias, right_bias))


def _weighted_sum(w: Array, values: Array) -> Array:
    """Σ_s w_s values_s in two levels: one running float32 sum would lose a digit more."""
    groups = 2 ** ((w.shape[0].bit_length() - 1) // 2)
    parts = jnp.sum((w[:, None] * values).reshape(groups, -1, values.shape[1]), axis=1)
    return jnp.sum(parts, axis=0)


def _states(numbers: Array, m: int, dtype: DTypeLike) -> Array:
    """The last m binary digits of each number as floats, (len(numbers), m)."""
    return ((numbers[:, None] >> jnp.arange(m)[None, :]) & 1).astype(dtype)
