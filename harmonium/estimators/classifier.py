"""The base of all tag classifiers: checked data in; scores, decisions and files out."""

import os
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from harmonium.arrays import Arrays, Floats, Numbers, Rng
from harmonium.errors import DataError
from harmonium.estimators.model_files import StoredEstimator, array_of_names, typed_array
from harmonium.estimators.scaling import ScaleFeatures, scaling_of, stored_scaling
from harmonium.estimators.tables import (
    LARGE,
    LabelledClips,
    SparseRows,
    Table,
    blocks,
    in_blocks,
)
from harmonium.estimators.targets import Targets, read_more_targets, read_observed, read_targets
from harmonium.estimators.thresholds import Decisions, decision_thresholds
from harmonium.estimators.validation import mean_auc
from harmonium.estimators.weights import ALIKE, Weights, read_sample_weight, read_weights
from harmonium.logistic import log_odds
from harmonium.parameters import Seed, Share, estimator, parameter
from harmonium.scikit_learn import BaseEstimator, ClassifierMixin, available_if


@estimator
class TagClassifier(ClassifierMixin, StoredEstimator, BaseEstimator):
    """Base of all tag classifiers. A subclass provides ``fit`` and the model's scores.

    The scores are probabilities, unless it says otherwise.
    """

    scale_features: ScaleFeatures = parameter(
        """How features are scaled. "standard": each gets zero mean and a variance of
        1 / n_features. "quantile": each is mapped to a normal distribution by its quantiles, which
        tames heavy tails. "idf", for words and other features that are mostly 0: rarer features
        count more, and each clip has a norm of 1. "none": X is used as it is. "auto" chooses among
        the first three by looking at the features.""",
        default="standard",
    )
    unit_norm: bool = parameter(
        """Divide each clip's features, after ``scale_features``, by their Euclidean norm, as the
        paper does. The weights then do not apply to raw features.""",
        default=False,
    )

    decisions: Decisions = parameter(
        """How ``predict`` decides, by thresholds set on held-out clips. "prevalence": it gives each
        tag as often as it is true. "f1": the F1 of each tag is highest. "precision": at least a
        share ``precision`` of the clips that get a tag have it, and a tag that cannot promise that
        is never given. One-dimensional labels are decided at 0.5 by "prevalence".""",
        default="prevalence",
    )
    precision: Share = parameter(
        'The share of right answers that ``decisions="precision"`` promises.',
        default=0.8,
    )

    _scores_are_probabilities: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, X: Floats) -> Floats:
        """Scores for ranking clips by tag, (N, C), of scaled features; comparable within a tag."""

    def _read(
        self,
        X: Any,
        y: Any,
        *,
        like: Targets | None,
        classes: Any = None,
        name: str = "y",
        soft: bool = True,
    ) -> tuple[Numbers, Targets]:
        """Checked data: for a new model, or for the features and tags of the model ``like``.

        With ``soft``, labels may be probabilities, as training labels may.
        """
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._numbers(X, reset=like is None)
        if like is None:
            targets = read_targets(y, classes=classes)
        else:
            targets = read_more_targets(y, like, name=name, soft=soft)
        check_consistent_length(X, targets.Y)
        return X, targets

    def _read_eval_set(self, eval_set: Any, like: Targets) -> tuple[Numbers, Floats]:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError(
                "eval_set must be a pair (X, y) of validation features and labels. "
                f"Got {type(eval_set).__name__} instead."
            )
        X, y = eval_set
        X, targets = self._read(X, y, like=like, name="eval_set[1]", soft=False)
        return X, targets.Y

    def _targets(self) -> Targets:
        """The fitted model's tags and classes, without labels."""
        return Targets(
            Y=np.zeros((0, len(self.tags_)), np.float32),
            tags=self.tags_,
            classes=self.classes_ if self._one_column else None,
        )

    def _known(self, X: Table, y: Any) -> Floats:
        """The known labels of these clips, (n_clips, n_tags), NaN for the others."""
        known = read_observed(y, self._targets(), len(X))
        check_consistent_length(X, known)
        return known

    def _weights(self, sample_weight: Any, targets: Targets) -> Weights:
        """What clips and classes count."""
        class_weight = getattr(self, "class_weight", None)  # some models have none
        return read_weights(sample_weight, class_weight, targets)

    def _describe(self, X: Numbers, targets: Targets, weights: Weights = ALIKE) -> None:
        """Store a new model's tags, classes and feature scaling."""
        self._set_tags(targets.tags, targets.classes)
        scaling = scaling_of(X, self.scale_features, weights.clips)
        if self.unit_norm:
            scaling = scaling._replace(unit_norm=True)
        self._scaling = scaling

    def _set_tags(self, tags: NDArray[Any], classes: NDArray[Any] | None) -> None:
        """``classes_`` are 0 and 1 for each tag, (n_tags, 2), or two classes of a column, (2,)."""
        self.tags_ = tags
        self._one_column = classes is not None
        if classes is None:  # scikit-learn's scorers take this form however many tags there are
            classes = np.tile([0, 1], (len(tags), 1))
        self.classes_ = classes

    def _check_decisions(self, *, held_out: bool) -> None:
        """Refuse a promise that no held-out clip supports."""
        if self.decisions == "precision" and not held_out:
            raise DataError(
                "decisions='precision' needs held-out clips, which show how often the model is "
                "right: pass an eval_set, or hold out more clips by n_models or "
                "validation_fraction, where the model has these."
            )

    def _set_thresholds(self, clips: LabelledClips, P: Floats, *, held_out: bool) -> None:
        """As ``decisions`` says, by what the model says of these clips, P (n_clips, n_tags)."""
        self._check_decisions(held_out=held_out)
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if self._one_column and self.decisions == "prevalence":
            return
        self.thresholds_ = decision_thresholds(
            self.decisions, self.precision, clips.Y, P, clips.weights, clips.groups
        )

    def _features(self, X: Any) -> Floats:
        """Checked and scaled features, (N, D), as an array."""
        return self._feature_table(X)[:]

    def _feature_table(self, X: Any) -> Table:
        """The same, of which a sparse matrix is not made dense yet."""
        check_is_fitted(self)
        return self._inputs(self._numbers(X, reset=False))

    def _inputs(self, X: Any) -> Table:
        """What the model computes with, of checked features: they are scaled."""
        return self._scaled(X)

    def _scaled(self, X: Any) -> Table:
        """Scaled features; those of a sparse matrix are scaled as they are read."""
        if issparse(X):
            return SparseRows(X, change=self._scaling.__call__)
        return self._scaling(X)

    def _dense(self, X: Any) -> Floats:
        """Scaled features as an array, for a model that cannot be learnt in blocks."""
        n_bytes = 4 * X.shape[0] * X.shape[1]
        if issparse(X) and n_bytes > LARGE:
            raise DataError(
                f"{type(self).__name__} learns from all clips at once, and X of the shape "
                f"{X.shape} would take {n_bytes / 2**30:.1f} GiB as an array. Use a model that "
                "learns in minibatches: DiscriminativeRBM, MLPTagger, or LogisticTagger with "
                "solver='gradient'."
            )
        return self._scaling(X)

    def _scores_of(self, X: Any) -> Floats:
        """The scores of clips as they are given."""
        scores: Floats = in_blocks(self._scores, self._feature_table(X))
        return scores

    def _numbers(self, X: Any, *, reset: bool) -> Numbers:
        """Checked features, (N, D); a new model needs at least two clips."""
        self._refuse_files(X)
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )
        self._refuse_missing(X)
        return X

    def _refuse_missing(self, X: Any) -> None:
        n_missing = sum(
            int(np.isnan(block.data if issparse(block) else block).sum()) for block in blocks(X)
        )
        if n_missing:
            name = type(self).__name__
            raise DataError(
                f"X contains NaN in {n_missing:,} of {X.shape[0] * X.shape[1]:,} places, and "
                f"{name} takes no missing features. If an extraction failed, leave these clips "
                f"out. Else impute them: make_pipeline(SimpleImputer(), {name}()), with "
                "sklearn.impute.SimpleImputer."
            )

    def _refuse_files(self, X: Any) -> None:
        first = X
        if hasattr(X, "__iter__") and not hasattr(X, "columns") and not issparse(X):
            first = next(iter(X), None)
        if isinstance(first, str | os.PathLike):
            name = type(self).__name__
            raise DataError(
                f"{name} takes features, but X holds {first!r}. For music files, compute them "
                f"first: make_pipeline(harmonium.AudioFeatures(), {name}()).fit(paths, y)."
            )

    def _check_linear_in_features(self, what: str) -> None:
        """Refuse weights for raw features if there is no model, or its scaling is not linear."""
        check_is_fitted(self)
        if not self._scaling.linear:
            raise AttributeError(
                f"{what} apply to raw features, but quantiles and a norm of 1 are not linear in "
                "them. Fit with unit_norm=False and scale_features='standard'."
            )

    def predict(self, X: Any) -> NDArray[Any]:
        """1 if the score reaches the tag's threshold in ``thresholds_``, else 0.

        By default, as many of the clips that set the thresholds reach them as have the tag, so the
        model says 1 about as often as it is true. ``decisions`` asks for others.

        Shape (n_clips, n_tags), or (n_clips,) of ``classes_`` for one-dimensional labels.
        """
        reached = self._scores_of(X) >= self.thresholds_
        decisions = reached.astype(int)
        return self.classes_[decisions[:, 0]] if self._one_column else decisions

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """p(y_j = 1 | x), shape (n_clips, n_tags).

        For one-dimensional labels, (n_clips, 2): the probabilities of ``classes_``.
        """
        P = self._scores_of(X)
        return np.hstack([1 - P, P]) if self._one_column else P

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """log p, of the shape of :meth:`predict_proba`; never below -88, where p rounds to 0."""
        smallest = np.finfo(np.float32).tiny
        return np.log(np.maximum(self.predict_proba(X), smallest))

    def decision_function(self, X: Any) -> Floats:
        """The log-odds log p / (1 - p), for ranking; of a model without probabilities, its scores.

        Shape (n_clips, n_tags), or (n_clips,) for one-dimensional labels. They are at least 0 if
        the tag is more probable than not. :meth:`predict` asks whether p reaches ``thresholds_``.
        """
        scores = self._scores_of(X)
        if self._scores_are_probabilities:
            limits = np.finfo(np.float32)
            p = np.clip(scores.astype(np.float64), limits.tiny, 1 - limits.epsneg)
            scores = log_odds(p).astype(np.float32)
        return scores[:, 0] if self._one_column else scores

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_frame(self, X: Any) -> pl.DataFrame:
        """The probabilities as a polars frame, with a column for each of ``tags_``."""
        P = self._scores_of(X)
        return pl.DataFrame(P, schema=[str(tag) for tag in self.tags_])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean AUC over the tags that have a positive and a negative; NaN if there is none.

        ``y`` is (n_clips, n_tags) of 0, 1 and NaN, or (n_clips,) of the two classes. With a
        ``sample_weight``, a pair of clips counts as the product of their weights.
        """
        scores = self._scores_of(X)
        labels = read_more_targets(y, self._targets()).Y
        weights = Weights(clips=read_sample_weight(sample_weight, len(labels)))
        return mean_auc(labels, scores, weights.of_clips(labels))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {**self._scaling.arrays(), "thresholds": self.thresholds_}
        about: dict[str, Any] = {
            "tags": self.tags_.tolist(),
            "classes": None,
            "classes_dtype": None,
            "features": None,
            "unit_norm": self._scaling.unit_norm,
        }
        if self._one_column:
            about["classes"] = self.classes_.tolist()
            about["classes_dtype"] = self.classes_.dtype.str
        if hasattr(self, "feature_names_in_"):
            about["features"] = self.feature_names_in_.tolist()
        return arrays, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        self._scaling = stored_scaling(arrays, about)
        self.n_features_in_ = len(self._scaling.mean)
        if about["features"] is not None:
            self.feature_names_in_ = array_of_names(about["features"])
            if len(self.feature_names_in_) != self.n_features_in_:
                raise ValueError("it names another number of features than it scales")

        classes = about["classes"]
        dtype = about["classes_dtype"]
        if classes is not None:
            classes = np.array(classes, dtype)
        self._set_tags(array_of_names(about["tags"]), classes)
        if classes is not None and (len(self.tags_) != 1 or classes.shape != (2,)):
            raise ValueError("labels of one column have one tag and two classes")

        self.thresholds_ = typed_array(arrays, "thresholds")
        if self.thresholds_.shape != self.tags_.shape or np.isnan(self.thresholds_).any():
            raise ValueError("thresholds must be numbers, one for each tag")


def random_generator(random_state: Seed) -> Rng:
    """NumPy's generator, from what scikit-learn takes as a seed."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
