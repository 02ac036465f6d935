"""Fitting the model: hyperparameters by cross-validation, held-out probabilities, then everything.

1. A logistic regression, solved to convergence, is the first answer after a few seconds. The next
   penalty on a scale is tried as long as it is better. Of many tracks, it learns from some.
2. A few sets of hyperparameters of the RBM are tried on the folds: a model learns from all folds
   but one, and stops when that one is ranked best. The set with the highest pooled AUC is chosen,
   with the median of its numbers of epochs. With many tracks, only a random share is used for this.
3. With these and that many epochs, a model learns from all folds but one, and predicts the
   probabilities of that one. So every track has held-out probabilities.
4. Where tracks are few, a logistic regression stays beside the RBM, if held-out tracks are ranked
   better by the mean of the two models' log-odds.
5. Probabilities are corrected by what is true of held-out tracks: those of a fold by the other
   folds, and those of the model that is used by all of them.
6. A model with the same hyperparameters learns from all tracks. It is the one that is used.

Choosing on the folds that are then scored flatters the score a little; what is chosen is one of a
handful of hyperparameters and a number of epochs for all tags together.

The fits of a step do not depend on each other. An engine does them: this process, one after the
other, or several processes, or the workers of a cluster. All random choices are made before, so
that the engine does not matter.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids, Mask
from harmonium.engine import Engine, EngineError, Runner, WorkerDied
from harmonium.errors import DataError, TrainingInterrupted
from harmonium.estimators.calibration import Question, fit_recalibration
from harmonium.estimators.model_files import Recalibration
from harmonium.library.learning.examples import (
    Hyperparameters,
    StoredRows,
    TrainingSet,
    by_columns,
    opened,
    row_blocks,
)
from harmonium.library.store.models import UNREACHABLE
from harmonium.library.tagger import LINEAR, PrecisionCurve, keep_compiled, mix

TrainingProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many fits are done, and of how many; 0: not known yet."""

CLEARLY = 2.0
"""An AUC is clearly above 0.5 if it is by so many of the standard errors that chance has."""
BINS = 50
"""Ranges of probabilities in which other tags are looked at."""
GROWTH = 1.1
"""Beyond the first ranks, each rank of a curve has so many times the tracks of the one before."""
MAX_FIRST = 2000
"""Tracks that the first answer learns from, and up to which it stays beside the RBM."""
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
PATIENT_UPDATES = 500
"""Minibatches without a better ranking after which training may stop, but at least 50 epochs."""
HALF = np.float32(0.5)
MAX_TO_CALIBRATE = 5000
"""Tracks by which probabilities are corrected."""
MAX_AT_ONCE = 50_000
"""Tracks that are predicted, or corrected, at a time."""


# How well each tag is learnt, from held-out probabilities. ----------------------------------------


@dataclass(frozen=True)
class TagScores:
    """What held-out probabilities say about each tag; all (n_tags,)."""

    positives: Ids
    negatives: Ids
    auc: Doubles
    error: Doubles
    """Standard error of the AUC."""
    learnt: Mask
    """Whether the AUC is clearly above chance."""


def score_tags(Y: Floats, P: Floats) -> TagScores:
    """AUC by tag, with its error, from labels (n, C), NaN unknown, and probabilities (n, C)."""
    from harmonium.evaluation import auc_per_tag

    positives = by_columns(lambda y: (y == 1).sum(axis=0).astype(np.int64), Y)
    negatives = by_columns(lambda y: (y == 0).sum(axis=0).astype(np.int64), Y)
    auc = by_columns(lambda y, p: auc_per_tag(y, p).values, Y, P)
    with np.errstate(invalid="ignore"):
        learnt = auc - 0.5 > CLEARLY * chance_error(positives, negatives)
    return TagScores(positives, negatives, auc, auc_error(auc, positives, negatives), learnt)


def auc_error(auc: Doubles, positives: Ids, negatives: Ids) -> Doubles:
    """√([A(1 - A) + (P - 1)(Q₁ - A²) + (N - 1)(Q₂ - A²)] / PN): Hanley and McNeil (1982).

    Q₁ = A / (2 - A) and Q₂ = 2A² / (1 + A) are the chances that two positives outrank a negative,
    and that a positive outranks two negatives. A is kept half a pair away from 0 and 1: that some
    twenty tracks are in perfect order does not prove that all are.
    """
    pairs = np.maximum(positives * negatives, 1)
    a = np.clip(auc, 0.5 / pairs, 1 - 0.5 / pairs)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (positives - 1) * (first - a**2) + (negatives - 1) * (second - a**2)
    return np.sqrt(np.maximum(variance, 0) / pairs)


def chance_error(positives: Ids, negatives: Ids) -> Doubles:
    """√((P + N + 1) / 12PN): the standard error of the AUC of scores that say nothing."""
    return np.sqrt((positives + negatives + 1) / (12 * np.maximum(positives * negatives, 1)))


def choose_thresholds(Y: Floats, P: Floats, scores: TagScores) -> Floats:
    """The probability from which a track is said to have a tag, (n_tags,).

    As many held-out tracks reach it as have the tag. ``UNREACHABLE`` for tags that are not learnt.
    """
    from harmonium.estimators.calibration import matching_thresholds

    chosen = np.clip(by_columns(matching_thresholds, Y, P), 0.01, 0.99)
    return np.where(scores.learnt, chosen, UNREACHABLE).astype(np.float32)


def mean_auc(Y: Floats, P: Floats) -> float:
    """Mean over tags of the AUC, of the tracks that have probabilities."""
    from harmonium.evaluation import auc_per_tag

    scored = ~np.isnan(P[:, 0])
    auc = by_columns(lambda y, p: auc_per_tag(y[scored], p[scored]).values, Y, P)
    return float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5


# The logistic regression. -------------------------------------------------------------------------


class LinearFit(NamedTuple):
    """A logistic regression of all tracks, and what others like it say of held-out ones."""

    model: Any
    """LogisticTagger"""
    held_out: Floats
    """(n, C) probabilities of models that had not seen the track, not corrected."""
    hyperparameters: Hyperparameters


def fit_first(examples: TrainingSet) -> tuple[LinearFit, Recalibration, Floats]:
    """The first answer, its correction, and the corrected held-out probabilities, (n, C)."""
    n_folds = int(examples.folds.max()) + 1
    few = len(examples.X) <= MAX_ON_ALL_FOLDS
    searched = np.arange(n_folds if few else min(FOLDS_TO_SEARCH, n_folds))

    @lru_cache
    def score(place: int, more_inputs: bool) -> float:
        if not 0 <= place < len(PENALTIES):
            return -np.inf
        hyperparameters = linear_hyperparameters(PENALTIES[place], more_inputs=more_inputs)
        return mean_auc(examples.Y, linear_held_out(examples, hyperparameters, searched))

    def climb(place: int, more_inputs: bool) -> int:
        for step in (-1, 1):
            while score(place + step, more_inputs) > score(place, more_inputs):
                place += step
        return place

    place, more = climb(3, False), False
    if examples.builtin is not None:
        with_more = climb(place, True)
        if score(with_more, True) > score(place, False):
            place, more = with_more, True
    fitted = fit_linear(examples, linear_hyperparameters(PENALTIES[place], more_inputs=more))
    asked = [
        [Question(P, examples.Y[held], np.zeros(len(P)), np.ones(len(P)))]
        for held in (examples.folds == fold for fold in range(n_folds))
        for P in [fitted.held_out[held]]
    ]
    corrected, correction = _corrected(examples, fitted.held_out, asked)
    return fitted, correction, corrected


def linear_hyperparameters(l2: float, *, more_inputs: bool = False) -> Hyperparameters:
    """Those of a logistic regression."""
    return Hyperparameters(0.0, l2, more_inputs=more_inputs, linear=True)


def fit_linear(examples: TrainingSet, hyperparameters: Hyperparameters) -> LinearFit:
    """A logistic regression of all tracks, with held-out probabilities."""
    P = linear_held_out(examples, hyperparameters, np.arange(int(examples.folds.max()) + 1))
    named = pl.DataFrame(examples.targets(hyperparameters), schema=list(examples.tags))
    model = _fitted_linear(hyperparameters.l2, examples.inputs(hyperparameters), named)
    return LinearFit(model, P, hyperparameters)


def linear_held_out(
    examples: TrainingSet, hyperparameters: Hyperparameters, folds: NDArray[np.intp]
) -> Floats:
    """The probabilities of these folds by models of the others, (n, C); NaN elsewhere."""
    X, targets = examples.inputs(hyperparameters), examples.targets(hyperparameters)
    P = np.full(examples.Y.shape, np.nan, np.float32)
    for fold in folds:
        held = examples.folds == fold
        model = _fitted_linear(hyperparameters.l2, X[~held], targets[~held])
        P[held] = model.predict_proba(X[held])
    return P


def _fitted_linear(l2: float, X: Floats, Y: Any) -> Any:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from harmonium.estimators.linear import LogisticTagger

    with threadpool_limits(1):  # products of small matrices take longer on several threads
        return LogisticTagger(solver="newton", l2=l2).fit(X, Y)


def _corrected(
    examples: TrainingSet, held_out: Floats, asked: Sequence[Sequence[Question]]
) -> tuple[Floats, Recalibration]:
    """Each fold's probabilities corrected by the other folds, (n, C); the correction by all.

    ``asked`` are questions about the tracks of each fold, and the answers.
    """
    corrected = examples.new_table()
    for fold in range(len(asked)):
        others = fit_recalibration(_joined([*asked[:fold], *asked[fold + 1 :]]))
        held = np.flatnonzero(examples.folds == fold)
        for block in row_blocks(len(held), MAX_AT_ONCE):
            corrected[held[block]] = others(np.asarray(held_out[held[block]]))
    return corrected, fit_recalibration(_joined(asked))


def _joined(asked: Sequence[Sequence[Question]]) -> list[Question]:
    """The questions of several folds, those of one kind as one."""
    return [
        Question(*map(np.concatenate, zip(*alike, strict=True)))
        for alike in zip(*asked, strict=True)
    ]


# The RBM. -----------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """Hyperparameters that were tried, and how well they do."""

    hyperparameters: Hyperparameters
    auc: float
    """Mean over tags, pooled over the folds."""
    epochs: int


@dataclass(frozen=True)
class Fitted:
    """A model of all tracks, and what is known about it."""

    model: Any
    """DiscriminativeRBM"""
    held_out: Floats
    """(n, C) held-out probabilities, corrected."""
    uncorrected: Floats
    """(n, C) the same before they were corrected."""
    candidates: tuple[Candidate, ...] = field(repr=False)
    """Best first; the hyperparameters of the first were taken."""
    beside: LinearFit | None = None
    """A logistic regression whose log-odds are averaged with those of the model."""

    def probabilities(self, X: Floats) -> Floats:
        """What it says of tracks with these inputs, (n, C)."""
        if self.beside is None:
            return self.model.predict_proba(X)
        both = mix(self.model.infer(X).y, self.beside.model.predict_proba(X), HALF)
        return self.model.recalibration_(both)

    def to_bytes(self, more: Mapping[str, NDArray[Any]]) -> bytes:
        """As a library stores it."""
        if self.beside is None:
            return self.model.to_bytes(more)
        arrays, _ = self.beside.model._described()
        names = ("params.W", "params.d", "scaling.mean", "scaling.scale")
        linear = {f"{LINEAR}{name.partition('.')[2]}": arrays[name] for name in names}
        return self.model.to_bytes({**more, **linear})


def fit(
    examples: TrainingSet,
    *,
    to_try: Sequence[Hyperparameters] | None = None,
    n_hidden: int = 100,
    seed: int = 0,
    beside_l2: float | None = None,
    progress: TrainingProgress | None = None,
    engine: str | Engine = "serial",
    jobs: int | None = None,
) -> Fitted:
    """Choose hyperparameters, find held-out probabilities, and fit the model.

    ``to_try`` are tried with labels and features as they are; the best of them with further inputs
    and with smoothed labels, too, if there are any. ``beside_l2`` is the penalty of a logistic
    regression that may stay beside it; None: there is none. ``engine`` and ``jobs``, as for
    `make_executor`, say where the fits are done.
    """
    n, n_folds = len(examples.X), int(examples.folds.max()) + 1
    to_try = to_try or (TO_TRY[1:] if n < FEW_TRACKS else TO_TRY[:-1])
    if n_folds < 2:
        raise DataError(f"'folds' must have at least 2 folds. Got {n_folds}.")
    rng = np.random.default_rng(seed)
    searched, n_searched = examples, n_folds
    if n > MAX_TO_SEARCH:
        searched = examples.rows(np.sort(rng.permutation(n)[:MAX_TO_SEARCH]))
        n_searched = min(n_folds, FOLDS_TO_SEARCH)
    further = [
        change
        for change, there in (
            ({"more_inputs": True}, examples.builtin),
            ({"smoothed": True}, examples.smoothed),
        )
        if there is not None
    ]
    n_candidates = len(to_try) + len(further)
    n_fits = n_candidates * n_searched + n_folds + 1
    if progress:
        progress("Trying settings", 0, n_fits)
    with Runner[tuple[int, FitTask], FitOutcome](_numbered, engine=engine, jobs=jobs) as runner:
        fits = _Fits(runner, n_hidden, seed, rng, progress, n_fits)
        candidates = fits.attempt(searched, n_searched, to_try)
        for change in further:
            best = max(candidates, key=lambda candidate: candidate.auc).hyperparameters
            candidates += fits.attempt(searched, n_searched, [best._replace(**change)])
        candidates.sort(key=lambda candidate: -candidate.auc)
        chosen, _, epochs = candidates[0]
        rows: list[NDArray[np.intp]] = []
        into = None if examples.files is None else examples.new_table()
        tasks = fits.of_folds(examples, n_folds, chosen, "Scoring", epochs, rows, into)
        X, Y = examples.everything(chosen)
        final_task = fits.task("Fitting", chosen, X, Y, epochs)
        *scored, final = fits.done([*tasks, final_task._replace(tags=examples.tags)])
    held_out = _pooled(examples, scored) if into is None else into
    asked = [outcome.asked for outcome in scored]
    beside = None
    if beside_l2 is not None:
        linear = linear_hyperparameters(beside_l2)._replace(
            smoothed=chosen.smoothed, more_inputs=chosen.more_inputs
        )
        beside = fit_linear(examples, linear)
        both = mix(held_out, beside.held_out, HALF)
        if mean_auc(examples.Y, both) > mean_auc(examples.Y, held_out):
            for fold, some in enumerate(rows):
                other = beside.held_out[some]
                asked[fold] = [one._replace(P=mix(one.P, other, HALF)) for one in asked[fold]]
            held_out = both
        else:
            beside = None
    model = final.model
    corrected, model.recalibration_ = _corrected(examples, held_out, asked)
    return Fitted(model, corrected, held_out, tuple(candidates), beside)


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """Epochs at most: few tracks need more passes, many need fewer."""
    return int(np.clip(MAX_UPDATES * batch_size / n_tracks, 30, 500))


def usual_patience(n_tracks: int, batch_size: int) -> int:
    """Epochs without a better ranking after which training stops: few tracks need more.

    At most a fifth of the usual epochs, and between 10 and 100.
    """
    enough = max(50, PATIENT_UPDATES * batch_size // n_tracks)
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


class FitTask(NamedTuple):
    """One fit, and what is wanted of it."""

    what: str
    """For the progress."""
    model: Mapping[str, Any]
    """The parameters of the estimator."""
    X: Floats | StoredRows
    Y: Floats | StoredRows
    tags: tuple[str, ...] | None = None
    """The names of the tags, where the model itself is wanted, and not what it says."""
    valid: tuple[Floats, Floats] | None = None
    """Tracks by whose ranking to stop."""
    held: Floats | StoredRows | None = None
    """Tracks whose probabilities are wanted."""
    into: StoredRows | None = None
    """Where to write them, if they are too many to be sent."""
    asked: tuple[Floats, Floats] | None = None
    """Tracks to ask about, with and without tags observed."""


class FitOutcome(NamedTuple):
    """What came of a fit."""

    epochs: int
    P: Floats | None = None
    asked: Sequence[Question] = ()
    model: Any = None


def fit_one(task: FitTask) -> FitOutcome:
    """Do a fit: in this process or in another."""
    keep_compiled()
    from harmonium.estimators.calibration import ask
    from harmonium.estimators.networks import DiscriminativeRBM

    model = DiscriminativeRBM(**task.model)
    into = None if task.into is None else task.into.open("r+")
    with interrupts_raise():
        model.fit(opened(task.X), opened(task.Y), eval_set=task.valid)
    epochs = model.best_epoch_ or model.n_iter_
    if task.tags is not None:
        model.tags_ = np.array(task.tags, dtype=object)
        return FitOutcome(epochs, model=model)
    asked: list[Question] = []
    if task.asked is not None:
        X, Y = task.asked
        asked = ask(partial(model.complete, X), Y)
    assert task.held is not None
    held = opened(task.held)
    P = np.empty((len(held), len(model.tags_)), np.float32) if into is None else into
    for some in row_blocks(len(held), MAX_AT_ONCE):
        P[some] = model.predict_proba(np.asarray(held[some]))
    return FitOutcome(epochs, P if into is None else None, asked)


def _numbered(task: tuple[int, FitTask]) -> FitOutcome:
    return fit_one(task[1])


@dataclass
class _Fits:
    """The fits that there are to do, and those done."""

    runner: Runner[tuple[int, FitTask], FitOutcome]
    n_hidden: int
    seed: int
    rng: np.random.Generator
    progress: TrainingProgress | None
    total: int
    n_done: int = 0

    def attempt(
        self, examples: TrainingSet, n_folds: int, to_try: Sequence[Hyperparameters]
    ) -> list[Candidate]:
        """Cross-validate hyperparameters, stopping early on the fold that is scored."""
        what = "Trying settings"
        tasks = [self.of_folds(examples, n_folds, one, what) for one in to_try]
        outcomes = self.done([task for some in tasks for task in some])
        candidates = []
        for place, one in enumerate(to_try):
            found = outcomes[place * n_folds : (place + 1) * n_folds]
            epochs = max(1, int(np.median([outcome.epochs for outcome in found])))
            auc = mean_auc(examples.Y, _pooled(examples, found))
            candidates.append(Candidate(one, auc, epochs))
        return candidates

    def of_folds(
        self,
        examples: TrainingSet,
        n_folds: int,
        hyperparameters: Hyperparameters,
        what: str,
        epochs: int | None = None,
        rows: list[NDArray[np.intp]] | None = None,
        into: Floats | None = None,
    ) -> list[FitTask]:
        """For each of the first folds, the fit of a model of the others, which says what it thinks.

        Where ``rows`` is given, the models are asked about some tracks of the fold, with and
        without observed tags; which tracks these are is added to it. ``into`` is the table (n, C)
        of a file for the probabilities, where the tracks are in files.
        With ``epochs`` a model learns that long, otherwise until the fold is ranked best. All learn
        from equally many tracks, so that one compiled program serves them: a few, at random, are
        left out.
        """
        X, Y = examples.inputs(hyperparameters), examples.Y
        targets = examples.targets(hyperparameters)
        least = min(int((examples.folds != fold).sum()) for fold in range(n_folds))
        tasks = []
        for fold in range(n_folds):
            held = np.flatnonzero(examples.folds == fold)
            if into is None:
                rest = self.rng.permutation(np.flatnonzero(examples.folds != fold))[:least]
                task = self.task(what, hyperparameters, X[rest], targets[rest], epochs)
                task = task._replace(held=X[held])
            else:
                X_rest, Y_rest, of_fold = examples.stored(hyperparameters, fold, least)
                task = self.task(what, hyperparameters, X_rest, Y_rest, epochs)
                place = StoredRows(
                    *(str(into.filename), into.shape[1]),  # type: ignore[attr-defined]
                    *(int(held[0]), int(held[-1]) + 1, into.shape[1]),
                )
                task = task._replace(held=of_fold, into=place)
            if epochs is None:
                task = task._replace(valid=(X[held], Y[held]))
            if rows is not None:
                some = self.rng.permutation(held)[: MAX_TO_CALIBRATE // n_folds]
                rows.append(some)
                task = task._replace(asked=(np.array(X[some]), np.array(Y[some])))
            tasks.append(task)
        return tasks

    def task(
        self,
        what: str,
        hyperparameters: Hyperparameters,
        X: Floats | StoredRows,
        Y: Floats | StoredRows,
        epochs: int | None,
    ) -> FitTask:
        """The fit of a model that learns for so many epochs, or until others are ranked best."""
        batch_size = 20 if len(X) >= 200 else 10
        parameters = {
            "n_hidden": self.n_hidden,
            "learning_rate": hyperparameters.learning_rate,
            "l2": hyperparameters.l2,
            "batch_size": batch_size,
            "max_epochs": epochs or usual_epochs(len(X), batch_size),
            "patience": usual_patience(len(X), batch_size),
            "validation_fraction": 0.0,
            "random_state": self.seed,
            "calibrate": False,  # but by all folds together, in the end
        }
        return FitTask(what, parameters, X, Y)

    def done(self, tasks: Sequence[FitTask]) -> list[FitOutcome]:
        """Do fits; what came of them, in their order."""
        found: dict[int, FitOutcome] = {}
        for numbered in enumerate(tasks):
            while self.runner.full:
                self._take(found)
            self.runner.submit(numbered)
        while self.runner.pending:
            self._take(found)
        return [found[place] for place in range(len(tasks))]

    def _take(self, found: dict[int, FitOutcome]) -> None:
        outcome = self.runner.next()
        (place, task), error = outcome.task, outcome.error
        if isinstance(error, WorkerDied):
            raise EngineError(
                f"A model could not be fitted: {error}. It may need more memory than there is; try "
                "fewer processes (--jobs 1), or workers with more memory."
            )
        result = outcome.result
        if isinstance(error, FileNotFoundError) and isinstance(task.X, StoredRows):
            result = fit_one(task)  # a worker of another machine, which does not see the file
        elif error is not None:
            raise error
        assert result is not None
        found[place] = result
        self.n_done += 1
        if self.progress:
            self.progress(task.what, self.n_done, self.total)


def _pooled(examples: TrainingSet, outcomes: Sequence[FitOutcome]) -> Floats:
    """The probabilities of the first folds, (n, C); NaN elsewhere."""
    P = np.full(examples.Y.shape, np.nan, np.float32)
    for fold, outcome in enumerate(outcomes):
        P[examples.folds == fold] = outcome.P
    return P


# Precision curves. -------------------------------------------------------------------------------


def make_curves(
    Y: Floats,
    P: Floats,
    groups: Sequence[Any] | NDArray[Any] | None = None,
) -> list[PrecisionCurve]:
    """The curve of each tag, from labels (n, C) and held-out probabilities (n, C)."""
    rises = _shares_of_others(Y, P)
    return [
        make_curve(y, p, groups, _expected(p, rise))
        for y, p, rise in zip(Y.T, P.T, rises, strict=True)
    ]


def expected_shares(Y: Floats, P: Floats) -> Floats:
    """How likely each track has each tag, but for what is known of that tag, (n, C).

    The mean of its probability and of the share of the other tags' tracks with such a probability
    that are right: by `BINS` bins, made to rise with the probability (isotonic regression).
    """
    rises = _shares_of_others(Y, P)
    return np.stack([_expected(p, rise) for p, rise in zip(P.T, rises, strict=True)], axis=1)


def _shares_of_others(Y: Floats, P: Floats) -> list[Doubles | None]:
    """For each tag, how often the others are right by bins of the probability; None: not known."""
    from sklearn.isotonic import IsotonicRegression

    n, right = np.zeros((2, P.shape[1], BINS))
    for j, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):  # no more than a tag in memory
        known = ~np.isnan(y)
        bins = _bins(p[known])
        n[j] = np.bincount(bins, minlength=BINS)
        right[j] = np.bincount(bins, y[known] == 1, minlength=BINS)
    others, others_right = n.sum(axis=0) - n, right.sum(axis=0) - right
    centres = (np.arange(BINS) + 0.5) / BINS
    found: list[Doubles | None] = []
    for j in range(P.shape[1]):
        seen = others[j] > 0
        if not seen.any():
            found.append(None)
            continue
        rises = IsotonicRegression(out_of_bounds="clip")
        share = others_right[j, seen] / others[j, seen]
        rises.fit(centres[seen], share, sample_weight=others[j, seen])
        found.append(rises.predict(centres))
    return found


def _expected(p: Floats, rise: Doubles | None) -> Floats:
    """`expected_shares` of a tag, (n,)."""
    p = np.asarray(p, np.float32)
    return p if rise is None else ((p + rise[_bins(p)]) / 2).astype(np.float32)


def _bins(p: Floats) -> NDArray[np.int64]:
    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


def make_curve(
    y: Floats,
    p: Floats,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    expected: Floats | None = None,
) -> PrecisionCurve:
    """The curve of labels (n,), 0, 1 or NaN, and held-out probabilities (n,).

    ``groups`` (n,) says which tracks go together, such as those of an artist; None: none do.
    ``expected`` (n,) are what `expected_shares` gives for the tag; None: the probabilities.

    It has no ranks where no label is known; then nothing is promised.
    """
    known = ~np.isnan(y)
    order = np.flatnonzero(known)[np.argsort(-p[known], kind="stable")]
    y, ordered = y[order], p[order].astype(np.float64)
    # tracks of one probability are chosen together
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
        expected=np.cumsum((p if expected is None else expected)[order], dtype=np.float64)[places]
        / (places + 1),
    )


def _earlier(groups: NDArray[Any]) -> NDArray[np.int64]:
    """How many before it are in the same group, (n,)."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    earlier = np.empty(len(groups), np.int64)
    earlier[order] = np.arange(len(groups)) - starts
    return earlier


def curves_to_arrays(curves: Sequence[PrecisionCurve]) -> dict[str, NDArray[Any]]:
    """As arrays of a model file: the curves one after the other, and where each ends."""
    return {
        "curves.thresholds": np.concatenate([one.thresholds for one in curves]).astype(np.float32),
        "curves.chosen": np.concatenate([one.chosen for one in curves]).astype(np.int32),
        "curves.right": np.concatenate([one.right for one in curves]).astype(np.int32),
        "curves.effective": np.concatenate([one.effective for one in curves]).astype(np.float32),
        "curves.expected": np.concatenate([one.expected for one in curves]).astype(np.float32),
        "curves.positives": np.array([one.positives for one in curves], np.int32),
        "curves.ends": np.cumsum([len(one.chosen) for one in curves]).astype(np.int32),
    }
