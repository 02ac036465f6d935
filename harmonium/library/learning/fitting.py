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

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl

from harmonium import stopping
from harmonium.arrays import Arrays, Floats, Ids
from harmonium.engine import Engine, EngineError, Runner, WorkerDied
from harmonium.errors import DataError
from harmonium.estimators.calibration import ask_by_features, correct_folds
from harmonium.evaluation import grouped_folds
from harmonium.library.learning.examples import N_FOLDS, Hyperparameters, TrainingSet
from harmonium.library.learning.scores import mean_auc
from harmonium.library.store.reports import Trial

if TYPE_CHECKING:
    from harmonium.estimators.linear import LogisticTagger
    from harmonium.estimators.networks import DiscriminativeRBM

TrainingProgress = Callable[[str, int, int], None]  # (what, fits done, total or 0)

MAX_FIRST = 2000  # tracks that the first answer learns from
PENALTIES = tuple(10 ** (k / 2) for k in range(-9, 0))  # logistic; the search starts at 0.001
FIRST_PENALTY = PENALTIES.index(0.001)
MAX_ON_ALL_FOLDS = 500  # above this, logistic penalties are tried on three of the folds
TO_TRY = tuple(Hyperparameters(0.01, l2) for l2 in (0.1, 0.3, 1.0, 3.0))
"""With few tracks, the three strongest penalties are tried; otherwise the three weakest."""
FEW_TRACKS = 300
MAX_TO_SEARCH = 3000  # tracks with which hyperparameters are tried
FOLDS_TO_SEARCH = 3  # folds on which they are tried if there are more tracks than that
MAX_UPDATES = 20_000  # the most minibatches that a member learns from, in 30 to 500 epochs


class Candidate(NamedTuple):
    """Hyperparameters that were tried, and how well they did."""

    hyperparameters: Hyperparameters
    auc: float  # mean over tags
    epochs: int

    def report(self) -> Trial:
        """It as the model's report keeps it."""
        tried = self.hyperparameters
        return Trial(
            learning_rate=tried.learning_rate,
            l2=tried.l2,
            smoothed=tried.smoothed,
            more_inputs=tried.more_inputs,
            linear=tried.linear,
            auc=self.auc,
            epochs=self.epochs,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedModel:
    """A model, and what it says about the tracks that it learnt from."""

    estimator: LogisticTagger | DiscriminativeRBM
    held_out: Floats  # (n, C) the probabilities by models that did not learn from the track
    folds: Ids  # (n,)
    candidates: list[Candidate]  # what was tried, the best first, which this is
    arrays: Arrays = field(default_factory=dict)  # what the model's file needs besides


def fit_first(examples: TrainingSet, seed: int = 0) -> FittedModel:
    """The first answer: a calibrated `LogisticTagger`."""
    folds = grouped_folds(examples.groups, examples.Y, n_folds=N_FOLDS, seed=seed)
    search = _PenaltySearch(examples, folds)
    best = search.best(more_inputs=False)
    if examples.n_builtin:
        with_builtin = search.best(more_inputs=True)
        if with_builtin.auc > best.auc:
            best = with_builtin
    chosen = best.hyperparameters
    held_out = linear_held_out(examples, chosen, folds, range(N_FOLDS))
    auc = mean_auc(examples.Y, held_out, folds)
    rows = [np.flatnonzero(folds == fold) for fold in range(N_FOLDS)]
    asked = [ask_by_features(held_out[fold], examples.Y[fold]) for fold in rows]
    correction = correct_folds(asked, rows, held_out)
    labels = pl.DataFrame(examples.Y, schema=list(examples.tags))
    return FittedModel(
        estimator=_fit_linear(chosen.l2, examples.inputs(chosen), labels),
        held_out=held_out,
        folds=folds,
        candidates=[best._replace(auc=auc)],
        arrays=correction.arrays(),
    )


class _PenaltySearch:
    """Looks for the best penalty of a logistic regression, from `FIRST_PENALTY` up and down."""

    def __init__(self, examples: TrainingSet, folds: Ids) -> None:
        self._examples = examples
        self._folds = folds
        n_folds = N_FOLDS if len(examples) <= MAX_ON_ALL_FOLDS else FOLDS_TO_SEARCH
        self._searched = range(n_folds)
        self._tried: dict[Hyperparameters, Candidate] = {}

    def best(self, *, more_inputs: bool) -> Candidate:
        """The best one, with or without the built-in model's log-odds as inputs."""
        place = FIRST_PENALTY
        best = self._try(place, more_inputs)
        for step in (-1, 1):
            while 0 <= place + step < len(PENALTIES):
                candidate = self._try(place + step, more_inputs)
                if candidate.auc <= best.auc:
                    break
                place, best = place + step, candidate
        return best

    def _try(self, place: int, more_inputs: bool) -> Candidate:
        chosen = Hyperparameters(0.0, PENALTIES[place], more_inputs=more_inputs, linear=True)
        if chosen not in self._tried:
            P = linear_held_out(self._examples, chosen, self._folds, self._searched)
            auc = mean_auc(self._examples.Y, P, self._folds)
            self._tried[chosen] = Candidate(chosen, auc, epochs=0)
        return self._tried[chosen]


def linear_held_out(
    examples: TrainingSet, hyperparameters: Hyperparameters, folds: Ids, wanted: Sequence[int]
) -> Floats:
    """These folds' probabilities from models trained on the others, (n, C); NaN elsewhere."""
    X = examples.inputs(hyperparameters)
    P = np.full(examples.Y.shape, np.nan, np.float32)
    for fold in wanted:
        stopping.check()
        is_held_out = folds == fold
        model = _fit_linear(hyperparameters.l2, X[~is_held_out], examples.Y[~is_held_out])
        P[is_held_out] = model.predict_proba(X[is_held_out])
    return P


def _fit_linear(l2: float, X: Floats, Y: Floats | pl.DataFrame) -> LogisticTagger:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from harmonium.estimators.linear import LogisticTagger

    with threadpool_limits(1):  # products of small matrices take longer on several threads
        return LogisticTagger(solver="newton", l2=l2).fit(X, Y)


def enable_jax_cache() -> None:
    """Cache the programs that JAX compiles in the user's folder, so that each is compiled once.

    Call it before JAX is imported; environment variables take precedence.
    """
    from harmonium.files import user_cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


@dataclass(frozen=True, kw_only=True)
class NetworkParameters:
    """The parameters of a `DiscriminativeRBM`."""

    n_hidden: int
    n_models: int
    learning_rate: float
    l2: float
    batch_size: int
    max_epochs: int
    patience: int
    random_state: int


class FitTask(NamedTuple):
    """One model to fit."""

    hyperparameters: Hyperparameters
    examples: TrainingSet
    parameters: NetworkParameters


def fit_one(task: FitTask) -> DiscriminativeRBM:
    """Fit a model, in this process or in another."""
    enable_jax_cache()
    from harmonium.estimators.history import content_with_max_epochs
    from harmonium.estimators.networks import DiscriminativeRBM

    examples, chosen = task.examples, task.hyperparameters
    model = DiscriminativeRBM(**asdict(task.parameters))
    with content_with_max_epochs():  # they are chosen here, and users cannot change them
        model.fit(
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
) -> FittedModel:
    """The model, a `DiscriminativeRBM`.

    ``to_try`` are tried with labels and features as they are; the best of them also with the
    built-in model's log-odds and with smoothed labels, if available. ``engine`` and ``jobs``, as in
    `make_executor`, say where models are fitted.
    """
    if to_try is None:
        to_try = TO_TRY[1:] if len(examples) < FEW_TRACKS else TO_TRY[:-1]
    is_large = len(examples) > MAX_TO_SEARCH
    searched, n_folds = examples, N_FOLDS
    if is_large:
        rows = np.random.default_rng(seed).permutation(len(examples))[:MAX_TO_SEARCH]
        searched, n_folds = examples.rows(np.sort(rows)), FOLDS_TO_SEARCH
    has_smoothed = examples.smoothed is not None
    n_fits = len(to_try) + bool(examples.n_builtin) + has_smoothed + is_large
    with _Fits(n_fits, n_hidden, seed, progress, engine, jobs) as fits:
        fits.report("Trying settings")
        tried = fits.search(searched, to_try, n_folds)
        if examples.n_builtin:
            best = _best(tried).hyperparameters
            tried += fits.search(searched, [best._replace(more_inputs=True)], n_folds)
        if has_smoothed:
            best = _best(tried).hyperparameters
            tried += fits.search(searched, [best._replace(smoothed=True)], n_folds)
        tried.sort(key=lambda trial: (-trial.candidate.auc, trial.candidate.hyperparameters))
        model = tried[0].model
        if is_large:
            model = fits.fit(examples, tried[0].candidate.hyperparameters, N_FOLDS)
    model.tags_ = np.array(examples.tags, dtype=object)
    return FittedModel(
        estimator=model,
        held_out=model.held_out_,
        folds=model.folds_,
        candidates=[trial.candidate for trial in tried],
    )


class _Trial(NamedTuple):
    """A model that was fitted with a candidate's hyperparameters."""

    model: DiscriminativeRBM
    candidate: Candidate


def _best(trials: Sequence[_Trial]) -> Candidate:
    return max((trial.candidate for trial in trials), key=lambda candidate: candidate.auc)


class _Fits:
    """Fits models on an engine, and says how many are done."""

    def __init__(
        self,
        n_fits: int,
        n_hidden: int,
        seed: int,
        progress: TrainingProgress | None,
        engine: str | Engine,
        jobs: int | None,
    ) -> None:
        self._n_fits = n_fits
        self._n_done = 0
        self._n_hidden = n_hidden
        self._seed = seed
        self._progress = progress
        self._runner: Runner[FitTask, DiscriminativeRBM] = Runner(fit_one, engine=engine, jobs=jobs)

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._runner.__exit__(*raised)

    def search(
        self, examples: TrainingSet, settings: Sequence[Hyperparameters], n_folds: int
    ) -> list[_Trial]:
        """A model for each setting, in the order in which they are ready."""
        for chosen in settings:
            self._runner.submit(self._task(examples, chosen, n_folds))
        trials = []
        while self._runner.pending:
            task, model = next_fitted(self._runner)
            self._n_done += 1
            self.report("Trying settings")
            auc = mean_auc(examples.Y, model.held_out_, model.folds_)
            trials.append(_Trial(model, Candidate(task.hyperparameters, auc, model.best_epoch_)))
        return trials

    def fit(
        self, examples: TrainingSet, chosen: Hyperparameters, n_folds: int
    ) -> DiscriminativeRBM:
        """The model with the chosen setting."""
        self._runner.submit(self._task(examples, chosen, n_folds))
        _, model = next_fitted(self._runner)
        self._n_done += 1
        self.report("Fitting")
        return model

    def _task(self, examples: TrainingSet, chosen: Hyperparameters, n_folds: int) -> FitTask:
        n_tracks = len(examples) * (n_folds - 1) // n_folds
        batch_size = 20 if n_tracks >= 200 else 10
        parameters = NetworkParameters(
            n_hidden=self._n_hidden,
            n_models=n_folds,
            learning_rate=chosen.learning_rate,
            l2=chosen.l2,
            batch_size=batch_size,
            max_epochs=usual_epochs(n_tracks, batch_size),
            patience=usual_patience(n_tracks, batch_size),
            random_state=self._seed,
        )
        return FitTask(chosen, examples, parameters)

    def report(self, what: str) -> None:
        """Say what is being done, and how many fits are done."""
        stopping.check()
        if self._progress is not None:
            self._progress(what, self._n_done, self._n_fits)


def next_fitted(
    runner: Runner[FitTask, DiscriminativeRBM],
) -> tuple[FitTask, DiscriminativeRBM]:
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
    assert outcome.result is not None
    return task, outcome.result


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """The most epochs: few tracks need more passes, many need fewer."""
    return int(np.clip(MAX_UPDATES * batch_size / n_tracks, 30, 500))


def usual_patience(n_tracks: int, batch_size: int) -> int:
    """Epochs without a better ranking after which training stops: few tracks need more."""
    enough = max(50, 500 * batch_size // n_tracks)
    return int(np.clip(usual_epochs(n_tracks, batch_size) // 5, 10, min(100, enough)))
