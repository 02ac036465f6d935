"""p(y_j = 1 | x) for any number of clips, by any method, in bounded memory.

This is the one entrance to inference for prediction: it cuts the clips into chunks of a few fixed
sizes (so that few programs are compiled and a clip's result does not depend on its neighbours), and
gives the clips on which belief propagation does not converge to a method that does.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from harmonium.rbm.belief import belief_propagation
from harmonium.rbm.compilation import compiled, platform, refuse_fork
from harmonium.rbm.exact import exact
from harmonium.rbm.model import Field, Params, condition
from harmonium.rbm.sampling import gibbs, mean_field

Method = Literal["lbp", "mean_field", "gibbs", "exact"]
METHODS: tuple[str, ...] = get_args(Method)

CHUNK = 512
TILE = 16  # clips whose messages fit the cache together

MOST_MESSAGES = 2**27
"""On a GPU, messages of one chunk: half a GiB, of which belief propagation has several."""

_RETRY_PATIENCE = 10  # times as many steps as at first


class Diagnostics(NamedTuple):
    """How each clip's marginals were found, and how far they are from converged."""

    method: NDArray[np.str_]  # (N,): "lbp", "lbp, damping 0.75", "mean_field", "gibbs" or "exact"
    residual: NDArray[np.float32]  # (N,): largest last change, or standard error for Gibbs
    converged: NDArray[np.bool_]  # (N,): residual <= tolerance


class Inference(NamedTuple):
    """Marginals of the tags, (N, C), and of the hidden units, (N, n), with diagnostics."""

    y: NDArray[np.float32]
    h: NDArray[np.float32]
    diagnostics: Diagnostics


class InferenceOptions(NamedTuple):
    """How to infer."""

    method: Method = "lbp"
    steps: int = 20
    damping: float = 0.5
    tolerance: float = 1e-3
    seed: int = 0
    threads: int = 1
    retry: bool = True  # give the clips on which LBP does not converge another chance


class _Inputs(NamedTuple):
    u: NDArray[np.float32]  # (N, D)
    a: NDArray[np.int32]  # (N, S)
    y: NDArray[np.float32]  # (N, C), NaN unknown

    def take(self, rows: NDArray[np.intp] | slice) -> "_Inputs":
        return _Inputs(self.u[rows], self.a[rows], self.y[rows])


_Marginals = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


def infer(
    params: Params,
    u: NDArray[np.float32],
    a: NDArray[np.int32],
    y: NDArray[np.float32],
    options: InferenceOptions,
) -> Inference:
    """Marginals of every clip under ``params``, given the known tags; NaN in ``y`` is unknown.

    Shapes: ``u`` (N, D), ``a`` (N, S), ``y`` (N, C).
    """
    refuse_fork()
    clips = _Inputs(u, a, y)
    tags, hidden, residual = _run(options, params, clips)
    method = np.full(len(y), options.method, dtype="<U24")
    if options.method == "lbp" and options.retry:
        stubborn = np.flatnonzero(residual > options.tolerance)
        for retry, name in _retries(options):
            if not len(stubborn):
                break
            again = _run(retry, params, clips.take(stubborn))
            tags[stubborn], hidden[stubborn], residual[stubborn] = again
            method[stubborn] = name
            stubborn = stubborn[again[2] > options.tolerance]
    return Inference(
        tags, hidden, Diagnostics(method, residual, residual <= _limit(options, residual))
    )


def _retries(options: InferenceOptions) -> Iterator[tuple[InferenceOptions, str]]:
    """More damping and patience, then mean field, which cannot oscillate."""
    steps = _RETRY_PATIENCE * options.steps
    damping = (1 + options.damping) / 2
    yield options._replace(damping=damping, steps=steps), f"lbp, damping {damping:g}"
    yield options._replace(method="mean_field", steps=steps), "mean_field"


def _limit(options: InferenceOptions, residual: NDArray[np.float32]) -> NDArray[np.float32]:
    """The tolerance, in float32 like the residual, so that the comparison matches the program's."""
    return np.full_like(residual, options.tolerance)


def _run(options: InferenceOptions, params: Params, clips: _Inputs) -> _Marginals:
    """Chunk by chunk, in threads if asked: compiled programs release the interpreter lock."""
    n_clips = len(clips.y)
    if not n_clips:
        n, n_tags = params.U.shape
        return (
            np.zeros((0, n_tags), np.float32),
            np.zeros((0, n), np.float32),
            np.zeros(0, np.float32),
        )

    least, chunk_size, threads = TILE, CHUNK, options.threads
    if platform() == "gpu":  # which is kept busy while clips come and answers go
        least, chunk_size = CHUNK, max(CHUNK, 2 ** int(np.log2(MOST_MESSAGES // params.U.size)))
        threads = max(threads, 2)

    def chunk(start: int) -> _Marginals:
        part = clips.take(slice(start, start + chunk_size))
        size = len(part.y)
        padded = part.take(np.minimum(np.arange(_padded(size, least, chunk_size)), size - 1))
        results = _PROGRAMS[options.method](options, params, padded, start)
        # cut by NumPy: JAX would compile a program for each size
        y, h, residual = (np.array(np.asarray(r)[:size], np.float32) for r in results)
        return y, h, residual

    starts = range(0, n_clips, chunk_size)
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(min(threads, len(starts))) as pool:
            parts = list(pool.map(chunk, starts))
    else:
        parts = [chunk(start) for start in starts]
    y, h, residual = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return y, h, residual


def _padded(size: int, least: int = TILE, most: int = CHUNK) -> int:
    """The next of least, 2 least, 4 least, … most."""
    return min(most, least * 2 ** max(0, (size - 1) // least).bit_length())


@compiled(static_argnames=("steps",))
def _lbp(
    params: Params, u: Array, a: Array, y: Array, steps: int, damping: Array, tolerance: Array
) -> tuple[Array, Array, Array]:
    field = condition(params, u, a)

    def tile(part: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        c, d, y = part
        beliefs = belief_propagation(
            Field(field.U, c, d), y, steps=steps, damping=damping, tolerance=tolerance
        )
        return beliefs.y, beliefs.h, beliefs.residual

    # a GPU takes all clips at once
    size = TILE if platform() == "cpu" else len(y)
    tiles = (array.reshape(-1, size, array.shape[1]) for array in (field.c, field.d, y))
    tags, hidden, residual = lax.map(tile, tuple(tiles))
    return tags.reshape(y.shape), hidden.reshape(field.c.shape), residual.reshape(-1)


@compiled(static_argnames=("steps",))
def _mean_field(
    params: Params, u: Array, a: Array, y: Array, steps: int
) -> tuple[Array, Array, Array]:
    estimate = mean_field(condition(params, u, a), y, steps=steps)
    return estimate.y, estimate.h, estimate.residual


@compiled(static_argnames=("steps",))
def _gibbs(
    key: Array, params: Params, u: Array, a: Array, y: Array, steps: int
) -> tuple[Array, Array, Array]:
    estimate = gibbs(key, condition(params, u, a), y, steps=steps)
    return estimate.y, estimate.h, estimate.residual


@compiled()
def _exact(params: Params, u: Array, a: Array, y: Array) -> tuple[Array, Array, Array]:
    result = exact(condition(params, u, a), y)
    return result.y, result.h, jnp.zeros_like(result.log_z)


def _run_lbp(
    options: InferenceOptions, params: Params, clips: _Inputs, _: int
) -> tuple[Array, ...]:
    damping, tolerance = np.float32(options.damping), np.float32(options.tolerance)
    return _lbp(params, *clips, steps=options.steps, damping=damping, tolerance=tolerance)


def _run_mean_field(
    options: InferenceOptions, params: Params, clips: _Inputs, _: int
) -> tuple[Array, ...]:
    return _mean_field(params, *clips, steps=options.steps)


def _run_gibbs(
    options: InferenceOptions, params: Params, clips: _Inputs, start: int
) -> tuple[Array, ...]:
    key = jax.random.fold_in(jax.random.key(options.seed), start)
    return _gibbs(key, params, *clips, steps=options.steps)


def _run_exact(_: InferenceOptions, params: Params, clips: _Inputs, __: int) -> tuple[Array, ...]:
    with jax.enable_x64(True):
        double = jax.tree.map(lambda array: np.asarray(array, np.float64), params)
        u, a, y = clips
        return _exact(double, u.astype(np.float64), a, y.astype(np.float64))


_PROGRAMS: dict[str, Callable[[InferenceOptions, Params, _Inputs, int], tuple[Array, ...]]] = {
    "lbp": _run_lbp,
    "mean_field": _run_mean_field,
    "gibbs": _run_gibbs,
    "exact": _run_exact,
}
