"""The AUCs of an arm by test fold and tag, and their means and standard errors."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.experiments.plan import Arm
from harmonium.experiments.report.words import setting_words

Matrix = NDArray[np.float64]

AXES = ("dataset", "model", "smoothing", "clips", "features", "inference", "known")
"""What a score is a score of, besides the settings that vary."""


@dataclass(frozen=True, eq=False)
class Score:
    """The AUCs of one arm, tested in one way."""

    arm: Arm
    inference: str | None
    known: float
    aucs: Matrix
    """(n_folds, n_tags) means over the runs of a test fold; NaN where undefined or not finished."""
    finished: NDArray[np.bool_]
    """(n_folds,) whether all runs of a test fold are there."""
    tags: tuple[str, ...]
    """(n_tags,) names, or numbers where the results do not name them."""

    @property
    def n_finished(self) -> int:
        """Number of finished test folds."""
        return int(self.finished.sum())

    @property
    def complete(self) -> bool:
        """Whether all test folds are finished."""
        return bool(self.finished.all())

    @property
    def n_tags(self) -> int:
        """Number of tags; 0 where no test fold is finished."""
        return self.aucs.shape[1]

    @property
    def by_fold(self) -> Matrix:
        """(n_folds,) mean over the tags that have an AUC; NaN where not finished."""
        return mean_known(self.aucs, axis=1)

    @property
    def by_tag(self) -> Matrix:
        """(n_tags,) mean over the folds in which the tag has an AUC."""
        return mean_known(self.aucs, axis=0)

    @property
    def mean(self) -> float:
        """Mean over tags, then over the finished folds; NaN where none is."""
        return float(mean_known(self.by_fold))

    @property
    def error(self) -> float:
        """Standard error of the mean over folds; NaN with fewer than two."""
        return standard_error(self.by_fold)

    def value(self, axis: str) -> Any:
        """Its place on one of the axes, or the value of a setting that varies."""
        if axis in ("inference", "known"):
            return getattr(self, axis)
        return arm_value(self.arm, axis)

    def words(self, axes: Iterable[str]) -> str:
        """What it is on these axes; the model's name where there is nothing to say."""
        parts = [setting_words(axis, self.value(axis)) for axis in axes]
        return ", ".join(parts) or self.arm.model.name


def arm_value(arm: Arm, axis: str) -> Any:
    """An arm's place on one of the axes, or the value of a setting that varies."""
    if axis == "dataset":
        return arm.dataset.label
    if axis == "model":
        return arm.model.name
    return getattr(arm, axis) if axis in AXES else arm.settings[axis]


def distinct(scores: Iterable[Score], axis: str) -> list[Any]:
    """The values on an axis, each once, in the order of the recipe."""
    return list(dict.fromkeys(score.value(axis) for score in scores))


def mean_known(values: Matrix, axis: int | None = None) -> Any:
    """The mean without the NaN; NaN where there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)


def standard_error(values: Matrix) -> float:
    """sd / √n of the values that are not NaN, with n - 1 degrees of freedom; NaN for n < 2."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan")
    return float(known.std(ddof=1) / np.sqrt(len(known)))
