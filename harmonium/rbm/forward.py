"""Inference in NumPy: the same answers as :mod:`harmonium.rbm.inference`, without JAX.

Starting JAX takes longer than tagging some files. So stored models predict by this module, and
only training and the estimators need JAX. All of it is in double precision. B is a batch of clips.

The letters are those of :mod:`harmonium.rbm.model`. Known tags are 0 or 1, and NaN is unknown.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Doubles, Floats
from harmonium.logistic import mean_probabilities, sigmoid

PATIENCE = 10  # how many times more steps than at first, if belief propagation does not converge


class PlainRBM(NamedTuple):
    """An RBM over tags: p(y, h) ∝ exp(hᵀUy + dᵀy + cᵀh).

    The biases are the same for all clips, or each clip has its own.
    """

    U: Doubles  # (n, C)
    c: Doubles  # (n,) or (B, n)
    d: Doubles  # (C,) or (B, C)


class ConditionalRBM(NamedTuple):
    """The parameters of one member of a model: p(y, h | x) ∝ exp(hᵀUy + hᵀWx + dᵀy + cᵀh).

    With V, there is also a number a_j for each tag: d_j ← d_j + V_j a_j.
    """

    U: Doubles  # (n, C)
    W: Doubles  # (n, D)
    c: Doubles  # (n,)
    d: Doubles  # (C,)
    V: Doubles | None = None  # (1, C)

    def condition(self, x: Doubles, a: Doubles | None = None) -> PlainRBM:
        """The RBM over the tags of clips with features x (B, D) and, with V, numbers a (B, C)."""
        d = self.d
        if a is not None and self.V is not None:
            d = d + self.V * a
        return PlainRBM(self.U, self.c + x @ self.W.T, d)


class Marginals(NamedTuple):
    """Marginals of one clip, and how far they are from convergence."""

    y: Doubles  # (C,), p(y_j = 1)
    h: Doubles  # (n,), p(h_k = 1)
    residual: float  # largest undamped change in the last step


def hidden_given_tags(rbm: PlainRBM, y: Doubles) -> Doubles:
    """p(h_k = 1 | y) = σ(c_k + U_k y), (B, n)."""
    return sigmoid(rbm.c + y @ rbm.U.T)


def tags_given_hidden(rbm: PlainRBM, h: Doubles) -> Doubles:
    """p(y_j = 1 | h) = σ(d_j + U_jᵀ h), (B, C)."""
    return sigmoid(rbm.d + h @ rbm.U)


def mean_field(rbm: PlainRBM, y: Doubles, *, steps: int) -> Doubles:
    """p(y_j = 1 | the known tags), (B, C): h ← σ(c + Uy), y ← σ(d + Uᵀh), from y = 0 on.

    ``y`` is (B, C). Known tags keep their values.
    """
    unknown = np.isnan(y)
    free = rbm._replace(c=rbm.c + np.where(unknown, 0.0, y) @ rbm.U.T)
    tags = np.zeros_like(y)
    for _ in range(steps):
        hidden = hidden_given_tags(free, tags * unknown)
        tags = tags_given_hidden(free, hidden)
    return np.where(unknown, tags, y)


def mean_of_members(
    members: Sequence[ConditionalRBM],
    x: Doubles,
    y: Doubles,
    *,
    steps: int,
    a: Doubles | None = None,
) -> Floats:
    """What several members say by mean field: σ of the mean of their log-odds, (B, C)."""
    answers = []
    for member in members:
        P = mean_field(member.condition(x, a), y, steps=steps)
        answers.append(P.astype(np.float32))
    return mean_probabilities(answers)


def tag_probabilities(
    rbm: PlainRBM, y: Doubles, *, steps: int = 20, damping: float = 0.5, tolerance: float = 1e-3
) -> Doubles:
    """p(y_j = 1 | the known tags) of one clip, (C,), as :func:`harmonium.rbm.infer` finds it.

    Belief propagation; if it does not converge, again with more damping and patience; and if it
    still does not, mean field, which cannot oscillate.
    """
    unknown = np.isnan(y)
    free = PlainRBM(rbm.U[:, unknown], rbm.c + rbm.U[:, ~unknown] @ y[~unknown], rbm.d[unknown])
    marginals = belief_propagation(free, steps=steps, damping=damping, tolerance=tolerance)
    if not marginals.residual <= tolerance:
        more_damping = (1 + damping) / 2
        marginals = belief_propagation(
            free, steps=PATIENCE * steps, damping=more_damping, tolerance=tolerance
        )
    inferred = marginals.y
    if not marginals.residual <= tolerance:
        nothing_known = np.full((1, len(free.d)), np.nan)
        inferred = mean_field(free, nothing_known, steps=PATIENCE * steps)[0]
    result = y.copy()
    result[unknown] = inferred
    return result


def belief_propagation(
    rbm: PlainRBM, *, steps: int, damping: float, tolerance: float = 0.0
) -> Marginals:
    """p(y_j = 1) and p(h_k = 1) of one clip, until they change by at most ``tolerance``.

    Messages, their order, damping and the stopping rule are those of :mod:`harmonium.rbm.belief`,
    in the ratio form r = e^m. In double precision, it works for weights of any size.
    """
    U, c, d = rbm
    growth = np.exp(U)
    down = np.ones_like(U)  # messages to the tags, (n, C)
    up = np.ones_like(U)  # and to the hidden units
    total_h, total_y = c, d
    residual = np.inf
    for _ in range(steps):
        down = damping * down + (1 - damping) * _message(total_h[:, None], up, growth)
        new_y = d + np.log(down).sum(axis=0)
        up = damping * up + (1 - damping) * _message(new_y[None, :], down, growth)
        new_h = c + np.log(up).sum(axis=1)
        change = max(_change(total_y, new_y), _change(total_h, new_h))
        total_h, total_y = new_h, new_y
        residual = change / (1 - damping)
        if residual <= tolerance:
            break
    return Marginals(sigmoid(total_y), sigmoid(total_h), residual)


def _message(total: Doubles, r: Doubles, growth: Doubles) -> Doubles:
    """(1 + e^U q) / (1 + q) with q = e^total / r."""
    t = np.exp(np.minimum(total, 0))
    s = np.exp(-np.maximum(total, 0))  # t / s = e^total, and neither is above 1
    x = s * r
    return (x + growth * t) / (x + t)


def _change(old: Doubles, new: Doubles) -> float:
    """The largest change in a probability, but at least a hundredth of that in a total."""
    probability = np.abs(sigmoid(new) - sigmoid(old))
    return float(np.maximum(probability, 0.01 * np.abs(new - old)).max(initial=0))
