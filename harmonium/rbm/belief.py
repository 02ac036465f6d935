"""Loopy belief propagation with damping, in two forms that share their fixed points.

Messages from zero-valued variables are normalised away, so that one number per edge and direction
is left. In log form, with m↓ towards the tags and m↑ towards the hidden units,

    m↓_kj ← log(1 + (e^{U_kj} - 1) σ(c_k + Σ_{j*≠j} m↑_kj*))
    m↑_kj ← log(1 + (e^{U_kj} - 1) σ(d_j + Σ_{k*≠k} m↓_k*j))

and in ratio form, with r = e^m and q = e^{bias} Π r / r_in, r_out = (1 + e^U q) / (1 + q): then a
message costs one division and no transcendental function. The ratio form is used while no weight is
larger than ``RATIO_LIMIT``, the log form beyond it. Damping mixes the old and the new message of
the form in use, which changes the path and not the fixed points.

On a GPU a model that is small enough is asked in the ratio form by one kernel
(:mod:`harmonium.rbm.belief_fused`).

Messages are (n, C, B): the clips are the last axis, so that one instruction serves several clips
and no sum runs along it.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from harmonium.rbm.belief_fused import fits, fused_totals
from harmonium.rbm.model import REMOVED, Field, clamp, unclamp
from harmonium.rbm.ratios import GROUP, RATIO_LIMIT, odds, sum_logs


class Beliefs(NamedTuple):
    """Marginals of each clip by belief propagation, and how far they are from converged."""

    y: Array  # (B, C), p(y_j = 1)
    h: Array  # (B, n), p(h_k = 1)
    pairs: Array  # (n, C, B), p(h_k = 1, y_j = 1); empty unless asked for
    residual: Array  # (B,), largest undamped change of a unit in the last iteration, see _change


class _Form(NamedTuple):
    """One way of writing the messages."""

    neutral: float  # the message that says nothing
    total: Callable[[Array, Array, int], Array]  # bias + Σ log messages over an axis
    message: Callable[[Array, Array, Array], Array]  # from total, opposite message and U
    cavity: Callable[[Array, Array], tuple[Array, Array]]  # σ(x), σ(-x) of total less one message


class _State(NamedTuple):
    down: Array  # (n, C, B)
    up: Array  # (n, C, B)
    h: Array  # (n, B), total input of each hidden unit
    y: Array  # (C, B), total input of each tag
    residual: Array  # (B,)
    iteration: Array  # ()


def belief_propagation(
    field: Field,
    y: Array,
    *,
    steps: int,
    damping: float | Array,
    tolerance: float | Array = 0.0,
    pairs: bool = False,
    logs: bool = False,
) -> Beliefs:
    """p(y_j = 1), p(h_k = 1) and, if asked, p(h_k = 1, y_j = 1) given the known tags.

    NaN in ``y`` (B, C) is unknown. A clip stops changing once its residual is at most
    ``tolerance``, whatever the other clips of the batch do. ``logs`` takes the log form whatever
    the weights: for a stack of models, for which a choice would compute both forms.
    """

    def run(form: _Form) -> Beliefs:
        return _propagate(form, field, y, steps, damping, tolerance, pairs)

    if not pairs and fits(*field.U.shape):
        return _fused(field, y, steps, damping, tolerance)
    if logs:
        return run(LOG)
    small = jnp.max(jnp.abs(field.U)) <= RATIO_LIMIT
    return lax.cond(small, lambda: run(RATIO), lambda: run(LOG))


def _fused(
    field: Field,
    y: Array,
    steps: int,
    damping: float | Array,
    tolerance: float | Array,
    *,
    interpret: bool = False,
) -> Beliefs:
    """The same by one kernel of a GPU."""
    tags, hidden, residual = fused_totals(
        *clamp(field, y),
        steps=steps,
        damping=damping,
        tolerance=tolerance,
        interpret=interpret,
    )
    none = jnp.zeros((0, 0, len(y)), tags.dtype)
    return Beliefs(unclamp(jax.nn.sigmoid(tags), y), jax.nn.sigmoid(hidden), none, residual)


def _propagate(
    form: _Form,
    field: Field,
    y: Array,
    steps: int,
    damping: float | Array,
    tolerance: float | Array,
    pairs: bool,
) -> Beliefs:
    n, n_tags = field.U.shape
    U, c, d = _pad(clamp(field, y))
    U = U[:, :, None]  # (n, C, 1)

    def mix(old: Array, new: Array, live: Array) -> Array:
        return jnp.where(live, damping * old + (1 - damping) * new, old)

    def iterate(state: _State) -> _State:
        live = (state.residual > tolerance)[None, None, :]
        down = mix(state.down, form.message(state.h[:, None, :], state.up, U), live)
        total_y = form.total(d, down, 0)  # (C, B)
        up = mix(state.up, form.message(total_y[None, :, :], down, U), live)
        total_h = form.total(c, up, 1)  # (n, B)
        change = jnp.maximum(_change(state.y, total_y), _change(state.h, total_h))
        residual = jnp.where(live[0, 0], change / (1 - damping), state.residual)
        return _State(down, up, total_h, total_y, residual, state.iteration + 1)

    def unfinished(state: _State) -> Array:
        return (state.iteration < steps) & jnp.any(state.residual > tolerance)

    neutral = jnp.full((*U.shape[:2], y.shape[0]), form.neutral, U.dtype)
    start = _State(neutral, neutral, c, d, jnp.full(y.shape[:1], jnp.inf, U.dtype), jnp.int32(0))
    end = lax.while_loop(unfinished, iterate, start)

    tags = unclamp(jax.nn.sigmoid(end.y)[:n_tags].T, y)
    hidden = jax.nn.sigmoid(end.h)[:n].T
    joint = jnp.zeros((0, 0, y.shape[0]), U.dtype)
    if pairs:
        joint = _pair_marginals(form, end, U)[:n, :n_tags]
        # p(h_k = 1, y_j = 1) = y_j p(h_k = 1) for a known tag, which is no variable any more
        joint = jnp.where(jnp.isnan(y).T[None], joint, hidden.T[:, None, :] * y.T[None, :, :])
    return Beliefs(tags, hidden, joint, end.residual)


def _change(old: Array, new: Array) -> Array:
    """Largest change of σ(total) over the units, but at least a hundredth of that of a total.

    A unit that starts saturated, at σ(-20) say, may be halfway to σ(0) before its probability
    shows it; its total does not hide it. Totals are (units, B), the result is (B,).
    """
    probability = jnp.abs(jax.nn.sigmoid(new) - jax.nn.sigmoid(old))
    return jnp.max(jnp.maximum(probability, 0.01 * jnp.abs(new - old)), axis=0)


def _pair_marginals(form: _Form, end: _State, U: Array) -> Array:
    """p(h_k = 1, y_j = 1) = e^{n11} / (1 + e^{n11} + e^{n01} + e^{n10}), shape (n, C, B).

    With p = σ(n01) and q = σ(n10) this is e^U pq / (e^U pq + 1 - pq). The 1 is the (0, 0) term,
    which the paper's printed formula lacks.
    """
    p, not_p = form.cavity(end.y[None, :, :], end.down)
    q, not_q = form.cavity(end.h[:, None, :], end.up)
    both, not_both = p * q, not_p + p * not_q  # 1 - pq without cancellation
    # σ(U + log(pq / (1 - pq))), written so that e^U cannot overflow
    shrink = jnp.exp(-jnp.abs(U))
    both, not_both = (
        jnp.where(U > 0, both, shrink * both),
        jnp.where(U > 0, shrink * not_both, not_both),
    )
    return both / (both + not_both)


def _pad(field: Field) -> tuple[Array, Array, Array]:
    """U (n, C), c (n, B) and d (C, B), with units that say nothing added to whole groups."""
    n, n_tags = field.U.shape
    rows, columns = -n % GROUP, -n_tags % GROUP
    U = jnp.pad(field.U, ((0, rows), (0, columns)))
    c = jnp.pad(field.c.T, ((0, rows), (0, 0)), constant_values=REMOVED)
    d = jnp.pad(field.d.T, ((0, columns), (0, 0)), constant_values=REMOVED)
    return U, c, d


def _ratio_message(total: Array, r: Array, U: Array) -> Array:
    """(1 + e^U q) / (1 + q) with q = e^total / r, each term of one sign: nothing cancels."""
    t, s = odds(total)
    x = s * r
    return (x + jnp.exp(U) * t) / (x + t)


def _ratio_cavity(total: Array, r: Array) -> tuple[Array, Array]:
    t, s = odds(total)
    x = s * r
    return t / (t + x), x / (t + x)


def _log_message(total: Array, m: Array, U: Array) -> Array:
    """log(1 + (e^U - 1) σ(x)) = softplus(x + U) - softplus(x) with x = total - m."""
    x = total - m
    return jax.nn.softplus(x + U) - jax.nn.softplus(x)


def _log_cavity(total: Array, m: Array) -> tuple[Array, Array]:
    return jax.nn.sigmoid(total - m), jax.nn.sigmoid(m - total)


RATIO = _Form(1.0, lambda b, r, axis: b + sum_logs(r, axis), _ratio_message, _ratio_cavity)
LOG = _Form(0.0, lambda b, m, axis: b + jnp.sum(m, axis=axis), _log_message, _log_cavity)
