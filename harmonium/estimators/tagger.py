"""What every classifier trained by gradient shares: data in, the training loop, decisions out."""

import warnings
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from harmonium import __version__
from harmonium.errors import DataError, ModelFileError, TrainingWarning
from harmonium.estimators.persistence import read_model, write_model
from harmonium.estimators.progress import epoch_progress
from harmonium.estimators.scaling import Scaling, standardising, unscaled
from harmonium.estimators.targets import Targets, read_targets
from harmonium.estimators.thresholds import best_thresholds
from harmonium.evaluation import auc_per_tag
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.training import Optimiser, Penalty, Result, Schedule, Tree, train

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")


class Clips(NamedTuple):
    """Checked and scaled training or validation data."""

    X: NDArray[np.float32]  # (N, D)
    Y: NDArray[np.float32]  # (N, C), ternary


class Tagger(ClassifierMixin, BaseEstimator, ABC):
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

    _param_type: ClassVar[Any]  # NamedTuple of the parameter arrays

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

    @abstractmethod
    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """p(y_j = 1 | x) under the fitted parameters, (N, C)."""

    # Fitting. --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown. A frame's columns name the
            tags. Or (n_clips,) with two classes, for one tag.
        eval_set : (X, y) to stop early on and to set thresholds with. Without it a random
            ``validation_fraction`` of the clips is held out; pass one to keep the clips of a track
            or an artist together.

        Returns
        -------
        self
        """
        self._validate_params()
        X, targets = self._read(X, y, reset=True)
        fresh = not (self.warm_start and hasattr(self, "_params"))
        if fresh:
            self._describe(X, targets)
        elif len(self.tags_) != targets.Y.shape[1]:
            raise DataError(
                f"warm_start=True continues a model of {len(self.tags_)} tags, but y has "
                f"{targets.Y.shape[1]}. Fit a new model instead."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        known, valid = self._hold_out(rng, X, targets, eval_set)
        start = self._start(rng, known) if fresh else self._params
        result = self._train(start, known, valid, int(rng.integers(2**31)))
        self._keep(result)
        decided = known if valid is None else valid
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
        if classes is not None or not first:
            y = _with_classes(y, classes if first else getattr(self, "classes_", None))
        X, targets = self._read(X, y, reset=first)
        if first:
            self._describe(X, targets)
            self.thresholds_ = np.full(targets.Y.shape[1], 0.5)
            if classes is not None:
                self.classes_ = np.unique(classes)
        elif len(self.tags_) != targets.Y.shape[1]:
            raise DataError(
                f"y must have the model's {len(self.tags_)} tags, not {targets.Y.shape[1]}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        clips = Clips(self._scaling(X), targets.Y)
        start = self._start(rng, clips) if first else self._params
        self._keep(self._train(start, clips, None, int(rng.integers(2**31)), max_epochs=1))
        return self

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[NDArray[np.floating], Targets]:
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        targets = read_targets(y)
        check_consistent_length(X, targets.Y)
        return X, targets

    def _describe(self, X: NDArray[np.floating], targets: Targets) -> None:
        self.tags_ = targets.tags
        self.classes_ = targets.tags if targets.classes is None else targets.classes
        self._one_column = targets.classes is not None
        self._scaling = standardising(X) if self.scale_features else unscaled(X.shape[1])
        self.history_: dict[str, list[float]] = {}

    def _hold_out(
        self,
        rng: np.random.Generator,
        X: NDArray[np.floating],
        targets: Targets,
        eval_set: tuple[Any, Any] | None,
    ) -> tuple[Clips, Clips | None]:
        """Training and validation clips; None where validation clips could not tell tags apart."""
        scaled = self._scaling(X)
        if eval_set is not None:
            Xv, tv = self._read(*eval_set, reset=False)
            if tv.Y.shape[1] != targets.Y.shape[1]:
                raise DataError(
                    f"eval_set has {tv.Y.shape[1]} tags, but y has {targets.Y.shape[1]}."
                )
            valid = Clips(self._scaling(Xv), tv.Y)
            return Clips(scaled, targets.Y), valid if _rankable(valid.Y) else None
        order = rng.permutation(len(X))
        n_valid = int(self.validation_fraction * len(X))
        known, held = order[n_valid:], order[:n_valid]
        valid = Clips(scaled[held], targets.Y[held])
        if not _rankable(valid.Y):
            return Clips(scaled, targets.Y), None
        return Clips(scaled[known], targets.Y[known]), valid

    def _train(
        self,
        start: Tree,
        clips: Clips,
        valid: Clips | None,
        seed: int,
        max_epochs: int | None = None,
    ) -> Result:
        n = len(clips.X)
        max_epochs = max_epochs or self.max_epochs
        arrays = (clips.X, np.zeros((n, 0), np.int32), clips.Y, np.ones(n, np.float32))
        data = Batch(*map(jnp.asarray, arrays))

        def score(params: Tree) -> float:
            assert valid is not None
            values = auc_per_tag(valid.Y, self._validation_scores(params, valid.X)).values
            return float(np.nanmean(values))

        with epoch_progress(
            max_epochs, shown=bool(self.verbose), name=type(self).__name__
        ) as on_epoch:
            return train(
                start,
                data,
                gradient=self._objective(),
                optimiser=Optimiser(self.optimizer, float(self.momentum)),
                schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
                penalty=self._penalty(start),
                batch_size=self.batch_size,
                max_epochs=max_epochs,
                patience=self.patience,
                averaging=self.averaging,
                seed=seed,
                score=None if valid is None else score,
                on_epoch=on_epoch,
            )

    def _penalty(self, params: Tree) -> Penalty:
        names = self._penalised()

        def strengths(value: float) -> Tree:
            return type(params)(*(np.float32(value * (f in names)) for f in params._fields))

        return Penalty(strengths(self.l1), strengths(self.l2))

    def _keep(self, result: Result) -> None:
        self._params = type(result.params)(*(np.array(array) for array in result.params))
        self.best_epoch_ = result.best_epoch
        history = {
            "log_likelihood": result.history.log_likelihood,
            "auc": result.history.score,
            "seconds": result.history.seconds,
        }
        self.history_ = {k: self.history_.get(k, []) + v for k, v in history.items()}
        self.n_iter_ = len(self.history_["seconds"])
        if result.interrupted:
            warnings.warn(
                f"Training was interrupted in epoch {len(result.history) + 1}; the best parameters "
                f"so far, of epoch {result.best_epoch}, are kept.",
                TrainingWarning,
                stacklevel=3,
            )

    # Using. ----------------------------------------------------------------------------------

    def _features(self, X: Any) -> NDArray[np.float32]:
        """Checked and scaled features, (N, D)."""
        check_is_fitted(self)
        return self._scaling(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """p(y_j = 1 | x), shape (n_clips, n_tags).

        For a model of one-dimensional labels, (n_clips, 2): the probabilities of ``classes_``.
        """
        P = self._probabilities(self._features(X))
        return np.hstack([1 - P, P]) if self._one_column else P

    def predict(self, X: Any) -> NDArray[Any]:
        """1 where the probability reaches the tag's threshold in ``thresholds_``, else 0.

        Shape (n_clips, n_tags), or (n_clips,) of ``classes_`` for one-dimensional labels.
        """
        chosen = (self._probabilities(self._features(X)) >= self.thresholds_).astype(int)
        return self.classes_[chosen[:, 0]] if self._one_column else chosen

    def score(self, X: Any, y: Any) -> float:
        """Mean AUC over the tags that have a positive and a negative; 0.5 is chance."""
        P = self._probabilities(self._features(X))
        if self._one_column:
            y = (np.asarray(y) == self.classes_[1]).astype(np.float32)[:, None]
        targets = read_targets(y, tags_must_be_known=False)
        return auc_per_tag(targets.Y, P).mean

    # Files. ----------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, by convention with the ending ``.safetensors``."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        parameters = self.get_params()
        if not isinstance(parameters["random_state"], int | None):
            parameters["random_state"] = None
        write_model(
            path,
            {
                **{f"params.{k}": v for k, v in self._params._asdict().items()},
                **{f"scaling.{k}": v for k, v in self._scaling._asdict().items()},
                "thresholds": self.thresholds_,
            },
            {
                "version": __version__,
                "class": type(self).__name__,
                "parameters": parameters,
                "tags": self.tags_.tolist(),
                "classes": self.classes_.tolist(),
                "one_column": self._one_column,
                "features": None if names is None else names.tolist(),
                "history": self.history_,
                "best_epoch": self.best_epoch_,
            },
        )

    @classmethod
    def load(cls, path: Any) -> Self:
        """A fitted model from a file that ``save`` wrote."""
        arrays, about = read_model(path)
        if about.get("class") != cls.__name__:
            raise ModelFileError(
                f"'{path}' holds a {about.get('class')}, not a {cls.__name__}. "
                f"Load it with {about.get('class')}.load."
            )
        try:
            model = cls(**about["parameters"])
            model._params = cls._param_type(
                *(arrays[f"params.{f}"] for f in cls._param_type._fields)
            )
            model._scaling = Scaling(arrays["scaling.mean"], arrays["scaling.scale"])
            model.thresholds_ = arrays["thresholds"]
            model.tags_, model.classes_ = np.array(about["tags"]), np.array(about["classes"])
            model._one_column = about["one_column"]
            model.history_, model.best_epoch_ = about["history"], about["best_epoch"]
            model.n_iter_ = len(model.history_["seconds"])
            model.n_features_in_ = len(model._scaling.mean)
            if about["features"] is not None:
                model.feature_names_in_ = np.array(about["features"], dtype=object)
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"'{path}' lacks part of the model ({error}). Save the model again."
            ) from None
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")


def base_log_odds(Y: NDArray[np.float32]) -> NDArray[np.float64]:
    """log(p / (1 - p)) with p the share of known labels that are 1, by tag; one of each added."""
    known = np.sum(~np.isnan(Y), axis=0)
    rate = (np.nansum(Y, axis=0) + 1) / (known + 2)
    return np.log(rate / (1 - rate))


def _rankable(Y: NDArray[np.float32]) -> bool:
    """Whether some tag has both a positive and a negative, so that an AUC is defined."""
    return bool(((Y == 1).any(axis=0) & (Y == 0).any(axis=0)).any())


def _with_classes(y: Any, classes: Any) -> Any:
    """One-dimensional labels as 0 / 1 columns by given classes; a matrix is left as it is."""
    if np.ndim(y) != 1:
        return y
    classes = np.unique(classes)
    if len(classes) != 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"there are {len(classes)} classes."
        )
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise DataError(f"y holds {strange[0]!r}, which is not one of the classes {classes}.")
    return (np.asarray(y) == classes[1]).astype(np.float32)[:, None]
