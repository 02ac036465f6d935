"""How the core is compiled: one thread per program.

The matrix products of one model are too small to share between cores; several models, or several
batches of clips, on one core each are faster. See docs/benchmarks.md.
"""

from collections.abc import Callable
from typing import Any

import jax

_OPTIONS = {"xla_cpu_multi_thread_eigen": False}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``jax.jit`` for one thread; the options are those of ``jax.jit``. For outermost functions."""
    return lambda function: jax.jit(function, compiler_options=_OPTIONS, **options)
