"""Mean field and block Gibbs: the two methods that alternate between hidden units and tags."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from harmonium.rbm.model import Field, clamp, hidden_given_tags, tags_given_hidden, unclamp


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
