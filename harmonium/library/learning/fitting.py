"""Fitting the model: a first answer, hyperparameters by cross-validation, and the members.

1. A logistic regression, solved to convergence, is the first answer after a few seconds. The next
   penalty on a scale is tried as long as it is better. Of many tracks, it learns from some.
2. A few sets of hyperparameters of the RBM are tried. For each, five members learn from all folds
   but one, and stop when these are ranked best on average. So every track has held-out
   probabilities, and the set that ranks them best is chosen. Its members are the model: their
   log-odds are averaged. With many tracks, only a random share of them is used to choose.
3. Probabilities are corrected by what is true of held-out tracks: those of a fold by the other
   folds, and those of the model by all of them.

Choosing on the folds that are then scored flatters the score a little; what is chosen is one of a
handful of hyperparameters for all tags together.

An engine fits the models: this process, one after the other, or several processes, or the workers
of a cluster. All random choices are made before, so that the engine does not matter.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Ids
from harmonium.engine import Engine, EngineError, Runner, WorkerDied
from harmonium.errors import TrainingInterrupted
from harmonium.estimators.calibration import Question, fit_recalibration, joined
from harmonium.estimators.model_files import Recalibration
from harmonium.evaluation import grouped_folds
from harmonium.library.learning.examples import (
    N_FOLDS,
    Hyperparameters,
    TableFile,
    TrainingSet,
)
from harmonium.library.learning.scores import mean_auc
from harmonium.library.tagger import keep_compiled

TrainingProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many fits are done, and of how many; 0: not known yet."""

MAX_FIRST = 2000
"""Tracks that the first answer learns from."""
PENALTIES = tuple(10 ** (k / 2) for k in range(-9, 0))
"""Those of the logistic regression; the search starts at 0.001, the fourth."""
MAX_ON_ALL_FOLDS = 500
"""With more tracks, penalties of the logistic regression are tried on three of the folds."""
TO_TRY = tuple(Hyperparameters(0.01, l2) for l2 in (0.1, 0.3, 1.0, 3.0))
"""Few tracks are tried with the three strongest penalties, others with the three weakest."""
FEW_TRACKS = 300
MAX_TO_SEARCH = 3000
"""Tracks with which hyperparameters are tried."""
FOLDS_TO_SEARCH = 3
"""Folds on which they are tried where there are more tracks than that."""
MAX_UPDATES = 20_000
"""Minibatches that a member learns from, at most, but at least 30 epochs and at most 500."""


# The logistic regression. -------------------------------------------------------------------------


class LinearFit(NamedTuple):
    """A logistic regression of all tracks, and what others like it say of held-out ones."""

    model: Any
    """LogisticTagger"""
    held_out: Floats
    """(n, C) held-out probabilities, corrected by the other folds."""
    correction: Recalibration
    candidate: "Candidate"


def fit_first(examples: TrainingSet, seed: int = 0) -> LinearFit:
    """The first answer."""
    folds = grouped_folds(examples.groups, examples.Y, n_folds=N_FOLDS, seed=seed)
    few = len(examples) <= MAX_ON_ALL_FOLDS
    searched = range(N_FOLDS if few else FOLDS_TO_SEARCH)

    @lru_cache
    def tried(place: int, more_inputs: bool) -> Candidate:
        if not 0 <= place < len(PENALTIES):
            return Candidate(Hyperparameters(0.0, 0.0), -np.inf, 0)
        chosen = Hyperparameters(0.0, PENALTIES[place], more_inputs=more_inputs, linear=True)
        P = linear_held_out(examples, chosen, folds, searched)
        return Candidate(chosen, mean_auc(examples.Y, P), 0)

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
    asked = []
    for fold in range(N_FOLDS):
        own = folds == fold
        n = int(own.sum())
        asked.append([Question(P[own], examples.Y[own], np.zeros(n), np.ones(n))])
    corrected = np.empty_like(P)
    for fold in range(N_FOLDS):
        others = fit_recalibration(joined([*asked[:fold], *asked[fold + 1 :]]))
        corrected[folds == fold] = others(P[folds == fold])
    model = _fitted_linear(chosen.l2, examples.inputs(chosen), named)
    candidate = best._replace(auc=mean_auc(examples.Y, P))
    return LinearFit(model, corrected, fit_recalibration(joined(asked)), candidate)


def linear_held_out(
    examples: TrainingSet, hyperparameters: Hyperparameters, folds: Ids, wanted: Sequence[int]
) -> Floats:
    """The probabilities of these folds by models of the others, (n, C); NaN elsewhere."""
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


# The RBM. -----------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """Hyperparameters that were tried, and how well they do."""

    hyperparameters: Hyperparameters
    auc: float
    """Mean over tags, pooled over the folds."""
    epochs: int


class FitTask(NamedTuple):
    """One model to fit."""

    what: str
    """For the progress."""
    hyperparameters: Hyperparameters
    examples: TrainingSet
    model: dict[str, Any]
    """The parameters of the estimator."""


def fit_one(task: FitTask) -> Any:
    """Fit a model, in this process or in another."""
    keep_compiled()
    from harmonium.estimators.networks import DiscriminativeRBM

    examples, chosen = task.examples, task.hyperparameters
    with interrupts_raise():
        return DiscriminativeRBM(**task.model).fit(
            examples.inputs(chosen),
            examples.targets(chosen),
            groups=examples.groups,
            eval_y=examples.Y,
        )


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
    """The model, a `DiscriminativeRBM` with its ``held_out_``, and what was tried, the best first.

    ``to_try`` are tried with labels and features as they are; the best of them also with the
    built-in model's log-odds and with smoothed labels, if there are any. ``engine`` and ``jobs``,
    as for `make_executor`, say where models are fitted.
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

    def task(examples: TrainingSet, one: Hyperparameters, what: str, n_models: int) -> FitTask:
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
        return FitTask(what, one, examples, parameters)

    tried: list[tuple[Any, Candidate]] = []
    say("Trying settings")
    with Runner(fit_one, engine=engine, jobs=jobs) as runner:
        for change in (None, *changes):
            settings = to_try
            if change is not None:
                best = max(tried, key=lambda one: one[1].auc)[1].hyperparameters
                settings = [best._replace(**change)]
            for one in settings:
                runner.submit(task(searched, one, "Trying settings", n_folds))
            while runner.pending:
                done, model = _next(runner)
                n_done += 1
                say(done.what)
                auc = held_out_auc(model, searched.Y)
                tried.append((model, Candidate(done.hyperparameters, auc, model.best_epoch_)))
        tried.sort(key=lambda one: (-one[1].auc, one[1].hyperparameters))
        model, candidate = tried[0]
        if searched is not examples:
            runner.submit(task(examples, candidate.hyperparameters, "Fitting", N_FOLDS))
            _, model = _next(runner)
            n_done += 1
            say("Fitting")
    model.tags_ = np.array(examples.tags, dtype=object)
    return model, [candidate for _, candidate in tried]


def held_out_auc(model: Any, Y: Floats) -> float:
    """Mean over folds and tags of the AUC of held-out tracks.

    Members of different folds need not agree on how likely a tag is, so they are not ranked
    together.
    """
    if not hasattr(model, "folds_"):
        return 0.5
    folds = range(int(model.folds_.max()) + 1)
    own = [model.folds_ == fold for fold in folds]
    return float(np.mean([mean_auc(Y[some], model.held_out_[some]) for some in own]))


def _next(runner: Runner[FitTask, Any]) -> tuple[FitTask, Any]:
    """The next model that is fitted, and its task."""
    outcome = runner.next()
    task, error = outcome.task, outcome.error
    if isinstance(error, WorkerDied):
        raise EngineError(
            f"A model could not be fitted: {error}. It may need more memory than there is; try "
            "fewer processes (--jobs 1), or workers with more memory."
        )
    if isinstance(error, FileNotFoundError) and isinstance(task.examples.X, TableFile):
        return task, fit_one(task)  # a worker of another machine does not see the file
    if error is not None:
        raise error
    return task, outcome.result


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """Epochs at most: few tracks need more passes, many need fewer."""
    return int(np.clip(MAX_UPDATES * batch_size / n_tracks, 30, 500))


def usual_patience(n_tracks: int, batch_size: int) -> int:
    """Epochs without a better ranking after which training stops: few tracks need more.

    At most a fifth of the usual epochs, and between 10 and 100.
    """
    enough = max(50, 500 * batch_size // n_tracks)
    return int(np.clip(usual_epochs(n_tracks, batch_size) // 5, 10, min(100, enough)))


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Raise KeyboardInterrupt where ``fit`` would warn that it was interrupted.

    At Ctrl-C, estimators keep the best parameters so far; a library wants all or nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterrupted)
        try:
            yield
        except TrainingInterrupted as warning:
            raise KeyboardInterrupt(str(warning)) from None
