"""The most probable set of tags, argmax_y p(y | x, the known tags), by beam search.

Thresholds decide each tag by itself, from its marginal. The set of tags that is most probable as a
whole is the one with the lowest free energy, since log p(y | x) = -F(y) - log Z:

    F(y) = -dᵀy - s Σ_k softplus(c_k + U_k y)

Here s = 1 for one model. For M models side by side, with all their hidden units and the mean of
their d, it is 1 / M: F is then the mean of theirs.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from harmonium.arrays import Floats
from harmonium.rbm.inference import Conditions, chunks, mean_field
from harmonium.rbm.model import Field, Params, clamp, compiled, condition, refuse_fork, unclamp

CHUNK = 64  # clips at a time: each has several candidates

# candidates (B, beams, C), the input of their hidden units (B, beams, n), and how much lower their
# free energy is than that of the first one (B, beams)
State = tuple[Array, Array, Array]


def most_probable(
    field: Field, y: Array, p: Array | None = None, *, beams: int = 64, models: int = 1
) -> Array:
    """argmin of F(y) over the unknown tags, (B, C); NaN in ``y`` (B, C) is unknown.

    The search starts at the tags that are more probable than not by the marginals ``p`` (B, C), by
    default those of mean field. It goes through the tags, the least certain first; every candidate
    is kept, and also taken with that tag changed; of all, the best ``beams`` stay. So nothing is
    missed with at least 2^C beams, and the result is never worse than the start.
    """
    free, n_tags = clamp(field, y), y.shape[1]
    if p is None:
        p = mean_field(field, y, steps=20).y
    p = jnp.where(jnp.isnan(y), p, 0.0)  # a known tag is off as a variable
    order = jnp.argsort(jnp.abs(p - 0.5), axis=1)
    shape = (len(y), beams, n_tags)
    tags = jnp.broadcast_to((p > 0.5).astype(field.d.dtype)[:, None, :], shape)
    inputs = free.c[:, None, :] + tags @ free.U.T  # (B, beams, n)
    # one candidate to begin with; only differences of F matter
    better = jnp.where(jnp.arange(beams) == 0, 0.0, -jnp.inf).astype(field.d.dtype)
    start = tags, inputs, jnp.broadcast_to(better[None, :], shape[:2])

    def step(state: State, tag: Array) -> tuple[State, None]:
        """Each clip decides one of its tags; ``tag`` is (B,)."""
        tags, inputs, better = state
        d = jnp.take_along_axis(free.d, tag[:, None], axis=1)  # (B, 1)
        weights = free.U.T[tag][:, None, :]  # (B, 1, n)
        is_it = jax.nn.one_hot(tag, n_tags, dtype=tags.dtype)[:, None, :]  # (B, 1, C)
        sign = 1.0 - 2.0 * jnp.sum(tags * is_it, axis=2)  # (B, beams), 1 on and -1 off
        changed = inputs + sign[:, :, None] * weights
        gain = jnp.sum(jax.nn.softplus(changed) - jax.nn.softplus(inputs), axis=2)
        both = jnp.concatenate([better, better + sign * d + gain / models], axis=1)
        best, place = lax.top_k(both, beams)
        parent = (place % beams)[:, :, None]
        change = jnp.where(place < beams, 0.0, jnp.take_along_axis(sign, parent[:, :, 0], axis=1))
        tags = jnp.take_along_axis(tags, parent, axis=1) + change[:, :, None] * is_it
        inputs = jnp.take_along_axis(inputs, parent, axis=1) + change[:, :, None] * weights
        return (tags, inputs, best), None

    (tags, _, _), _ = lax.scan(step, start, order.T)
    return unclamp(tags[:, 0], y)


def decide(
    params: list[Params], u: Floats, a: Conditions, y: Floats, p: Floats, beams: int
) -> Floats:
    """The most probable tags of any number of clips under the mean of several models' F, (N, C).

    Shapes: ``u`` (N, D), ``a`` (N, S) or (N, C) as in `condition`; ``y`` (N, C) with NaN for
    unknown; marginals ``p`` (N, C).
    """
    refuse_fork()
    result = np.empty_like(y)
    for part, rows in chunks(len(y), CHUNK):
        tags = _decided(params, u[rows], a[rows], y[rows], p[rows], beams)
        result[part] = np.asarray(tags)[: part.stop - part.start]
    return result


@compiled(static_argnames="beams")
def _decided(params: list[Params], u: Array, a: Array, y: Array, p: Array, beams: int) -> Array:
    fields = [condition(member, u, a) for member in params]
    together = Field(
        U=jnp.concatenate([field.U for field in fields]),
        c=jnp.concatenate([field.c for field in fields], axis=1),
        d=jnp.mean(jnp.stack([field.d for field in fields]), axis=0),
    )
    return most_probable(together, y, p, beams=beams, models=len(fields))
