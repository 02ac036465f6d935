"""What people may pass as labels: a matrix of tags, or one column of two classes.

A matrix is ternary: absent, present or unknown. One to learn from may also hold probabilities.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from harmonium.arrays import Floats, Mask
from harmonium.errors import DataError
from harmonium.estimators.tables import blocks, is_soft


@dataclass(frozen=True)
class Targets:
    """Labels as the models take them."""

    Y: Floats  # (n_clips, n_tags): 0 absent, 1 present, between: p, NaN unknown
    tags: NDArray[Any]  # (n_tags,): column names of a frame, else numbers
    classes: NDArray[Any] | None  # of one-dimensional labels: what 0 and 1 stand for


def read_targets(y: Any, *, classes: Any = None) -> Targets:
    """Labels to learn from: a (n_clips, n_tags) matrix or frame, or (n_clips,) classes.

    ``classes`` names the two classes of one-dimensional labels, of which ``y`` may hold one.
    """
    if _is_column(y):
        classes = _two_classes(y if classes is None else classes)
        return Targets(_coded(y, classes, "y"), np.arange(1), classes)
    Y, tags = probabilities(y), tag_names(y)
    tags = np.arange(Y.shape[1]) if tags is None else tags
    _refuse_unknown_tags(Y, tags)
    return Targets(Y, tags, None)


def read_more_targets(y: Any, like: Targets, *, name: str = "y", soft: bool = False) -> Targets:
    """Further labels for the tags, or the classes, of ``like``. A tag may be wholly unknown.

    With ``soft`` they may be probabilities.
    """
    if like.classes is not None and _is_column(y):
        return Targets(_coded(y, like.classes, name), like.tags, like.classes)
    Y = probabilities(y, name=name) if soft else ternary(y, name=name)
    if Y.shape[1] != len(like.tags):
        raise DataError(
            f"{name} must have one column for each of the model's {len(like.tags)} tags. "
            f"Got {Y.shape[1]} columns instead."
        )
    _refuse_other_names(tag_names(y), like.tags, name)
    return Targets(Y, like.tags, like.classes)


def classes_of(targets: Targets) -> NDArray[Any]:
    """``classes_``: those of the one column, (2,), or 0 and 1 for each tag, (n_tags, 2).

    scikit-learn's scorers take the latter for several labels, be there one tag, two or more.
    """
    if targets.classes is not None:
        return targets.classes
    return np.tile([0, 1], (len(targets.tags), 1))


def ternary(y: Any, *, name: str = "y") -> Floats:
    """``y`` as a float32 matrix of 0, 1 and NaN; anything else is an error that says where."""
    Y = _matrix(y, name)
    rule = "0 (absent), 1 (present) or NaN (unknown)"
    way_out = " Probabilities can only be learnt from, as y of fit." if is_soft(Y) else ""
    _refuse(lambda Y: ~((Y == 0) | (Y == 1) | np.isnan(Y)), Y, name, rule, way_out)
    return Y


def probabilities(y: Any, *, name: str = "y") -> Floats:
    """``y`` as a float32 matrix of numbers from 0 to 1 and NaN; anything else is an error."""
    Y = _matrix(y, name)
    rule = "0 (absent), 1 (present), a probability between, or NaN (unknown)"
    _refuse(lambda Y: (Y < 0) | (Y > 1), Y, name, rule)
    return Y


def _matrix(y: Any, name: str) -> Floats:
    Y = check_array(
        y, ensure_all_finite="allow-nan", dtype=np.float32, input_name=name, accept_sparse="csr"
    )
    return Y if isinstance(Y, np.ndarray) else Y.toarray()


def _refuse(
    is_wrong: Callable[[Floats], Mask], Y: Floats, name: str, rule: str, way_out: str = ""
) -> None:
    n_wrong = sum(int(is_wrong(block).sum()) for block in blocks(Y))
    if n_wrong:
        row, column = np.argwhere(is_wrong(Y))[0]
        raise DataError(
            f"{name} must hold {rule}. {name}[{row}, {column}] is {Y[row, column]:g}, "
            f"one of {n_wrong:,} such values.{way_out}"
        )


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
    classes = np.unique(y)
    if kind != "binary":
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}. "
            "For several tags pass a matrix with one column of 0 / 1 / NaN for each."
        )
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


def _refuse_unknown_tags(Y: Floats, tags: NDArray[Any]) -> None:
    unknown = np.flatnonzero(np.all([np.isnan(b).all(axis=0) for b in blocks(Y)], axis=0))
    if len(unknown):
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise DataError(
            f"Every tag needs at least one known label. Tag {tags.tolist()[unknown[0]]!r} "
            f"(column {unknown[0]}){more} has none: label some clips or drop the column."
        )


def _refuse_other_names(columns: NDArray[Any] | None, tags: NDArray[Any], name: str) -> None:
    """Where both are named, a frame's columns must be the model's tags in the model's order."""
    if columns is None or columns.dtype != object or tags.dtype != object:
        return
    other = np.flatnonzero(columns != tags)
    if len(other):
        raise DataError(
            f"The columns of {name} must be the model's tags, in the order of tags_. Column "
            f"{other[0]} is {columns[other[0]]!r} where the tag is {tags[other[0]]!r}."
        )
