"""What every classifier trained by gradient shares: the training loop and what it records."""

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from harmonium.errors import DataError, TrainingInterrupted
from harmonium.estimators.classifier import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    ProbabilisticTagClassifier,
)
from harmonium.estimators.labels import Targets
from harmonium.estimators.model_files import Arrays, typed_array
from harmonium.estimators.progress import epoch_progress
from harmonium.estimators.thresholds import best_thresholds
from harmonium.estimators.validation import is_rankable, log_likelihood, mean_auc
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.training import Optimiser, Penalty, Result, Schedule, Tree, train

_HISTORY = ("log_likelihood", "auc", "seconds")

# Few validation clips may be ranked perfectly long before their probabilities are right: among
# epochs of equal AUC the likelihood decides. It is far below what one pair of clips changes.
TIE_BREAKER = 1e-9


class Clips(NamedTuple):
    """Checked and scaled training or validation data."""

    X: NDArray[np.float32]  # (N, D)
    Y: NDArray[np.float32]  # (N, C): 0, 1, a probability between, or NaN

    def take(self, rows: NDArray[np.intp]) -> "Clips":
        """Some of the clips."""
        return Clips(self.X[rows], self.Y[rows])


class Tagger(ProbabilisticTagClassifier):
    """Base of the classifiers trained by gradient. A subclass gives the model and its objective."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [POSITIVE],
        "schedule": [StrOptions({"constant", "inverse", "cosine"})],
        "optimizer": [StrOptions({"adam", "sgd"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [COUNT],
        "max_epochs": [COUNT],
        "patience": [COUNT],
        "averaging": [NOT_NEGATIVE],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "l1": [NOT_NEGATIVE],
        "l2": [NOT_NEGATIVE],
        "scale_features": ["boolean"],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # What a subclass defines. ----------------------------------------------------------------

    @abstractmethod
    def _start(self, rng: np.random.Generator, clips: Clips) -> Tree:
        """Parameters to start training from."""

    @abstractmethod
    def _objective(self) -> Gradient:
        """The gradient to descend."""

    @abstractmethod
    def _penalised(self) -> tuple[str, ...]:
        """Names of the parameter arrays that ℓ1 and ℓ2 act on."""

    @abstractmethod
    def _validation_scores(self, params: Tree, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores for early stopping: as predicted, but cheaply."""

    # Fitting. --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as smoothed tags have it. A frame's columns name the tags. Or (n_clips,) with two
            classes, for one tag.
        eval_set : (X, y) to stop early on and to set thresholds with, without probabilities: pass
            raw tags where ``y`` is smoothed ones. Without it a random ``validation_fraction`` of
            the clips is held out, and a label p counts as p of a positive and 1 - p of a negative;
            pass one to keep the clips of a track or an artist together.

        Returns
        -------
        self
        """
        self._validate_params()
        fresh = not (self.warm_start and hasattr(self, "_params"))
        X, targets = self._read(X, y, like=None if fresh else self._targets())
        valid = None if eval_set is None else self._read_eval_set(eval_set, targets)
        if fresh:
            self._describe(X, targets)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        known, held_out = self._hold_out(rng, X, targets, valid)
        start = self._start(rng, known) if fresh else self._resume()
        self._keep(self._train(start, known, held_out, int(rng.integers(2**31))))
        decided = known if held_out is None else held_out
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if targets.classes is None:
            self.thresholds_ = best_thresholds(decided.Y, self._probabilities(decided.X))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more clips in one pass over them, without forgetting what was learnt.

        The features' scaling and the tags are those of the first call, or of ``fit``.
        ``classes`` names the two classes of one-dimensional labels, on the first call.
        """
        self._validate_params()
        first = not hasattr(self, "_params")
        X, targets = self._read(X, y, like=None if first else self._targets(), classes=classes)
        if first:
            self._describe(X, targets)
            self.thresholds_ = np.full(len(self.tags_), 0.5)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        clips = Clips(self._scaling(X), targets.Y)
        start = self._start(rng, clips) if first else self._resume()
        self._keep(self._train(start, clips, None, int(rng.integers(2**31)), max_epochs=1))
        return self

    def _describe(self, X: NDArray[np.floating], targets: Targets) -> None:
        super()._describe(X, targets)
        self.history_: dict[str, list[float]] = {k: [] for k in _HISTORY}
        self.n_iter_ = self.best_epoch_ = 0

    def _hold_out(
        self,
        rng: np.random.Generator,
        X: NDArray[np.floating],
        targets: Targets,
        valid: tuple[NDArray[np.floating], Targets] | None,
    ) -> tuple[Clips, Clips | None]:
        """Training and validation clips; None where validation clips could not tell tags apart."""
        clips = Clips(self._scaling(X), targets.Y)
        if valid is not None:
            held_out = Clips(self._scaling(valid[0]), valid[1].Y)
            return clips, held_out if is_rankable(held_out.Y) else None
        order = rng.permutation(len(X))
        n_valid = int(self.validation_fraction * len(X))
        held_out = clips.take(order[:n_valid])
        if not is_rankable(held_out.Y):
            return clips, None
        return clips.take(order[n_valid:]), held_out

    def _train(
        self,
        start: Tree,
        clips: Clips,
        valid: Clips | None,
        seed: int,
        max_epochs: int | None = None,
    ) -> Result:
        self._check_inference(start)
        n = len(clips.X)
        max_epochs = max_epochs or self.max_epochs
        data = equal_batch(clips.X, np.zeros((n, 0), np.int32), clips.Y)

        aucs: list[float] = []

        def score(params: Tree) -> float:
            assert valid is not None
            P = self._validation_scores(params, valid.X)
            aucs.append(mean_auc(valid.Y, P))
            return aucs[-1] + TIE_BREAKER * log_likelihood(valid.Y, P)

        with epoch_progress(
            max_epochs, shown=bool(self.verbose), name=type(self).__name__
        ) as on_epoch:
            result = train(
                start,
                data,
                gradient=self._gradient(clips.Y),
                optimiser=Optimiser(self.optimizer, float(self.momentum)),
                schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
                penalty=self._penalty(start),
                batch_size=self.batch_size,
                max_epochs=max_epochs,
                patience=self.patience,
                averaging=self.averaging,
                seed=seed + self.n_iter_,  # other random numbers when training goes on
                score=None if valid is None else score,
                on_epoch=on_epoch,
            )
        if valid is not None:
            result.history.score[:] = aucs[: len(result.history)]
        return result

    def _gradient(self, Y: NDArray[np.float32]) -> Gradient:
        """The objective for these labels, of which some may be probabilities."""
        return self._objective()

    def _penalty(self, params: Tree) -> Penalty:
        names = self._penalised()

        def strengths(value: float) -> Tree:
            return type(params)(*(np.float32(value * (f in names)) for f in params._fields))

        return Penalty(strengths(self.l1), strengths(self.l2))

    def _keep(self, result: Result) -> None:
        self._params = type(result.params)(*(np.array(array) for array in result.params))
        if result.best_epoch:
            self.best_epoch_ = self.n_iter_ + result.best_epoch
        history = {
            "log_likelihood": result.history.log_likelihood,
            "auc": result.history.score,
            "seconds": result.history.seconds,
        }
        self.history_ = {k: self.history_[k] + v for k, v in history.items()}
        self.n_iter_ = len(self.history_["seconds"])
        if result.interrupted:
            kept = f"of epoch {self.best_epoch_}" if result.best_epoch else "those of the start"
            warnings.warn(
                f"Training was interrupted in epoch {self.n_iter_ + 1}; the best parameters so "
                f"far, {kept}, are kept.",
                TrainingInterrupted,
                stacklevel=3,
            )

    def _resume(self) -> Tree:
        """Parameters to continue training from."""
        self._check_shapes(self._params)
        return self._params

    def _check_shapes(self, params: Tree) -> None:
        """Refuse parameters other than the settings ask for."""
        n_features, n_tags = len(self._scaling.mean), len(self.tags_)
        one = Clips(np.zeros((1, n_features), np.float32), np.zeros((1, n_tags), np.float32))
        wanted = self._start(np.random.default_rng(0), one)
        if params._fields != wanted._fields:
            raise DataError(
                f"The model's parameters are {', '.join(params._fields)}, but its settings ask "
                f"for {', '.join(wanted._fields)}. Fit a new model, or set them back."
            )
        for name, array, other in zip(params._fields, params, wanted, strict=True):
            if array.shape != other.shape:
                raise DataError(
                    f"The model's {name} has the shape {array.shape}, but its settings ask for "
                    f"{other.shape}. Fit a new model to change its size, or set it back."
                )

    def _check_inference(self, params: Tree) -> None:
        """Refuse, before training, a model that could not predict. By default none."""

    # Files. ----------------------------------------------------------------------------------

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        history = {f"history.{k}": np.array(self.history_[k], np.float64) for k in _HISTORY}
        return arrays | history, about | {"best_epoch": self.best_epoch_}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.history_ = {k: typed_array(arrays, f"history.{k}").tolist() for k in _HISTORY}
        self.n_iter_, self.best_epoch_ = len(self.history_["seconds"]), about["best_epoch"]
        shapes = {arrays[f"history.{k}"].shape for k in _HISTORY}
        if shapes != {(self.n_iter_,)} or self.best_epoch_ not in range(self.n_iter_ + 1):
            raise ValueError("its history is not one of whole epochs")


def equal_batch(u: Any, a: Any, y: Any) -> Batch:
    """Clips that all have the same weight."""
    weights: Any = np.ones(len(y), np.float32)
    return Batch(u, a, y, weights)


def single_precision(kind: Any, *arrays: Any) -> Any:
    """A tuple of that kind, such as parameters, of these arrays in single precision."""
    return kind(*(np.asarray(array, np.float32) for array in arrays))


def base_log_odds(Y: NDArray[np.float32]) -> NDArray[np.float64]:
    """log(p / (1 - p)) with p the mean of the known labels, one 0 and one 1 added, by tag."""
    known = np.sum(~np.isnan(Y), axis=0)
    rate = (np.nansum(Y, axis=0) + 1) / (known + 2)
    return np.log(rate / (1 - rate))
