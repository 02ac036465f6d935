"""Evaluation on held-out clips: scores, thresholds, and calibration of probabilities.

A label that is a probability p counts as p positives and 1 - p negatives.

The correction is for probabilities that are too low, too high, overconfident or underconfident. The
log-odds of tag j become

    a_j + α·[some tag is observed] + α'·t + (b_j + β·[some tag is observed] + β'·t) · log-odds

with t the fraction of the clip's tags that are observed. Among clips with equally many observed
tags, it is one increasing function per tag, so the order of the clips, and with it the AUC, does
not change. It is fitted by penalised maximum likelihood: a_j and b_j are pulled towards their means
and everything towards no correction, so that a tag with few known clips is corrected like the
others, and a few clips correct little. Neither JAX nor scikit-learn is needed.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from harmonium.arrays import Doubles, Floats, Places
from harmonium.estimators import model_files

# prior standard deviations of a_j and of b_j about their means
TAG_OFFSET_SPREAD, TAG_SLOPE_SPREAD = 0.5, 0.25
# and of (mean of a_j, α, α') about 0 and of (mean of b_j - 1, β, β')
OFFSET_SPREAD, SLOPE_SPREAD = 1.0, 0.25


def is_rankable(Y: Floats) -> bool:
    """Whether some tag has both a positive and a negative, so that an AUC is defined."""
    return bool((_pairs(Y) > 0).any())


def mean_auc(Y: Floats, S: Floats) -> float:
    """Mean over tags of the AUC of scores S (N, C) for labels Y (N, C)."""
    if not model_files.is_soft(Y):
        from harmonium.evaluation import auc_per_tag  # this loads SciPy

        return auc_per_tag(Y, S).mean
    pairs = _pairs(Y)
    won = [_pairs_won(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    return float(np.mean(np.array(won)[pairs > 0] / pairs[pairs > 0]))


def log_likelihood(Y: Floats, P: Floats) -> float:
    """Mean of y log p + (1 - y) log(1 - p) over the known labels; P is (N, C) probabilities."""
    tiny = np.finfo(np.float32).tiny
    terms = Y * np.log(np.maximum(P, tiny)) + (1 - Y) * np.log(np.maximum(1 - P, tiny))
    return float(np.mean(terms[~np.isnan(Y)]))


def _pairs(Y: Floats) -> Doubles:
    """Expected pairs Σ_{i≠k} y_ij (1 - y_kj) of a positive and a negative of each tag, (C,)."""
    known = ~np.isnan(Y)
    p = np.where(known, Y, 0.0).astype(np.float64)
    q = known - p
    return np.maximum(p.sum(axis=0) * q.sum(axis=0) - (p * q).sum(axis=0), 0.0)


def _pairs_won(y: Floats, s: Floats) -> float:
    """Σ_{i≠k} y_i (1 - y_k) [s_i > s_k], equal scores counting half; of one tag."""
    known = ~np.isnan(y)
    p, (values, place) = y[known].astype(np.float64), np.unique(s[known], return_inverse=True)
    positive = np.bincount(place, weights=p, minlength=len(values))
    negative = np.bincount(place, weights=1 - p, minlength=len(values))
    below = np.cumsum(negative) - negative
    return float(positive @ (below + negative / 2) - (p * (1 - p)).sum() / 2)


def matching_thresholds(Y: Floats, P: Floats) -> Doubles:
    """For each tag, the threshold that as many scores reach as there are positive labels; (C,).

    So a model says yes as often as it is true, and precision equals recall. Y is (N, C): a label
    that is a probability p counts as p positives, and unknown labels are left out. P is (N, C)
    scores from 0 to 1; equal scores all reach a threshold or none do, whichever is nearer. A
    threshold lies halfway between two scores, and is 0.5 without positives.
    """
    thresholds = np.full(Y.shape[1], 0.5)
    for j, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):
        known = ~np.isnan(y)
        scores, counts = np.unique(p[known].astype(np.float64), return_counts=True)
        reach = np.append(np.cumsum(counts[::-1])[::-1], 0)  # each score, and one above all
        n = round(float(y[known].sum()))
        if n:
            bounds, at = np.concatenate([[0.0], scores, [1.0]]), np.argmin(np.abs(reach - n))
            thresholds[j] = (bounds[at] + bounds[at + 1]) / 2
    return thresholds


class Question(NamedTuple):
    """Predictions for held-out clips, some of whose tags may have been observed."""

    P: Floats  # (N, C) probabilities, before any correction
    Y: Floats  # (N, C) what was true: 0, 1, a probability, or NaN if unknown or observed
    observed: Doubles  # (N,) the fraction of the tags that were observed
    weight: Doubles  # (N,) how much each clip counts, relative to the others of this question


def half_observed(Y: Floats) -> Floats:
    """A random half of the known tags, the same in every call; NaN for the others."""
    return np.where(np.random.default_rng(0).random(Y.shape) < 0.5, Y, np.float32(np.nan))


def one_observed(Y: Floats) -> Floats:
    """One random true tag of each clip that has one, the same in every call; else NaN."""
    place = np.argmax(np.where(Y > 0.5, np.random.default_rng(0).random(Y.shape), -1.0), axis=1)
    first = np.arange(Y.shape[1]) == place[:, None]
    return np.where(first & (Y > 0.5), np.float32(1), np.float32(np.nan))


def ask(complete: Callable[[Floats], Floats], Y: Floats) -> list[Question]:
    """What a model says about clips with labels Y, asked the way people ask.

    That is: with no tag observed, with one true tag, and with half of the known tags observed.
    ``complete`` returns probabilities (N, C) for observed tags (N, C), NaN for those to infer.

    One true tag is drawn for each clip that has one. A tag is drawn more often on clips with few
    other tags, so each clip counts in proportion to its number of true tags.
    """
    nothing, alike = np.full(Y.shape, np.nan, np.float32), np.ones(len(Y))
    questions = [Question(complete(nothing), Y, np.zeros(len(Y)), alike)]
    n_true = (Y > 0.5).sum(axis=1).astype(np.float64)
    of_true = n_true if n_true.any() else alike
    for observed, weight in ((one_observed(Y), of_true), (np.round(half_observed(Y)), alike)):
        fraction = model_files.observed_fraction(observed)
        # a clip without observed tags belongs to the first question
        asked = np.where(np.isnan(observed) & (fraction > 0)[:, None], Y, np.float32(np.nan))
        questions.append(Question(complete(observed), asked, fraction, weight))
    return questions


def joined(asked: Sequence[Sequence[Question]]) -> list[Question]:
    """The questions of several folds, with those of one kind combined."""
    return [
        Question(*map(np.concatenate, zip(*alike, strict=True)))
        for alike in zip(*asked, strict=True)
    ]


def correct_folds(
    asked: Sequence[Sequence[Question]], held: Sequence[Places], P: Floats
) -> model_files.Recalibration:
    """Correct P (N, C) in place, each fold by the other folds; returns the correction from all."""
    for fold, own in enumerate(held):
        P[own] = fit_recalibration(joined([*asked[:fold], *asked[fold + 1 :]]))(P[own])
    return fit_recalibration(joined(asked))


@threadpool_limits.wrap(limits=1)  # several threads take longer for small matrices
def fit_recalibration(questions: Sequence[Question]) -> model_files.Recalibration:
    """The correction that fits the questions, each of which has the same weight."""
    Z = np.vstack([model_files.observed_columns(q.observed) for q in questions])  # (M, 3)
    L = np.vstack([model_files.limited_log_odds(q.P) for q in questions])  # (M, C)
    Y = np.vstack([q.Y for q in questions]).astype(np.float64)
    weight = np.concatenate([q.weight / np.mean(q.weight) for q in questions])
    known = ~np.isnan(Y) * weight[:, None] / len(questions)  # the same clips, asked several times
    Y, n_tags = np.nan_to_num(Y), L.shape[1]
    # θ = (each tag's offset and slope, about their means; mean, α, α'; mean slope, β, β')
    centre = np.r_[np.zeros(2 * n_tags + 3), 1.0, 0.0, 0.0]
    spreads = TAG_OFFSET_SPREAD, TAG_SLOPE_SPREAD, OFFSET_SPREAD, SLOPE_SPREAD
    precision = np.repeat(spreads, [n_tags, n_tags, 3, 3]) ** -2.0

    def corrected(theta: Doubles) -> Doubles:
        a, b = theta[:n_tags], theta[n_tags : 2 * n_tags]
        shift, slope = Z @ theta[-6:-3], Z @ theta[-3:]
        return a + shift[:, None] + (b + slope[:, None]) * L

    def loss(theta: Doubles) -> float:
        s = corrected(theta)
        fit = np.sum(known * (np.logaddexp(0, s) - Y * s))
        return float(fit + 0.5 * np.sum(precision * (theta - centre) ** 2))

    theta = centre
    for _ in range(50):  # Newton's method
        P = model_files.sigmoid(corrected(theta))
        pull = precision * (theta - centre)
        gradient, step = _newton_step(known * (P - Y), known * P * (1 - P), Z, L, pull, precision)
        if gradient @ step < 1e-10:
            break
        value, scale = loss(theta), 1.0
        while loss(theta - scale * step) > value and scale > 1e-6:
            scale /= 2  # the loss is convex: a shorter step lowers it
        theta = theta - scale * step
    return model_files.Recalibration(
        offsets=theta[:n_tags] + theta[-6],
        slopes=theta[n_tags : 2 * n_tags] + theta[-3],
        observed_offsets=theta[-5:-3],
        observed_slopes=theta[-2:],
    )


def _newton_step(
    residual: Doubles, weight: Doubles, Z: Doubles, L: Doubles, pull: Doubles, precision: Doubles
) -> tuple[Doubles, Doubles]:
    """The gradient in θ, of length 2C + 6, and the Hessian's inverse times it.

    The Hessian is an arrow: a tag's offset and slope interact with each other (A, 2 × 2 per tag)
    and with the six shared numbers (B, D), but not with other tags'.
    """
    n, r, w = L.shape[1], residual * L, weight * L
    gradient = pull + np.concatenate(
        [part.sum(axis=0) for part in (residual, r)]
        + [part.sum(axis=1) @ Z for part in (residual, r)]
    )
    parts = (weight, w, w * L)
    plain, once, twice = (part.sum(axis=0) for part in parts)
    A = np.array([[plain + precision[:n], once], [once, twice + precision[n : 2 * n]]])
    plain, once, twice = (part.T @ Z for part in parts)
    B = np.stack([np.hstack([plain, once]), np.hstack([once, twice])], axis=1)  # (C, 2, 6)
    plain, once, twice = (Z.T @ (part.sum(axis=1)[:, None] * Z) for part in parts)
    D = np.block([[plain, once], [once.T, twice]]) + np.diag(precision[2 * n :])
    own, rest = gradient[: 2 * n].reshape(2, n).T, gradient[2 * n :]
    solved = np.linalg.solve(A.transpose(2, 0, 1), np.dstack([B, own]))  # (C, 2, 7)
    schur = D - np.einsum("cki,ckj->ij", B, solved[:, :, :6])
    shared = np.linalg.solve(schur, rest - np.einsum("cki,ck->i", B, solved[:, :, 6]))
    own = solved[:, :, 6] - solved[:, :, :6] @ shared
    return gradient, np.concatenate([own.T.ravel(), shared])
