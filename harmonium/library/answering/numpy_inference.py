"""Belief propagation for a few tracks, in NumPy, so that `harmonium tag FILE` starts fast.

The same messages in the same order, with the same damping and the same stopping rule, as
``harmonium.rbm.belief`` has them in ratio form, one track at a time; a test compares the two.
Starting JAX takes longer than all of this. In double precision, ratios serve weights of any size.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

LEAST = 1e-4
"""Probabilities are kept so far from 0 and 1 where log-odds are taken of them."""
LINEAR = "linear."
"""The arrays of a stored model whose names begin so are a logistic regression beside it."""


class TagRBM(NamedTuple):
    """An RBM over tags: p(y, h) ∝ exp(hᵀUy + dᵀy + cᵀh)."""

    U: Doubles  # (n, C)
    c: Doubles  # (n,)
    d: Doubles  # (C,)

    def given(self, y: Doubles) -> "TagRBM":
        """The RBM over the unknown tags of y (C,), which are NaN; the known ones move into c."""
        unknown = np.isnan(y)
        c = self.c + self.U[:, ~unknown] @ y[~unknown]
        return TagRBM(self.U[:, unknown], c, self.d[unknown])


class BeliefOptions(NamedTuple):
    """How long belief propagation goes on, and how it is damped; as the estimators have it."""

    steps: int = 20
    damping: float = 0.5
    tolerance: float = 1e-3


USUAL = BeliefOptions()


def tag_probabilities(rbm: TagRBM, y: Doubles, options: BeliefOptions = USUAL) -> Doubles:
    """p(y_j = 1 | the known tags), (C,).

    ``y`` is (C,) with NaN for unknown tags; known ones come back as given. Where belief propagation
    does not converge, even with more patience, mean field is used.
    """
    result, unknown, free = y.copy(), np.isnan(y), rbm.given(y)
    patient = BeliefOptions(10 * options.steps, (1 + options.damping) / 2, options.tolerance)
    found = beliefs(free, options)
    found = beliefs(free, patient) if found is None else found
    result[unknown] = mean_field(free, patient.steps) if found is None else found
    return result


def mean_field(rbm: TagRBM, steps: int) -> Doubles:
    """h ← σ(c + U y), y ← σ(d + Uᵀh), from y = 0 on; (C,)."""
    y = np.zeros_like(rbm.d)
    for _ in range(steps):
        y = sigmoid(rbm.d + rbm.U.T @ sigmoid(rbm.c + rbm.U @ y))
    return y


def mean_field_rows(rbm: TagRBM, drive: Doubles, y: Doubles, steps: int) -> Doubles:
    """p(y_j = 1 | the known tags) of many tracks by so many mean-field steps, (n, C).

    ``drive`` (n, n_hidden) is what the sound adds to c; ``y`` (n, C) has NaN for unknown tags.
    """
    unknown = np.isnan(y)
    told = rbm.c + drive + np.where(unknown, 0, y) @ rbm.U.T
    tags = np.zeros_like(unknown, rbm.d.dtype)
    for _ in range(steps):
        tags = sigmoid(rbm.d + sigmoid(told + (tags * unknown) @ rbm.U.T) @ rbm.U)
    return np.where(unknown, tags, y)


def beliefs(rbm: TagRBM, options: BeliefOptions) -> Doubles | None:
    """p(y_j = 1) by loopy belief propagation, (C,), or None if it has not converged."""
    U, c, d = rbm
    damping = options.damping
    A = np.exp(U)
    down, up = np.ones_like(U), np.ones_like(U)  # ratios r = e^m
    total_h, total_y = c, d
    for _ in range(options.steps):
        down = damping * down + (1 - damping) * _message(total_h[:, None], up, A)
        new_y = d + np.log(down).sum(axis=0)
        up = damping * up + (1 - damping) * _message(new_y[None, :], down, A)
        new_h = c + np.log(up).sum(axis=1)
        change = max(_change(total_y, new_y), _change(total_h, new_h)) / (1 - damping)
        total_h, total_y = new_h, new_y
        if change <= options.tolerance:
            return sigmoid(total_y)
    return None


def sigmoid(x: Doubles) -> Doubles:
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def log_odds(P: Floats) -> Floats:
    """log p / (1 - p), of probabilities kept away from 0 and 1."""
    p = np.clip(P, LEAST, 1 - LEAST)
    return np.log(p / (1 - p)).astype(np.float32)


def mix(own: Floats, prior: Floats, weight: Floats | np.float32) -> Floats:
    """σ(weight · log-odds of one's own + (1 - weight) · those of the prior)."""
    z = weight * log_odds(own) + (1 - weight) * log_odds(prior)
    return (1 / (1 + np.exp(-z))).astype(np.float32)


def _message(total: Doubles, r: Doubles, A: Doubles) -> Doubles:
    """(1 + A q) / (1 + q) with q = e^total / r."""
    t, s = np.exp(np.minimum(total, 0)), np.exp(-np.maximum(total, 0))
    x = s * r
    return (x + A * t) / (x + t)


def _change(old: Doubles, new: Doubles) -> float:
    """The largest change of a probability, but at least a hundredth of that of a total."""
    probability = np.abs(sigmoid(new) - sigmoid(old))
    return float(np.maximum(probability, 0.01 * np.abs(new - old)).max(initial=0))
