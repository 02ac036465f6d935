"""Rows as they were read, and an account of those that cannot be used."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.coding import Coded, encode, encode_batches
from harmonium.data.names import Column, as_strings, compact
from harmonium.errors import DataError, DataWarning

Mask: TypeAlias = NDArray[np.bool_]

_SHOWN = 5  # places named per reason


@dataclass(frozen=True)
class Rows:
    """Rows of a file or of sequences, one coded column per role.

    Attributes
    ----------
    columns : role ("user", "item", "tag", "count", "alias") -> codes (n,) and names
    source : where the rows come from, for messages
    unit : what `locate` counts in: "line", "row" or "position"
    locate : row indices -> where these rows are in the source; called only if rows are bad
    left_out : reason -> where the rows are that the reader has left out already
    """

    columns: Mapping[str, Coded]
    source: str = "the columns"
    unit: str = "position"
    locate: Callable[[NDArray[np.intp]], NDArray[Any]] = lambda rows: rows
    left_out: Mapping[str, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column], **attributes: Any) -> "Rows":
        """Rows of sequences of equal length, by role, with the attributes named above."""
        strings = {
            role: as_strings(values, name=role, fractions=role == "count")
            for role, values in columns.items()
        }
        lengths = {role: len(values) for role, values in strings.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length:,} for '{role}'" for role, length in lengths.items())
            raise DataError(f"The columns must be of equal length, got {given}.")
        return cls(encode_batches(lambda: [strings], list(strings)), **attributes)

    def values(self, role: str) -> pl.Series:
        """The column of a role as strings, (n,)."""
        codes, names = self.columns[role]
        return names.gather(codes)

    def respelt(self, role: str, spell: Callable[[pl.Series], pl.Series]) -> "Rows":
        """The rows with the names of a role spelt anew; names that come out equal are merged."""
        codes, names = self.columns[role]
        new_code, names = encode(spell(names))
        return replace(self, columns={**self.columns, role: Coded(new_code[codes], names)})

    def usable(self, faults: Mapping[str, tuple[str, Mask]] | None = None) -> "Rows":
        """The rows without an empty name and without these faults, each a role and its bad names.

        Rows left out get one warning, which counts them by reason and says where the first are; it
        is an error if no row is left.
        """
        empty = {
            f"an empty {role}": (role, (column.names.str.strip_chars() == "").to_numpy())
            for role, column in self.columns.items()
        }
        good = np.ones(len(self), dtype=np.bool_)
        left_out = dict(self.left_out)
        for reason, (role, bad_names) in {**empty, **(faults or {})}.items():
            if bad_names.any():
                bad = np.flatnonzero(bad_names[self.columns[role].codes] & good)
                good[bad] = False
                left_out |= {reason: self.locate(bad).tolist()} if len(bad) else {}
        if not left_out:
            return self
        self._report(left_out, n_good=int(good.sum()))
        kept = {
            role: compact(Coded(codes[good], names))
            for role, (codes, names) in self.columns.items()
        }
        return Rows(kept, self.source)

    def _report(self, left_out: Mapping[str, list[int]], *, n_good: int) -> None:
        n_bad = sum(len(where) for where in left_out.values())
        account = ", ".join(self._account(*reason) for reason in left_out.items())
        if not n_good:
            raise DataError(f"None of the {n_bad:,} rows of {self.source} can be used: {account}.")
        verb = "was" if n_bad == 1 else "were"
        warnings.warn(
            f"{n_bad:,} of {n_bad + n_good:,} rows of {self.source} {verb} left out: {account}.",
            DataWarning,
            stacklevel=5,  # the caller of read_triples, Triples.from_columns and the like
        )

    def _account(self, reason: str, where: list[int]) -> str:
        """For example "2 with an empty tag (lines 5, 17)"."""
        shown = ", ".join(f"{number:,}" for number in where[:_SHOWN])
        more = f" and {len(where) - _SHOWN:,} more" if len(where) > _SHOWN else ""
        plural = "s" if len(where) > 1 else ""
        return f"{len(where):,} with {reason} ({self.unit}{plural} {shown}{more})"
