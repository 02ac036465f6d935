"""Tables of clips × columns: too large to copy, scaled, or labelled with probabilities.

A table is an array in memory or mapped from a file (``numpy.memmap``). What is computed from all of
it, such as means, is computed block by block. Only NumPy is loaded.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats
from harmonium.errors import DataError

LARGE = 2**30
"""Bytes from which a table is read by blocks instead of being copied as a whole."""

BLOCK = 2**24
"""Numbers in one block."""

MAX_SCALED = 1e30
"""Scaled features beyond this are refused: their sums would overflow single precision."""


class TableRows:
    """Some rows of a table, with a function applied to them as they are read."""

    def __init__(
        self,
        table: NDArray[Any],
        rows: NDArray[np.intp] | None = None,
        change: Callable[[NDArray[np.floating]], Floats] | None = None,
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

    def take(self, rows: NDArray[np.intp]) -> "TableRows":
        """Some of the rows, not read yet."""
        return TableRows(self.table, self.rows[rows], self.change)


Table = NDArray[np.floating] | TableRows


def is_large(table: NDArray[Any]) -> bool:
    """Whether a table is to be read by blocks."""
    return table.nbytes > LARGE


def blocks(table: Table) -> Iterator[NDArray[Any]]:
    """All rows, a block at a time; a small table is one block."""
    size = max(1, BLOCK // max(table.shape[1], 1))
    for first in range(0, len(table), size):
        yield table[first : first + size]


# Labels. --------------------------------------------------------------------------------------


def is_soft(Y: Table) -> bool:
    """Whether some label is a probability other than 0 and 1."""
    return any(((block > 0) & (block < 1)).any() for block in blocks(Y))


def base_log_odds(Y: Table) -> Doubles:
    """log(p / (1 - p)) with p the mean of the known labels, one 0 and one 1 added, by tag."""
    known = sum(np.sum(~np.isnan(block), axis=0) for block in blocks(Y))
    total = sum(np.nansum(block, axis=0) for block in blocks(Y))
    rate = (total + 1) / (known + 2)
    return np.log(rate / (1 - rate))


# Features brought to one scale, so that one learning rate serves every kind of feature. --------


class Scaling(NamedTuple):
    """x ← (x - mean) / scale, by feature; then x ← x / ‖x‖, by clip, where the norm is to be 1."""

    mean: Doubles  # (D,)
    scale: Doubles  # (D,), never 0
    unit_norm: bool = False

    def __call__(self, X: NDArray[np.floating]) -> Floats:
        """Scaled in double precision, given in single. Shape (N, D)."""
        result, first = np.empty(X.shape, np.float32), 0
        for block in blocks(X):  # in double precision, all of it would take four times the memory
            result[first : first + len(block)] = self._scaled(block, first)
            first += len(block)
        return result

    def _scaled(self, X: NDArray[np.floating], first: int) -> Doubles:
        """Rows of a table from the row ``first`` on; a row of zeros has no norm and stays."""
        scaled = (X - self.mean) / self.scale
        wrong = np.argwhere(~(np.abs(scaled) <= MAX_SCALED))
        if len(wrong):
            row, column = wrong[0]
            raise DataError(
                f"X[{first + row}, {column}] is {X[row, column]:g}, too far from the training data "
                f"(mean {self.mean[column]:g}, scale {self.scale[column]:g}) to compute with. "
                "Check the units of the features, or scale them."
            )
        if not self.unit_norm:
            return scaled
        norm = np.linalg.norm(scaled, axis=1, keepdims=True)
        return scaled / np.where(norm > 0, norm, 1.0)


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
