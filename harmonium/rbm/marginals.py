"""Marginals by mean field, by block Gibbs sampling, and exactly by enumeration.

Given one side of the bipartite graph the other factorises, so 2^min(n, C) terms are enough for an
exact answer. They are streamed in blocks with a running maximum: log space, bounded memory. With
large weights float32 energies are too coarse for that; :func:`harmonium.rbm.infer` uses float64.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike

from harmonium.rbm.model import (
    Field,
    clamp,
    free_energy,
    hidden_given_tags,
    tags_given_hidden,
    unclamp,
)

MAX_UNITS = 20
"""Enumeration of more units than this on the smaller side is refused (2²⁰ terms per clip)."""

_BLOCK_BITS = 10


class Estimate(NamedTuple):
    """Approximate marginals of each clip, and how far they are from converged."""

    y: Array  # (B, C), p(y_j = 1)
    h: Array  # (B, n), p(h_k = 1)
    residual: Array  # (B,)


def mean_field(field: Field, y: Array, *, steps: int, start: Array | None = None) -> Estimate:
    """h ← σ(c + U y), y ← σ(d + Uᵀh), from y = ``start`` (default 0) on the unknown tags.

    Each half step maximises the variational bound exactly in its own side, so that the iteration
    cannot oscillate. The residual is the largest change of a tag in the last step.
    """
    free = clamp(field, y)
    # a known tag is in free.c already: it must not count a second time
    first = jnp.zeros_like(y) if start is None else jnp.where(jnp.isnan(y), start, 0.0)

    def step(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tags, _, _ = state
        hidden = hidden_given_tags(free, tags)
        new = tags_given_hidden(free, hidden)
        return new, hidden, jnp.max(jnp.abs(new - tags), axis=1)

    state = (first, hidden_given_tags(free, first), jnp.full_like(y[:, 0], jnp.inf))
    tags, hidden, residual = lax.fori_loop(0, steps, step, state)
    return Estimate(unclamp(tags, y), hidden, residual)


def gibbs_sweep(field: Field, y: Array, noise: Array) -> tuple[Array, Array]:
    """h ~ p(h | y), y ~ p(y | h); gives (y, h). ``noise`` is uniform on [0, 1), (B, n + C)."""
    n = field.U.shape[0]
    h = (noise[:, :n] < hidden_given_tags(field, y)).astype(y.dtype)
    y = (noise[:, n:] < tags_given_hidden(field, h)).astype(y.dtype)
    return y, h


def gibbs(
    key: Array, field: Field, y: Array, *, steps: int, chains: int = 8, burn_in: float = 0.2
) -> Estimate:
    """p(y_j = 1) ≈ mean over chains and sweeps of p(y_j = 1 | h), started at y = 0.

    The first ``burn_in`` share of the sweeps is not counted. The residual is the largest standard
    error of a tag's mean over the independent chains.
    """
    free = clamp(field, y)
    skipped = int(burn_in * steps)
    shape = (*y.shape[:1], sum(field.U.shape))

    def chain(key: Array) -> tuple[Array, Array]:
        def sweep(
            i: Array, state: tuple[Array, tuple[Array, Array]]
        ) -> tuple[Array, tuple[Array, Array]]:
            tags, (sum_y, sum_h) = state
            noise = jax.random.uniform(jax.random.fold_in(key, i), shape)
            tags, hidden = gibbs_sweep(free, tags, noise)
            counted = (i >= skipped).astype(tags.dtype)
            sum_y = sum_y + counted * tags_given_hidden(free, hidden)
            sum_h = sum_h + counted * hidden_given_tags(free, tags)
            return tags, (sum_y, sum_h)

        sums = (jnp.zeros_like(y), jnp.zeros_like(field.c))
        _, (sum_y, sum_h) = lax.fori_loop(0, steps, sweep, (jnp.zeros_like(y), sums))
        return sum_y / (steps - skipped), sum_h / (steps - skipped)

    ys, hs = lax.map(chain, jax.random.split(key, chains))  # (chains, B, C), (chains, B, n)
    error = jnp.std(ys, axis=0, ddof=1) / chains**0.5
    tags = unclamp(jnp.mean(ys, axis=0), y)
    return Estimate(tags, jnp.mean(hs, axis=0), jnp.max(error, axis=1))


def fill_unknown(field: Field, y: Array, noise: Array) -> Array:
    """y with the unknown tags drawn from p(y_unknown | y_known), by len(noise) Gibbs sweeps.

    ``noise`` is (sweeps, B, n + C). The chain starts with the unknown tags off.
    """
    free = clamp(field, y)
    sampled, _ = lax.scan(
        lambda tags, u: (gibbs_sweep(free, tags, u)[0], None), jnp.zeros_like(y), noise
    )
    return unclamp(sampled, y)


# Enumeration. --------------------------------------------------------------------------------


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
