"""Loopy belief propagation with damping, in three forms that share their fixed points.

Messages from zero-valued variables are normalised away, which leaves one number per edge and
direction. In log form, with m↓ towards the tags and m↑ towards the hidden units,

    m↓_kj ← log(1 + (e^{U_kj} - 1) σ(c_k + Σ_{j*≠j} m↑_kj*))
    m↑_kj ← log(1 + (e^{U_kj} - 1) σ(d_j + Σ_{k*≠k} m↓_k*j))

and in ratio form, with r = e^m and q = e^{bias} Π r / r_in, r_out = (1 + e^U q) / (1 + q), which
is used while no weight is larger than ``RATIO_LIMIT`` (docs/model.md says why). On a GPU, one
kernel computes the ratio form if the model is small enough (:func:`fused`).

Messages are (n, C, B): the clips are the last axis, so that one instruction serves several clips
and no sum runs along it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl

from harmonium.rbm.model import REMOVED, Field, clamp, platform, unclamp

# A product of eight factors, each between e^-10 and e^10, neither overflows nor underflows in
# float32, so one log serves eight terms.
GROUP = 8
RATIO_LIMIT = 10.0  # largest |U| for the ratio forms; beyond it only the log forms are safe

# The most edges, after padding, whose messages in both directions fit the registers of one GPU
# block; and the most whose messages in one direction do.
EDGES_WITH_BOTH, MAX_EDGES = 2**14, 2**15
MAX_WEIGHT = 80.0  # exp of a larger one would overflow without making a tag more certain
LOG_2 = 0.6931471805599453


def sum_logs(r: Array, axis: int) -> Array:
    """Σ log r over ``axis``, whose length is a multiple of GROUP: log Π r = Σ log Π_group r."""
    groups = (*r.shape[:axis], r.shape[axis] // GROUP, GROUP, *r.shape[axis + 1 :])
    return jnp.sum(jnp.log(jnp.prod(r.reshape(groups), axis=axis + 1)), axis=axis)


def odds(x: Array) -> tuple[Array, Array]:
    """(t, s) with t / s = e^x and neither above 1, so that σ(x) = t / (t + s)."""
    return jnp.exp(jnp.minimum(x, 0.0)), jnp.exp(-jnp.maximum(x, 0.0))


class Estimate(NamedTuple):
    """Marginals of each clip, and how far they are from convergence."""

    y: Array  # (B, C), p(y_j = 1)
    h: Array  # (B, n), p(h_k = 1)
    residual: Array  # (B,), largest undamped change in the last step; or a standard error
    pairs: Any = None  # (n, C, B), p(h_k = 1, y_j = 1), where asked for
    log_z: Any = None  # (B,), log Σ_{y, h} exp(-E(y, h)), of exact inference


class _Form(NamedTuple):
    """One way of writing the messages."""

    neutral: float  # the neutral message
    total: Callable[[Array, Array, int], Array]  # bias + Σ log messages over an axis
    message: Callable[[Array, Array, Array], Array]  # from total, opposite message and U
    cavity: Callable[[Array, Array], tuple[Array, Array]]  # σ(x), σ(-x) of total less one message
    mix: Callable[[Array, Array, Any], Array]  # old and new message, and the share of the old one


def belief_propagation(
    field: Field,
    y: Array,
    *,
    steps: int,
    damping: float | Array,
    tolerance: float | Array = 0.0,
    pairs: bool = False,
    logs: bool = False,
    damp_logs: bool = False,
) -> Estimate:
    """p(y_j = 1), p(h_k = 1) and, if asked, p(h_k = 1, y_j = 1) given the known tags.

    NaN in ``y`` (B, C) is unknown. A clip stops changing once its residual is at most
    ``tolerance``, whatever the other clips of the batch do. ``logs`` uses the log form whatever the
    weights: in a stack of models, choosing would compute both forms. ``damp_logs`` damps as the log
    form does, also in ratio form, which then takes six times as long.

    The derivative, forwards and backwards, is that of these ``steps`` iterations, of which clips
    that have converged take fewer. It needs ``steps`` to be a number and not traced.
    """
    options = _Options(pairs, logs, damp_logs)
    if isinstance(steps, jax.core.Tracer):
        return _propagate_in_form(steps, options, field, y, damping, tolerance)
    return _differentiable(steps, options, field, y, damping, tolerance)


class _Options(NamedTuple):
    """What :func:`belief_propagation` is asked for."""

    pairs: bool
    logs: bool
    damp_logs: bool


def _propagate_in_form(
    steps: int,
    options: _Options,
    field: Field,
    y: Array,
    damping: float | Array,
    tolerance: float | Array,
    *,
    as_scan: bool = False,
) -> Estimate:
    """By the kernel, in ratio form or in log form; the kernel is never a scan."""

    def run(form: _Form) -> Estimate:
        return _propagate(form, field, y, steps, damping, tolerance, options.pairs, as_scan=as_scan)

    if not (options.pairs or options.damp_logs or as_scan) and fits(*field.U.shape):
        return fused(field, y, steps, damping, tolerance)
    if options.logs:
        return run(LOG)
    small = jnp.max(jnp.abs(field.U)) <= RATIO_LIMIT
    ratio = RATIO_IN_LOGS if options.damp_logs else RATIO
    return lax.cond(small, lambda: run(ratio), lambda: run(LOG))


# JAX differentiates a scan forwards and backwards, but a while loop only forwards, and the kernel
# not at all. So a derivative, and nothing else, runs the same iterations as a scan.
_differentiable = jax.custom_jvp(_propagate_in_form, nondiff_argnums=(0, 1))


@_differentiable.defjvp
def _slopes(steps: int, options: _Options, primals: Any, tangents: Any) -> Any:
    """The beliefs, and their derivative in the direction of the tangents."""
    return jax.jvp(partial(_propagate_in_form, steps, options, as_scan=True), primals, tangents)


def _propagate(
    form: _Form,
    field: Field,
    y: Array,
    steps: int,
    damping: float | Array,
    tolerance: float | Array,
    pairs: bool,
    *,
    as_scan: bool = False,
) -> Estimate:
    (n, n_tags), free = field.U.shape, clamp(field, y)
    rows, columns = -n % GROUP, -n_tags % GROUP  # neutral units that fill up the groups
    U = jnp.pad(free.U, ((0, rows), (0, columns)))[:, :, None]  # (n, C, 1)
    c = jnp.pad(free.c.T, ((0, rows), (0, 0)), constant_values=REMOVED)  # (n, B)
    d = jnp.pad(free.d.T, ((0, columns), (0, 0)), constant_values=REMOVED)  # (C, B)

    def mix(old: Array, new: Array, live: Array) -> Array:
        return jnp.where(live, form.mix(old, new, damping), old)

    def iterate(state: Any) -> Any:
        """Messages (n, C, B), totals of hidden units (n, B) and tags (C, B), residuals (B,)."""
        old_down, old_up, h, tags, residual, iteration = state
        live = (residual > tolerance)[None, None, :]
        down = mix(old_down, form.message(h[:, None, :], old_up, U), live)
        new_tags = form.total(d, down, 0)
        up = mix(old_up, form.message(new_tags[None, :, :], down, U), live)
        new_h = form.total(c, up, 1)
        change = jnp.maximum(_change(tags, new_tags), _change(h, new_h))
        residual = jnp.where(live[0, 0], change / (1 - damping), residual)
        return down, up, new_h, new_tags, residual, iteration + 1

    def unfinished(state: Any) -> Array:
        return (state[5] < steps) & jnp.any(state[4] > tolerance)

    neutral = jnp.full((*U.shape[:2], y.shape[0]), form.neutral, U.dtype)
    start = (neutral, neutral, c, d, jnp.full(y.shape[:1], jnp.inf, U.dtype), jnp.int32(0))
    if as_scan:  # of the iterations' steps, only the messages are kept for the way back
        end, _ = lax.scan(
            lambda state, _: (jax.checkpoint(iterate)(state), None), start, length=steps
        )
    else:
        end = lax.while_loop(unfinished, iterate, start)
    down, up, total_h, total_y, residual, _ = end

    tags = unclamp(jax.nn.sigmoid(total_y)[:n_tags].T, y)
    hidden = jax.nn.sigmoid(total_h)[:n].T
    joint = None
    if pairs:
        below = form.cavity(total_y[None, :, :], down)
        joint = _pair_marginals(below, form.cavity(total_h[:, None, :], up), U)[:n, :n_tags]
        joint = with_known_pairs(joint, hidden, y)
    # how far the marginals are from convergence is a diagnostic and has no slope
    return Estimate(tags, hidden, lax.stop_gradient(residual), joint)


def with_known_pairs(pairs: Array, hidden: Array, y: Array) -> Array:
    """p(h_k = 1, y_j = 1), with y_j p(h_k = 1) for a known tag, which is no variable; (n, C, B)."""
    unknown = jnp.isnan(y)
    known = jnp.where(unknown, 0.0, y)  # a NaN would spoil the slope of the other branch, too
    return jnp.where(unknown.T[None], pairs, hidden.T[:, None, :] * known.T[None, :, :])


def _change(old: Array, new: Array) -> Array:
    """Largest change of σ(total) over the units, but at least a hundredth of a total's change.

    A unit that starts saturated, for example at σ(-20), may be halfway to σ(0) before its
    probability shows it; its total shows it at once. Totals are (units, B), the result is (B,); or
    without B.
    """
    probability = jnp.abs(jax.nn.sigmoid(new) - jax.nn.sigmoid(old))
    return jnp.max(jnp.maximum(probability, 0.01 * jnp.abs(new - old)), axis=0)


def _pair_marginals(tags: tuple[Array, Array], hidden: tuple[Array, Array], U: Array) -> Array:
    """p(h_k = 1, y_j = 1) = e^{n11} / (1 + e^{n11} + e^{n01} + e^{n10}), shape (n, C, B).

    With p = σ(n01) and q = σ(n10) this is e^U pq / (e^U pq + 1 - pq). The 1 is the (0, 0) term,
    which the paper's printed formula lacks. The arguments are p, 1 - p and q, 1 - q.
    """
    (p, not_p), (q, not_q) = tags, hidden
    both, not_both = p * q, not_p + p * not_q  # 1 - pq without cancellation
    # σ(U + log(pq / (1 - pq))), written so that e^U cannot overflow, with the slope of e^U at U = 0
    shrink = jnp.exp(jnp.where(U > 0, -U, U))
    both, not_both = (
        jnp.where(U > 0, both, shrink * both),
        jnp.where(U > 0, shrink * not_both, not_both),
    )
    return both / (both + not_both)


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


def _weighted_mean(old: Array, new: Array, share: float | Array) -> Array:
    return share * old + (1 - share) * new


def _geometric_mean(old: Array, new: Array, share: float | Array) -> Array:
    """Of ratios: the mean of their logarithms."""
    return old * jnp.exp((1 - share) * jnp.log(new / old))


RATIO = _Form(
    neutral=1.0,
    total=lambda b, r, axis: b + sum_logs(r, axis),
    message=_ratio_message,
    cavity=_ratio_cavity,
    mix=_weighted_mean,
)
RATIO_IN_LOGS = RATIO._replace(mix=_geometric_mean)  # takes the path of the log form
LOG = _Form(
    neutral=0.0,
    total=lambda b, m, axis: b + jnp.sum(m, axis=axis),
    message=_log_message,
    cavity=_log_cavity,
    mix=_weighted_mean,
)


# The kernel. Each clip is a separate program: it keeps the messages of every edge in registers,
# stops when it has converged and writes only the units' totals. Each message's logarithm is taken
# by itself, so that no product can overflow. Logarithms and reciprocals are the device's own,
# within 2⁻²² of exact. A large model keeps, and damps, only the messages to the hidden units.


def fits(n: int, n_tags: int) -> bool:
    """Whether the kernel can run a model of this size on this machine."""
    return platform() == "gpu" and _whole(n) * _whole(n_tags) <= MAX_EDGES


def fused(
    field: Field,
    y: Array,
    steps: int,
    damping: float | Array,
    tolerance: float | Array,
    *,
    interpret: bool = False,
) -> Estimate:
    """Belief propagation by one kernel; ``interpret`` runs it in Python, on any device."""
    U, c, d = clamp(field, y)
    (n, n_tags), n_clips = U.shape, len(c)
    rows, columns = _whole(n), _whole(n_tags)
    to_fill = ((0, rows - n), (0, columns - n_tags))
    weights = jnp.pad(jnp.clip(U, -MAX_WEIGHT, MAX_WEIGHT), to_fill)
    c = jnp.pad(c, ((0, 0), to_fill[0]), constant_values=REMOVED)
    d = jnp.pad(d, ((0, 0), to_fill[1]), constant_values=REMOVED)
    numbers = jnp.stack([jnp.asarray(x, jnp.float32) for x in (damping, tolerance)])

    def row(width: int) -> pl.BlockSpec:
        return pl.BlockSpec((1, width), lambda i: (i, 0))

    def shape(*sizes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    both = rows * columns <= EDGES_WITH_BOTH
    tags, hidden, residual = pl.pallas_call(
        partial(_clip, steps=steps, both=both, approximate=not interpret),
        grid=(n_clips,),
        in_specs=[
            pl.BlockSpec((rows, columns), lambda i: (0, 0)),
            row(rows),
            row(columns),
            pl.BlockSpec((2,), lambda i: (0,)),
        ],
        out_specs=[row(columns), row(rows), pl.BlockSpec((1,), lambda i: (i,))],
        out_shape=[shape(n_clips, columns), shape(n_clips, rows), shape(n_clips)],
        interpret=interpret,
        **({} if interpret else {"compiler_params": _compiler_params(rows * columns)}),
    )(jnp.exp(weights), c, d, numbers)
    p_tags, p_hidden = jax.nn.sigmoid(tags[:, :n_tags]), jax.nn.sigmoid(hidden[:, :n])
    return Estimate(unclamp(p_tags, y), p_hidden, residual)


def _clip(*references: Any, steps: int, both: bool, approximate: bool) -> None:
    """One clip until it has converged, or for ``steps`` iterations."""
    weights, c_row, d_row, numbers, y_row, h_row, residual_of = references
    c, d, damping, tolerance = c_row[0, :], d_row[0, :], numbers[0], numbers[1]
    divide, log_sum = _DEVICE if approximate else _EXACT

    def message(opposite: Array, t: Array, s: Array) -> Array:
        """(1 + e^U q) / (1 + q), q = e^total / opposite."""
        x = s * opposite
        return divide(x + weights[...] * t, x + t)

    def damped(old: Array, new: Array) -> Array:
        return damping * old + (1 - damping) * new

    def iterate(state: Any) -> Any:
        *kept, up, h, y, _, iteration = state
        t, s = (part[:, None] for part in odds(h))
        down = message(up, t, s)
        if both:
            down = damped(kept[0], down)
            kept = [down]
        new_y = d + log_sum(down, 0)
        up = damped(up, message(down, *(part[None, :] for part in odds(new_y))))
        new_h = c + log_sum(up, 1)
        residual = jnp.maximum(_change(y, new_y), _change(h, new_h)) / (1 - damping)
        return *kept, up, new_h, new_y, residual, iteration + 1

    def unfinished(state: Any) -> Array:
        *_, residual, iteration = state
        return (iteration < steps) & (residual > tolerance)

    messages = [jnp.ones(weights.shape, jnp.float32)] * (2 if both else 1)
    start = (*messages, c, d, jnp.float32(jnp.inf), jnp.int32(0))
    *_, h, y, residual, _ = lax.while_loop(unfinished, iterate, start)
    y_row[0, :], h_row[0, :], residual_of[0] = y, h, residual


def _instruction(name: str, x: Array) -> Array:
    """One device instruction per number."""
    from jax.experimental.pallas import triton

    [result] = triton.elementwise_inline_asm(
        f"{name} $0, $1;",
        args=[x],
        constraints="=f,f",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    return result


_DEVICE = (
    lambda a, b: a * _instruction("rcp.approx.ftz.f32", b),
    lambda r, axis: LOG_2 * jnp.sum(_instruction("lg2.approx.ftz.f32", r), axis=axis),
)
_EXACT = (jnp.divide, lambda r, axis: jnp.sum(jnp.log(r), axis=axis))


def _compiler_params(n_edges: int) -> Any:
    """A number of threads in proportion to the edges, so that each uses all its registers."""
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=min(32, max(4, n_edges // 1024)), num_stages=1)


def _whole(n: int) -> int:
    """The next power of two, at least 16."""
    return max(16, 1 << (n - 1).bit_length())
