"""The conditional RBM: parameters, energy, free energy and conditionals.

    E(y, h, u, a) = -hᵀUy - hᵀWu - yᵀVa - dᵀy - cᵀh

Tags y (C binary units), hidden h (n binary units), u conditions the hidden units, a conditions
the tags. Once u and a are known they act as biases, so everything after :func:`condition` works on
a :class:`Field`, which is a plain RBM per clip. Letters are the paper's; B is a batch of clips.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

REMOVED = -1e30
"""A tag bias at which the tag is off for certain; finite, so that 0 · REMOVED is 0 and not NaN."""


class Params(NamedTuple):
    """The parameters of a conditional RBM. A model without u has D = 0, one without a has A = 0."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    V: Array  # (A, C): the paper's V, transposed, so that a one-hot part of a looks up one row
    c: Array  # (n,)
    d: Array  # (C,)


class Field(NamedTuple):
    """A batch of RBMs that share U and differ in their biases: E(y, h) = -hᵀUy - dᵀy - cᵀh."""

    U: Array  # (n, C)
    c: Array  # (B, n), c + Wu
    d: Array  # (B, C), d + Va


def condition(params: Params, u: Array, a: Array) -> Field:
    """c ← c + Wu and d ← d + Va.

    ``u`` is (B, D). ``a`` is (B, S) integers: one row of V for each of S one-hot parts (user,
    track, clip); a negative index stands for an empty part, such as a user never seen.
    """
    c = params.c[None, :] + u @ params.W.T  # (B, n)
    d = jnp.broadcast_to(params.d[None, :], (u.shape[0], params.d.shape[0]))
    if a.shape[1]:
        rows = params.V[jnp.maximum(a, 0)]  # (B, S, C)
        d = d + jnp.sum(jnp.where((a >= 0)[:, :, None], rows, 0.0), axis=1)
    return Field(params.U, c, d)


def clamp(field: Field, y: Array) -> Field:
    """The RBM of the unknown tags given the known ones. ``y`` is (B, C); NaN marks an unknown tag.

    A known tag is a constant bias on the hidden units, c ← c + U y_known, and is removed as a
    variable. Every inference method therefore completes partial labels without knowing it.
    """
    known = ~jnp.isnan(y)
    c = field.c + jnp.where(known, y, 0.0) @ field.U.T
    return Field(field.U, c, jnp.where(known, REMOVED, field.d))


def unclamp(marginals: Array, y: Array) -> Array:
    """p(y_j = 1), with the known tags put back. Shapes (B, C)."""
    return jnp.where(jnp.isnan(y), marginals, y)


def energy(field: Field, y: Array, h: Array) -> Array:
    """E(y, h) = -hᵀUy - dᵀy - cᵀh, shape (B,)."""
    return -(jnp.sum((h @ field.U + field.d) * y, axis=1) + jnp.sum(field.c * h, axis=1))


def free_energy(field: Field, y: Array) -> Array:
    """F(y) = -dᵀy - Σ_k softplus(c_k + U_k y), shape (B,)."""
    hidden = jnp.sum(jax.nn.softplus(field.c + y @ field.U.T), axis=1)
    return -(jnp.sum(field.d * y, axis=1) + hidden)


def hidden_given_tags(field: Field, y: Array) -> Array:
    """p(h_k = 1 | y) = σ(c_k + U_k y), shape (B, n)."""
    return jax.nn.sigmoid(field.c + y @ field.U.T)


def tags_given_hidden(field: Field, h: Array) -> Array:
    """p(y_j = 1 | h) = σ(d_j + U_jᵀ h), shape (B, C)."""
    return jax.nn.sigmoid(field.d + h @ field.U)
