"""The conditional RBM: parameters, energy, free energy and conditionals.

    E(y, h, u, a) = -hᵀUy - hᵀWu - yᵀVa - dᵀy - cᵀh

Tags y (C binary units), hidden h (n binary units), u conditions the hidden units, a conditions
the tags. Once u and a are known they act as biases, so everything after :func:`condition` works on
a :class:`Field`, which is a plain RBM per clip. Letters are the paper's; B is a batch of clips.

The last part compiles such functions to programs: one thread each, and never in a forked process.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from harmonium.errors import HarmoniumError

REMOVED = -1e30  # a bias that surely turns a tag off; finite, so that 0 · REMOVED is not NaN


class Params(NamedTuple):
    """The parameters of a conditional RBM. A model without u has D = 0, one without a has A = 0."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    V: Array  # (A, C): the paper's V, transposed, so that a one-hot part of a looks up one row;
    # or (1, C): the diagonal of a V that weights a number for each tag
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
    track, clip); a negative index is an empty part, such as an unknown user. Or it is (B, C)
    floats, a number for each tag: V is then diagonal, kept as (1, C), and d_j ← d_j + V_j a_j.
    """
    c = params.c[None, :] + u @ params.W.T  # (B, n)
    d = jnp.broadcast_to(params.d[None, :], (u.shape[0], params.d.shape[0]))
    if a.shape[1] and has_numbers(a):
        d = d + params.V * a
    elif a.shape[1]:
        rows = params.V[jnp.maximum(a, 0)]  # (B, S, C)
        d = d + jnp.sum(jnp.where((a >= 0)[:, :, None], rows, 0.0), axis=1)
    return Field(params.U, c, d)


def has_numbers(a: Array) -> bool:
    """Whether a conditions the tags by a number for each, rather than by rows of V."""
    return jnp.issubdtype(a.dtype, jnp.floating)


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


# Programs. The work of one minibatch is too small to share between cores; several models, or
# several batches of clips, on one core each are faster (docs/benchmarks.md). XLA would also split
# loops over the elements of an array, such as Adam's step: passing half of it to another thread
# takes as long as doing it, and several times as long if that thread's core is busy. JAX runs
# threads, which a fork does not copy: a program in the child would wait for them forever.

_OPTIONS = {
    "xla_cpu_multi_thread_eigen": False,
    "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
    # on a GPU, the library's default matrix product is nearly as fast as the best of
    # all, which takes longer to find than most models take to train
    "xla_gpu_autotune_level": 0,
    "xla_gpu_enable_triton_gemm": False,
}

_process: int | None = None  # the process in which the first program ran


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``jax.jit`` for one thread; the options are those of ``jax.jit``. For outermost functions."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        program = jax.jit(function, compiler_options=_OPTIONS, **options)

        @wraps(program)
        def run(*arguments: Any, **named: Any) -> Any:
            refuse_fork()
            return program(*arguments, **named)

        return run

    return decorate


def platform() -> str:
    """Where programs run, such as "cpu" or "gpu"."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


def refuse_fork() -> None:
    """Raise an error in a process forked from one in which a program has run."""
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise HarmoniumError(
            "Harmonium can neither train nor predict in a process forked from one that has used "
            "JAX: it would hang. Use joblib with its default backend (loky), or "
            "multiprocessing.get_context('spawn'), or fork before the first model is used."
        )
