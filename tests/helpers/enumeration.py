"""The slow truth: every state of a small model, in NumPy and float64, from the energy alone.

Nothing here uses the package's maths; :func:`as_params` and :func:`as_field` only hand a model over
to it. One clip at a time: U is (n, C), c (n,) and d (C,) are the biases once u and a are known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.rbm.model import Field, Params

Floats = NDArray[np.float64]


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


def biases(model: Model, u: Floats, a: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """c + Wu and d + Va of one clip, with a as the dense sum of its one-hot parts."""
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


def log_sum(log_terms: Floats) -> float:
    """log Σ exp, of all terms."""
    peak = log_terms.max()
    return float(peak + np.log(np.exp(log_terms - peak).sum()))


def enumerate_clip(U: Floats, c: Floats, d: Floats, y: Floats) -> Truth:
    """Σ over all h, and all tags that agree with the known ones, of what p(y, h) weights."""
    tags, hidden = agreeing(y), states(len(c))
    log_weights = -energies(U, c, d, tags)  # (2^n, S)
    log_z = log_sum(log_weights)
    p = np.exp(log_weights - log_z)
    return Truth(p.sum(0) @ tags, p.sum(1) @ hidden, hidden.T @ p @ tags, log_z)


def enumerate_clips(model: Model, u: Floats, a: NDArray[np.integer], y: Floats) -> list[Truth]:
    """:func:`enumerate_clip` of each row."""
    rows = zip(u, a, y, strict=True)
    return [enumerate_clip(model.U, *biases(model, ui, ai), yi) for ui, ai, yi in rows]


def enumerated_log_likelihood(U: Floats, c: Floats, d: Floats, y: Floats) -> float:
    """log p(the known tags), the others summed out."""
    unknown = np.full(len(y), np.nan)
    return enumerate_clip(U, c, d, y).log_z - enumerate_clip(U, c, d, unknown).log_z


def pseudo_likelihood_terms(model: Model, u: Floats, a: NDArray[np.integer], y: Floats) -> Floats:
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
