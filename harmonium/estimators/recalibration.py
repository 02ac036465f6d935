"""A correction of probabilities that are too low, too high, too bold or too timid.

The log-odds of tag j become

    a_j + α·[some tag is told] + β·t + (b + b'·[some tag is told] + b''·t) · log-odds

with t the share of the clip's tags that are told. For clips with equally many tags told it is one
increasing function for each tag, so the order of the clips, and with it the AUC, does not change.

It is fitted to predictions of clips that the model has not learnt from, by penalised maximum
likelihood: a_j are drawn towards their mean and everything towards no correction, so that a tag
with few known clips is corrected like the others, and a few clips correct nothing. Neither JAX nor
scikit-learn is needed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.model_files import Arrays, finite_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

SPREAD = 0.5
"""Standard deviation of a_j about their mean, in log-odds, before anything is seen,"""
OFFSET, SLOPE = 1.0, 0.25
"""and that of their mean, α and β about 0, and of the slopes about 1 and 0."""
LEAST_SLOPE = 0.1
FARTHEST = 16.0
"""Log-odds that probabilities of 0 and 1 count as; single precision has none farther from 0.5."""


class Question(NamedTuple):
    """Predictions of clips not learnt from, some of whose tags may have been told."""

    P: Floats  # (N, C) probabilities, before any correction
    Y: Floats  # (N, C) what was true: 0, 1, a probability, or NaN where unknown or told
    told: Doubles  # (N,) the share of the tags that were told


class Recalibration(NamedTuple):
    """The numbers of the correction."""

    offsets: Doubles  # (C,) a_j
    shifts: Doubles  # (2,) α, β
    slopes: Doubles  # (3,) b, b', b''

    def __call__(self, P: Floats, told: Doubles | None = None) -> Floats:
        """Corrected probabilities, (N, C); ``told`` (N,) is the share of each clip's tags told."""
        Z = _told_columns(told, len(P))
        slope = np.maximum(Z @ self.slopes, LEAST_SLOPE)
        log_odds = self.offsets + (Z[:, 1:] @ self.shifts)[:, None] + slope[:, None] * _logit(P)
        return _sigmoid(log_odds).astype(np.float32)


def stored_recalibration(arrays: Arrays, n_tags: int) -> Recalibration | None:
    """The correction among the arrays of a model file; None where it has none."""
    if "recalibration.offsets" not in arrays:
        return None
    parts = (finite_array(arrays, f"recalibration.{name}") for name in Recalibration._fields)
    found = Recalibration(*parts)
    if [part.shape for part in found] != [(n_tags,), (2,), (3,)]:
        raise ValueError("its recalibration is not one of its tags")
    return found


def share_told(Y: Floats) -> Doubles:
    """The share of each clip's tags that are known, (N,), of (N, C) with NaN for unknown."""
    return np.mean(~np.isnan(Y), axis=1, dtype=np.float64)


def fit_recalibration(questions: Sequence[Question]) -> Recalibration:
    """The correction that fits the questions, each of which has the same weight."""
    Z = np.vstack([_told_columns(q.told, len(q.P)) for q in questions])  # (M, 3)
    L = np.vstack([_logit(q.P) for q in questions])  # (M, C)
    Y = np.vstack([q.Y for q in questions]).astype(np.float64)
    known = ~np.isnan(Y) / len(questions)  # the same clips are asked about again and again
    Y = np.nan_to_num(Y)
    n_tags = L.shape[1]
    # θ = (deviations of a_j from their mean; mean, α, β; slopes)
    centre = np.r_[np.zeros(n_tags + 3), 1.0, 0.0, 0.0]
    precision = np.r_[np.full(n_tags, SPREAD), np.full(3, OFFSET), np.full(3, SLOPE)] ** -2.0
    theta, loss = centre.copy(), np.inf
    for _ in range(50):
        log_odds, value = _objective(theta, Z, L, Y, known, precision, centre)
        P = _sigmoid(log_odds)
        residual, weight = known * (P - Y), known * P * (1 - P)
        gradient, hessian = _derivatives(residual, weight, Z, L)
        gradient += precision * (theta - centre)
        step = np.linalg.solve(hessian + np.diag(precision), gradient)
        scale = 1.0
        while scale > 1e-6:  # the objective is convex: a shorter step always helps
            shorter = theta - scale * step
            if _objective(shorter, Z, L, Y, known, precision, centre)[1] <= value:
                break
            scale /= 2
        theta = theta - scale * step
        if loss - value < 1e-9 * abs(value) and np.abs(step).max() < 1e-6:
            break
        loss = value
    offsets = theta[:n_tags] + theta[n_tags]
    return Recalibration(offsets, theta[n_tags + 1 : n_tags + 3], theta[n_tags + 3 :])


def _objective(
    theta: Doubles,
    Z: Doubles,
    L: Doubles,
    Y: Doubles,
    known: Doubles,
    precision: Doubles,
    centre: Doubles,
) -> tuple[Doubles, float]:
    """The corrected log-odds (M, C), and the penalised cross-entropy."""
    n_tags = L.shape[1]
    shared, slopes = theta[n_tags : n_tags + 3], theta[n_tags + 3 :]
    log_odds = theta[:n_tags] + (Z @ shared)[:, None] + (Z @ slopes)[:, None] * L
    loss = np.sum(known * (np.logaddexp(0, log_odds) - Y * log_odds))
    return log_odds, float(loss + 0.5 * np.sum(precision * (theta - centre) ** 2))


def _derivatives(
    residual: Doubles, weight: Doubles, Z: Doubles, L: Doubles
) -> tuple[Doubles, Doubles]:
    """Gradient (C + 6,) and Hessian (C + 6, C + 6) of the cross-entropy."""
    n_tags = L.shape[1]
    gradient = np.r_[residual.sum(axis=0), residual.sum(axis=1) @ Z, (residual * L).sum(axis=1) @ Z]
    own = weight.sum(axis=0)
    across = np.hstack([weight.T @ Z, (weight * L).T @ Z])  # (C, 6)
    plain, once, twice = weight.sum(axis=1), (weight * L).sum(axis=1), (weight * L**2).sum(axis=1)
    offsets, mixed, slopes = (Z.T @ (w[:, None] * Z) for w in (plain, once, twice))
    hessian = np.zeros((n_tags + 6, n_tags + 6))
    hessian[:n_tags, :n_tags] = np.diag(own)
    hessian[:n_tags, n_tags:], hessian[n_tags:, :n_tags] = across, across.T
    hessian[n_tags:, n_tags:] = np.block([[offsets, mixed], [mixed.T, slopes]])
    return gradient, hessian


def _told_columns(told: Doubles | None, n_clips: int) -> Doubles:
    """(1, [some tag is told], t) of each clip, (N, 3)."""
    share = np.zeros(n_clips) if told is None else told
    return np.column_stack([np.ones(n_clips), share > 0, share])


def _logit(P: Floats) -> Doubles:
    p = P.astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -FARTHEST, FARTHEST)


def _sigmoid(x: Doubles) -> Doubles:
    return 0.5 * (1 + np.tanh(0.5 * x))
