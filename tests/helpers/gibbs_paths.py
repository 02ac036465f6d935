"""Block Gibbs sampling without sampling: transition matrices and paths of a tiny model."""

from itertools import product

import numpy as np
from enumeration import Floats, Model, biases, states
from numpy.typing import NDArray


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def bernoulli(p: Floats, x: Floats) -> Floats:
    """Π p^x (1 - p)^(1 - x) over the last axis."""
    return np.prod(np.where(x == 1, p, 1 - p), axis=-1)


def transitions(U: Floats, c: Floats, d: Floats, y: Floats) -> Floats:
    """p(y' | y) of one sweep between all tag vectors, the known tags of ``y`` clamped."""
    tags, hidden = states(len(d)), states(len(c))
    p_h = bernoulli(sigmoid(c + tags @ U.T)[:, None, :], hidden[None])  # (tags, hidden)
    p_on = np.where(np.isnan(y), sigmoid(d + hidden @ U), np.nan_to_num(y))
    return p_h @ bernoulli(p_on[:, None, :], tags[None])


def energy_slopes(model: Model, u: Floats, a: NDArray[np.integer], y: Floats) -> Model:
    """-∂E/∂θ at (y, E[h | y])."""
    c, _ = biases(model, u, a)
    h = sigmoid(c + model.U @ y)
    V = np.zeros_like(model.V)
    for row in a[a >= 0]:
        V[row] += y
    return Model(np.outer(h, y), np.outer(h, u), V, h, y)


def slopes_after(model: Model, u: Floats, a: NDArray[np.integer], p: Floats) -> Model:
    """:func:`energy_slopes` expected under a distribution p over all tag vectors."""
    each = [energy_slopes(model, u, a, y) for y in states(len(model.d))]
    return Model(*(np.tensordot(p, np.array(arrays), 1) for arrays in zip(*each, strict=True)))


def expected_slopes(
    model: Model, u: Floats, a: NDArray[np.integer], y: Floats, steps: int, *, fill: int = 0
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
    model: Model, u: Floats, a: NDArray[np.integer], y: Floats, steps: int, *, fill: int = 0
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
