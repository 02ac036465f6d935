"""The slow truth: every state of a small model, in NumPy and float64, from the energy alone.

Nothing here uses the package's maths; :func:`as_params` and :func:`as_field` only hand a model over
to it. One clip at a time: U is (n, C), c (n,) and d (C,) are the biases once u and a are known.
Then block Gibbs sampling without sampling, by transition matrices and paths; and gradients by
central differences.
"""

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit as sigmoid
from scipy.special import logsumexp as log_sum

from harmonium.rbm.gradients import Batch
from harmonium.rbm.model import Field, Params

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]


class Model(NamedTuple):
    """Parameters in float64; each value is representable in float32."""

    U: Floats  # (n, C)
    W: Floats  # (n, D)
    V: Floats  # (A, C)
    c: Floats  # (n,)
    d: Floats  # (C,)


class Truth(NamedTuple):
    """Exact expectations of one clip."""

    y: Floats  # (C,)
    h: Floats  # (n,)
    pairs: Floats  # (n, C), p(h_k = 1, y_j = 1)
    log_z: float


def random_model(
    rng: np.random.Generator, n: int, C: int, D: int = 0, A: int = 0, *, scale: float = 1.0
) -> Model:
    """Normal weights and biases of the given standard deviation."""
    shapes = (n, C), (n, D), (A, C), (n,), (C,)
    return Model(*(single(rng.normal(0, scale, shape)) for shape in shapes))


def extreme_model(rng: np.random.Generator, n: int, C: int, D: int = 0, A: int = 0) -> Model:
    """Weights and biases of ±50."""
    shapes = (n, C), (n, D), (A, C), (n,), (C,)
    return Model(*(50.0 * rng.choice([-1.0, 1.0], shape) for shape in shapes))


def single(array: NDArray[np.floating]) -> Floats:
    """The nearest float32 numbers, as float64."""
    return np.asarray(array, np.float32).astype(np.float64)


def random_tags(rng: np.random.Generator, B: int, C: int, *, unknown: float = 0.0) -> Floats:
    """Tags 0 or 1, and NaN with probability ``unknown``; (B, C)."""
    y = rng.integers(0, 2, (B, C)).astype(np.float64)
    return np.where(rng.random((B, C)) < unknown, np.nan, y)


def random_batch(
    rng: np.random.Generator,
    B: int,
    C: int,
    D: int,
    A: int,
    *,
    unknown: float = 0.0,
    numbers: bool = False,
) -> Batch:
    """Clips with weights that differ, in float64; with ``numbers``, a has one for each tag."""
    u, w = single(rng.normal(size=(B, D))), single(rng.uniform(0.5, 2, B))
    a = rng.integers(-1, A, (B, 2)).astype(np.int32)
    if numbers:
        a = single(rng.normal(size=(B, C)))
    return Batch(u, a, random_tags(rng, B, C, unknown=unknown), w)


def biases(model: Model, u: Floats, a: Indices) -> tuple[Floats, Floats]:
    """c + Wu and d + Va of one clip, with a as the dense sum of its one-hot parts.

    If a has a number for each tag, V is (1, C), the diagonal of a square matrix.
    """
    if a.dtype.kind == "f":
        return model.c + model.W @ u, model.d + np.diag(model.V[0]) @ a
    dense = np.zeros(len(model.V))
    for index in a:
        if index >= 0:
            dense[index] += 1
    return model.c + model.W @ u, model.d + model.V.T @ dense


def states(m: int) -> Floats:
    """All binary vectors of length m, (2^m, m)."""
    return ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.float64)


def energies(U: Floats, c: Floats, d: Floats, y: Floats) -> Floats:
    """E(y, h) = -hᵀUy - dᵀy - cᵀh for every h and the given tag vectors y (S, C); (2^n, S)."""
    h = states(len(c))
    return -(h @ U @ y.T + (y @ d)[None, :] + (h @ c)[:, None])


def agreeing(y: Floats) -> Floats:
    """All binary tag vectors that agree with the known tags of y (C,)."""
    every = states(len(y))
    known = ~np.isnan(y)
    return every[np.all(every[:, known] == y[known], axis=1)]


def enumerate_clip(U: Floats, c: Floats, d: Floats, y: Floats) -> Truth:
    """Σ over all h, and all tags that agree with the known ones, of what p(y, h) weights."""
    tags, hidden = agreeing(y), states(len(c))
    log_weights = -energies(U, c, d, tags)  # (2^n, S)
    log_z = log_sum(log_weights)
    p = np.exp(log_weights - log_z)
    return Truth(p.sum(0) @ tags, p.sum(1) @ hidden, hidden.T @ p @ tags, log_z)


def enumerate_clips(model: Model, u: Floats, a: Indices, y: Floats) -> list[Truth]:
    """:func:`enumerate_clip` of each row."""
    rows = zip(u, a, y, strict=True)
    return [enumerate_clip(model.U, *biases(model, ui, ai), yi) for ui, ai, yi in rows]


def enumerated_log_likelihood(U: Floats, c: Floats, d: Floats, y: Floats) -> float:
    """log p(the known tags), the others summed out."""
    unknown = np.full(len(y), np.nan)
    return enumerate_clip(U, c, d, y).log_z - enumerate_clip(U, c, d, unknown).log_z


def pseudo_likelihood_terms(model: Model, u: Floats, a: Indices, y: Floats) -> Floats:
    """log p(y_j | y_\\j) of each tag of one clip: y against y and y with tag j flipped; (C,)."""
    c, d = biases(model, u, a)
    terms = []
    for j in range(len(y)):
        both = np.array([y, y])
        both[1, j] = 1 - y[j]
        log_weights = -energies(model.U, c, d, both)  # (2^n, 2)
        terms.append(log_sum(log_weights[:, 0]) - log_sum(log_weights))
    return np.array(terms)


def as_params(model: Model) -> Params:
    """The same model for the package, in float32."""
    return Params(*(np.asarray(array, np.float32) for array in model))


def as_field(U: Floats, c: Floats, d: Floats, dtype: type = np.float32) -> Field:
    """A batch for the package; c is (B, n) and d (B, C)."""
    return Field(*(np.asarray(array, dtype) for array in (U, c, d)))


def bernoulli(p: Floats, x: Floats) -> Floats:
    """Π p^x (1 - p)^(1 - x) over the last axis."""
    return np.prod(np.where(x == 1, p, 1 - p), axis=-1)


def transitions(U: Floats, c: Floats, d: Floats, y: Floats) -> Floats:
    """p(y' | y) of one sweep between all tag vectors, the known tags of ``y`` clamped."""
    tags, hidden = states(len(d)), states(len(c))
    p_h = bernoulli(sigmoid(c + tags @ U.T)[:, None, :], hidden[None])  # (tags, hidden)
    p_on = np.where(np.isnan(y), sigmoid(d + hidden @ U), np.nan_to_num(y))
    return p_h @ bernoulli(p_on[:, None, :], tags[None])


def energy_slopes(model: Model, u: Floats, a: Indices, y: Floats) -> Model:
    """-∂E/∂θ at (y, E[h | y])."""
    c, _ = biases(model, u, a)
    h = sigmoid(c + model.U @ y)
    V = np.zeros_like(model.V)
    if a.dtype.kind == "f":
        V[0] = a * y
    else:
        for row in a[a >= 0]:
            V[row] += y
    return Model(np.outer(h, y), np.outer(h, u), V, h, y)


def slopes_after(model: Model, u: Floats, a: Indices, p: Floats) -> Model:
    """:func:`energy_slopes` expected under a distribution p over all tag vectors."""
    each = [energy_slopes(model, u, a, y) for y in states(len(model.d))]
    return Model(*(np.tensordot(p, np.array(arrays), 1) for arrays in zip(*each, strict=True)))


def expected_slopes(
    model: Model, u: Floats, a: Indices, y: Floats, steps: int, *, fill: int = 0
) -> Model:
    """The expected gradient of CD-``steps`` after ``fill`` sweeps that draw the unknown tags."""
    C = len(y)
    c, d = biases(model, u, a)
    start = np.eye(2**C)[int(np.nan_to_num(y) @ 2 ** np.arange(C))]
    data = start @ np.linalg.matrix_power(transitions(model.U, c, d, y), fill)
    free = transitions(model.U, c, d, np.full(C, np.nan))
    end = data @ np.linalg.matrix_power(free, steps)
    phases = (slopes_after(model, u, a, p) for p in (end, data))
    return Model(*(negative - positive for negative, positive in zip(*phases, strict=True)))


def paths(
    model: Model, u: Floats, a: Indices, y: Floats, steps: int, *, fill: int = 0
) -> tuple[Floats, Floats]:
    """Noise that forces every path of ``fill`` clamped and ``steps`` free sweeps, and p(path).

    Shapes (steps + fill, P, n + C), in the order in which CD takes it, and (P,). Paths of
    probability 0, in which a known tag would change, are left out.
    """
    n, C = model.U.shape
    c, d = biases(model, u, a)
    units = np.array(list(product(states(n + C), repeat=steps + fill)))  # (P, sweeps, n + C)
    tags, p = np.tile(np.nan_to_num(y), (len(units), 1)), np.ones(len(units))
    for sweep in range(fill + steps):
        h, new = units[:, sweep, :n], units[:, sweep, n:]
        p_on = sigmoid(d + h @ model.U)
        if sweep < fill:
            p_on = np.where(np.isnan(y), p_on, np.nan_to_num(y))
        p = p * bernoulli(sigmoid(c + tags @ model.U.T), h) * bernoulli(p_on, new)
        tags = new
    noise = np.moveaxis(1.0 - units[p > 0], 1, 0)  # below every probability, or above
    return np.concatenate([noise[fill:], noise[:fill]]), p[p > 0]


jitted = cache(jax.jit)  # equal gradients share their programs

STEP = 1e-5
"""Truncation of order STEP², rounding of order 1e-16 · |f| / STEP: both about 1e-10."""


def gradient_by_differences(f: Any, model: Any) -> Any:
    """∂f/∂θ for every number of the model, a NamedTuple of arrays."""
    gradients = {}
    for name, array in model._asdict().items():
        gradient = gradients[name] = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = array.copy()
                moved[index] += step
                ends.append(f(model._replace(**{name: moved})))
            gradient[index] = (ends[0] - ends[1]) / (2 * STEP)
    return type(model)(**gradients)


def evaluate(gradient: Any, model: Any, batch: Any, noise: Any) -> Any:
    """What the package's gradient is, in float64."""
    with jax.enable_x64(True):
        return jitted(gradient)(Params(*model), batch, noise)[0]


def assert_close(gradient: Any, expected: Any, tolerance: float) -> None:
    """Whether two gradients agree in every number."""
    for name, one, other in zip(Params._fields, gradient, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance, err_msg=name)
