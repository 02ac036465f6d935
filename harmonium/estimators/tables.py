"""Tables of clips that may be too large to copy: they are read in blocks, or a few rows at a time.

NumPy is enough to import this.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats, Numbers, Places

LARGE = 2**30  # tables above this many bytes are read in blocks instead of being copied
BLOCK = 2**24  # numbers in one block of a table


def is_large(table: NDArray[Any]) -> bool:
    """Whether to read a table in blocks."""
    return table.nbytes > LARGE


def blocks(table: Any) -> Iterator[NDArray[Any]]:
    """All rows of a table (N, D), a block at a time; a small table is one block."""
    size = max(1, BLOCK // max(table.shape[1], 1))
    for first in range(0, len(table), size):
        yield table[first : first + size]


class TableRows:
    """Some rows of an array, perhaps in a file, with a function applied as they are read."""

    def __init__(
        self,
        table: NDArray[Any],
        rows: Places | None = None,
        change: Callable[[Numbers], Floats] | None = None,
    ) -> None:
        self.table = table
        self.change = change
        self.rows = np.arange(len(table)) if rows is None else rows
        self.shape = (len(self.rows), table.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Floats:
        """Rows by their numbers, or a slice of them."""
        block = np.asarray(self.table[self.rows[rows]])
        return block if self.change is None else self.change(block)

    def take(self, rows: Places) -> "TableRows":
        """Some of the rows, not read yet."""
        return TableRows(self.table, self.rows[rows], self.change)


Table: TypeAlias = Floats | TableRows


@dataclass(frozen=True, eq=False)
class LabelledClips:
    """Checked and scaled training or validation data."""

    X: Floats  # (N, D)
    Y: Floats  # (N, C): 0, 1, a probability between, or NaN
    weights: Floats | None = None  # what labels count, (N, 1) or (N, C); None: alike

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Places) -> "LabelledClips":
        """Some of the clips."""
        return LabelledClips(
            X=self.X[rows], Y=self.Y[rows], weights=_weights_of(self.weights, rows)
        )


@dataclass(frozen=True, eq=False)
class ClipTable:
    """The same, of which a large table is not read yet."""

    X: Table  # (N, D)
    Y: Table  # (N, C)
    weights: Floats | None = None  # as above

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Places) -> "ClipTable":
        """Some of the clips, not read yet."""
        return ClipTable(
            X=_taken(self.X, rows),
            Y=_taken(self.Y, rows),
            weights=_weights_of(self.weights, rows),
        )

    def read(self, at_most: int) -> LabelledClips:
        """A random sample of at most this many clips."""
        if len(self) <= at_most:
            return LabelledClips(X=self.X[:], Y=self.Y[:], weights=self.weights)
        sample = np.random.default_rng(0).permutation(len(self))[:at_most]
        sample = np.sort(sample)
        return LabelledClips(
            X=self.X[sample], Y=self.Y[sample], weights=_weights_of(self.weights, sample)
        )


def _weights_of(weights: Floats | None, rows: Places) -> Floats | None:
    return None if weights is None else weights[rows]


def _taken(table: Table, rows: Places) -> Table:
    return table.take(rows) if isinstance(table, TableRows) else table[rows]
