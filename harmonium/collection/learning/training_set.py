"""What there is to learn from, and which settings decide what is made of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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

    def rows(self, rows: NDArray[np.intp]) -> "TrainingSet":
        """Some of the tracks."""
        smoothed = None if self.smoothed is None else self.smoothed[rows]
        more = None if self.more_inputs is None else self.more_inputs[rows]
        return TrainingSet(self.X[rows], self.Y[rows], self.folds[rows], self.tags, smoothed, more)

    def inputs(self, hyperparameters: Hyperparameters) -> Floats:
        """What to learn from, (n, D) or (n, D + E)."""
        if hyperparameters.more_inputs and self.more_inputs is not None:
            return np.concatenate([self.X, self.more_inputs], axis=1)
        return self.X

    def targets(self, hyperparameters: Hyperparameters) -> Floats:
        """The labels to learn from, (n, C)."""
        if hyperparameters.smoothed and self.smoothed is not None:
            return self.smoothed
        return self.Y
