"""What people may pass as labels: a ternary matrix of tags, or one column of two classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from harmonium.errors import DataError


@dataclass(frozen=True)
class Targets:
    """Labels as the models take them."""

    Y: NDArray[np.float32]  # (n_clips, n_tags): 0 absent, 1 present, NaN unknown
    tags: NDArray[Any]  # (n_tags,): column names of a frame, else numbers
    classes: NDArray[Any] | None  # of one-dimensional labels: what 0 and 1 stand for


def read_targets(y: Any, *, tags_must_be_known: bool = True) -> Targets:
    """Labels from a (n_clips, n_tags) matrix or frame of 0 / 1 / NaN, or (n_clips,) classes."""
    if not issparse(y) and np.asarray(y).ndim == 1:
        return _read_classes(np.asarray(y))
    Y = ternary(y)
    tags = np.asarray(getattr(y, "columns", np.arange(Y.shape[1])))
    if tags_must_be_known:
        _refuse_unknown_tags(Y, tags)
    return Targets(Y, tags, None)


def ternary(y: Any, *, name: str = "y") -> NDArray[np.float32]:
    """``y`` as a float32 matrix of 0, 1 and NaN; anything else is an error that says where."""
    Y = check_array(
        y, ensure_all_finite="allow-nan", dtype=np.float32, input_name=name, accept_sparse="csr"
    )
    Y = Y if isinstance(Y, np.ndarray) else Y.toarray()
    wrong = np.argwhere(~((Y == 0) | (Y == 1) | np.isnan(Y)))
    if len(wrong):
        row, column = wrong[0]
        raise DataError(
            f"{name} must hold 0 (absent), 1 (present) or NaN (unknown). "
            f"{name}[{row}, {column}] is {Y[row, column]:g}, one of {len(wrong):,} such values."
        )
    return Y


def _read_classes(y: NDArray[Any]) -> Targets:
    """One column with two classes, as scikit-learn's binary classifiers take it."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    if kind != "binary":
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}. "
            "For several tags pass a matrix with one column of 0 / 1 / NaN for each."
        )
    if len(classes) < 2:
        raise DataError(f"y has only one class, {classes[0]!r}; two are needed to learn from.")
    return Targets(codes.astype(np.float32)[:, None], np.arange(1), classes)


def _refuse_unknown_tags(Y: NDArray[np.float32], tags: NDArray[Any]) -> None:
    unknown = np.flatnonzero(np.isnan(Y).all(axis=0))
    if len(unknown):
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise DataError(
            f"Every tag needs at least one known label. Tag {tags[unknown[0]]!r} "
            f"(column {unknown[0]}){more} has none: label some clips or drop the column."
        )
