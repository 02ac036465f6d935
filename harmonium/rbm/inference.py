"""p(y_j = 1 | x) for any number of clips, by any method, in bounded memory.

This is the one entrance to inference for prediction: it cuts the clips into chunks of a few fixed
sizes (so that few programs are compiled and a clip's result does not depend on its neighbours), and
gives the clips on which belief propagation does not converge to a method that does.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from harmonium.arrays import Codes, Floats, Mask
from harmonium.rbm.belief import belief_propagation, fits
from harmonium.rbm.compilation import compiled, platform, refuse_fork
from harmonium.rbm.marginals import exact, gibbs, mean_field
from harmonium.rbm.model import Field, Params, condition

Method = Literal["lbp", "mean_field", "gibbs", "exact"]
METHODS: tuple[str, ...] = get_args(Method)

CHUNK = 512
TILE = 16  # clips whose messages fit the cache together

MAX_MESSAGES = 2**27
"""Messages of one chunk on a GPU: half a GiB, of which belief propagation has several."""

_RETRY_PATIENCE = 10  # times as many steps as at first


class Diagnostics(NamedTuple):
    """How each clip's marginals were found, and how far they are from converged."""

    method: NDArray[np.str_]  # (N,): "lbp", "lbp, damping 0.75", "mean_field", "gibbs" or "exact"
    residual: Floats  # (N,): largest last change, or standard error for Gibbs
    converged: Mask  # (N,): residual <= tolerance


class Inference(NamedTuple):
    """Marginals of the tags, (N, C), and of the hidden units, (N, n), with diagnostics."""

    y: Floats
    h: Floats
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


@dataclass(frozen=True)
class Marginals:
    """p(y_j = 1 | x, the observed tags) as one traceable function.

    "gibbs" and "exact" are replaced by belief propagation.
    """

    options: InferenceOptions

    def __call__(self, params: Any, x: Array, observed: Array | None = None) -> Array:
        """Shape (B, C); NaN in ``observed`` (B, C) is unknown."""
        field = condition(Params(*params[:5]), x, jnp.zeros((len(x), 0), jnp.int32))
        y = jnp.full((len(x), len(params.d)), jnp.nan) if observed is None else observed
        method, steps, damping, tolerance, *_ = self.options
        if method == "mean_field":
            return mean_field(field, y, steps=steps).y
        return belief_propagation(
            field, y, steps=steps, damping=damping, tolerance=tolerance, logs=True
        ).y

    def numbers_per_clip(self, params: Any) -> int:
        """Numbers in the largest array that the tags of one clip need."""
        by_messages = self.options.method != "mean_field" and not fits(*params.U.shape)
        return int(params.U.size if by_messages else len(params.d))


class _Inputs(NamedTuple):
    u: Floats  # (N, D)
    a: Codes  # (N, S)
    y: Floats  # (N, C), NaN unknown

    def take(self, rows: NDArray[np.intp] | slice) -> "_Inputs":
        return _Inputs(self.u[rows], self.a[rows], self.y[rows])


_Marginals = tuple[Floats, Floats, Floats]


def infer(params: Params, u: Floats, a: Codes, y: Floats, options: InferenceOptions) -> Inference:
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
    # in float32 like the residual, so that the comparison matches the program's
    converged = residual <= np.float32(options.tolerance)
    return Inference(tags, hidden, Diagnostics(method, residual, converged))


def _retries(options: InferenceOptions) -> Iterator[tuple[InferenceOptions, str]]:
    """More damping and patience, then mean field, which cannot oscillate."""
    steps = _RETRY_PATIENCE * options.steps
    damping = (1 + options.damping) / 2
    yield options._replace(damping=damping, steps=steps), f"lbp, damping {damping:g}"
    yield options._replace(method="mean_field", steps=steps), "mean_field"


def _run(options: InferenceOptions, params: Params, clips: _Inputs) -> _Marginals:
    """Chunk by chunk, in threads if asked: compiled programs release the interpreter lock."""
    n_clips = len(clips.y)
    if not n_clips:
        shapes = (0, params.U.shape[1]), (0, params.U.shape[0]), 0
        y, h, residual = (np.zeros(shape, np.float32) for shape in shapes)
        return y, h, residual

    least, chunk_size, threads = TILE, CHUNK, options.threads
    if platform() == "gpu":  # which is kept busy while clips come and answers go
        least, chunk_size = CHUNK, max(CHUNK, 2 ** int(np.log2(MAX_MESSAGES // params.U.size)))
        threads = max(threads, 2)

    def chunk(start: int) -> _Marginals:
        part = clips.take(slice(start, start + chunk_size))
        size = len(part.y)
        padded = part.take(np.minimum(np.arange(_padded(size, least, chunk_size)), size - 1))
        results = _marginals(options, params, padded, start)
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


def _marginals(
    options: InferenceOptions, params: Params, clips: _Inputs, number: int
) -> tuple[Array, Array, Array]:
    """Marginals of one chunk, and their residuals."""
    method, steps, damping, tolerance, seed, *_ = options
    numbers = np.float32(damping), np.float32(tolerance), np.uint32(seed), np.uint32(number)
    if method != "exact":
        return _program(method, steps, params, *clips, *numbers)
    with jax.enable_x64(True):
        double = jax.tree.map(lambda array: np.asarray(array, np.float64), params)
        u, a, y = clips
        return _program(
            method, steps, double, u.astype(np.float64), a, y.astype(np.float64), *numbers
        )


@compiled(static_argnames=("method", "steps"))
def _program(
    method: Method,
    steps: int,
    params: Params,
    u: Array,
    a: Array,
    y: Array,
    damping: Array,
    tolerance: Array,
    seed: Array,
    number: Array,
) -> tuple[Array, Array, Array]:
    field = condition(params, u, a)
    if method == "lbp":
        return _by_tiles(field, y, steps, damping, tolerance)
    if method == "exact":
        result = exact(field, y)
        return result.y, result.h, jnp.zeros_like(result.log_z)
    if method == "mean_field":
        estimate = mean_field(field, y, steps=steps)
    else:
        key = jax.random.fold_in(jax.random.key(seed), number)
        estimate = gibbs(key, field, y, steps=steps)
    return estimate.y, estimate.h, estimate.residual


def _by_tiles(
    field: Field, y: Array, steps: int, damping: Array, tolerance: Array
) -> tuple[Array, Array, Array]:
    """Belief propagation for a few clips at a time; a GPU takes all at once."""

    def tile(part: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        c, d, y = part
        beliefs = belief_propagation(
            Field(field.U, c, d), y, steps=steps, damping=damping, tolerance=tolerance
        )
        return beliefs.y, beliefs.h, beliefs.residual

    size = TILE if platform() == "cpu" else len(y)
    tiles = (array.reshape(-1, size, array.shape[1]) for array in (field.c, field.d, y))
    tags, hidden, residual = lax.map(tile, tuple(tiles))
    return tags.reshape(y.shape), hidden.reshape(field.c.shape), residual.reshape(-1)
