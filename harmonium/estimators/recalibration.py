"""A correction of probabilities that are too low, too high, too bold or too timid.

The log-odds of tag j become

    a_j + α·[some tag is told] + α'·t + (b_j + β·[some tag is told] + β'·t) · log-odds

with t the share of the clip's tags that are told. For clips with equally many tags told it is one
increasing function for each tag, so the order of the clips, and with it the AUC, does not change.

It is fitted to predictions of clips that the model has not learnt from, by penalised maximum
likelihood: a_j and b_j are drawn towards their means and everything towards no correction, so that
a tag with few known clips is corrected like the others, and a few clips correct little. Neither
JAX nor scikit-learn is needed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.model_files import Arrays, finite_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

OWN_OFFSET, OWN_SLOPE = 0.5, 0.25
"""Standard deviations of a_j and of b_j about their means, before anything is seen,"""
OFFSET, SLOPE = 1.0, 0.25
"""of the mean of a_j, α and α' about 0, and of the mean of b_j about 1, β and β' about 0."""
LEAST_SLOPE = 0.1
FARTHEST = 16.0
"""Log-odds that probabilities of 0 and 1 count as; single precision has none farther from 0.5."""


class Question(NamedTuple):
    """Predictions of clips not learnt from, some of whose tags may have been told."""

    P: Floats  # (N, C) probabilities, before any correction
    Y: Floats  # (N, C) what was true: 0, 1, a probability, or NaN where unknown or told
    told: Doubles  # (N,) the share of the tags that were told
    weight: Doubles  # (N,) how much each clip counts, beside the others of this question


class Recalibration(NamedTuple):
    """The numbers of the correction."""

    offsets: Doubles  # (C,) a_j
    slopes: Doubles  # (C,) b_j
    told_offsets: Doubles  # (2,) α, α'
    told_slopes: Doubles  # (2,) β, β'

    def __call__(self, P: Floats, told: Doubles | None = None) -> Floats:
        """Corrected probabilities, (N, C); ``told`` (N,) is the share of each clip's tags told."""
        Z = _told_columns(told, len(P))[:, 1:]
        slope = np.maximum(self.slopes + (Z @ self.told_slopes)[:, None], LEAST_SLOPE)
        offset = self.offsets + (Z @ self.told_offsets)[:, None]
        return _sigmoid(offset + slope * _logit(P)).astype(np.float32)


def stored_recalibration(arrays: Arrays, n_tags: int) -> Recalibration | None:
    """The correction among the arrays of a model file; None where it has none."""
    if "recalibration.offsets" not in arrays:
        return None
    parts = (finite_array(arrays, f"recalibration.{name}") for name in Recalibration._fields)
    found = Recalibration(*parts)
    if [part.shape for part in found] != [(n_tags,), (n_tags,), (2,), (2,)]:
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
    weight = np.concatenate([q.weight / np.mean(q.weight) for q in questions])
    known = ~np.isnan(Y) * weight[:, None] / len(questions)  # the same clips, asked again and again
    Y, n_tags = np.nan_to_num(Y), L.shape[1]
    # θ = (own offsets and own slopes, about their means; mean, α, β; mean slope, its changes)
    centre = np.r_[np.zeros(2 * n_tags + 3), 1.0, 0.0, 0.0]
    spread = [[OWN_OFFSET] * n_tags, [OWN_SLOPE] * n_tags, [OFFSET] * 3, [SLOPE] * 3]
    precision = np.concatenate(spread) ** -2.0

    def log_odds(theta: Doubles) -> Doubles:
        a, b = theta[:n_tags], theta[n_tags : 2 * n_tags]
        shift, slope = Z @ theta[-6:-3], Z @ theta[-3:]
        return a + shift[:, None] + (b + slope[:, None]) * L

    def loss(theta: Doubles) -> float:
        s = log_odds(theta)
        fit = np.sum(known * (np.logaddexp(0, s) - Y * s))
        return float(fit + 0.5 * np.sum(precision * (theta - centre) ** 2))

    theta = centre
    for _ in range(50):  # Newton's method
        P = _sigmoid(log_odds(theta))
        gradient, hessian = _derivatives(known * (P - Y), known * P * (1 - P), Z, L)
        gradient += precision * (theta - centre)
        step = np.linalg.solve(hessian + np.diag(precision), gradient)
        if gradient @ step < 1e-10:
            break
        value, scale = loss(theta), 1.0
        while loss(theta - scale * step) > value and scale > 1e-6:
            scale /= 2  # the loss is convex: a shorter step is lower
        theta = theta - scale * step
    return Recalibration(
        offsets=theta[:n_tags] + theta[-6],
        slopes=theta[n_tags : 2 * n_tags] + theta[-3],
        told_offsets=theta[-5:-3],
        told_slopes=theta[-2:],
    )


def _derivatives(
    residual: Doubles, weight: Doubles, Z: Doubles, L: Doubles
) -> tuple[Doubles, Doubles]:
    """Gradient and Hessian of the cross-entropy in θ, of length 2C + 6."""
    n, r, w = L.shape[1], residual * L, weight * L
    gradient = np.concatenate(
        [part.sum(axis=0) for part in (residual, r)]
        + [part.sum(axis=1) @ Z for part in (residual, r)]
    )
    hessian = np.zeros((2 * n + 6, 2 * n + 6))
    own = [np.diag(part.sum(axis=0)) for part in (weight, w, w * L)]
    hessian[:n, :n], hessian[:n, n : 2 * n], hessian[n : 2 * n, n : 2 * n] = own
    hessian[:n, 2 * n :] = np.hstack([weight.T @ Z, w.T @ Z])
    hessian[n : 2 * n, 2 * n :] = np.hstack([w.T @ Z, (w * L).T @ Z])
    plain, once, twice = (Z.T @ (part.sum(axis=1)[:, None] * Z) for part in (weight, w, w * L))
    hessian[2 * n :, 2 * n :] = np.block([[plain, once], [once.T, twice]])
    upper = np.triu(hessian)
    return gradient, upper + np.triu(hessian, 1).T


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
