"""The first answer: logistic regression, solved to convergence, which takes a few seconds.

It is used until the RBM is there. Where tracks are few it then stays beside it: the mean of the two
models' log-odds is often better than either, since they make different mistakes.

Its penalty is found by cross-validation: the next one on a scale of powers of ten and thirds of
them is tried as long as it is better. Of many tracks, a random choice is learnt from.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.estimators.calibration import Question, Recalibration, fit_recalibration
from harmonium.library.learning.training_files import by_columns
from harmonium.library.learning.training_set import Hyperparameters, TrainingSet

Floats = NDArray[np.float32]

MOST_TRACKS = 2000
"""Tracks that the first answer learns from, and up to which it stays beside the RBM."""
PENALTIES = tuple(10 ** (k / 2) for k in range(-9, 0))
FIRST_PENALTY = 3
"""The place in `PENALTIES` of the one that is tried first: 0.001."""
FOLDS_TO_SEARCH = 3
FEW_TRACKS = 500
"""With more tracks, penalties are tried on three of the folds."""


class LinearFit(NamedTuple):
    """A logistic regression of all tracks, and what others like it say of held-out ones."""

    model: Any
    """LogisticTagger"""
    held_out: Floats
    """(n, C) probabilities of models that had not seen the track, not corrected."""
    hyperparameters: Hyperparameters


def fit_first(
    examples: TrainingSet, *, progress: Callable[[], object] = lambda: None
) -> tuple[LinearFit, Recalibration, Floats]:
    """The first answer, its correction, and the corrected held-out probabilities, (n, C).

    ``progress`` is called after each penalty that was tried.
    """
    n_folds = int(examples.folds.max()) + 1
    few = len(examples.X) <= FEW_TRACKS
    searched = np.arange(n_folds if few else min(FOLDS_TO_SEARCH, n_folds))
    found: dict[tuple[int, bool], float] = {}

    def score(place: int, *, more_inputs: bool) -> float:
        key = (place, more_inputs)
        if key not in found:
            hyperparameters = linear_hyperparameters(PENALTIES[place], more_inputs=more_inputs)
            P = linear_held_out(examples, hyperparameters, searched)
            found[key] = mean_auc(examples.Y, P)
            progress()
        return found[key]

    def climb(place: int, *, more_inputs: bool) -> int:
        for step in (-1, 1):
            while 0 <= place + step < len(PENALTIES) and score(
                place + step, more_inputs=more_inputs
            ) > score(place, more_inputs=more_inputs):
                place += step
        return place

    place, more = climb(FIRST_PENALTY, more_inputs=False), False
    if examples.more_inputs is not None:
        with_more = climb(place, more_inputs=True)
        if score(with_more, more_inputs=True) > score(place, more_inputs=False):
            place, more = with_more, True
    fitted = fit_linear(examples, linear_hyperparameters(PENALTIES[place], more_inputs=more))
    folds = [examples.folds == fold for fold in range(n_folds)]
    asked = [_question(fitted.held_out[held], examples.Y[held]) for held in folds]
    corrected = np.empty_like(fitted.held_out)
    for fold, held in enumerate(folds):
        others = [one for place, one in enumerate(asked) if place != fold]
        corrected[held] = fit_recalibration([_joined(others)])(fitted.held_out[held])
    return fitted, fit_recalibration([_joined(asked)]), corrected


def linear_hyperparameters(l2: float, *, more_inputs: bool = False) -> Hyperparameters:
    """Those of a logistic regression."""
    return Hyperparameters(0.0, l2, more_inputs=more_inputs, linear=True)


def fit_linear(examples: TrainingSet, hyperparameters: Hyperparameters) -> LinearFit:
    """A logistic regression of all tracks, with held-out probabilities."""
    n_folds = int(examples.folds.max()) + 1
    P = linear_held_out(examples, hyperparameters, np.arange(n_folds))
    named = pl.DataFrame(examples.targets(hyperparameters), schema=list(examples.tags))
    model = _fitted(hyperparameters.l2, examples.inputs(hyperparameters), named)
    return LinearFit(model, P, hyperparameters)


def linear_held_out(
    examples: TrainingSet, hyperparameters: Hyperparameters, folds: NDArray[np.intp]
) -> Floats:
    """The probabilities of these folds by models of the others, (n, C); NaN elsewhere."""
    X, targets = examples.inputs(hyperparameters), examples.targets(hyperparameters)
    P = np.full(examples.Y.shape, np.nan, np.float32)
    for fold in folds:
        held = examples.folds == fold
        model = _fitted(hyperparameters.l2, X[~held], targets[~held])
        P[held] = model.predict_proba(X[held])
    return P


def _fitted(l2: float, X: Floats, Y: Any) -> Any:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from harmonium.estimators import LogisticTagger

    with threadpool_limits(1):  # products of small matrices take longer on several threads
        return LogisticTagger(solver="newton", l2=l2).fit(X, Y)


def _question(P: Floats, Y: Floats) -> Question:
    return Question(P, Y, np.zeros(len(P)), np.ones(len(P)))


def _joined(asked: list[Question]) -> Question:
    return Question(*map(np.concatenate, zip(*asked, strict=True)))


def mean_auc(Y: Floats, P: Floats) -> float:
    """Mean over tags of the AUC, of the tracks that have probabilities."""
    from harmonium.evaluation import auc_per_tag

    scored = ~np.isnan(P[:, 0])
    auc = by_columns(lambda y, p: auc_per_tag(y[scored], p[scored]).values, Y, P)
    return float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5
