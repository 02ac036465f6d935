"""Fitting the model: settings by cross-validation, held-out probabilities, then on everything.

1. Each of a few settings is tried on the folds: a model learns from all folds but one, and stops
   when that one is ranked best. The setting whose pooled AUC is highest is chosen, and the middle
   one of its numbers of epochs. With many tracks, a random share of them has to do for this.
2. With that setting and that many epochs, a model learns from all folds but one, and says the
   probabilities of that one. So every track has held-out probabilities.
3. A model with that setting learns from all tracks. It is the one that is used.

Choosing among a few settings on the folds that are then scored flatters the score a little; what
is chosen is one of a handful of settings and a number of epochs for all tags together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.collection.learning.interrupts import interrupts_raise
from harmonium.errors import DataError

Floats = NDArray[np.float32]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many fits are done, and of how many."""

N_FOLDS = 5
MOST_TO_SEARCH = 3000
"""Tracks with which settings are tried."""
FOLDS_TO_SEARCH = 3
"""Folds on which settings are tried where there are more tracks than that."""
MOST_UPDATES = 20_000


class Setting(NamedTuple):
    """What is tried."""

    learning_rate: float
    l2: float
    smoothed: bool = False
    """Whether to learn from smoothed tags."""


SETTINGS = (
    Setting(0.01, 0.03),
    Setting(0.01, 0.1),
    Setting(0.01, 0.3),
)


class Trial(NamedTuple):
    """A setting and how well it does."""

    setting: Setting
    auc: float
    """Mean over tags, pooled over the folds."""
    epochs: int


@dataclass(frozen=True, eq=False)
class Tracks:
    """What there is to learn from."""

    X: Floats
    """(n, D) features."""
    Y: Floats
    """(n, C) labels: 0, 1, NaN."""
    folds: NDArray[np.int64]
    """(n,) fold of each track."""
    tags: tuple[str, ...]
    """The C tags."""
    soft: Floats | None = None
    """(n, C) smoothed labels."""

    def targets(self, setting: Setting) -> Floats:
        """The labels to learn from."""
        if setting.smoothed and self.soft is not None:
            return self.soft
        return self.Y


@dataclass(frozen=True)
class Fitted:
    """A model of all tracks, and what is known about it."""

    model: Any
    """DiscriminativeRBM"""
    held_out: Floats
    """(n, C) probabilities of models that had not seen the track."""
    trials: tuple[Trial, ...] = field(repr=False)
    """Best first."""

    @property
    def chosen(self) -> Trial:
        """The trial whose setting was taken."""
        return self.trials[0]


def fit(
    tracks: Tracks,
    *,
    settings: Sequence[Setting] = SETTINGS,
    n_hidden: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
) -> Fitted:
    """Choose a setting, find held-out probabilities, and fit the model.

    ``settings`` are tried with labels as they are; the best of them with smoothed labels, too, if
    there are any.
    """
    work = _Work(tracks, n_hidden, seed, len(settings), progress)
    trials = [work.attempt(setting) for setting in settings]
    best = max(trials, key=lambda trial: trial.auc)
    if tracks.soft is not None:
        trials.append(work.attempt(best.setting._replace(smoothed=True)))
    trials.sort(key=lambda trial: -trial.auc)
    held_out = work.held_out(trials[0])
    return Fitted(work.final(trials[0]), held_out, tuple(trials))


def usual_epochs(n_tracks: int, batch_size: int) -> int:
    """Epochs at most: few tracks need more passes, many need fewer."""
    return int(np.clip(MOST_UPDATES * batch_size / n_tracks, 30, 500))


class _Work:
    """The fits, one after another."""

    def __init__(
        self,
        tracks: Tracks,
        n_hidden: int,
        seed: int,
        n_settings: int,
        progress: Progress | None,
    ) -> None:
        self._tracks, self._n_hidden, self._seed = tracks, n_hidden, seed
        self._rng = np.random.default_rng(seed)
        n, n_folds = len(tracks.X), int(tracks.folds.max()) + 1
        if n_folds < 2:
            raise DataError(f"'folds' must have at least 2 folds. Got {n_folds}.")
        many = n > MOST_TO_SEARCH
        chosen = self._rng.permutation(n)[:MOST_TO_SEARCH] if many else np.arange(n)
        self._searched = np.zeros(n, bool)
        self._searched[chosen] = True
        self._search_folds = range(min(n_folds, FOLDS_TO_SEARCH) if many else n_folds)
        self._all_folds = range(n_folds)
        n_trials = n_settings + (tracks.soft is not None)
        self._progress, self._done = progress, 0
        self._total = n_trials * len(self._search_folds) + n_folds + 1

    def attempt(self, setting: Setting) -> Trial:
        """Cross-validate a setting, stopping early on the fold that is scored."""
        from harmonium.evaluation import auc_per_tag

        Y = self._tracks.Y
        P = np.full(Y.shape, np.nan, np.float32)
        epochs = []
        for fold in self._search_folds:
            rest, fold_rows = self._split(fold, self._search_folds, self._searched)
            model = self._model(setting, len(rest), validation_fraction=0.0)
            valid = (self._tracks.X[fold_rows], Y[fold_rows])
            self._fit(model, setting, rest, eval_set=valid)
            P[fold_rows] = model.predict_proba(valid[0])
            epochs.append(model.best_epoch_ or model.n_iter_)
            self._step("Trying settings")
        scored = ~np.isnan(P[:, 0])
        auc = auc_per_tag(Y[scored], P[scored]).values
        mean = float(np.nanmean(auc)) if np.isfinite(auc).any() else 0.5
        return Trial(setting, mean, int(np.median(epochs)))

    def held_out(self, trial: Trial) -> Floats:
        """The probabilities of each fold by a model of the others."""
        P = np.empty(self._tracks.Y.shape, np.float32)
        everything = np.ones(len(P), bool)
        for fold in self._all_folds:
            rest, fold_rows = self._split(fold, self._all_folds, everything)
            model = self._fixed(trial, len(rest))
            self._fit(model, trial.setting, rest)
            P[fold_rows] = model.predict_proba(self._tracks.X[fold_rows])
            self._step("Scoring")
        return P

    def final(self, trial: Trial) -> Any:
        """The model of all tracks."""
        tracks = self._tracks
        model = self._fixed(trial, len(tracks.X))
        named = pl.DataFrame(tracks.targets(trial.setting), schema=list(tracks.tags))
        with interrupts_raise():
            model.fit(tracks.X, named)
        self._step("Fitting")
        return model

    def _split(
        self, fold: int, folds: range, used: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to learn from, as many for every fold so that one program serves all; and the fold.

        That leaves out a few tracks at random.
        """
        of = self._tracks.folds
        least = min(int((used & (of != other)).sum()) for other in folds)
        rest = self._rng.permutation(np.flatnonzero(used & (of != fold)))[:least]
        return rest, np.flatnonzero(used & (of == fold))

    def _fixed(self, trial: Trial, n_rows: int) -> Any:
        """An untrained model for as many updates as were best."""
        model = self._model(trial.setting, n_rows, validation_fraction=0.0)
        return model.set_params(max_epochs=max(1, trial.epochs))

    def _model(self, setting: Setting, n_rows: int, **more: Any) -> Any:
        from harmonium.estimators import DiscriminativeRBM

        batch_size = 20 if n_rows >= 200 else 10
        epochs = usual_epochs(n_rows, batch_size)
        return DiscriminativeRBM(
            self._n_hidden,
            learning_rate=setting.learning_rate,
            l2=setting.l2,
            batch_size=batch_size,
            max_epochs=epochs,
            patience=int(np.clip(epochs // 10, 5, 30)),
            random_state=self._seed,
            **more,
        )

    def _fit(self, model: Any, setting: Setting, rows: NDArray[np.intp], **more: Any) -> None:
        Y = self._tracks.targets(setting)[rows]
        with interrupts_raise():
            model.fit(self._tracks.X[rows], Y, **more)

    def _step(self, what: str) -> None:
        self._done += 1
        if self._progress:
            self._progress(what, self._done, self._total)
