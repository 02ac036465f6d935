"""How well scores agree with held-out labels, which may be probabilities, and what to decide by.

A label that is a probability p counts as p of a positive and 1 - p of a negative: for labels of 0
and 1 that is the usual AUC and the usual likelihood.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.labels import is_soft
from harmonium.estimators.recalibration import Question, share_told
from harmonium.evaluation import auc_per_tag

Floats = NDArray[np.float32]


def is_rankable(Y: Floats) -> bool:
    """Whether some tag has both a positive and a negative, so that an AUC is defined."""
    return bool((_pairs(Y) > 0).any())


def mean_auc(Y: Floats, S: Floats) -> float:
    """Mean over tags of the AUC of scores S (N, C) for labels Y (N, C)."""
    if not is_soft(Y):
        return auc_per_tag(Y, S).mean
    pairs = _pairs(Y)
    won = [_pairs_won(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    return float(np.mean(np.array(won)[pairs > 0] / pairs[pairs > 0]))


def log_likelihood(Y: Floats, P: Floats) -> float:
    """Mean of y log p + (1 - y) log(1 - p) over the known labels; P is (N, C) probabilities."""
    tiny = np.finfo(np.float32).tiny
    terms = Y * np.log(np.maximum(P, tiny)) + (1 - Y) * np.log(np.maximum(1 - P, tiny))
    return float(np.mean(terms[~np.isnan(Y)]))


def half_told(Y: Floats) -> Floats:
    """Half of the known tags, drawn by chance but alike in every call; NaN for the others."""
    return np.where(np.random.default_rng(0).random(Y.shape) < 0.5, Y, np.float32(np.nan))


def one_told(Y: Floats) -> Floats:
    """One true tag of each clip that has one, by chance but alike in every call; else NaN."""
    place = np.argmax(np.where(Y > 0.5, np.random.default_rng(0).random(Y.shape), -1.0), axis=1)
    first = np.arange(Y.shape[1]) == place[:, None]
    return np.where(first & (Y > 0.5), np.float32(1), np.float32(np.nan))


def ask(complete: Callable[[Floats], Floats], Y: Floats) -> list[Question]:
    """What a model says of clips with labels Y, asked as people ask.

    That is: with nothing told, with one true tag told, and with half of the known tags told.
    ``complete`` gives probabilities (N, C) for told tags (N, C), NaN for those to infer.

    One true tag is drawn for each clip that has one. Among all clips that have a tag, those with
    few others are drawn for it more often; so a clip counts as often as it has true tags.
    """
    nothing, alike = np.full(Y.shape, np.nan, np.float32), np.ones(len(Y))
    questions = [Question(complete(nothing), Y, np.zeros(len(Y)), alike)]
    n_true = (Y > 0.5).sum(axis=1).astype(np.float64)
    of_true = n_true if n_true.any() else alike
    for told, weight in ((one_told(Y), of_true), (np.round(half_told(Y)), alike)):
        share = share_told(told)
        # a clip of which nothing is told belongs to the first question, with all others
        asked = np.where(np.isnan(told) & (share > 0)[:, None], Y, np.float32(np.nan))
        questions.append(Question(complete(told), asked, share, weight))
    return questions


def _pairs(Y: Floats) -> NDArray[np.float64]:
    """Σ_{i≠k} y_ij (1 - y_kj) over the known labels of tag j: expected (positive, negative) pairs.

    Shape (C,).
    """
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


def matching_thresholds(Y: Floats, P: Floats) -> NDArray[np.float64]:
    """Thresholds above which there are as many scores as positive labels, tag by tag; (C,).

    So a model says yes as often as it is true, and is right as often as it finds what there is:
    precision equals recall. Y is (N, C): a label that is a probability counts as so much of a
    positive, unknown labels are left out. P is (N, C) scores above 0. A threshold lies half way
    between two scores, and is 0.5 without positives.
    """
    return np.array([_matching_threshold(y, p) for y, p in zip(Y.T, P.T, strict=True)])


def _matching_threshold(y: Floats, p: Floats) -> float:
    known = ~np.isnan(y)
    ordered = np.sort(p[known].astype(np.float64))[::-1]
    n = round(float(y[known].sum()))
    if n == 0:
        return 0.5
    below = ordered[n] if n < len(ordered) else 0.0
    return float((ordered[n - 1] + below) / 2)
