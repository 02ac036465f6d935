"""Columns as they were read, and an account of the rows that cannot be used."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.coding import Codes, Column, as_series, as_strings
from harmonium.errors import DataError, DataWarning

Mask = NDArray[np.bool_]
SHOWN = 5  # line numbers named per reason


@dataclass(frozen=True)
class Rows:
    """Rows of a file or of sequences, as one column per role.

    Attributes
    ----------
    columns : role ("user", "item", "tag", "count") -> pl.Series, (n,)
    source : what the rows come from, for messages
    unit : what `locate` counts in: "line", "row" or "position"
    locate : row indices -> where these rows are in the source; called only when rows are bad
    left_out : reason -> where the rows are that the reader has already left out
    """

    columns: Mapping[str, pl.Series]
    source: str = "the columns"
    unit: str = "position"
    locate: Callable[[NDArray[np.intp]], NDArray[Any]] = lambda rows: rows
    left_out: Mapping[str, list[int]] = field(default_factory=dict)

    @classmethod
    def from_columns(cls, **columns: Column) -> "Rows":
        """Rows of sequences of equal length, given by role."""
        series = {role: as_series(values, name=role) for role, values in columns.items()}
        lengths = {role: len(values) for role, values in series.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length:,} {role}" for role, length in lengths.items())
            raise DataError(f"The columns must be of equal length, got {given}.")
        return cls(series)

    def strings(self, role: str) -> pl.Series:
        """The column of this role as strings, (n,)."""
        return as_strings(self.columns[role], name=role)

    def usable(self, faults: Mapping[str, Mask | None]) -> Mask | None:
        """Which rows have no fault, (n,); None if all are good.

        `faults` maps a reason to the rows it holds for, or to None. Rows left out get one warning
        that counts them by reason and says where the first are; it is an error if no row is left.
        """
        n = len(next(iter(self.columns.values())))
        good = np.ones(n, dtype=np.bool_)
        left_out = dict(self.left_out)
        for reason, fault in faults.items():
            if fault is not None and (bad := np.flatnonzero(fault & good)).size:
                left_out[reason] = self.locate(bad).tolist()
                good[bad] = False
        if not left_out:
            return None
        n_bad = sum(len(where) for where in left_out.values())
        total = n_bad + int(good.sum())
        message = self._account(left_out)
        if n_bad == total:
            raise DataError(f"None of the {total:,} rows of {self.source} can be used: {message}.")
        verb = "was" if n_bad == 1 else "were"
        warnings.warn(
            f"{n_bad:,} of {total:,} rows of {self.source} {verb} left out: {message}.",
            DataWarning,
            stacklevel=4,  # the caller of read_triples, Triples.from_columns and the like
        )
        return good

    def _account(self, left_out: Mapping[str, list[int]]) -> str:
        """For example "2 with an empty tag (lines 5, 17), 1 with an empty user (line 30)"."""
        parts = []
        for reason, where in left_out.items():
            shown = ", ".join(str(number) for number in where[:SHOWN])
            more = f" and {len(where) - SHOWN:,} more" if len(where) > SHOWN else ""
            plural = "s" if len(where) > 1 else ""
            parts.append(f"{len(where):,} with {reason} ({self.unit}{plural} {shown}{more})")
        return ", ".join(parts)


def rows_with_empty_name(codes: Codes, names: pl.Series) -> Mask | None:
    """Rows whose name is empty or white space, (n,); None if there are none."""
    empty = (names.str.strip_chars() == "").to_numpy()
    return empty[codes] if empty.any() else None
