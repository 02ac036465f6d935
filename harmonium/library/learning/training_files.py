"""The tables of a training set too large for memory, as files in a temporary folder.

The tracks are in the order of their folds, at random within each. After the last fold, the first
ones follow once more: of the folds 0 1 2 3 4 0 1 2, all but any one stand side by side, so that a
model of them learns from one piece of the file, and nothing is copied.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError

Floats = NDArray[np.float32]

BLOCK = 8192
"""Tracks that are read and written at a time."""
MOST_NUMBERS = 2**24
"""Numbers of a table that are in memory at a time, where tags are looked at one by one."""


@dataclass(frozen=True)
class StoredRows:
    """Some rows and columns of a table, which are opened where they are needed."""

    path: str
    width: int
    """Columns of the whole table."""
    start: int
    stop: int
    columns: int
    """The first so many are meant."""

    def __len__(self) -> int:
        return self.stop - self.start

    def open(self, mode: str = "r") -> Floats:
        """The rows, mapped from the file; FileNotFoundError where it cannot be seen."""
        shape = (Path(self.path).stat().st_size // (4 * self.width), self.width)
        table = np.memmap(self.path, np.float32, mode, shape=shape)  # type: ignore[call-overload]
        return table[self.start : self.stop, : self.columns]


def opened(rows: Floats | StoredRows) -> Floats:
    """The rows as an array."""
    return rows.open() if isinstance(rows, StoredRows) else rows


class FoldTable:
    """A table of numbers in a file, (n, width), for tracks with these folds, in ascending order."""

    def __init__(self, path: Path, folds: NDArray[np.int64], width: int, columns: int = 0) -> None:
        self.path, self.n, self.width, self.columns = path, len(folds), width, columns or width
        n_folds = int(folds.max()) + 1
        self.starts = np.searchsorted(folds, np.arange(n_folds + 1))
        self.n_again = int(self.starts[max(0, n_folds - 2)])
        needed = 4 * width * (self.n + self.n_again)
        free = shutil.disk_usage(path.parent).free
        if needed > free:
            raise DataError(
                f"Learning from {self.n:,} tracks needs {needed / 1e9:.1f} GB in {path.parent}, "
                f"where {free / 1e9:.1f} GB are free. Make room, or name another folder by TMPDIR."
            )
        shape = (self.n + self.n_again, width)
        self._rows = np.memmap(path, np.float32, "w+", shape=shape)

    def put(self, rows: NDArray[np.intp], values: Floats) -> None:
        """Write some rows."""
        self._rows[rows] = values
        again = rows < self.n_again
        self._rows[rows[again] + self.n] = values[again]

    @property
    def values(self) -> Floats:
        """(n, columns), mapped from the file."""
        return self._rows[: self.n, : self.columns]

    def all(self, *, whole: bool = False) -> StoredRows:
        """All tracks; ``whole``: with the columns that `values` leaves out."""
        return self._piece(0, self.n, whole)

    def fold(self, fold: int, *, whole: bool = False) -> StoredRows:
        """The tracks of a fold."""
        return self._piece(int(self.starts[fold]), int(self.starts[fold + 1]), whole)

    def others(self, fold: int, n: int, *, whole: bool = False) -> StoredRows:
        """n tracks of the other folds."""
        first = 0 if fold == len(self.starts) - 2 else int(self.starts[fold + 1])
        return self._piece(first, first + n, whole)

    def _piece(self, start: int, stop: int, whole: bool) -> StoredRows:
        columns = self.width if whole else self.columns
        return StoredRows(str(self.path), self.width, start, stop, columns)


@dataclass(frozen=True, eq=False)
class TrainingFiles:
    """The files of a training set."""

    folder: Path
    X: FoldTable
    """Features, and further inputs after them."""
    Y: FoldTable
    smoothed: FoldTable | None = None

    def new_table(self, n_columns: int) -> Floats:
        """A table of its own, for what is worked out, (n, n_columns)."""
        path = self.folder / f"table-{len(list(self.folder.iterdir()))}"
        return np.memmap(path, np.float32, "w+", shape=(self.X.n, n_columns))


def by_columns(function: Callable[..., NDArray[Any]], *tables: Floats) -> NDArray[Any]:
    """``function`` of tables (n, C), whose result has a place for each column: some at a time."""
    n, n_columns = tables[0].shape
    width = max(1, MOST_NUMBERS // max(n, 1))
    parts = [
        function(*(np.asarray(table[:, j : j + width]) for table in tables))
        for j in range(0, n_columns, width)
    ]
    return np.concatenate(parts)


def row_blocks(n: int, most: int | None = None) -> list[slice]:
    """All of n rows, some at a time: by default `BLOCK`."""
    most = most or BLOCK
    return [slice(first, min(first + most, n)) for first in range(0, n, most)]
