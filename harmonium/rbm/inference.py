"""Inference: p(y_j = 1 | x), by mean field, block Gibbs sampling, enumeration or messages.

Each method is a function of a field and the known tags, and a class in `METHODS`, which says what
:func:`infer` has to know about it.

:func:`infer` is the entry point for prediction, for any number of clips in bounded memory. It cuts
the clips into chunks of a few fixed sizes (so that few programs are compiled and a clip's result
does not depend on its neighbours). If belief propagation does not converge on a clip, another
method takes over. Given one side of the bipartite graph, the other factorises, so 2^min(n, C) terms
are enough for an exact answer. It uses float64, because float32 is too coarse for large weights,
and streams blocks with a running maximum, in bounded memory.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike
from numpy.typing import NDArray

from harmonium.arrays import Codes, Floats, Mask, Places
from harmonium.errors import DataError, did_you_mean
from harmonium.rbm.belief import Estimate, belief_propagation, fits, with_known_pairs
from harmonium.rbm.model import (
    Field,
    Params,
    clamp,
    compiled,
    condition,
    hidden_given_tags,
    platform,
    refuse_fork,
    tags_given_hidden,
    unclamp,
)

CHUNK = 512
TILE = 16  # as many clips as have messages that fit the cache
MAX_MESSAGES = 2**27  # of one chunk on a GPU: half a GiB, of which belief propagation has several
_RETRY_PATIENCE = 10  # how many times more steps than at first
MAX_UNITS = 20  # the most units on the smaller side to enumerate (2²⁰ terms per clip)

_BLOCK_BITS = 10


def mean_field(field: Field, y: Array, *, steps: int) -> Estimate:
    """h ← σ(c + U y), y ← σ(d + Uᵀh), from y = 0 on the unknown tags.

    Each half step maximises the variational bound exactly over its own side, so the iteration
    cannot oscillate. The residual is the largest change of a tag in the last step.
    """
    free = clamp(field, y)

    def step(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tags, _, _ = state
        hidden = hidden_given_tags(free, tags)
        new = tags_given_hidden(free, hidden)
        return new, hidden, jnp.max(jnp.abs(new - tags), axis=1)

    zeros = jnp.zeros_like(y)
    state = (zeros, hidden_given_tags(free, zeros), jnp.full_like(y[:, 0], jnp.inf))
    tags, hidden, residual = lax.fori_loop(0, steps, step, state)
    return Estimate(unclamp(tags, y), hidden, lax.stop_gradient(residual))


def gibbs_sweep(field: Field, y: Array, noise: Array) -> tuple[Array, Array]:
    """h ~ p(h | y), y ~ p(y | h); returns (y, h). ``noise`` is uniform on [0, 1), (B, ≥ n + C)."""
    n, n_tags = field.U.shape
    h = (noise[:, :n] < hidden_given_tags(field, y)).astype(y.dtype)
    y = (noise[:, n : n + n_tags] < tags_given_hidden(field, h)).astype(y.dtype)
    return y, h


def gibbs(
    key: Array, field: Field, y: Array, *, steps: int, chains: int = 8, burn_in: float = 0.2
) -> Estimate:
    """p(y_j = 1) ≈ mean over chains and sweeps of p(y_j = 1 | h), started at y = 0.

    The first ``burn_in`` share of the sweeps does not count. The residual is the largest standard
    error of a tag's mean over the independent chains. A derivative holds the samples constant.
    """
    free = clamp(field, y)
    skipped = int(burn_in * steps)
    shape = (*y.shape[:1], sum(field.U.shape))

    def chain(key: Array) -> tuple[Array, Array]:
        def sweep(
            i: Array, state: tuple[Array, tuple[Array, Array]]
        ) -> tuple[Array, tuple[Array, Array]]:
            tags, (sum_y, sum_h) = state
            noise = jax.random.uniform(jax.random.fold_in(key, i), shape)
            tags, hidden = gibbs_sweep(free, tags, noise)
            counted = (i >= skipped).astype(tags.dtype)
            sum_y = sum_y + counted * tags_given_hidden(free, hidden)
            sum_h = sum_h + counted * hidden_given_tags(free, tags)
            return tags, (sum_y, sum_h)

        sums = (jnp.zeros_like(y), jnp.zeros_like(field.c))
        _, (sum_y, sum_h) = lax.fori_loop(0, steps, sweep, (jnp.zeros_like(y), sums))
        return sum_y / (steps - skipped), sum_h / (steps - skipped)

    ys, hs = lax.map(chain, jax.random.split(key, chains))  # (chains, B, C), (chains, B, n)
    # a tag that is certain has no error, and the square root no slope there
    error = lax.stop_gradient(jnp.std(ys, axis=0, ddof=1) / chains**0.5)
    tags = unclamp(jnp.mean(ys, axis=0), y)
    return Estimate(tags, jnp.mean(hs, axis=0), jnp.max(error, axis=1))


def fill_unknown(field: Field, y: Array, noise: Array) -> Array:
    """y with the unknown tags drawn from p(y_unknown | y_known), by len(noise) Gibbs sweeps.

    ``noise`` is (sweeps, B, ≥ n + C). The chain starts with the unknown tags off.
    """
    free = clamp(field, y)
    sampled, _ = lax.scan(
        lambda tags, u: (gibbs_sweep(free, tags, u)[0], None), jnp.zeros_like(y), noise
    )
    return unclamp(sampled, y)


def check_enumerable(what: str, shape: tuple[int, ...], instead: str) -> None:
    """Refuse to enumerate a model with U of this shape if both sides are large."""
    n, n_tags = shape
    if min(n, n_tags) > MAX_UNITS:
        raise DataError(
            f"{what} sums over 2^min(n_hidden, n_tags) states and takes at most {MAX_UNITS} units "
            f"on the smaller side. Got {n} hidden units and {n_tags} tags; use {instead}."
        )


def exact(field: Field, y: Array, *, pairs: bool = False) -> Estimate:
    """p(y_j = 1), p(h_k = 1), log Z and, if asked, p(h_k = 1, y_j = 1), given the known tags.

    NaN in ``y`` is unknown. log Z sums over the unknown tags and the hidden units.
    """
    free = clamp(field, y)
    n, n_tags = field.U.shape
    if n_tags <= n:
        tags, hidden, log_z, joint = _enumerate(field.U.T, free.d, free.c, pairs)
    else:
        hidden, tags, log_z, joint = _enumerate(field.U, free.c, free.d, pairs)
    if joint is not None:
        joint = jnp.moveaxis(joint, 0, 2)  # (n, C, B), or (C, n, B)
        joint = jnp.swapaxes(joint, 0, 1) if n_tags <= n else joint
        joint = with_known_pairs(joint, hidden, y)
    known_bias = jnp.sum(field.d * jnp.where(jnp.isnan(y), 0.0, y), axis=1)
    return Estimate(
        y=unclamp(tags, y),
        h=hidden,
        residual=jnp.zeros_like(log_z),
        pairs=joint,
        log_z=log_z + known_bias,
    )


def log_likelihood(field: Field, y: Array) -> Array:
    """log p(y_known) = log Z(y_known) - log Z, shape (B,); NaN in ``y`` (B, C) is unknown.

    If every tag is known, log Z(y) = -F(y).
    """
    return exact(field, y).log_z - exact(field, jnp.full_like(y, jnp.nan)).log_z


def _enumerate(
    M: Array, left_bias: Array, right_bias: Array, pairs: bool
) -> tuple[Array, Array, Array, Array | None]:
    """Means of both sides, log Σ_s exp(bᵀs + Σ_r softplus(b_r + M_rᵀ s)) and, if asked, E[s rᵀ].

    The sums are over the states s of the left side; M is (m, r).
    """
    m = M.shape[0]
    bits = min(m, _BLOCK_BITS)
    low = _states(jnp.arange(2**bits), m, M.dtype)  # (S, m): one block of states
    starts = jnp.arange(2 ** (m - bits)) * 2**bits

    def one_clip(biases: tuple[Array, Array]) -> tuple[Array, Array, Array, Array | None]:
        left, right = biases

        def add_block(sums: Any, start: Array) -> tuple[Any, None]:
            """The largest log weight, Σ w / e^peak, and the same sum of both sides' states."""
            top, z, sum_left, sum_right, sum_pairs = sums
            states = low + _states(start[None], m, M.dtype)  # (S, m)
            input_right = right[None, :] + states @ M  # (S, r)
            log_w = states @ left + jnp.sum(jax.nn.softplus(input_right), axis=1)  # (S,)
            peak = jnp.maximum(top, jnp.max(lax.stop_gradient(log_w)))
            w, old = jnp.exp(log_w - peak), jnp.exp(top - peak)
            p_right = jax.nn.sigmoid(input_right)
            if pairs:
                sum_pairs = old * sum_pairs + (w[:, None] * states).T @ p_right  # (m, r)
            return (
                peak,
                old * z + _weighted_sum(w, jnp.ones_like(w)[:, None])[0],
                old * sum_left + _weighted_sum(w, states),
                old * sum_right + _weighted_sum(w, p_right),
                sum_pairs,
            ), None

        empty = (
            jnp.asarray(-jnp.inf, M.dtype),
            jnp.asarray(0, M.dtype),
            0 * left,
            0 * right,
            0 * M if pairs else None,
        )
        # a derivative computes each block again, because all of them need not fit the memory
        sums, _ = lax.scan(jax.checkpoint(add_block, prevent_cse=False), empty, starts)
        peak, z, sum_left, sum_right, sum_pairs = sums
        joint = None if sum_pairs is None else sum_pairs / z
        return sum_left / z, sum_right / z, peak + jnp.log(z), joint

    return lax.map(jax.checkpoint(one_clip, prevent_cse=False), (left_bias, right_bias))


def _weighted_sum(w: Array, values: Array) -> Array:
    """Σ_s w_s values_s in two levels: one running float32 sum would lose another digit."""
    groups = 2 ** ((w.shape[0].bit_length() - 1) // 2)
    parts = jnp.sum((w[:, None] * values).reshape(groups, -1, values.shape[1]), axis=1)
    return jnp.sum(parts, axis=0)


def _states(numbers: Array, m: int, dtype: DTypeLike) -> Array:
    """The last m binary digits of each number as floats, (len(numbers), m)."""
    return ((numbers[:, None] >> jnp.arange(m)[None, :]) & 1).astype(dtype)


# The methods by name


class InferenceOptions(NamedTuple):
    """How to infer."""

    method: str = "lbp"  # one of `METHODS`
    steps: int = 20
    damping: float = 0.5
    tolerance: float = 1e-3
    seed: int = 0
    threads: int = 1
    retry: bool = True  # retry clips on which LBP does not converge


class Numbers(NamedTuple):
    """The options that are inputs of a compiled program."""

    damping: Any
    tolerance: Any
    seed: Any
    chunk: Any  # the number of the first clip, which makes each chunk's random numbers differ


class InferenceMethod:
    """What `infer` and early stopping have to know about a method; the defaults suit most."""

    needs_float64: ClassVar[bool] = False  # whether float32 is too coarse
    is_traced: ClassVar[bool] = False  # whether a compiled early stopping can use `marginals`

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a model with U of this shape, if the method cannot predict with it."""

    def estimate(self, field: Field, y: Array, steps: int, numbers: Numbers) -> Estimate:
        """The marginals and residuals of one chunk of clips; NaN in ``y`` is unknown."""
        raise NotImplementedError

    def retries(self, options: InferenceOptions) -> dict[str, InferenceOptions]:
        """Other options for the clips that do not converge, by the name that diagnostics give."""
        return {}

    def marginals(self, field: Field, y: Array, options: InferenceOptions) -> Array:
        """p(y_j = 1) alone, (B, C), in one piece, if `is_traced`."""
        raise NotImplementedError

    def numbers_per_clip(self, shape: tuple[int, int]) -> int:
        """How many numbers `marginals` keeps of each clip, for U of this shape."""
        return shape[1]


class MeanFieldMethod(InferenceMethod):
    """:func:`mean_field`."""

    is_traced = True

    def estimate(self, field: Field, y: Array, steps: int, numbers: Numbers) -> Estimate:
        """Until the last step, whatever the tolerance."""
        return mean_field(field, y, steps=steps)

    def marginals(self, field: Field, y: Array, options: InferenceOptions) -> Array:
        """The same."""
        return mean_field(field, y, steps=options.steps).y


class BeliefPropagationMethod(InferenceMethod):
    """:func:`belief_propagation`; mean field, which cannot oscillate, is its last resort."""

    is_traced = True

    def estimate(self, field: Field, y: Array, steps: int, numbers: Numbers) -> Estimate:
        """A few clips at a time, so that their messages fit the cache; a GPU takes all at once."""

        def tile(part: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            c, d, y = part
            beliefs = belief_propagation(
                Field(field.U, c, d),
                y,
                steps=steps,
                damping=numbers.damping,
                tolerance=numbers.tolerance,
            )
            return beliefs.y, beliefs.h, beliefs.residual

        size = TILE if platform() == "cpu" else len(y)
        tiles = (array.reshape(-1, size, array.shape[1]) for array in (field.c, field.d, y))
        tags, hidden, residual = lax.map(tile, tuple(tiles))
        return Estimate(
            y=tags.reshape(y.shape),
            h=hidden.reshape(field.c.shape),
            residual=residual.reshape(-1),
        )

    def retries(self, options: InferenceOptions) -> dict[str, InferenceOptions]:
        """More damping and patience; then mean field."""
        patient = options._replace(steps=_RETRY_PATIENCE * options.steps)
        damped = patient._replace(damping=(1 + options.damping) / 2)
        return {
            f"lbp, damping {damped.damping:g}": damped,
            "mean_field": patient._replace(method="mean_field"),
        }

    def marginals(self, field: Field, y: Array, options: InferenceOptions) -> Array:
        """By the logarithms of the messages, which no weight overflows."""
        return belief_propagation(
            field,
            y,
            steps=options.steps,
            damping=options.damping,
            tolerance=options.tolerance,
            logs=True,
        ).y

    def numbers_per_clip(self, shape: tuple[int, int]) -> int:
        """One for each edge, unless a GPU's kernel keeps the messages in registers."""
        n_hidden, n_tags = shape
        return n_tags if fits(n_hidden, n_tags) else n_hidden * n_tags


class GibbsMethod(InferenceMethod):
    """:func:`gibbs`."""

    def estimate(self, field: Field, y: Array, steps: int, numbers: Numbers) -> Estimate:
        """From a seed of its own for each chunk."""
        key = jax.random.fold_in(jax.random.key(numbers.seed), numbers.chunk)
        return gibbs(key, field, y, steps=steps)


class ExactMethod(InferenceMethod):
    """:func:`exact`."""

    needs_float64 = True

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a model that is large on both sides."""
        check_enumerable("inference='exact'", shape, "inference='lbp'")

    def estimate(self, field: Field, y: Array, steps: int, numbers: Numbers) -> Estimate:
        """The sums over all states."""
        return exact(field, y)


METHODS: dict[str, InferenceMethod] = {
    "lbp": BeliefPropagationMethod(),
    "mean_field": MeanFieldMethod(),
    "gibbs": GibbsMethod(),
    "exact": ExactMethod(),
}


def method_of(options: InferenceOptions) -> InferenceMethod:
    """The method that these options name."""
    method = METHODS.get(options.method)
    if method is None:
        known = ", ".join(METHODS)
        raise DataError(
            f"There is no method of inference {options.method!r}."
            f"{did_you_mean(options.method, METHODS)} The methods are {known}."
        )
    return method


# Inference for any number of clips

Conditions: TypeAlias = Codes | Floats  # a: rows of V (N, S), or a number for each tag (N, C)
Clips: TypeAlias = tuple[Floats, Conditions, Floats]  # u (N, D), a, and y (N, C); NaN: unknown


class Diagnostics(NamedTuple):
    """How each clip's marginals were found, and how far they are from convergence."""

    method: NDArray[np.str_]  # (N,): "lbp", "lbp, damping 0.75", "mean_field", "gibbs" or "exact"
    residual: Floats  # (N,): largest last change, or standard error for Gibbs
    converged: Mask  # (N,): residual <= tolerance


class Inference(NamedTuple):
    """Marginals of the tags, (N, C), and of the hidden units, (N, n), with diagnostics."""

    y: Floats
    h: Floats
    diagnostics: Diagnostics


def infer(
    params: Params, u: Floats, a: Conditions, y: Floats, options: InferenceOptions
) -> Inference:
    """Marginals of every clip under ``params``, given the known tags; NaN in ``y`` is unknown.

    Shapes: ``u`` (N, D), ``a`` (N, S) or (N, C) as in `condition`, ``y`` (N, C).
    """
    refuse_fork()
    tags, hidden, residual = _run(options, params, (u, a, y))
    names = np.full(len(y), options.method, dtype="<U24")
    retries = method_of(options).retries(options) if options.retry else {}
    for name, retry in retries.items():
        stubborn = np.flatnonzero(residual > options.tolerance)
        if not len(stubborn):
            break
        again = _run(retry, params, (u[stubborn], a[stubborn], y[stubborn]))
        tags[stubborn], hidden[stubborn], residual[stubborn] = again
        names[stubborn] = name
    # in float32 like the residual, so that the comparison matches the compiled one
    converged = residual <= np.float32(options.tolerance)
    return Inference(
        y=tags,
        h=hidden,
        diagnostics=Diagnostics(method=names, residual=residual, converged=converged),
    )


def _run(options: InferenceOptions, params: Params, clips: Clips) -> tuple[Floats, Floats, Floats]:
    """Chunk by chunk, in threads if asked: compiled programs release the interpreter lock."""
    n_clips = len(clips[2])
    if not n_clips:
        shapes = (0, params.U.shape[1]), (0, params.U.shape[0]), 0
        y, h, residual = (np.zeros(shape, np.float32) for shape in shapes)
        return y, h, residual

    least, chunk_size, threads = TILE, CHUNK, options.threads
    if platform() == "gpu":  # the GPU is kept busy while data moves in and out
        least, chunk_size = CHUNK, max(CHUNK, 2 ** int(np.log2(MAX_MESSAGES // params.U.size)))
        threads = max(threads, 2)

    def chunk(start: int) -> list[Floats]:
        size = min(chunk_size, n_clips - start)
        rows = start + np.minimum(np.arange(padded(size, least, chunk_size)), size - 1)
        u, a, y = clips
        results = _marginals(options, params, (u[rows], a[rows], y[rows]), start)
        # sliced by NumPy: JAX would compile a program for each size
        return [np.array(np.asarray(result)[:size], np.float32) for result in results]

    starts = range(0, n_clips, chunk_size)
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(min(threads, len(starts))) as pool:
            parts = list(pool.map(chunk, starts))
    else:
        parts = [chunk(start) for start in starts]
    y, h, residual = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return y, h, residual


def in_double(clips: Clips) -> Any:
    """The clips in double precision, except for row numbers."""
    return tuple(np.float64(part) if part.dtype.kind == "f" else part for part in clips)


def padded(size: int, least: int = TILE, most: int = CHUNK) -> int:
    """The smallest of least, 2 least, 4 least, … most that is enough."""
    return min(most, least * 2 ** max(0, (size - 1) // least).bit_length())


def chunks(n_clips: int, most: int) -> Iterator[tuple[slice, Places]]:
    """Clips in chunks of a few fixed sizes: the clips of each, and the rows that fill it up."""
    for start in range(0, n_clips, most):
        size = min(most, n_clips - start)
        rows = start + np.minimum(np.arange(padded(size, TILE, most)), size - 1)
        yield slice(start, start + size), rows


def _marginals(
    options: InferenceOptions, params: Params, clips: Clips, first: int
) -> tuple[Array, Array, Array]:
    """Marginals of one chunk, and their residuals; ``first`` is the number of its first clip."""
    numbers = Numbers(
        damping=np.float32(options.damping),
        tolerance=np.float32(options.tolerance),
        seed=np.uint32(options.seed),
        chunk=np.uint32(first),
    )
    if not method_of(options).needs_float64:
        return _program(options.method, options.steps, params, clips, numbers)
    with jax.enable_x64(True):
        wide_params = jax.tree.map(np.float64, params)
        return _program(options.method, options.steps, wide_params, in_double(clips), numbers)


@compiled(static_argnames=("method", "steps"))
def _program(
    method: str, steps: int, params: Params, clips: Any, numbers: Numbers
) -> tuple[Array, Array, Array]:
    u, a, y = clips
    estimate = METHODS[method].estimate(condition(params, u, a), y, steps, numbers)
    return estimate.y, estimate.h, estimate.residual


def marginals(
    options: InferenceOptions, params: Any, x: Array, observed: Array | None = None
) -> Array:
    """p(y_j = 1 | x, the observed tags), (B, C), traceable; NaN is not observed.

    x is (B, D); or (B, D + C), where the last C columns are a, a number for each tag. A ValueError
    for a method that cannot be traced.
    """
    method = method_of(options)
    if not method.is_traced:
        raise ValueError(f"marginals by {options.method!r} are not traced")
    n_features = params.W.shape[1]
    field = condition(Params(*params[:5]), x[:, :n_features], x[:, n_features:])
    y = jnp.full((len(x), len(params.d)), jnp.nan) if observed is None else observed
    return method.marginals(field, y, options)


@compiled(static_argnames=("predictor",))
def predicted(predictor: tuple[Callable[..., Array], Any], params: Any, x: Array) -> Array:
    """What one model's predictor, a function such as `marginals` and its first argument, says."""
    function, options = predictor
    return function(options, params, x)


@compiled(static_argnames=("predictor", "at_once"))
def stacked_auc(
    predictor: tuple[Callable[..., Array], Any],
    at_once: int,
    X: Array,
    Y: Array,
    rows: Array,
    observed: Array | None,
    params: Any,
) -> tuple[Array, Array]:
    """Mean AUC and likelihood on the validation clips, for each model of a stack, (S,) each.

    ``rows`` (S, N) are each model's clips, padded with -1. With ``observed`` (S, N, C), the AUC is
    the mean of two: without and with these tags. ``at_once`` models are scored at a time, which
    bounds the memory.
    """

    def one(of_model: tuple[Array, Array | None, Any]) -> tuple[Array, Array]:
        rows, observed, params = of_model
        function, options = predictor
        predict = partial(function, options, params, X[rows])
        P = predict()
        y = jnp.where((rows >= 0)[:, None], Y[rows], jnp.nan)
        auc = _mean_auc(y, P)
        if observed is not None:
            asked = jnp.where(jnp.isnan(observed), y, jnp.nan)
            auc = (auc + _mean_auc(asked, predict(observed))) / 2
        tiny = jnp.finfo(P.dtype).tiny
        logs = jnp.where(y == 1, jnp.log(jnp.maximum(P, tiny)), jnp.log(jnp.maximum(1 - P, tiny)))
        likelihood = jnp.sum(jnp.where(jnp.isnan(y), 0.0, logs)) / jnp.sum(~jnp.isnan(y))
        return auc, likelihood

    models = (rows, observed, params)
    if at_once >= len(rows):
        return jax.vmap(one)(models)
    return jax.lax.map(one, models, batch_size=at_once)


def _mean_auc(y: Array, P: Array) -> Array:
    """Mean over tags of the share of (positive, negative) pairs in the right order; a tie is half.

    A GPU compares all pairs in a few milliseconds. A program that sorts takes a second longer to
    compile, which is more than it saves in all epochs.
    """

    def in_order(y: Array, p: Array) -> tuple[Array, Array]:
        is_pair = (y == 1)[:, None] & (y == 0)
        right = (p[:, None] > p) + 0.5 * (p[:, None] == p)
        return jnp.sum(jnp.where(is_pair, right, 0.0)), jnp.sum(y == 1) * jnp.sum(y == 0)

    right, pairs = jax.vmap(in_order, in_axes=1)(y, P)
    return jnp.sum(jnp.where(pairs > 0, right / pairs, 0.0)) / jnp.sum(pairs > 0)
