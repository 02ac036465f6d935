"""The pseudo-likelihood Σ_j log p(y_j | y_\\j, x), and what its exact gradient needs.

:func:`conditional_logits` is the formula as it reads. :func:`flips_by_ratios` gives the same, and
the hidden units' probabilities with each tag flipped, at one division per (clip, hidden unit, tag)
while no |U| is above ``RATIO_LIMIT``; :func:`flips_by_logs` gives them for any U.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from harmonium.rbm.model import Field
from harmonium.rbm.ratios import GROUP, odds, sum_logs


class Flips(NamedTuple):
    """The model at y, and at each of the C neighbours of y in which one tag is flipped."""

    logits: Array  # (B, C), o_j with p(y_j = 1 | y_\j) = σ(o_j)
    h: Array  # (B, n), p(h_k = 1 | y)
    flipped: Array  # (B, n, C), p(h_k = 1 | y with tag j flipped)


def conditional_logits(field: Field, y: Array) -> Array:
    """o_j = d_j + Σ_k [softplus(a_k - U_kj y_j + U_kj) - softplus(a_k - U_kj y_j)], a = c + Uy.

    Shapes (B, C).
    """
    a = field.c + y @ field.U.T  # (B, n)
    without = a[:, :, None] - field.U[None, :, :] * y[:, None, :]  # (B, n, C)
    terms = jax.nn.softplus(without + field.U[None, :, :]) - jax.nn.softplus(without)
    return field.d + jnp.sum(terms, axis=1)


def log_probability(logits: Array, y: Array) -> Array:
    """log p(y_j) = log σ(±o_j), elementwise; y may be a probability."""
    return y * logits - jax.nn.softplus(logits)


def flips_by_ratios(field: Field, y: Array) -> Flips:
    """o_j = d_j ± Σ_k log[(1 + q_k E_kj) / (1 + q_k)], q_k = e^{a_k}; - where y_j = 1. y is binary.

    Flipping tag j multiplies the odds q_k by E_kj = e^{U_kj} (0 to 1) or e^{-U_kj} (1 to 0).
    """
    n = field.U.shape[0]
    a = field.c + y @ field.U.T  # (B, n)
    t, s = odds(a)
    rest = -n % GROUP  # units added to whole groups: t = 0, s = 1 and so a factor of 1
    U = jnp.pad(field.U, ((0, rest), (0, 0)))[None, :, :]
    t_all = jnp.pad(t, ((0, 0), (0, rest)))[:, :, None]
    s_all = jnp.pad(s, ((0, 0), (0, rest)), constant_values=1.0)[:, :, None]
    sign = 1.0 - 2.0 * y
    grown = t_all * jnp.where(sign[:, None, :] > 0, jnp.exp(U), jnp.exp(-U))  # (B, n', C)
    total = s_all + grown
    log_ratio = sum_logs(total, 1) - jnp.sum(jnp.log(s + t), axis=1, keepdims=True)  # (B, C)
    return Flips(field.d + sign * log_ratio, t / (s + t), (grown / total)[:, :n])


def flips_by_logs(field: Field, y: Array) -> Flips:
    """The same by softplus and σ, which no weight overflows."""
    a = field.c + y @ field.U.T
    sign = (1.0 - 2.0 * y)[:, None, :]
    flipped = jax.nn.sigmoid(a[:, :, None] + sign * field.U[None, :, :])
    return Flips(conditional_logits(field, y), jax.nn.sigmoid(a), flipped)
