"""Calibration: the correction of a model's probabilities, learnt from held-out clips.

The correction is for probabilities that are too low, too high, overconfident or underconfident. The
log-odds of tag j become

    a_j + α·[some tag is observed] + α'·t + (b_j + β·[some tag is observed] + β'·t) · log-odds

with t the fraction of the clip's tags that are observed. Among clips with equally many observed
tags, it is one increasing function per tag, so the order of the clips, and with it the AUC, does
not change. It is fitted by penalised maximum likelihood: a_j and b_j are pulled towards their means
and everything towards no correction, so that a tag with few known clips is corrected like the
others, and a few clips correct little. A label that is a probability p counts as p positives and
1 - p negatives.

NumPy is enough to import this, and to correct.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Arrays, Doubles, Floats, Places
from harmonium.estimators.model_files import finite_array
from harmonium.logistic import limited_log_odds, sigmoid, softplus

# prior standard deviations of a_j and of b_j about their means
TAG_OFFSET_SPREAD = 0.5
TAG_SLOPE_SPREAD = 0.25
# and of (mean of a_j, α, α') about 0 and of (mean of b_j - 1, β, β')
OFFSET_SPREAD = 1.0
SLOPE_SPREAD = 0.25

MIN_SLOPE = 0.1  # smallest slope of the correction, so that it never reverses the order of clips
MAX_STEPS = 50  # of Newton's method
TOLERANCE = 1e-10  # of the objective, at which it has converged
MIN_SCALE = 1e-6  # of a step


class Recalibration(NamedTuple):
    """The correction of probabilities."""

    offsets: Doubles  # (C,) a_j
    slopes: Doubles  # (C,) b_j
    observed_offsets: Doubles  # (2,) α, α'
    observed_slopes: Doubles  # (2,) β, β'

    def __call__(self, P: Floats, observed: Doubles | None = None) -> Floats:
        """Corrected probabilities, (N, C); ``observed`` (N,) is each clip's observed fraction."""
        if observed is None:
            observed = np.zeros(len(P))
        Z = observed_columns(observed)[:, 1:]
        slope = self.slopes + (Z @ self.observed_slopes)[:, None]
        offset = self.offsets + (Z @ self.observed_offsets)[:, None]
        log_odds = offset + np.maximum(slope, MIN_SLOPE) * limited_log_odds(P)
        return sigmoid(log_odds).astype(np.float32)

    def arrays(self) -> Arrays:
        """The correction in the form of a model file."""
        return {
            "recalibration.offsets": self.offsets,
            "recalibration.slopes": self.slopes,
            "recalibration.told_offsets": self.observed_offsets,
            "recalibration.told_slopes": self.observed_slopes,
        }


def stored_recalibration(arrays: Arrays, n_tags: int) -> Recalibration | None:
    """The correction among the arrays of a model file; None if it has none."""
    if "recalibration.offsets" not in arrays:
        return None
    recalibration = Recalibration(
        offsets=finite_array(arrays, "recalibration.offsets"),
        slopes=finite_array(arrays, "recalibration.slopes"),
        observed_offsets=finite_array(arrays, "recalibration.told_offsets"),
        observed_slopes=finite_array(arrays, "recalibration.told_slopes"),
    )
    if [part.shape for part in recalibration] != [(n_tags,), (n_tags,), (2,), (2,)]:
        raise ValueError("its recalibration does not fit its tags")
    return recalibration


def observed_fraction(Y: Floats) -> Doubles:
    """The fraction of each clip's tags that are known, (N,), of (N, C) with NaN for unknown."""
    return np.mean(~np.isnan(Y), axis=1, dtype=np.float64)


def observed_columns(fraction: Doubles) -> Doubles:
    """(1, [some tag is observed], t) of each clip, (N, 3), from the observed fractions t."""
    return np.column_stack([np.ones(len(fraction)), fraction > 0, fraction])


class Question(NamedTuple):
    """Predictions for held-out clips, some of whose tags may have been observed."""

    P: Floats  # (N, C) probabilities, before any correction
    Y: Floats  # (N, C) what was true: 0, 1, a probability, or NaN if unknown or observed
    observed: Doubles  # (N,) the fraction of the tags that were observed
    weight: Doubles  # (N,) how much each clip counts, relative to the others of this question
    label_weights: Floats | None = None  # what labels count besides, (N, 1) or (N, C)


def half_observed(Y: Floats) -> Floats:
    """A random half of the known tags, the same in every call; NaN for the others."""
    return np.where(np.random.default_rng(0).random(Y.shape) < 0.5, Y, np.float32(np.nan))


def one_observed(Y: Floats) -> Floats:
    """One random true tag of each clip that has one, the same in every call; else NaN."""
    is_true = Y > 0.5
    draws = np.where(is_true, np.random.default_rng(0).random(Y.shape), -1.0)
    is_drawn = np.arange(Y.shape[1]) == np.argmax(draws, axis=1)[:, None]
    return np.where(is_drawn & is_true, np.float32(1), np.float32(np.nan))


def ask_by_features(P: Floats, Y: Floats, weights: Floats | None = None) -> list[Question]:
    """What a model says from features alone, P (N, C), about clips with labels Y."""
    alike = np.ones(len(Y))
    question = Question(P=P, Y=Y, observed=np.zeros(len(Y)), weight=alike, label_weights=weights)
    return [question]


def ask(
    complete: Callable[[Floats], Floats], Y: Floats, weights: Floats | None = None
) -> list[Question]:
    """What a model says about clips with labels Y, asked the way people ask.

    That is: with no tag observed, with one true tag, and with half of the known tags observed.
    ``complete`` returns probabilities (N, C) for observed tags (N, C), NaN for those to infer.

    One true tag is drawn for each clip that has one. A tag is drawn more often on clips with few
    other tags, so each clip counts in proportion to its number of true tags.
    """
    nothing = np.full(Y.shape, np.nan, np.float32)
    alike = np.ones(len(Y))
    n_true = (Y > 0.5).sum(axis=1).astype(np.float64)
    by_true_tags = n_true if n_true.any() else alike
    questions = [
        *ask_by_features(complete(nothing), Y),
        _ask_with(one_observed(Y), complete, Y, by_true_tags),
        _ask_with(np.round(half_observed(Y)), complete, Y, alike),
    ]
    return [question._replace(label_weights=weights) for question in questions]


def _ask_with(
    observed: Floats, complete: Callable[[Floats], Floats], Y: Floats, weight: Doubles
) -> Question:
    """What a model says with some tags observed about the others."""
    fraction = observed_fraction(observed)
    # a clip without observed tags belongs to the question without any
    is_asked = np.isnan(observed) & (fraction > 0)[:, None]
    return Question(
        P=complete(observed),
        Y=np.where(is_asked, Y, np.float32(np.nan)),
        observed=fraction,
        weight=weight,
    )


def joined(asked: Sequence[Sequence[Question]]) -> list[Question]:
    """The questions of several folds, with those of one kind combined."""
    return [
        Question(
            P=np.concatenate([question.P for question in alike]),
            Y=np.concatenate([question.Y for question in alike]),
            observed=np.concatenate([question.observed for question in alike]),
            weight=np.concatenate([question.weight for question in alike]),
            label_weights=_joined_weights([question.label_weights for question in alike]),
        )
        for alike in zip(*asked, strict=True)
    ]


def _joined_weights(weights: Sequence[Floats | None]) -> Floats | None:
    given = [of_fold for of_fold in weights if of_fold is not None]
    return np.concatenate(given) if given else None


def correct_folds(
    asked: Sequence[Sequence[Question]], held: Sequence[Places], P: Floats
) -> Recalibration:
    """Correct P (N, C) in place, each fold by the other folds; returns the correction from all."""
    for fold, rows in enumerate(held):
        others = [*asked[:fold], *asked[fold + 1 :]]
        P[rows] = fit_recalibration(joined(others))(P[rows])
    return fit_recalibration(joined(asked))


def fit_recalibration(questions: Sequence[Question]) -> Recalibration:
    """The correction that fits the questions, each of which has the same weight."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1):  # several threads take longer for small matrices
        return _fit(questions)


class _Data(NamedTuple):
    """The answers to all questions together."""

    Z: Doubles  # (M, 3), of each clip: 1, whether some tag is observed, and the fraction
    L: Doubles  # (M, C), log-odds before the correction
    Y: Doubles  # (M, C), 0 where unknown
    weight: Doubles  # (M, C), 0 where unknown

    def corrected(self, theta: Doubles) -> Doubles:
        """Log-odds after the correction, (M, C)."""
        n_tags = self.L.shape[1]
        a = theta[:n_tags]
        b = theta[n_tags : 2 * n_tags]
        shift = self.Z @ theta[-6:-3]
        slope = self.Z @ theta[-3:]
        return a + shift[:, None] + (b + slope[:, None]) * self.L


def _fit(questions: Sequence[Question]) -> Recalibration:
    """Newton's method on the penalised likelihood.

    θ is each tag's offset and slope, about their means; the mean offset, α, α'; and the mean slope,
    β, β'.
    """
    data = _data(questions)
    n_tags = data.L.shape[1]
    centre = np.concatenate([np.zeros(2 * n_tags + 3), [1.0, 0.0, 0.0]])
    spreads = [TAG_OFFSET_SPREAD, TAG_SLOPE_SPREAD, OFFSET_SPREAD, SLOPE_SPREAD]
    precision = np.repeat(spreads, [n_tags, n_tags, 3, 3]) ** -2.0

    def loss(theta: Doubles) -> float:
        s = data.corrected(theta)
        fit = np.sum(data.weight * (softplus(s) - data.Y * s))
        return float(fit + 0.5 * np.sum(precision * (theta - centre) ** 2))

    theta = centre
    for _ in range(MAX_STEPS):
        pull = precision * (theta - centre)
        gradient, step = _newton_step(data, theta, pull, precision)
        if gradient @ step < TOLERANCE:
            break
        value = loss(theta)
        scale = 1.0
        while loss(theta - scale * step) > value and scale > MIN_SCALE:
            scale /= 2  # the loss is convex: a shorter step lowers it
        theta = theta - scale * step
    return Recalibration(
        offsets=theta[:n_tags] + theta[-6],
        slopes=theta[n_tags : 2 * n_tags] + theta[-3],
        observed_offsets=theta[-5:-3],
        observed_slopes=theta[-2:],
    )


def _data(questions: Sequence[Question]) -> _Data:
    Y = np.vstack([question.Y for question in questions]).astype(np.float64)
    weight = np.concatenate([question.weight / np.mean(question.weight) for question in questions])
    return _Data(
        Z=np.vstack([observed_columns(question.observed) for question in questions]),
        L=np.vstack([limited_log_odds(question.P) for question in questions]),
        Y=np.nan_to_num(Y),
        # the questions are about the same clips, so together they count as one
        weight=~np.isnan(Y) * weight[:, None] * _label_weights(questions) / len(questions),
    )


def _label_weights(questions: Sequence[Question]) -> Floats | float:
    weights = [question.label_weights for question in questions]
    joined = _joined_weights(weights)
    return 1.0 if joined is None else joined


def _newton_step(
    data: _Data, theta: Doubles, pull: Doubles, precision: Doubles
) -> tuple[Doubles, Doubles]:
    """The gradient in θ, of length 2C + 6, and the Hessian's inverse times it.

    The Hessian is an arrow: a tag's offset and slope interact with each other (A, 2 × 2 per tag)
    and with the six shared numbers (B, D), but not with other tags'.
    """
    Z = data.Z
    L = data.L
    n_tags = L.shape[1]
    P = sigmoid(data.corrected(theta))
    residual = data.weight * (P - data.Y)
    curvature = data.weight * P * (1 - P)

    by_tag = [residual.sum(axis=0), (residual * L).sum(axis=0)]
    shared = [residual.sum(axis=1) @ Z, (residual * L).sum(axis=1) @ Z]
    gradient = pull + np.concatenate(by_tag + shared)

    plain = curvature  # in an offset
    once = curvature * L  # in an offset and a slope
    twice = once * L  # in a slope
    A = np.array(
        [
            [plain.sum(axis=0) + precision[:n_tags], once.sum(axis=0)],
            [once.sum(axis=0), twice.sum(axis=0) + precision[n_tags : 2 * n_tags]],
        ]
    )
    B = np.stack(  # (C, 2, 6)
        [np.hstack([plain.T @ Z, once.T @ Z]), np.hstack([once.T @ Z, twice.T @ Z])], axis=1
    )

    def over_tags(curvature: Doubles) -> Doubles:
        return Z.T @ (curvature.sum(axis=1)[:, None] * Z)

    D = np.block(
        [[over_tags(plain), over_tags(once)], [over_tags(once).T, over_tags(twice)]]
    ) + np.diag(precision[2 * n_tags :])

    of_tags = gradient[: 2 * n_tags].reshape(2, n_tags).T  # (C, 2)
    of_shared = gradient[2 * n_tags :]
    solved = np.linalg.solve(A.transpose(2, 0, 1), np.dstack([B, of_tags]))  # (C, 2, 7)
    by_shared = solved[:, :, :6]
    alone = solved[:, :, 6]
    schur = D - np.einsum("cki,ckj->ij", B, by_shared)
    shared_step = np.linalg.solve(schur, of_shared - np.einsum("cki,ck->i", B, alone))
    tag_step = alone - by_shared @ shared_step
    return gradient, np.concatenate([tag_step.T.ravel(), shared_step])
