"""What there is to learn from, and which settings decide what is made of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.library.learning.training_files import FoldTable, StoredRows, TrainingFiles

Floats = NDArray[np.float32]


class Hyperparameters(NamedTuple):
    """What is tried."""

    learning_rate: float
    l2: float
    smoothed: bool = False
    """Whether to learn from smoothed labels."""
    more_inputs: bool = False
    """Whether to take more inputs than the features: what another model says."""
    linear: bool = False
    """Whether it is a logistic regression, which has no learning rate."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What there is to learn from."""

    X: Floats
    """(n, D) features."""
    Y: Floats
    """(n, C) labels: 0, 1, NaN."""
    folds: NDArray[np.int64]
    """(n,) fold of each track."""
    tags: tuple[str, ...]
    """The C tags."""
    smoothed: Floats | None = None
    """(n, C) smoothed labels."""
    more_inputs: Floats | None = None
    """(n, E) further inputs, to be tried."""
    files: TrainingFiles | None = None
    """Where these tables are too large for memory; the tracks are then in the order of folds."""

    def rows(self, rows: NDArray[np.intp]) -> "TrainingSet":
        """Some of the tracks, in memory."""
        tables = (self.X, self.Y, self.smoothed, self.more_inputs)
        X, Y, smoothed, more = (None if t is None else np.array(t[rows]) for t in tables)
        assert X is not None
        assert Y is not None
        return TrainingSet(X, Y, self.folds[rows], self.tags, smoothed, more)

    def new_table(self) -> Floats:
        """Room for a number for each track and tag, (n, C)."""
        if self.files is None:
            return np.empty(self.Y.shape, np.float32)
        return self.files.new_table(len(self.tags))

    def stored(
        self, hyperparameters: Hyperparameters, fold: int, n: int
    ) -> tuple[StoredRows, StoredRows, StoredRows]:
        """n inputs and labels of the other folds, and the inputs of a fold; for those in files."""
        assert self.files is not None
        X, Y, whole = self.files.X, self._labels_file(hyperparameters), hyperparameters.more_inputs
        return X.others(fold, n, whole=whole), Y.others(fold, n), X.fold(fold, whole=whole)

    def everything(
        self, hyperparameters: Hyperparameters
    ) -> tuple[Floats | StoredRows, Floats | StoredRows]:
        """Inputs and labels of all tracks."""
        if self.files is None:
            return self.inputs(hyperparameters), self.targets(hyperparameters)
        X = self.files.X.all(whole=hyperparameters.more_inputs)
        return X, self._labels_file(hyperparameters).all()

    def _labels_file(self, hyperparameters: Hyperparameters) -> FoldTable:
        assert self.files is not None
        smoothed = self.files.smoothed
        return smoothed if hyperparameters.smoothed and smoothed is not None else self.files.Y

    def inputs(self, hyperparameters: Hyperparameters) -> Floats:
        """What to learn from, (n, D) or (n, D + E)."""
        if self.files is not None:
            return self.files.X.all(whole=hyperparameters.more_inputs).open()
        if hyperparameters.more_inputs and self.more_inputs is not None:
            return np.concatenate([self.X, self.more_inputs], axis=1)
        return self.X

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y
