"""Tables of clips that may be too large to copy: they are read in blocks, or a few rows at a time.

NumPy is enough to import this.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from harmonium.arrays import Floats, Ids, Mask, Places

LARGE = 2**30  # tables above this many bytes are read in blocks instead of being copied
BLOCK = 2**24  # numbers in one block of a table
SPARSE_BLOCK = 2**22  # numbers of a sparse table that are dense at a time


def is_sparse(table: Any) -> bool:
    """Whether this is a sparse matrix in CSR form; importing SciPy to ask would take long."""
    return hasattr(table, "indptr")


def is_large(table: Any) -> bool:
    """Whether to read a table in blocks."""
    return not is_sparse(table) and table.nbytes > LARGE


def slices(table: Any) -> Iterator[slice]:
    """The blocks of a table (N, D); a small dense table is one block."""
    becomes_dense = is_sparse(table) or isinstance(table, SparseRows)
    size = max(1, (SPARSE_BLOCK if becomes_dense else BLOCK) // max(table.shape[1], 1))
    for first in range(0, table.shape[0], size):
        yield slice(first, first + size)


def blocks(table: Any) -> Iterator[Any]:
    """All rows of a table (N, D), a block at a time; those of a sparse matrix are sparse."""
    for rows in slices(table):
        yield table[rows]


class TableRows:
    """Some rows of an array, perhaps in a file, with a function applied as they are read."""

    in_runs: ClassVar[bool] = True  # whether rows next to one another are read faster

    def __init__(
        self,
        table: Any,
        rows: Places | None = None,
        change: Callable[[Any], Floats] | None = None,
    ) -> None:
        self.table = table
        self.change = change
        self.rows = np.arange(table.shape[0]) if rows is None else rows
        self.shape = (len(self.rows), table.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Floats:
        """Rows by their numbers, or a slice of them."""
        block = np.asarray(self.table[self.rows[rows]])
        return block if self.change is None else self.change(block)

    def take(self, rows: Places) -> "TableRows":
        """Some of the rows, not read yet."""
        return type(self)(self.table, self.rows[rows], self.change)

    def varying(self) -> Mask:
        """Which columns have more than one value, (D,)."""
        lowest = np.min([block.min(axis=0) for block in blocks(self)], axis=0)
        highest = np.max([block.max(axis=0) for block in blocks(self)], axis=0)
        return np.asarray(highest > lowest)


class SparseRows(TableRows):
    """Some rows of a sparse matrix in CSR form, of which only those that are read become dense."""

    in_runs = False

    def __getitem__(self, rows: Any) -> Floats:
        """Rows by their numbers, or a slice of them, as an array."""
        block = self.table[self.rows[rows]]
        if self.change is None:
            return np.asarray(block.toarray(), np.float32)
        return self.change(block)

    def varying(self) -> Mask:
        """Which columns have more than one value, before they are scaled, (D,)."""
        own = self.table[self.rows]
        return np.asarray(own.max(axis=0).toarray()[0] > own.min(axis=0).toarray()[0])


Table: TypeAlias = Floats | TableRows


@dataclass(frozen=True, eq=False)
class LabelledClips:
    """Checked and scaled training or validation data."""

    X: Table  # (N, D); rows of a sparse matrix stay sparse
    Y: Floats  # (N, C): 0, 1, a probability between, or NaN
    weights: Floats | None = None  # what labels count, (N, 1) or (N, C); None: alike
    groups: Ids | None = None  # (N,), such as the artist; None: each clip is a group

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Places) -> "LabelledClips":
        """Some of the clips."""
        return LabelledClips(
            X=_taken(self.X, rows),
            Y=self.Y[rows],
            weights=_some(self.weights, rows),
            groups=_some(self.groups, rows),
        )


@dataclass(frozen=True, eq=False)
class ClipTable:
    """The same, of which a large table is not read yet."""

    X: Table  # (N, D)
    Y: Table  # (N, C)
    weights: Floats | None = None  # as above
    groups: Ids | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Places) -> "ClipTable":
        """Some of the clips, not read yet."""
        return ClipTable(
            X=_taken(self.X, rows),
            Y=_taken(self.Y, rows),
            weights=_some(self.weights, rows),
            groups=_some(self.groups, rows),
        )

    def read(self, at_most: int) -> LabelledClips:
        """A random sample of at most this many clips."""
        if len(self) <= at_most:
            return LabelledClips(
                X=_read(self.X), Y=self.Y[:], weights=self.weights, groups=self.groups
            )
        sample = np.random.default_rng(0).permutation(len(self))[:at_most]
        sample = np.sort(sample)
        return LabelledClips(
            X=_read(_taken(self.X, sample)),
            Y=self.Y[sample],
            weights=_some(self.weights, sample),
            groups=_some(self.groups, sample),
        )


def _some(array: Any, rows: Places | slice) -> Any:
    return None if array is None else array[rows]


def _read(table: Table) -> Table:
    return table if isinstance(table, SparseRows) else table[:]


def in_blocks(function: Callable[..., Any], X: Table, *others: Any) -> Any:
    """What a function says of the rows of X and of other arrays, block by block if X is a table.

    The results are arrays, or tuples of arrays, and are joined. An array is one block.
    """
    if not isinstance(X, TableRows):
        return function(X, *others)
    parts = []
    for rows in slices(X):
        parts.append(function(X[rows], *(_some(other, rows) for other in others)))
    return _joined(parts)


def _joined(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, tuple):
        columns = [_joined(list(column)) for column in zip(*parts, strict=True)]
        return type(first)(*columns)
    return np.concatenate(parts)


def _taken(table: Table, rows: Places) -> Table:
    return table.take(rows) if isinstance(table, TableRows) else table[rows]
