"""What every metric takes and gives: ternary labels and scores in, one value per tag out.

Conventions, the same in every metric:

- ``Y`` (n_clips, n_tags): 1 where the tag holds, 0 where it does not, NaN where nobody knows.
  Unknown entries are left out: they are neither positive nor negative.
- ``S`` (n_clips, n_tags): finite scores, larger where the tag is more likely.
- A metric that is undefined for a tag is NaN there, and the result says why.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.errors import DataError

NO_LABEL = "no known label"
NO_POSITIVE = "no positive"
NO_NEGATIVE = "no negative"


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One value per tag (or per clip), NaN where it is undefined, and the reason for each NaN.

    NumPy functions take the result as the array of its values.
    """

    values: NDArray[np.float64]
    """(n,) the metric, NaN where undefined."""
    reasons: dict[int, str]
    """Index of each undefined value → why it is undefined."""

    @property
    def n_defined(self) -> int:
        """Number of values that are defined."""
        return len(self.values) - len(self.reasons)

    @property
    def mean(self) -> float:
        """Mean over the defined values; NaN where there is none."""
        if self.n_defined == 0:
            return float("nan")
        return float(np.nanmean(self.values))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)


class Ternary(NamedTuple):
    """Checked labels: which are positive, which are known, and how many of each a tag has."""

    positive: NDArray[np.bool_]  # (n_clips, n_tags)
    known: NDArray[np.bool_] | None  # (n_clips, n_tags); None where everything is known
    n_positive: NDArray[np.int64]  # (n_tags,)
    n_known: NDArray[np.int64]  # (n_tags,)

    @property
    def n_negative(self) -> NDArray[np.int64]:
        """(n_tags,) known labels that are 0."""
        return self.n_known - self.n_positive

    def undefined(self, *, needs_positive: bool, needs_negative: bool) -> dict[int, str]:
        """Tag → why a metric with these needs is undefined for it."""
        reasons = {}
        for tag in np.flatnonzero((self.n_positive == 0) | (self.n_negative == 0)).tolist():
            if self.n_known[tag] == 0:
                reasons[tag] = NO_LABEL
            elif needs_positive and self.n_positive[tag] == 0:
                reasons[tag] = NO_POSITIVE
            elif needs_negative and self.n_negative[tag] == 0:
                reasons[tag] = NO_NEGATIVE
        return reasons


def validate(Y: ArrayLike, S: ArrayLike) -> None:
    """Raise ``DataError`` unless Y is ternary, S is finite, and both are matrices of one shape."""
    checked(Y, S)


def checked(Y: ArrayLike, S: ArrayLike) -> tuple[Ternary, NDArray[np.floating]]:
    """The labels and the scores as arrays, after the checks of ``validate``."""
    labels = ternary(Y)
    scores = matrix("S", S)
    if labels.positive.shape != scores.shape:
        raise DataError(
            f"Y and S must have the same shape (n_clips, n_tags). Got Y {labels.positive.shape} "
            f"and S {scores.shape}; score the same clips and tags, in the same order."
        )
    finite = np.isfinite(scores)
    if not finite.all():
        clip, tag = np.argwhere(~finite)[0]
        raise DataError(
            f"S must hold finite scores. Got {np.count_nonzero(~finite)} that are NaN or infinite, "
            f"the first at clip {clip}, tag {tag}: {scores[clip, tag]}. Mark unknown labels in Y, "
            "not in S, and check that the model that gave S has converged."
        )
    return labels, scores


def ternary(Y: ArrayLike) -> Ternary:
    """Y as positive and known masks; ``DataError`` for values other than 0, 1 and NaN."""
    labels = matrix("Y", Y)
    positive = labels == 1
    known = None
    if np.count_nonzero(positive) + np.count_nonzero(labels == 0) < labels.size:
        known = ~np.isnan(labels)
        wrong = known & ~positive & (labels != 0)
        if wrong.any():
            clip, tag = np.argwhere(wrong)[0]
            raise DataError(
                f"Y must hold 0, 1 and NaN (unknown) only. Got {np.count_nonzero(wrong)} other "
                f"values, the first at clip {clip}, tag {tag}: {labels[clip, tag]}. Turn counts "
                "and probabilities into labels first."
            )
    n_clips, n_tags = labels.shape
    n_known = np.full(n_tags, n_clips) if known is None else known.sum(axis=0)
    return Ternary(positive, known, positive.sum(axis=0), n_known)


def matrix(name: str, values: ArrayLike, axes: str = "(n_clips, n_tags)") -> NDArray[np.floating]:
    """A matrix of floats (of whatever precision it came in), or ``DataError`` naming it."""
    try:
        array = np.asarray(values)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} must be a matrix of numbers {axes}. Got {type(values).__name__} "
            f"that NumPy cannot read as one: {error}."
        ) from None
    if array.ndim != 2:
        hint = f"; for a single tag, use {name}[:, None]" if "n_tags" in axes else ""
        raise DataError(f"{name} must have two dimensions {axes}. Got shape {array.shape}{hint}.")
    return array
