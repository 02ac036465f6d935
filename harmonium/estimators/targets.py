"""Labels, as estimators take them: a matrix of tags, lists of tags, or one column of two classes.

A matrix is ternary: absent, present or unknown. Training labels may also be probabilities.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from harmonium.arrays import Doubles, Floats, Mask
from harmonium.errors import DataError, did_you_mean
from harmonium.estimators.tables import blocks
from harmonium.logistic import log_odds

NUMBERED = " Its tags are numbers; to name them, fit with a frame or a list of tags for each clip."


class Targets(NamedTuple):
    """Labels in the form that models take."""

    Y: Floats  # (n_clips, n_tags): 0 absent, 1 present, between: p, NaN unknown
    tags: NDArray[Any]  # (n_tags,): column names of a frame, else numbers
    classes: NDArray[Any] | None  # of one-dimensional labels: what 0 and 1 stand for


def is_soft(Y: Any) -> bool:
    """Whether some label of (N, C) is a probability other than 0 and 1."""
    return any(((block > 0) & (block < 1)).any() for block in blocks(Y))


def base_log_odds(Y: Any, weights: Floats | None = None) -> Doubles:
    """By tag, log(p / (1 - p)) with p the mean of the known labels and an extra 0 and 1.

    ``weights`` are what labels count, (N, 1) or (N, C); without, they count alike.
    """
    if weights is not None:
        labels = Y[:]
        present = (weights * np.nan_to_num(labels)).astype(np.float64).sum(axis=0)
        weight = (weights * ~np.isnan(labels)).astype(np.float64).sum(axis=0)
        return log_odds((present + 1) / (weight + 2))
    known = sum(np.sum(~np.isnan(block), axis=0) for block in blocks(Y))
    total = sum(np.nansum(block, axis=0) for block in blocks(Y))
    return log_odds((total + 1) / (known + 2))


def read_targets(y: Any, *, classes: Any = None) -> Targets:
    """Training labels: (n_clips, n_tags), a list of tags per clip, or (n_clips,) classes.

    ``classes`` names the two classes of one-dimensional labels, of which ``y`` may hold only one.
    """
    y = _frame_of_lists(y)
    if _is_column(y):
        classes = _two_classes(y if classes is None else classes)
        return Targets(Y=_coded(y, classes, "y"), tags=np.arange(1), classes=classes)
    Y = _matrix(y, "y", soft=True)
    tags = tag_names(y)
    if tags is None:
        tags = np.arange(Y.shape[1])
    _refuse_unlabelled_tags(Y, tags)
    return Targets(Y=Y, tags=tags, classes=None)


def _refuse_unlabelled_tags(Y: Floats, tags: NDArray[Any]) -> None:
    unlabelled = np.all([np.isnan(block).all(axis=0) for block in blocks(Y)], axis=0)
    columns = np.flatnonzero(unlabelled)
    if len(columns):
        more = f" and {len(columns) - 1} more" if len(columns) > 1 else ""
        raise DataError(
            f"Every tag needs at least one known label. Tag {tags.tolist()[columns[0]]!r} "
            f"(column {columns[0]}){more} has none: label some clips or drop the column."
        )


def read_more_targets(y: Any, like: Targets, *, name: str = "y", soft: bool = False) -> Targets:
    """More labels for the tags, or classes, of the model ``like``. A tag may be all unknown.

    With ``soft`` they may be probabilities. If both have names, a frame's columns must be the
    model's tags in the model's order.
    """
    y = _frame_of_lists(y, like.tags)
    if like.classes is not None and _is_column(y):
        return like._replace(Y=_coded(y, like.classes, name))
    Y = _matrix(y, name, soft=soft)
    if Y.shape[1] != len(like.tags):
        raise DataError(
            f"{name} must have one column for each of the model's {len(like.tags)} tags. "
            f"Got {Y.shape[1]} columns instead."
        )
    columns = tag_names(y)
    if columns is not None and columns.dtype == like.tags.dtype == object:
        different = np.flatnonzero(columns != like.tags)
        if len(different):
            column = different[0]
            raise DataError(
                f"The columns of {name} must be the model's tags, in the order of tags_. Column "
                f"{column} is {columns[column]!r} where the tag is {like.tags[column]!r}."
            )
    return like._replace(Y=Y)


def read_observed(y: Any, like: Targets, n_clips: int) -> Floats:
    """The known labels of some clips, (n_clips, n_tags), NaN for the others.

    ``y`` is such a matrix; tag → 0 or 1 for all clips; or the tags that each clip has.
    """
    lists = _tag_lists(y)
    if isinstance(y, Mapping):
        row = _rows_of_names([y], like.tags)
        y = np.tile(row, (n_clips, 1))
    elif lists:
        y = _rows_of_names([dict.fromkeys(tags, 1) for tags in lists], like.tags)
    return read_more_targets(y, like).Y


def _rows_of_names(clips: list[Any], tags: NDArray[Any]) -> Floats:
    """What each clip says by the names of tags, as a matrix; NaN where it says nothing."""
    known_tags = tags.tolist()
    for clip in clips:
        for tag in clip:
            if tag not in known_tags:
                hint = NUMBERED
                if tags.dtype == object:
                    hint = did_you_mean(tag, [str(known) for known in known_tags])
                raise DataError(f"y names the tag {tag!r}, which the model does not know.{hint}")
    rows = [[clip.get(tag, np.nan) for tag in known_tags] for clip in clips]
    return np.array(rows, np.float32)


def tag_names(y: Any) -> NDArray[Any] | None:
    """The columns of a frame: numbers, or an object array of strings. None for other matrices."""
    if not hasattr(y, "columns"):
        return None
    columns = np.asarray(y.columns)
    if np.issubdtype(columns.dtype, np.integer):
        return columns
    return np.array([str(column) for column in y.columns], dtype=object)


def _matrix(y: Any, name: str, *, soft: bool) -> Floats:
    """``y`` as a float32 matrix of 0, 1 and NaN, or with ``soft`` of probabilities and NaN."""
    if np.ndim(y) == 2 and np.shape(y)[1] == 0:
        raise DataError(
            f"{name} has no tags: it must have at least one column, or at least one tag in its "
            f"lists. Got the shape {np.shape(y)}."
        )
    Y = check_array(
        y, ensure_all_finite="allow-nan", dtype=np.float32, input_name=name, accept_sparse="csr"
    )
    if not isinstance(Y, np.ndarray):
        Y = Y.toarray()
    n_wrong = sum(int(_are_no_labels(block, soft=soft).sum()) for block in blocks(Y))
    if n_wrong:
        row, column = np.argwhere(_are_no_labels(Y, soft=soft))[0]
        allowed = "0 (absent), 1 (present)"
        allowed += ", a probability between, or NaN" if soft else " or NaN"
        way_out = "" if soft or not is_soft(Y) else " Only the y of fit may hold probabilities."
        raise DataError(
            f"{name} must hold {allowed} (unknown). {name}[{row}, {column}] "
            f"is {Y[row, column]:g}, one of {n_wrong:,} such values.{way_out}"
        )
    return Y


def _are_no_labels(Y: Floats, *, soft: bool) -> Mask:
    if soft:
        return (Y < 0) | (Y > 1)
    return ~((Y == 0) | (Y == 1) | np.isnan(Y))


def _frame_of_lists(y: Any, tags: NDArray[Any] | None = None) -> Any:
    """A frame of 0 and 1 with one column per tag, if y has a list of tags for each clip."""
    lists = _tag_lists(y)
    if lists is None:
        return y
    if tags is None:
        names = sorted({str(tag) for clip in lists for tag in clip})
    elif tags.dtype == object:
        names = tags.tolist()
    else:
        raise DataError(f"y names tags, but the model was fitted on an array.{NUMBERED}")
    return pl.DataFrame({name: [float(name in clip) for clip in lists] for name in names})


def _tag_lists(y: Any) -> Any:
    """The list of tags of each clip, if y has such; else None."""
    y = y.to_list() if hasattr(y, "to_list") else y
    if not isinstance(y, list | tuple):
        return None
    if not all(isinstance(clip, list | tuple | set) for clip in y):
        return None
    has_names = any(isinstance(tag, str) for clip in y for tag in clip)
    return y if has_names else None


def _is_column(y: Any) -> bool:
    return not issparse(y) and np.asarray(y).ndim == 1


def _two_classes(y: Any) -> NDArray[Any]:
    """The classes among one-dimensional labels, as scikit-learn's binary classifiers take them."""
    y = np.asarray(y)
    if not y.size:
        raise DataError("y is empty: it must have a label, or a list of tags, for each clip.")
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
