"""What every classifier of tags shares: checked data in; scores, decisions and files out."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from harmonium.arrays import Arrays, Floats
from harmonium.errors import DataError, did_you_mean
from harmonium.estimators.calibration import matching_thresholds
from harmonium.estimators.labels import Targets, classes_of, read_more_targets, read_targets
from harmonium.estimators.model_files import (
    StoredEstimator,
    array_of_names,
    finite_array,
    typed_array,
)
from harmonium.estimators.parameters import estimator, parameter
from harmonium.estimators.tables import Scaling, standardising
from harmonium.evaluation import auc_per_tag


@estimator
class TagClassifier(ClassifierMixin, StoredEstimator, BaseEstimator):
    """Base of all classifiers of tags. A subclass gives ``fit`` and the scores of the model.

    The scores are probabilities, unless it says otherwise.
    """

    scale_features: bool = parameter(
        default=True,
        doc="""Bring each feature to zero mean and a variance of 1 / n_features first; without it,
        X is used as it is.""",
    )
    unit_norm: bool = parameter(
        default=False,
        doc="""Divide each clip's features, after ``scale_features``, by their Euclidean norm, as
        the paper does. There are then no weights for features as given.""",
    )

    _scores_are_probabilities: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, X: Floats) -> Floats:
        """Scores for ranking clips by tag, (N, C), of scaled features; comparable within a tag."""

    # Reading. --------------------------------------------------------------------------------

    def _read(
        self,
        X: Any,
        y: Any,
        *,
        like: Targets | None,
        classes: Any = None,
        name: str = "y",
        soft: bool = True,
    ) -> tuple[NDArray[np.floating], Targets]:
        """Checked data: of a new model, or for the features and the tags of ``like``.

        ``soft`` says whether the labels may be probabilities, as those to learn from may.
        """
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._read_features(X, y, reset=like is None)
        if like is None:
            targets = read_targets(y, classes=classes)
        else:
            targets = read_more_targets(y, like, name=name, soft=soft)
        check_consistent_length(X, targets.Y)
        return X, targets

    def _read_features(self, X: Any, y: Any, *, reset: bool) -> NDArray[np.floating]:
        """Checked features of the clips that ``y`` labels."""
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])

    def _read_eval_set(self, eval_set: Any, like: Targets) -> tuple[NDArray[np.floating], Targets]:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError(
                "eval_set must be a pair (X, y) of validation features and labels. "
                f"Got {type(eval_set).__name__} instead."
            )
        return self._read(*eval_set, like=like, name="eval_set[1]", soft=False)

    def _targets(self) -> Targets:
        """The tags and classes of the fitted model, without labels."""
        none = np.zeros((0, len(self.tags_)), np.float32)
        return Targets(none, self.tags_, self.classes_ if self._one_column else None)

    def _known(self, y: Any, n_clips: int) -> Floats:
        """What is known of the tags, (n_clips, n_tags), NaN for the others.

        ``y`` is such a matrix, or tag → 0 or 1 for all clips.
        """
        if isinstance(y, Mapping):
            tags = self.tags_.tolist()
            for tag in y:
                if tag not in tags:
                    hint = did_you_mean(tag, [str(one) for one in tags])
                    raise DataError(
                        f"y names the tag {tag!r}, which the model does not know.{hint}"
                    )
            row = np.array([y.get(tag, np.nan) for tag in tags], np.float32)
            y = np.tile(row, (n_clips, 1))
        return read_more_targets(y, self._targets()).Y

    def _describe(self, X: NDArray[np.floating], targets: Targets) -> None:
        """Take the tags, the classes and the features' scales of a new model."""
        self.tags_ = targets.tags
        self._one_column = targets.classes is not None
        self.classes_ = classes_of(targets)
        n = X.shape[1]
        scaling = standardising(X) if self.scale_features else Scaling(np.zeros(n), np.ones(n))
        self._scaling = scaling._replace(unit_norm=bool(self.unit_norm))

    def _scaled(self, X: NDArray[np.floating], targets: Targets) -> tuple[Floats, Floats]:
        return self._scaling(X), targets.Y

    def _set_thresholds(self, X: Floats, Y: Floats) -> None:
        """As many of these scaled clips reach them as have the tag; 0.5 for one-column labels."""
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if not self._one_column:
            self.thresholds_ = matching_thresholds(Y, self._scores(X))

    def _features(self, X: Any) -> Floats:
        """Checked and scaled features, (N, D)."""
        check_is_fitted(self)
        return self._scaling(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def _check_linear_in_features(self, what: str) -> None:
        """Refuse weights for features as given where the norm makes each clip's its own."""
        if self._scaling.unit_norm:
            raise AttributeError(
                f"{what} are for features as given, and with unit_norm=True there are none: each "
                "clip's features are divided by their norm. Fit with unit_norm=False."
            )

    # Using. ----------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """1 where the score reaches the tag's threshold in ``thresholds_``, else 0.

        As many of the clips that set the thresholds reach them as have the tag, so that 1 is said
        about as often as it is true.

        Shape (n_clips, n_tags), or (n_clips,) of ``classes_`` for one-dimensional labels.
        """
        chosen = (self._scores(self._features(X)) >= self.thresholds_).astype(int)
        return self.classes_[chosen[:, 0]] if self._one_column else chosen

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """p(y_j = 1 | x), shape (n_clips, n_tags).

        For a model of one-dimensional labels, (n_clips, 2): the probabilities of ``classes_``.
        """
        P = self._scores(self._features(X))
        return np.hstack([1 - P, P]) if self._one_column else P

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_frame(self, X: Any) -> pl.DataFrame:
        """The probabilities as a polars frame, with a column for each of ``tags_``."""
        P = self._scores(self._features(X))
        return pl.DataFrame(P, schema=[str(tag) for tag in self.tags_])

    def score(self, X: Any, y: Any) -> float:
        """Mean AUC over the tags that have a positive and a negative; 0.5 is chance.

        ``y`` is (n_clips, n_tags) of 0, 1 and NaN, or (n_clips,) of the two classes.
        """
        scores = self._scores(self._features(X))
        return auc_per_tag(read_more_targets(y, self._targets()).Y, scores).mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    # Files. ----------------------------------------------------------------------------------

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        names = getattr(self, "feature_names_in_", None)
        classes = self.classes_ if self._one_column else None
        arrays = {f"scaling.{k}": getattr(self._scaling, k) for k in ("mean", "scale")}
        return arrays | {"thresholds": self.thresholds_}, {
            "tags": self.tags_.tolist(),
            "classes": None if classes is None else classes.tolist(),
            "classes_dtype": None if classes is None else classes.dtype.str,
            "features": None if names is None else names.tolist(),
            "unit_norm": self._scaling.unit_norm,
        }

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        mean, scale = (finite_array(arrays, f"scaling.{k}") for k in ("mean", "scale"))
        self._scaling = Scaling(mean, scale, about.get("unit_norm", False) is True)
        self.thresholds_ = typed_array(arrays, "thresholds")
        self.tags_ = array_of_names(about["tags"])
        self._one_column = about["classes"] is not None
        dtype, classes = about["classes_dtype"], about["classes"]
        classes = np.array(classes, dtype) if self._one_column else None
        self.classes_ = classes_of(Targets(np.zeros((0, 0), np.float32), self.tags_, classes))
        self.n_features_in_ = len(self._scaling.mean)
        if about["features"] is not None:
            self.feature_names_in_ = array_of_names(about["features"])
        self._check_parts()

    def _check_parts(self) -> None:
        """Refuse parts that belong to different models, or to none."""
        n_features, n_tags = self.n_features_in_, len(self.tags_)
        agree = (
            self._scaling.mean.shape == self._scaling.scale.shape == (n_features,)
            and self.thresholds_.shape == (n_tags,)
            and len(getattr(self, "feature_names_in_", range(n_features))) == n_features
            and (not self._one_column or (n_tags == 1 and self.classes_.shape == (2,)))
        )
        if not agree:
            raise ValueError("its arrays and its description differ in length")
        if not (self._scaling.scale > 0).all():
            raise ValueError("scaling.scale must be above 0")
        if np.isnan(self.thresholds_).any():
            raise ValueError("thresholds must be numbers")
