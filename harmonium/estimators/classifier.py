"""The base of all tag classifiers: checked data in; scores, decisions and files out.

Labels are a matrix of tags, or one column of two classes. A matrix is ternary: absent, present or
unknown. Training labels may also be probabilities.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_array, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from harmonium.arrays import Arrays, Doubles, Floats, Mask, Numbers, Places, Rng
from harmonium.errors import DataError, did_you_mean
from harmonium.estimators.calibration import matching_thresholds
from harmonium.estimators.model_files import (
    NORMAL,
    Scaling,
    StoredEstimator,
    array_of_names,
    blocks,
    is_soft,
    stored_scaling,
    typed_array,
)
from harmonium.evaluation import auc_per_tag
from harmonium.parameters import estimator, parameter

ScaleFeatures = Literal["auto", "standard", "quantile", "idf", "none"]

NUMBERED = " Its tags are numbers; to name them, fit with a frame or a list of tags for each clip."
MAX_TO_SCALE_BY = 10_000  # the most clips used to choose a scaling and its quantiles
MOSTLY_ZERO = 0.8  # share of zeros above which features count as words
HEAVY_TAILS = 5.0  # median kurtosis above which features go through their quantiles; normal: 3


class Targets(NamedTuple):
    """Labels in the form that models take."""

    Y: Floats  # (n_clips, n_tags): 0 absent, 1 present, between: p, NaN unknown
    tags: NDArray[Any]  # (n_tags,): column names of a frame, else numbers
    classes: NDArray[Any] | None  # of one-dimensional labels: what 0 and 1 stand for


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

    _scores_are_probabilities: ClassVar[bool] = True
    _axes: ClassVar[tuple[str, ...]]  # of each parameter's axes: C tags, D features, E chains

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
        """Checked data: for a new model, or for the features and tags of the model ``like``."""
        # ``soft``: the labels may be probabilities, as training labels may
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
        X, targets = self._read(*eval_set, like=like, name="eval_set[1]", soft=False)
        return X, targets.Y

    def _targets(self) -> Targets:
        """The fitted model's tags and classes, without labels."""
        none = np.zeros((0, len(self.tags_)), np.float32)
        return Targets(none, self.tags_, self.classes_ if self._one_column else None)

    def _known(self, X: Floats, y: Any) -> Floats:
        """The known labels of these clips, (n_clips, n_tags), NaN for the others."""
        # ``y`` is such a matrix; tag → 0 or 1 for all clips; or the tags that each clip has.
        lists = _tag_lists(y)
        named = (
            [y] if isinstance(y, Mapping) else lists and [dict.fromkeys(one, 1) for one in lists]
        )
        if named:
            tags = self.tags_.tolist()
            for tag in (tag for one in named for tag in one if tag not in tags):
                hint = did_you_mean(tag, [str(one) for one in tags])
                hint = hint if self.tags_.dtype == object else NUMBERED
                raise DataError(f"y names the tag {tag!r}, which the model does not know.{hint}")
            rows = np.array([[one.get(tag, np.nan) for tag in tags] for one in named], np.float32)
            y = np.tile(rows, (len(X), 1)) if lists is None else rows
        known = read_more_targets(y, self._targets()).Y
        check_consistent_length(X, known)
        return known

    def _describe(self, X: Numbers, targets: Targets) -> None:
        """Store a new model's tags, classes and feature scaling."""
        self._set_tags(targets.tags, targets.classes)
        scaling = scaling_of(X, self.scale_features)
        self._scaling = scaling._replace(unit_norm=scaling.unit_norm or bool(self.unit_norm))

    def _set_tags(self, tags: NDArray[Any], classes: NDArray[Any] | None) -> None:
        """``classes_`` are 0 and 1 for each tag, (n_tags, 2), or two classes of a column, (2,)."""
        # scikit-learn's scorers take the former for multilabel data, however many tags there are.
        self.tags_, self._one_column = tags, classes is not None
        self.classes_ = np.tile([0, 1], (len(tags), 1)) if classes is None else classes

    def _set_thresholds(self, X: Floats, Y: Floats) -> None:
        """As many of these scaled clips reach them as have the tag; 0.5 for one-column labels."""
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if not self._one_column:
            self.thresholds_ = matching_thresholds(Y, self._scores(X))

    def _generator(self) -> Rng:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _features(self, X: Any) -> Floats:
        """Checked and scaled features, (N, D)."""
        check_is_fitted(self)
        return self._scaling(self._numbers(X, reset=False))

    def _numbers(self, X: Any, *, reset: bool) -> Numbers:
        """Checked features, (N, D); a new model needs at least two clips."""
        several = hasattr(X, "__iter__") and not (hasattr(X, "columns") or issparse(X))
        first = next(iter(X), None) if several else X
        if isinstance(first, str | os.PathLike):
            name = type(self).__name__
            raise DataError(
                f"{name} takes features, but X holds {first!r}. For music files, compute them "
                f"first: make_pipeline(harmonium.AudioFeatures(), {name}()).fit(paths, y)."
            )
        dtype = [np.float64, np.float32]
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_min_samples=1 + reset)

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

        Of the clips that set the thresholds, as many reach them as have the tag, so the model says
        1 about as often as it is true.

        Shape (n_clips, n_tags), or (n_clips,) of ``classes_`` for one-dimensional labels.
        """
        chosen = (self._scores(self._features(X)) >= self.thresholds_).astype(int)
        return self.classes_[chosen[:, 0]] if self._one_column else chosen

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """p(y_j = 1 | x), shape (n_clips, n_tags).

        For one-dimensional labels, (n_clips, 2): the probabilities of ``classes_``.
        """
        P = self._scores(self._features(X))
        return np.hstack([1 - P, P]) if self._one_column else P

    @available_if(lambda self: self._scores_are_probabilities)
    def predict_frame(self, X: Any) -> pl.DataFrame:
        """The probabilities as a polars frame, with a column for each of ``tags_``."""
        P = self._scores(self._features(X))
        return pl.DataFrame(P, schema=[str(tag) for tag in self.tags_])

    def score(self, X: Any, y: Any) -> float:
        """Mean AUC over the tags that have a positive and a negative; NaN if there is none.

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

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        sizes = {"C": len(self.tags_), "D": len(self._scaling.mean)}
        sizes["E"] = getattr(self, "n_chains", 1)
        shapes = (tuple(sizes[axis] for axis in axes) for axes in self._axes)
        return dict(zip(self._param_type._fields, shapes, strict=True))

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        names = getattr(self, "feature_names_in_", None)
        classes = self.classes_ if self._one_column else None
        return self._scaling.arrays() | {"thresholds": self.thresholds_}, {
            "tags": self.tags_.tolist(),
            "classes": None if classes is None else classes.tolist(),
            "classes_dtype": None if classes is None else classes.dtype.str,
            "features": None if names is None else names.tolist(),
            "unit_norm": self._scaling.unit_norm,
        }

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        self._scaling = stored_scaling(arrays, about)
        self.thresholds_ = typed_array(arrays, "thresholds")
        classes, dtype = about["classes"], about["classes_dtype"]
        classes = None if classes is None else np.array(classes, dtype)
        self._set_tags(array_of_names(about["tags"]), classes)
        self.n_features_in_ = len(self._scaling.mean)
        if about["features"] is not None:
            self.feature_names_in_ = array_of_names(about["features"])
        n_features, n_tags = self.n_features_in_, len(self.tags_)
        agree = (
            self.thresholds_.shape == (n_tags,)
            and len(getattr(self, "feature_names_in_", range(n_features))) == n_features
            and (not self._one_column or (n_tags == 1 and self.classes_.shape == (2,)))
        )
        if not agree:
            raise ValueError("its arrays and its description differ in length")
        if np.isnan(self.thresholds_).any():
            raise ValueError("thresholds must be numbers")


def read_targets(y: Any, *, classes: Any = None) -> Targets:
    """Training labels: (n_clips, n_tags), a list of tags per clip, or (n_clips,) classes."""
    # ``classes`` names the two classes of one-dimensional labels; ``y`` may hold only one.
    y = _frame_of_lists(y)
    if _is_column(y):
        classes = _two_classes(y if classes is None else classes)
        return Targets(_coded(y, classes, "y"), np.arange(1), classes)
    Y, tags = _matrix(y, "y", soft=True), tag_names(y)
    tags = np.arange(Y.shape[1]) if tags is None else tags
    unknown = np.flatnonzero(np.all([np.isnan(b).all(axis=0) for b in blocks(Y)], axis=0))
    if len(unknown):
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise DataError(
            f"Every tag needs at least one known label. Tag {tags.tolist()[unknown[0]]!r} "
            f"(column {unknown[0]}){more} has none: label some clips or drop the column."
        )
    return Targets(Y, tags, None)


def read_more_targets(y: Any, like: Targets, *, name: str = "y", soft: bool = False) -> Targets:
    """More labels for the tags, or classes, of the model ``like``. A tag may be all unknown.

    With ``soft`` they may be probabilities. If both have names, a frame's columns must be the
    model's tags in the model's order.
    """
    tags, y = like.tags, _frame_of_lists(y, like.tags)
    if like.classes is not None and _is_column(y):
        return like._replace(Y=_coded(y, like.classes, name))
    Y, columns = _matrix(y, name, soft=soft), tag_names(y)
    if Y.shape[1] != len(tags):
        raise DataError(
            f"{name} must have one column for each of the model's {len(tags)} tags. "
            f"Got {Y.shape[1]} columns instead."
        )
    if columns is not None and columns.dtype == tags.dtype == object:
        other = np.flatnonzero(columns != tags)
        if len(other):
            raise DataError(
                f"The columns of {name} must be the model's tags, in the order of tags_. Column "
                f"{other[0]} is {columns[other[0]]!r} where the tag is {tags[other[0]]!r}."
            )
    return like._replace(Y=Y)


def _matrix(y: Any, name: str, *, soft: bool) -> Floats:
    """``y`` as a float32 matrix of 0, 1 and NaN, or with ``soft`` of probabilities and NaN."""
    Y = check_array(
        y, ensure_all_finite="allow-nan", dtype=np.float32, input_name=name, accept_sparse="csr"
    )
    Y = Y if isinstance(Y, np.ndarray) else Y.toarray()

    def wrong(Y: Floats) -> Mask:
        return (Y < 0) | (Y > 1) if soft else ~((Y == 0) | (Y == 1) | np.isnan(Y))

    n_wrong = sum(int(wrong(block).sum()) for block in blocks(Y))
    if n_wrong:
        row, column = np.argwhere(wrong(Y))[0]
        between = ", a probability between, or NaN" if soft else " or NaN"
        way_out = "" if soft or not is_soft(Y) else " Only the y of fit may hold probabilities."
        raise DataError(
            f"{name} must hold 0 (absent), 1 (present){between} (unknown). {name}[{row}, {column}] "
            f"is {Y[row, column]:g}, one of {n_wrong:,} such values.{way_out}"
        )
    return Y


def _frame_of_lists(y: Any, tags: NDArray[Any] | None = None) -> Any:
    """A frame of 0 and 1 with one column per tag, if y has a list of tags for each clip."""
    rows = _tag_lists(y)
    if rows is None:
        return y
    if tags is not None and tags.dtype != object:
        raise DataError(f"y names tags, but the model was fitted on an array.{NUMBERED}")
    names = sorted({str(tag) for one in rows for tag in one}) if tags is None else tags
    return pl.DataFrame({name: [float(name in one) for one in rows] for name in names})


def _tag_lists(y: Any) -> Any:
    """The list of tags of each clip, if y has such; else None."""
    y = y.to_list() if hasattr(y, "to_list") else y
    lists = isinstance(y, list | tuple) and all(isinstance(x, list | tuple | set) for x in y)
    return y if lists and any(isinstance(tag, str) for one in y for tag in one) else None


def _is_column(y: Any) -> bool:
    return not issparse(y) and np.asarray(y).ndim == 1


def tag_names(y: Any) -> NDArray[Any] | None:
    """The columns of a frame: numbers, or an object array of strings. None for other matrices."""
    if not hasattr(y, "columns"):
        return None
    columns = np.asarray(y.columns)
    if np.issubdtype(columns.dtype, np.integer):
        return columns
    return np.array([str(column) for column in y.columns], dtype=object)


def _two_classes(y: Any) -> NDArray[Any]:
    """The classes among one-dimensional labels, as scikit-learn's binary classifiers take them."""
    y = np.asarray(y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}. "
            "For several tags, pass a list of tags for each clip, as in [['rock', 'live'], "
            "['jazz']], or a matrix with one column of 0 / 1 / NaN for each."
        )
    classes = np.unique(y)
    if len(classes) < 2:
        raise DataError(
            f"y has only one class, {classes.tolist()[0]!r}; two are needed to learn from."
        )
    return classes


def _coded(y: Any, classes: NDArray[Any], name: str) -> Floats:
    """0 for the first class and 1 for the second, (n_clips, 1)."""
    y = np.asarray(y)
    strange = np.setdiff1d(y, classes)
    if len(strange):
        first, second = classes.tolist()
        raise DataError(
            f"{name} must hold the classes {first!r} and {second!r}. "
            f"Got {strange.tolist()[0]!r} instead."
        )
    return (y == classes[1]).astype(np.float32)[:, None]


class TableRows:
    """Some rows of an array, perhaps in a file, with a function applied as they are read."""

    def __init__(
        self,
        table: NDArray[Any],
        rows: Places | None = None,
        change: Callable[[Numbers], Floats] | None = None,
    ) -> None:
        self.table, self.change = table, change
        self.rows = np.arange(len(table)) if rows is None else rows
        self.shape = (len(self.rows), table.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Floats:
        """Rows by their numbers, or a slice of them."""
        found = np.asarray(self.table[self.rows[rows]])
        return found if self.change is None else self.change(found)

    def take(self, rows: Places) -> "TableRows":
        """Some of the rows, not read yet."""
        return TableRows(self.table, self.rows[rows], self.change)


def base_log_odds(Y: Any) -> Doubles:
    """By tag, log(p / (1 - p)) with p the mean of the known labels and an extra 0 and 1."""
    known = sum(np.sum(~np.isnan(block), axis=0) for block in blocks(Y))
    total = sum(np.nansum(block, axis=0) for block in blocks(Y))
    rate = (total + 1) / (known + 2)
    return np.log(rate / (1 - rate))


def scaling_of(X: Numbers, kind: str) -> Scaling:
    """The scaling of this kind for these features; "auto" chooses one."""
    n = X.shape[1]
    if kind == "none" or n == 0:
        return Scaling(np.zeros(n), np.ones(n))
    if kind == "standard":
        return standardising(X)
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_TO_SCALE_BY]
    some = np.asarray(X[np.sort(rows)], np.float64)
    kind = best_scaling(some) if kind == "auto" else kind
    if kind == "standard":
        return standardising(X)
    if kind == "idf":
        holders = np.count_nonzero(some, axis=0)
        return Scaling(np.zeros(n), 1 / np.log1p(len(some) / np.maximum(holders, 1)), True)
    knots = np.quantile(some, ndtr(NORMAL), axis=0)
    ends = Scaling(np.zeros(n), np.ones(n), knots=knots)
    return standardising(ends.mapped(some))._replace(knots=knots)


def best_scaling(X: Doubles) -> str:
    """What "auto" means for these features.

    Most numbers 0 and none negative: words. Heavy tails, a median kurtosis above `HEAVY_TAILS`:
    quantiles. docs/model.md compares this with what searches chose on validation folds.
    """
    if np.mean(X == 0) > MOSTLY_ZERO and X.min() >= 0:
        return "idf"
    centred = X - X.mean(axis=0)
    centred /= np.maximum(np.abs(centred).max(axis=0), np.finfo(np.float64).tiny)
    variance = np.square(centred).mean(axis=0)
    varies = variance > 0
    if not varies.any():
        return "standard"
    kurtosis = np.mean(centred[:, varies] ** 4, axis=0) / variance[varies] ** 2
    return "quantile" if np.median(kurtosis) > HEAVY_TAILS else "standard"


def standardising(X: Numbers) -> Scaling:
    """Zero mean, and a variance of 1 / D for each of the D features.

    A clip's vector then has a norm of about 1 whatever D is, as in the paper: the input to a hidden
    unit, and how much one step changes it, do not grow with the number of features.
    """

    def mean_of(function: Callable[[Doubles], Doubles]) -> Doubles:
        parts = (function(block.astype(np.float64)).sum(axis=0) for block in blocks(X))
        return sum(parts, np.zeros(X.shape[1])) / len(X)

    peak = np.max([np.abs(block).max(axis=0) for block in blocks(X)], axis=0).astype(np.float64)
    peak[peak == 0] = 1.0
    middle = mean_of(lambda x: x / peak)  # the squares of x itself could over- or underflow
    deviation = np.sqrt(mean_of(lambda x: np.square(x / peak - middle)))
    # a feature that is constant except for rounding must not be blown up: it becomes 0
    constant = deviation <= 1e-9
    mean = np.where(constant, X[0], mean_of(lambda x: x))
    return Scaling(mean, peak * np.where(constant, 1.0, deviation) * np.sqrt(X.shape[1]))
