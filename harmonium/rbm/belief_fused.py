"""Belief propagation on a GPU as one kernel, whose messages never leave the registers.

Each clip is a program of its own: it keeps the messages of every edge, stops when it has converged
and writes only the units' totals. The messages are those of the ratio form of
:mod:`harmonium.rbm.belief`; each message's logarithm is taken by itself, so that no product can
overflow. Logarithms and reciprocals are the device's own, within 2⁻²² of exact.

A large model keeps only the messages to the hidden units from one iteration to the next, and damps
only them. The fixed points are the same.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl

from harmonium.rbm.compilation import platform
from harmonium.rbm.model import REMOVED
from harmonium.rbm.ratios import odds

EDGES_WITH_BOTH = 2**14
"""Edges, after padding, whose messages in both directions fit the registers of one processor."""

MOST_EDGES = 2**15
"""Edges, after padding, whose messages in one direction fit them."""

LARGEST_WEIGHT = 80.0
"""exp of a larger weight would overflow, and a tag would be as certain as it is with this one."""

LOG_2 = 0.6931471805599453


def fits(n: int, n_tags: int) -> bool:
    """Whether a model of that size can be asked in this way, on this machine."""
    return platform() == "gpu" and _whole(n) * _whole(n_tags) <= MOST_EDGES


def fused_totals(
    U: Array,
    c: Array,
    d: Array,
    *,
    steps: int,
    damping: float | Array,
    tolerance: float | Array,
    interpret: bool = False,
) -> tuple[Array, Array, Array]:
    """Total inputs of the tags (B, C) and of the hidden units (B, n), and the residuals (B,).

    U is (n, C), c is (B, n) and d is (B, C). ``interpret`` runs the kernel in Python, on any
    device.
    """
    (n, n_tags), n_clips = U.shape, len(c)
    rows, columns = _whole(n), _whole(n_tags)
    weights = jnp.pad(jnp.clip(U, -LARGEST_WEIGHT, LARGEST_WEIGHT), _up_to(U.shape, rows, columns))
    c = jnp.pad(c, ((0, 0), (0, rows - n)), constant_values=REMOVED)
    d = jnp.pad(d, ((0, 0), (0, columns - n_tags)), constant_values=REMOVED)
    numbers = jnp.stack([jnp.asarray(x, jnp.float32) for x in (damping, tolerance)])

    def row(width: int) -> pl.BlockSpec:
        return pl.BlockSpec((1, width), lambda i: (i, 0))

    def shape(*sizes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    y, h, residual = pl.pallas_call(
        partial(
            _clip,
            steps=steps,
            both=rows * columns <= EDGES_WITH_BOTH,
            approximate=not interpret,
        ),
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
    return y[:, :n_tags], h[:, :n], residual


def _clip(
    weights: Any,
    c_row: Any,
    d_row: Any,
    numbers: Any,
    y_row: Any,
    h_row: Any,
    residual_of: Any,
    *,
    steps: int,
    both: bool,
    approximate: bool,
) -> None:
    """The kernel: one clip until it has converged, or for ``steps`` iterations."""
    c, d, damping, tolerance = c_row[0, :], d_row[0, :], numbers[0], numbers[1]
    divide, sum_logs = _DEVICE if approximate else _EXACT

    def message(opposite: Array, t: Array, s: Array) -> Array:
        """(1 + e^U q) / (1 + q), q = e^total / opposite."""
        x = s * opposite
        return divide(x + weights[...] * t, x + t)

    def damped(old: Array, new: Array) -> Array:
        return damping * old + (1 - damping) * new

    def change(old: Array, new: Array) -> Array:
        probability = jnp.abs(jax.nn.sigmoid(new) - jax.nn.sigmoid(old))
        return jnp.max(jnp.maximum(probability, 0.01 * jnp.abs(new - old)))

    def iterate(state: Any) -> Any:
        *kept, up, h, y, _, iteration = state
        t, s = (part[:, None] for part in odds(h))
        down = message(up, t, s)
        if both:
            down = damped(kept[0], down)
            kept = [down]
        new_y = d + sum_logs(down, 0)
        up = damped(up, message(down, *(part[None, :] for part in odds(new_y))))
        new_h = c + sum_logs(up, 1)
        residual = jnp.maximum(change(y, new_y), change(h, new_h)) / (1 - damping)
        return *kept, up, new_h, new_y, residual, iteration + 1

    def unfinished(state: Any) -> Array:
        *_, residual, iteration = state
        return (iteration < steps) & (residual > tolerance)

    messages = [jnp.ones(weights.shape, jnp.float32)] * (2 if both else 1)
    start = (*messages, c, d, jnp.float32(jnp.inf), jnp.int32(0))
    *_, h, y, residual, _ = lax.while_loop(unfinished, iterate, start)
    y_row[0, :], h_row[0, :], residual_of[0] = y, h, residual


def _instruction(name: str, x: Array) -> Array:
    """One instruction of the device for each number."""
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
    """Threads in proportion to the edges, so that each has as many registers as there are."""
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=min(32, max(4, n_edges // 1024)), num_stages=1)


def _whole(n: int) -> int:
    """The next power of two, at least 16."""
    return max(16, 1 << (n - 1).bit_length())


def _up_to(shape: tuple[int, ...], *sizes: int) -> list[tuple[int, int]]:
    """What to add at the end of each axis."""
    return [(0, size - length) for length, size in zip(shape, sizes, strict=True)]
