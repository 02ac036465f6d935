"""Fitting the model: hyperparameters by cross-validation, held-out probabilities, then everything.

1. Each of a few hyperparameters is tried on the folds: a model learns from all folds but one, and
   stops when that one is ranked best. Those whose pooled AUC is highest are chosen, and the middle
   one of their numbers of epochs. With many tracks, a random share of them has to do for this.
2. With these and that many epochs, a model learns from all folds but one, and says the
   probabilities of that one. So every track has held-out probabilities.
3. A model with the same hyperparameters learns from all tracks. It is the one that is used.

Choosing on the folds that are then scored flatters the score a little; what is chosen is one of a
handful of hyperparameters and a number of epochs for all tags together.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError, TrainingInterrupted

Floats = NDArray[np.float32]
TrainingProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many fits are done, and of how many."""

N_FOLDS = 5
MOST_TO_SEARCH = 3000
"""Tracks with which hyperparameters are tried."""
FOLDS_TO_SEARCH = 3
"""Folds on which they are tried where there are more tracks than that."""
MOST_UPDATES = 20_000


class Hyperparameters(NamedTuple):
    """What is tried."""

    learning_rate: float
    l2: float
    smoothed: bool = False
    """Whether to learn from smoothed labels."""


TO_TRY = (
    Hyperparameters(0.01, 0.03),
    Hyperparameters(0.01, 0.1),
    Hyperparameters(0.01, 0.3),
)


class Candidate(NamedTuple):
    """Hyperparameters that were tried, and how well they do."""

    hyperparameters: Hyperparameters
    auc: float
    """Mean over tags, pooled over the folds."""
    epochs: int


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What there is to learn from."""

    X: Floats
    """(n, D) features."""
    Y: Floats
    """(n, C) labels: 0, 1, NaN."""
    folds: NDArray[np.int64]
    """(n,) fold of each track."""
    tags: tuple[str, ...]
    """The C tags."""
    smoothed: Floats | None = None
    """(n, C) smoothed labels."""

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y


@dataclass(frozen=True)
class Fitted:
    """A model of all tracks, and what is known about it."""

    model: Any
    """DiscriminativeRBM"""
    held_out: Floats
    """(n, C) probabilities of models that had not seen the track."""
    candidates: tuple[Candidate, ...] = field(repr=False)
    """Best first."""

    @property
    def chosen(self) -> Candidate:
        """The candidate whose hyperparameters were taken."""
        return self.candidates[0]


def fit(
    examples: TrainingSet,
    *,
    to_try: Sequence[Hyperparameters] = TO_TRY,
    n_hidden: int = 100,
    seed: int = 0,
    progress: TrainingProgress | None = None,
) -> Fitted:
    """Choose hyperparameters, find held-out probabilities, and fit the model.

    ``to_try`` are tried with labels as they are; the best of them with smoothed labels, too, if
    there are any.
    """
    work = _Work(examples, n_hidden, seed, len(to_try), progress)
    candidates = [work.attempt(hyperparameters) for hyperparameters in to_try]
    if examples.smoothed is not None:
        best = max(candidates, key=lambda candidate: candidate.auc)
        candidates.append(work.attempt(best.hyperparameters._replace(smoothed=True)))
    candidates.sort(key=lambda candidate: -candidate.auc)
    held_out = work.held_out(candidates[0])
    return Fitted(work.final(candidates[0]), held_out, tuple(candidates))


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """Epochs at most: few tracks need more passes, many need fewer."""
    return int(np.clip(MOST_UPDATES * batch_size / n_tracks, 30, 500))


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


class _Work:
    """The fits, one after another."""

    def __init__(
        self,
        examples: TrainingSet,
        n_hidden: int,
        seed: int,
        n_to_try: int,
        progress: TrainingProgress | None,
    ) -> None:
        self._examples, self._n_hidden, self._seed = examples, n_hidden, seed
        self._rng = np.random.default_rng(seed)
        n, n_folds = len(examples.X), int(examples.folds.max()) + 1
        if n_folds < 2:
            raise DataError(f"'folds' must have at least 2 folds. Got {n_folds}.")
        many = n > MOST_TO_SEARCH
        chosen = self._rng.permutation(n)[:MOST_TO_SEARCH] if many else np.arange(n)
        self._searched = np.zeros(n, bool)
        self._searched[chosen] = True
        self._search_folds = range(min(n_folds, FOLDS_TO_SEARCH) if many else n_folds)
        self._all_folds = range(n_folds)
        n_candidates = n_to_try + (examples.smoothed is not None)
        self._progress, self._done = progress, 0
        self._total = n_candidates * len(self._search_folds) + n_folds + 1

    def attempt(self, hyperparameters: Hyperparameters) -> Candidate:
        """Cross-validate hyperparameters, stopping early on the fold that is scored."""
        from harmonium.evaluation import auc_per_tag

        Y = self._examples.Y
        P = np.full(Y.shape, np.nan, np.float32)
        epochs = []
        for fold in self._search_folds:
            rest, fold_rows = self._split(fold, self._search_folds, self._searched)
            model = self._model(hyperparameters, len(rest))
            valid = (self._examples.X[fold_rows], Y[fold_rows])
            self._fit(model, hyperparameters, rest, eval_set=valid)
            P[fold_rows] = model.predict_proba(valid[0])
            epochs.append(model.best_epoch_ or model.n_iter_)
            self._step("Trying settings")
        scored = ~np.isnan(P[:, 0])
        auc = auc_per_tag(Y[scored], P[scored]).values
        mean = float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5
        return Candidate(hyperparameters, mean, int(np.median(epochs)))

    def held_out(self, candidate: Candidate) -> Floats:
        """The probabilities of each fold by a model of the others."""
        P = np.empty(self._examples.Y.shape, np.float32)
        everything = np.ones(len(P), bool)
        for fold in self._all_folds:
            rest, fold_rows = self._split(fold, self._all_folds, everything)
            model = self._fixed(candidate, len(rest))
            self._fit(model, candidate.hyperparameters, rest)
            P[fold_rows] = model.predict_proba(self._examples.X[fold_rows])
            self._step("Scoring")
        return P

    def final(self, candidate: Candidate) -> Any:
        """The model of all tracks."""
        examples = self._examples
        model = self._fixed(candidate, len(examples.X))
        targets = examples.targets(candidate.hyperparameters)
        with interrupts_raise():
            model.fit(examples.X, pl.DataFrame(targets, schema=list(examples.tags)))
        self._step("Fitting")
        return model

    def _split(
        self, fold: int, folds: range, used: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to learn from, as many for every fold so that one program serves all; and the fold.

        That leaves out a few tracks at random.
        """
        fold_of = self._examples.folds
        least = min(int((used & (fold_of != other)).sum()) for other in folds)
        rest = self._rng.permutation(np.flatnonzero(used & (fold_of != fold)))[:least]
        return rest, np.flatnonzero(used & (fold_of == fold))

    def _fixed(self, candidate: Candidate, n_rows: int) -> Any:
        """An untrained model for as many updates as were best."""
        model = self._model(candidate.hyperparameters, n_rows)
        return model.set_params(max_epochs=max(1, candidate.epochs))

    def _model(self, hyperparameters: Hyperparameters, n_rows: int) -> Any:
        from harmonium.estimators import DiscriminativeRBM

        batch_size = 20 if n_rows >= 200 else 10
        epochs = usual_epochs(n_rows, batch_size)
        return DiscriminativeRBM(
            n_hidden=self._n_hidden,
            learning_rate=hyperparameters.learning_rate,
            l2=hyperparameters.l2,
            batch_size=batch_size,
            max_epochs=epochs,
            patience=int(np.clip(epochs // 10, 5, 30)),
            validation_fraction=0.0,
            random_state=self._seed,
        )

    def _fit(
        self, model: Any, hyperparameters: Hyperparameters, rows: NDArray[np.intp], **more: Any
    ) -> None:
        Y = self._examples.targets(hyperparameters)[rows]
        with interrupts_raise():
            model.fit(self._examples.X[rows], Y, **more)

    def _step(self, what: str) -> None:
        self._done += 1
        if self._progress:
            self._progress(what, self._done, self._total)
