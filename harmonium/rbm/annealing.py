"""log Z and log p(y) of models too large to enumerate, by annealed importance sampling.

A chain of K Gibbs sweeps goes from independent units (β = 0) to the model (β = 1). Its weight w:

    p_β(y, h) ∝ exp(β hᵀUy + dᵀy + cᵀh),    log f_β(y) = dᵀy + Σ_k softplus(c_k + β U_k y)
    y_0 ~ p_0,    y_t ~ a sweep from y_{t-1} at β_t = t / K
    log w = Σ_t [log f_{β_t}(y_{t-1}) - log f_{β_{t-1}}(y_{t-1})]
    E[w] = Z / Z_0,    log Z_0 = Σ_j softplus(d_j) + Σ_k softplus(c_k)

(Neal 2001; Salakhutdinov and Murray 2008). The mean of w over independent chains is an unbiased
estimate of Z / Z_0; log Z is then too low by about half its squared error. Known tags are clamped.

Chains that start at mean-field marginals have a third of the error where the model has one mode.
Where it has several, all start in the same one, and the error they report is far too small. So they
start from the biases.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from harmonium.arrays import Doubles, Floats
from harmonium.rbm.inference import (
    MAX_UNITS,
    Clips,
    Conditions,
    chunks,
    gibbs_sweep,
    in_double,
    log_likelihood,
)
from harmonium.rbm.model import Field, Params, clamp, compiled, condition, free_energy, refuse_fork

CHUNK = 64  # clips at a time: all chains of all of them advance together


class Estimated(NamedTuple):
    """A number for each clip, and its standard error."""

    value: Array  # (B,)
    error: Array  # (B,)


class LogLikelihoods(NamedTuple):
    """log p of every clip, and its standard error: 0 where it is exact."""

    value: Doubles  # (N,)
    error: Doubles  # (N,)


def annealed_log_z(
    key: Array, field: Field, y: Array, *, steps: int = 500, chains: int = 32
) -> Estimated:
    """log Z = log Σ_{y_unknown, h} exp(-E(y, h)) given the known tags; NaN in ``y`` (B, C).

    The error is that of the mean weight over the chains, divided by the mean. It can be trusted
    while it is small, below 0.2 or so. A derivative holds the samples constant.
    """
    free = clamp(field, y)
    log_z_0 = jnp.sum(jax.nn.softplus(free.c), axis=1) + jnp.sum(jax.nn.softplus(free.d), axis=1)
    log_w = jax.vmap(lambda key: _log_weights(key, free, steps))(jax.random.split(key, chains))
    peak = lax.stop_gradient(jnp.max(log_w, axis=0))  # of (chains, B)
    w = jnp.exp(log_w - peak[None, :])
    mean = jnp.mean(w, axis=0)
    error = lax.stop_gradient(jnp.std(w, axis=0, ddof=1) / mean) / chains**0.5
    known_bias = jnp.sum(field.d * jnp.where(jnp.isnan(y), 0.0, y), axis=1)
    return Estimated(log_z_0 + peak + jnp.log(mean) + known_bias, error)


def _log_weights(key: Array, free: Field, steps: int) -> Array:
    """log w of one chain for each clip, (B,)."""
    dtype = free.d.dtype
    first, rest = jax.random.split(key)
    on = jax.random.uniform(first, free.d.shape, dtype) < jax.nn.sigmoid(free.d)
    betas = jnp.arange(steps + 1, dtype=dtype) / steps

    def step(
        state: tuple[Array, Array], temperature: tuple[Array, Array, Array]
    ) -> tuple[Any, None]:
        y, log_w = state
        before, beta, key = temperature
        Uy = y @ free.U.T  # (B, n)
        gain = jax.nn.softplus(free.c + beta * Uy) - jax.nn.softplus(free.c + before * Uy)
        noise = jax.random.uniform(key, (len(y), sum(free.U.shape)), dtype)
        y, _ = gibbs_sweep(free._replace(U=beta * free.U), y, noise)
        return (y, log_w + jnp.sum(gain, axis=1)), None

    start = on.astype(dtype), jnp.zeros_like(free.d[:, 0])
    (_, log_w), _ = lax.scan(step, start, (betas[:-1], betas[1:], jax.random.split(rest, steps)))
    return log_w


def annealed_log_likelihood(
    key: Array, field: Field, y: Array, *, steps: int = 500, chains: int = 32
) -> Estimated:
    """log p(y_known) = log Z(y_known) - log Z; NaN in ``y`` (B, C) is unknown.

    If every tag of the batch is known, log Z(y) = -F(y) and has no error.
    """
    first, second = jax.random.split(key)

    def some_unknown() -> Estimated:
        return annealed_log_z(first, field, y, steps=steps, chains=chains)

    def all_known() -> Estimated:
        value = -free_energy(field, jnp.nan_to_num(y))
        return Estimated(value, jnp.zeros_like(value))

    given = lax.cond(jnp.any(jnp.isnan(y)), some_unknown, all_known)
    nothing = jnp.full_like(y, jnp.nan)
    free = annealed_log_z(second, field, nothing, steps=steps, chains=chains)
    error = lax.stop_gradient(jnp.hypot(given.error, free.error))
    return Estimated(given.value - free.value, error)


def log_likelihoods(
    params: Params,
    u: Floats,
    a: Conditions,
    y: Floats,
    *,
    steps: int = 500,
    chains: int = 32,
    seed: int = 0,
) -> LogLikelihoods:
    """log p(y_known | u, a) of any number of clips; NaN in ``y`` is unknown.

    By enumeration, without error, if the model has at most ``MAX_UNITS`` hidden units or tags; else
    by annealed importance sampling. Shapes: ``u`` (N, D), ``a`` (N, S) or (N, C) as in
    `condition`, ``y`` (N, C).
    """
    refuse_fork()
    small = min(params.U.shape) <= MAX_UNITS
    result = LogLikelihoods(np.zeros(len(y)), np.zeros(len(y)))
    for part, rows in chunks(len(y), CHUNK):
        clips, size = (u[rows], a[rows], y[rows]), part.stop - part.start
        if small:
            result.value[part] = _enumerated(params, clips)[:size]
        else:
            numbers = np.uint32(seed), np.uint32(part.start)
            value, error = _annealed(params, clips, numbers, steps, chains)
            result.value[part] = np.asarray(value)[:size]
            result.error[part] = np.asarray(error)[:size]
    return result


def _enumerated(params: Params, clips: Clips) -> Doubles:
    """In double precision."""
    with jax.enable_x64(True):
        wide = jax.tree.map(np.float64, params)
        return np.asarray(_exact(wide, *in_double(clips)))


@compiled()
def _exact(params: Params, u: Array, a: Array, y: Array) -> Array:
    return log_likelihood(condition(params, u, a), y)


@compiled(static_argnames=("steps", "chains"))
def _annealed(
    params: Params, clips: Any, numbers: tuple[Array, Array], steps: int, chains: int
) -> Estimated:
    u, a, y = clips
    seed, start = numbers
    key = jax.random.fold_in(jax.random.key(seed), start)
    return annealed_log_likelihood(key, condition(params, u, a), y, steps=steps, chains=chains)
