"""Fitting the model: a first answer, hyperparameters by cross-validation, and the members.

1. A logistic regression, solved to convergence, is the first answer after a few seconds. The next
   penalty on a scale is tried as long as it improves. With many tracks, it learns from a sample.
2. A few sets of hyperparameters of the RBM are tried. For each, five members each learn from all
   folds but one, and stop when the held-out folds are ranked best on average. So every track has
   held-out probabilities, and the set that ranks them best is chosen. Its members are the model:
   their log-odds are averaged. With many tracks, only a random sample is used to choose.
3. Probabilities are calibrated on held-out tracks: a fold's on the other folds, and the model's on
   all of them.

Choosing on the same folds that are then scored flatters the score a little; but only one of a
handful of settings is chosen, for all tags together.

All random choices are made before an engine fits the models, so the engine makes no difference.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.engine import Engine, EngineError, Runner, WorkerDied
from harmonium.errors import DataError, TrainingInterrupted
from harmonium.estimators.calibration import Question, correct_folds
from harmonium.estimators.model_files import Recalibration
from harmonium.evaluation import grouped_folds
from harmonium.library.learning.examples import N_FOLDS, Hyperparameters, TrainingSet, by_columns
from harmonium.library.store.models import UNREACHABLE
from harmonium.library.tagger import RANKED, PrecisionCurve, keep_compiled

TrainingProgress = Callable[[str, int, int], None]  # (what, fits done, total or 0)

CLEARLY = 2.0  # standard errors by which an AUC must exceed 0.5 to be clearly above chance
CHOSEN = 1.5  # more for the mean of all tags, which is the best of several settings and epochs
GROWTH = 1.1  # ratio of track counts at successive ranks of a curve
MAX_FIRST = 2000  # tracks that the first answer learns from
PENALTIES = tuple(10 ** (k / 2) for k in range(-9, 0))  # logistic; the search starts at 0.001
MAX_ON_ALL_FOLDS = 500  # above this, logistic penalties are tried on three of the folds
TO_TRY = tuple(Hyperparameters(0.01, l2) for l2 in (0.1, 0.3, 1.0, 3.0))
"""With few tracks, the three strongest penalties are tried; otherwise the three weakest."""
FEW_TRACKS = 300
MAX_TO_SEARCH = 3000  # tracks with which hyperparameters are tried
FOLDS_TO_SEARCH = 3  # folds on which they are tried if there are more tracks than that
MAX_UPDATES = 20_000  # the most minibatches that a member learns from, in 30 to 500 epochs


def fit_first(examples: TrainingSet, seed: int = 0) -> "tuple[Any, list[Candidate], Recalibration]":
    """The first answer, in the form of `fit`: a `LogisticTagger`, and its calibration."""
    folds = grouped_folds(examples.groups, examples.Y, n_folds=N_FOLDS, seed=seed)
    searched = range(N_FOLDS if len(examples) <= MAX_ON_ALL_FOLDS else FOLDS_TO_SEARCH)

    @lru_cache
    def tried(place: int, more_inputs: bool) -> Candidate:
        if not 0 <= place < len(PENALTIES):
            return Candidate(Hyperparameters(0.0, 0.0), -np.inf, 0)
        chosen = Hyperparameters(0.0, PENALTIES[place], more_inputs=more_inputs, linear=True)
        P = linear_held_out(examples, chosen, folds, searched)
        return Candidate(chosen, mean_auc(examples.Y, P, folds), 0)

    def climb(place: int, more_inputs: bool) -> int:
        for step in (-1, 1):
            while tried(place + step, more_inputs).auc > tried(place, more_inputs).auc:
                place += step
        return place

    place = climb(3, False)
    best = tried(place, False)
    if examples.n_more:
        best = max(best, tried(climb(place, True), True), key=lambda one: one.auc)
    chosen = best.hyperparameters
    P = linear_held_out(examples, chosen, folds, range(N_FOLDS))
    named = pl.DataFrame(examples.Y, schema=list(examples.tags))
    held = [np.flatnonzero(folds == fold) for fold in range(N_FOLDS)]
    asked = [[Question(P[i], examples.Y[i], np.zeros(len(i)), np.ones(len(i)))] for i in held]
    model = _fitted_linear(chosen.l2, examples.inputs(chosen), named)
    model.folds_, model.held_out_ = folds, P.copy()
    candidate = best._replace(auc=mean_auc(examples.Y, P, folds))
    return model, [candidate], correct_folds(asked, held, model.held_out_)


def linear_held_out(
    examples: TrainingSet, hyperparameters: Hyperparameters, folds: Ids, wanted: Sequence[int]
) -> Floats:
    """These folds' probabilities from models trained on the others, (n, C); NaN elsewhere."""
    X, P = examples.inputs(hyperparameters), np.full(examples.Y.shape, np.nan, np.float32)
    for fold in wanted:
        held = folds == fold
        model = _fitted_linear(hyperparameters.l2, X[~held], examples.Y[~held])
        P[held] = model.predict_proba(X[held])
    return P


def _fitted_linear(l2: float, X: Floats, Y: Any) -> Any:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from harmonium.estimators.linear import LogisticTagger

    with threadpool_limits(1):  # products of small matrices take longer on several threads
        return LogisticTagger(solver="newton", l2=l2).fit(X, Y)


class Candidate(NamedTuple):
    """Hyperparameters that were tried, and how well they did."""

    hyperparameters: Hyperparameters
    auc: float  # mean over tags
    epochs: int


class FitTask(NamedTuple):
    """One model to fit."""

    hyperparameters: Hyperparameters
    examples: TrainingSet
    model: dict[str, Any]  # the parameters of the estimator


def fit_one(task: FitTask) -> Any:
    """Fit a model, in this process or in another."""
    keep_compiled()
    from harmonium.estimators.networks import DiscriminativeRBM

    examples, chosen = task.examples, task.hyperparameters
    with interrupts_raise():
        model = DiscriminativeRBM(**task.model).fit(
            examples.inputs(chosen),
            examples.targets(chosen),
            groups=examples.groups,
            eval_y=examples.Y,
        )
    if not hasattr(model, "folds_"):
        raise DataError(
            "No tag can be judged: the tracks with it, or those without it, are all by one artist "
            "or from one album. Tag tracks of more artists."
        )
    return model


def fit(
    examples: TrainingSet,
    *,
    to_try: Sequence[Hyperparameters] | None = None,
    n_hidden: int = 100,
    seed: int = 0,
    progress: TrainingProgress | None = None,
    engine: str | Engine = "serial",
    jobs: int | None = None,
) -> tuple[Any, list[Candidate]]:
    """The model, a `DiscriminativeRBM` with ``held_out_``, and what was tried, the best first.

    ``to_try`` are tried with labels and features as they are; the best of them also with the
    built-in model's log-odds and with smoothed labels, if available. ``engine`` and ``jobs``, as in
    `make_executor`, say where models are fitted.
    """
    to_try = to_try or (TO_TRY[1:] if len(examples) < FEW_TRACKS else TO_TRY[:-1])
    searched, n_folds = examples, N_FOLDS
    if len(examples) > MAX_TO_SEARCH:
        some = np.random.default_rng(seed).permutation(len(examples))[:MAX_TO_SEARCH]
        searched, n_folds = examples.rows(np.sort(some)), FOLDS_TO_SEARCH
    changes = [
        *([{"more_inputs": True}] if examples.n_more else []),
        *([{"smoothed": True}] if examples.smoothed is not None else []),
    ]
    n_fits = len(to_try) + len(changes) + (searched is not examples)
    n_done = 0

    def say(what: str) -> None:
        if progress:
            progress(what, n_done, n_fits)

    def task(examples: TrainingSet, one: Hyperparameters, n_models: int) -> FitTask:
        n = len(examples) * (n_models - 1) // n_models
        batch_size = 20 if n >= 200 else 10
        parameters = {
            "n_hidden": n_hidden,
            "n_models": n_models,
            "learning_rate": one.learning_rate,
            "l2": one.l2,
            "batch_size": batch_size,
            "max_epochs": usual_epochs(n, batch_size),
            "patience": usual_patience(n, batch_size),
            "random_state": seed,
        }
        return FitTask(one, examples, parameters)

    tried: list[tuple[Any, Candidate]] = []
    say("Trying settings")
    with Runner(fit_one, engine=engine, jobs=jobs) as runner:
        for change in (None, *changes):
            settings = to_try
            if change is not None:
                best = max(tried, key=lambda one: one[1].auc)[1].hyperparameters
                settings = [best._replace(**change)]
            for one in settings:
                runner.submit(task(searched, one, n_folds))
            while runner.pending:
                done, model = _next(runner)
                n_done += 1
                say("Trying settings")
                auc = mean_auc(searched.Y, model.held_out_, model.folds_)
                tried.append((model, Candidate(done.hyperparameters, auc, model.best_epoch_)))
        tried.sort(key=lambda one: (-one[1].auc, one[1].hyperparameters))
        model, candidate = tried[0]
        if searched is not examples:
            runner.submit(task(examples, candidate.hyperparameters, N_FOLDS))
            _, model = _next(runner)
            n_done += 1
            say("Fitting")
    model.tags_ = np.array(examples.tags, dtype=object)
    return model, [candidate for _, candidate in tried]


def _next(runner: Runner[FitTask, Any]) -> tuple[FitTask, Any]:
    """The next model that is fitted, and its task."""
    outcome = runner.next()
    task, error = outcome.task, outcome.error
    if isinstance(error, WorkerDied):
        raise EngineError(
            f"A model could not be fitted: {error}. It may need more memory; try "
            "fewer processes (--jobs 1), or workers with more memory."
        )
    if isinstance(error, FileNotFoundError) and isinstance(task.examples.X, Path):
        return task, fit_one(task)  # a worker on another machine cannot see the file
    if error is not None:
        raise error
    return task, outcome.result


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """The most epochs: few tracks need more passes, many need fewer."""
    return int(np.clip(MAX_UPDATES * batch_size / n_tracks, 30, 500))


def usual_patience(n_tracks: int, batch_size: int) -> int:
    """Epochs without a better ranking after which training stops: few tracks need more."""
    enough = max(50, 500 * batch_size // n_tracks)
    return int(np.clip(usual_epochs(n_tracks, batch_size) // 5, 10, min(100, enough)))


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Raise KeyboardInterrupt when ``fit`` would warn that it was interrupted."""
    # At Ctrl-C, estimators keep the best parameters so far; a library wants all or nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterrupted)
        try:
            yield
        except TrainingInterrupted as warning:
            raise KeyboardInterrupt(str(warning)) from None


@dataclass(frozen=True)
class TagScores:
    """What held-out probabilities show about each tag; all (n_tags,)."""

    positives: Ids
    negatives: Ids
    auc: Doubles
    error: Doubles  # standard error of the AUC
    learnt: Mask  # whether the AUC is clearly above chance


def score_tags(Y: Floats, P: Floats, folds: Ids | None = None) -> TagScores:
    """AUC by tag, with its error, from labels (n, C), NaN unknown, and probabilities (n, C).

    The AUC is the share of pairs, a track with the tag and one without, that are in order.
    Only pairs within a fold count: a different member ranks each fold, and members need not agree
    on how likely the tag is. None: all tracks are in one fold.
    """
    from harmonium.evaluation import auc_per_tag

    all_folds = [...] if folds is None else [folds == fold for fold in np.unique(folds)]

    def by_fold(y: Floats, p: Floats) -> Doubles:  # (tags, folds, 3)
        parts = [(y[own], p[own]) for own in all_folds]
        counts = [[(y == 1).sum(axis=0), (y == 0).sum(axis=0)] for y, _ in parts]
        aucs = [[auc_per_tag(y, p).values] for y, p in parts]
        return np.concatenate([counts, aucs], axis=1).transpose(2, 0, 1)

    positives, negatives, aucs = by_columns(by_fold, Y, P).T
    pairs = positives * negatives
    with np.errstate(invalid="ignore"):
        auc = np.nansum(pairs * aucs, axis=0) / pairs.sum(axis=0)
        n_errors = CLEARLY + CHOSEN / np.sqrt(len(auc))
        learnt = auc - 0.5 > n_errors * auc_error(0.5, positives, negatives)
    n_with, n_without = (n.sum(axis=0).astype(np.int64) for n in (positives, negatives))
    return TagScores(n_with, n_without, auc, auc_error(auc, positives, negatives), learnt)


def auc_error(auc: Doubles | float, positives: Doubles, negatives: Doubles) -> Doubles:
    """√(Σ PN [A(1 - A) + (P - 1)(Q₁ - A²) + (N - 1)(Q₂ - A²)]) / Σ PN: Hanley and McNeil (1982).

    The sums are over the first axis of ``positives`` and ``negatives``, the folds. Q₁ = A / (2 - A)
    and Q₂ = 2A² / (1 + A) are the chances that two positives outrank a negative, and that a
    positive outranks two negatives. At A = 1/2 it is the error of scores that say nothing. A is
    kept half a pair away from 0 and 1: a perfect order of some twenty tracks does not prove that
    all tracks are.
    """
    pairs = positives * negatives
    n_pairs = np.maximum(pairs.sum(axis=0), 1)
    a = np.clip(auc, 0.5 / n_pairs, 1 - 0.5 / n_pairs)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (positives - 1) * (first - a**2) + (negatives - 1) * (second - a**2)
    return np.sqrt(np.maximum(np.sum(pairs * variance, axis=0), 0)) / n_pairs


def choose_thresholds(Y: Floats, P: Floats, scores: TagScores) -> Floats:
    """The probability at which a track gets a tag, (n_tags,); `UNREACHABLE` if not learnt."""
    # As many held-out tracks reach it as have the tag.
    from harmonium.estimators.calibration import matching_thresholds

    chosen = np.clip(by_columns(matching_thresholds, Y, P), 0.01, 0.99)
    return np.where(scores.learnt, chosen, UNREACHABLE).astype(np.float32)


def mean_auc(Y: Floats, P: Floats, folds: Ids) -> float:
    """The mean over tags of the AUC within folds, for tracks that have probabilities."""
    scored = ~np.isnan(P[:, 0])
    auc = score_tags(Y[scored], P[scored], folds[scored]).auc
    return float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5


def make_curves(
    Y: Floats, P: Floats, groups: Sequence[Any] | NDArray[Any] | None = None
) -> list[PrecisionCurve]:
    """The curve of each tag, from labels (n, C) and held-out probabilities (n, C)."""
    return [make_curve(y, p, groups) for y, p in zip(Y.T, P.T, strict=True)]


def make_curve(
    y: Floats, p: Floats, groups: Sequence[Any] | NDArray[Any] | None = None
) -> PrecisionCurve:
    """The curve of labels (n,), 0, 1 or NaN, and held-out probabilities (n,).

    ``groups`` (n,) says which tracks belong together, such as an artist's; None: none do.

    If no label is known, it has no ranks and promises nothing.
    """
    known = ~np.isnan(y)
    order = np.flatnonzero(known)[np.argsort(-p[known], kind="stable")]
    y, ordered = y[order], p[order].astype(np.float64)
    # tracks with the same probability are chosen together
    ranks = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)])
    kept, last = [], 0
    for rank in ranks.tolist():
        if rank + 1 >= min(GROWTH * last, last + len(y)) or rank == ranks[-1]:
            kept.append(rank)
            last = rank + 1
    places = np.array(kept, np.int64)
    right = np.cumsum(y == 1)[places].astype(np.int64)
    squares = np.cumsum(
        2 * _earlier(np.asarray(groups)[order]) + 1 if groups is not None else np.ones(len(y))
    )
    return PrecisionCurve(
        thresholds=ordered[places],
        chosen=places + 1,
        right=right,
        positives=int((y == 1).sum()),
        effective=np.square(places + 1) / squares[places].astype(np.float64),
        expected=np.cumsum(ordered)[places] / (places + 1),
    )


def _earlier(groups: NDArray[Any]) -> Ids:
    """How many earlier ones are in the same group, (n,)."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    earlier = np.empty(len(groups), np.int64)
    earlier[order] = np.arange(len(groups)) - starts
    return earlier


def curves_to_arrays(curves: Sequence[PrecisionCurve]) -> dict[str, NDArray[Any]]:
    """As arrays for a model file: the curves one after another, and where each ends."""
    arrays: dict[str, NDArray[Any]] = {
        f"curves.{name}": np.concatenate([getattr(one, name) for one in curves]).astype(kind)
        for name, kind in RANKED.items()
    }
    arrays["curves.positives"] = np.array([one.positives for one in curves], np.int32)
    arrays["curves.ends"] = np.cumsum([len(one.chosen) for one in curves]).astype(np.int32)
    return arrays
