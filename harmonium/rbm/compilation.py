"""How the core is compiled: one thread per program, and never in a forked process.

The work of one minibatch is too small to share between cores; several models, or several batches of
clips, on one core each are faster. See docs/benchmarks.md. XLA would split loops over the elements
of an array, too, such as Adam's step: passing a half to another thread takes as long as doing it,
and several times as long where that thread's core is busy.

JAX runs threads, which a fork does not copy: a program in the child would wait for them for ever.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

from harmonium.errors import HarmoniumError

_OPTIONS = {
    "xla_cpu_multi_thread_eigen": False,
    "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
    # on a GPU, the library's own choice among its matrix products is nearly as fast as the best of
    # all, which takes longer to find than most models take to train
    "xla_gpu_autotune_level": 0,
    "xla_gpu_enable_triton_gemm": False,
}

_process: int | None = None  # the one in which the first program ran


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
    """An error in a process that was forked from one in which a program has run."""
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise HarmoniumError(
            "Harmonium can neither train nor predict in a process forked from one that has used "
            "JAX: it would hang. Use joblib with its default backend (loky), or "
            "multiprocessing.get_context('spawn'), or fork before the first model is used."
        )
