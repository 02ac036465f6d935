"""Features brought to one scale, so that one learning rate serves every kind of feature."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.estimators.large_tables import blocks

Doubles = NDArray[np.float64]

LARGEST = 1e30
"""Scaled features beyond this are refused: their sums would overflow single precision."""


class Scaling(NamedTuple):
    """x ← (x - mean) / scale, by feature; then x ← x / ‖x‖, by clip, where the norm is to be 1."""

    mean: NDArray[np.float64]  # (D,)
    scale: NDArray[np.float64]  # (D,), never 0
    unit_norm: bool = False

    def __call__(self, X: NDArray[np.floating]) -> NDArray[np.float32]:
        """Scaled in double precision, given in single. Shape (N, D)."""
        result, first = np.empty(X.shape, np.float32), 0
        for block in blocks(X):  # in double precision, all of it would take four times the memory
            result[first : first + len(block)] = self._scaled(block, first)
            first += len(block)
        return result

    def _scaled(self, X: NDArray[np.floating], first: int) -> NDArray[np.float64]:
        """Rows of a table from the row ``first`` on."""
        scaled = (X - self.mean) / self.scale
        wrong = np.argwhere(~(np.abs(scaled) <= LARGEST))
        if len(wrong):
            row, column = wrong[0]
            raise DataError(
                f"X[{first + row}, {column}] is {X[row, column]:g}, too far from the training data "
                f"(mean {self.mean[column]:g}, scale {self.scale[column]:g}) to compute with. "
                "Check the units of the features, or scale them."
            )
        return of_unit_norm(scaled) if self.unit_norm else scaled


def of_unit_norm(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """x / ‖x‖ for each row; a row of zeros stays one."""
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norm > 0, norm, 1.0)


def standardising(X: NDArray[np.floating]) -> Scaling:
    """Zero mean, and a variance of 1 / D for each of the D features.

    A clip's vector then has a norm of about 1 whatever D is, as the paper's have: the input of a
    hidden unit, and the change of it by one step, does not grow with the number of features.
    """

    def mean_of(function: Callable[[Doubles], Doubles]) -> Doubles:
        parts = (function(block.astype(np.float64)).sum(axis=0) for block in blocks(X))
        return sum(parts, np.zeros(X.shape[1])) / len(X)

    peak = np.max([np.abs(block).max(axis=0) for block in blocks(X)], axis=0).astype(np.float64)
    peak[peak == 0] = 1.0
    middle = mean_of(lambda x: x / peak)  # the squares of x itself could over- or underflow
    deviation = np.sqrt(mean_of(lambda x: np.square(x / peak - middle)))
    # what is constant but for rounding carries nothing, must not be blown up, and becomes 0
    constant = deviation <= 1e-9
    mean = np.where(constant, X[0], mean_of(lambda x: x))
    return Scaling(mean, peak * np.where(constant, 1.0, deviation) * np.sqrt(X.shape[1]))


def unscaled(n_features: int) -> Scaling:
    """Features as they are."""
    return Scaling(np.zeros(n_features), np.ones(n_features))
