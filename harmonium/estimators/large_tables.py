"""Tables too large to copy: their rows are read, and scaled, when they are asked for.

A table is an array of clips × columns, in memory or mapped from a file (``numpy.memmap``). What is
computed from all of it, such as means, is computed block by block.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**30
"""Bytes from which a table is read by blocks instead of being copied as a whole."""

BLOCK = 2**24
"""Numbers in one block."""


class TableRows:
    """Some rows of a table, with something done to them as they are read."""

    def __init__(
        self,
        table: NDArray[Any],
        rows: NDArray[np.intp] | None = None,
        change: Callable[[NDArray[np.floating]], NDArray[np.float32]] | None = None,
    ) -> None:
        self.table, self.change = table, change
        self.rows = np.arange(len(table)) if rows is None else rows
        self.shape = (len(self.rows), table.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
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
