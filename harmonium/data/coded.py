"""Columns of names as integer codes.

Each distinct name is handled once; rows are integers.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Codes, Mask, Places
from harmonium.errors import DataError, DataWarning

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series

MAX_PLACES = 5  # a warning names the places of this many rows for each reason


class Coded(NamedTuple):
    """A column: codes (n,) and the distinct names they stand for, in order of first appearance."""

    codes: Codes
    names: pl.Series


def encode(values: pl.Series) -> Coded:
    """The codes of a column of strings without nulls, (n,)."""
    names = values.unique(maintain_order=True)
    codes = values.cast(pl.Enum(names)).to_physical().cast(pl.Int32).to_numpy()
    return Coded(codes, names)


def compact(column: Coded) -> Coded:
    """The same rows without names that none of them uses, in the same order."""
    is_used = np.bincount(column.codes, minlength=len(column.names)) > 0
    if is_used.all():
        return column
    new_code = (np.cumsum(is_used) - 1).astype(np.int32)
    return Coded(new_code[column.codes], column.names.filter(pl.Series(is_used)))


def distinct_rows(*columns: Codes) -> list[Codes]:
    """Each distinct row of the columns once, ascending."""
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(sizes) > np.iinfo(np.int64).max:
        frame = pl.DataFrame([pl.Series(str(i), column) for i, column in enumerate(columns)])
        return [column.to_numpy() for column in frame.unique().sort(pl.all())]
    key = np.ravel_multi_index(columns, sizes)  # so that one integer sort is enough
    key.sort()
    key = key[np.diff(key, prepend=-1) != 0]
    return [column.astype(np.int32) for column in np.unravel_index(key, sizes)]


def most_frequent(totals: NDArray[Any], names: pl.Series, n: int) -> Places:
    """Indices of the n largest totals, largest first; equal totals in alphabetical order."""
    if n < 1:
        raise DataError(f"'n', the number of tags to keep, must be at least 1, got {n}.")
    return np.lexsort((names.rank("ordinal").to_numpy(), -totals))[:n]


def codes_in(wanted: pl.Series, names: pl.Series) -> Codes:
    """The index of each wanted name in names, (n,), -1 for missing ones."""
    codes = pl.Series(np.arange(len(names), dtype=np.int32))
    return wanted.replace_strict(names, codes, default=-1, return_dtype=pl.Int32).to_numpy()


def positions(wanted: Column, names: pl.Series, *, name: str) -> Places:
    """The place of each wanted name in names, (n,)."""
    strings = as_strings(wanted, name=name)
    codes = codes_in(strings, names)
    is_missing = codes < 0
    if is_missing.any():
        missing = strings.filter(pl.Series(is_missing)).unique(maintain_order=True)
        shown = ", ".join(repr(value) for value in missing[:5])
        if len(missing) > 5:
            shown += f" and {len(missing) - 5:,} more"
        raise DataError(f"'{name}' has names not among the {len(names):,} known: {shown}.")
    return codes.astype(np.intp)


def as_strings(values: Column, *, name: str, fractions: bool = False) -> pl.Series:
    """A column as strings, (n,): whole numbers are written out, missing values become "".

    ``fractions`` lets numbers with a fraction through as well.
    """
    series = _as_series(values, name)
    if series.dtype.is_float() and not fractions:
        series = _whole_if_possible(series)
    if series.dtype != pl.String:
        is_usable = (
            series.dtype.is_integer()
            or series.dtype in (pl.Categorical, pl.Enum, pl.Null)
            or (fractions and series.dtype.is_numeric())
        )
        if not is_usable:
            raise DataError(
                f"'{name}' must hold strings or whole numbers, got {series.dtype}. "
                "Convert its values with str() first."
            )
        series = series.cast(pl.String)
    return series.fill_null("") if series.null_count() else series


def _as_series(values: Column, name: str) -> pl.Series:
    is_numeric = isinstance(values, np.ndarray) and values.dtype.kind in "iufb"
    try:
        if is_numeric or isinstance(values, pl.Series):
            return pl.Series(values)
        return pl.Series(list(values))
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"'{name}' must be one sequence of values of one type, got {type(values).__name__}: "
            f"{error}. Convert its values with str() first."
        ) from None


def _whole_if_possible(series: pl.Series) -> pl.Series:
    """Floats as integers, as pandas has whole numbers of which some are missing."""
    present = series.fill_nan(None)
    whole = present.cast(pl.Int64, strict=False)
    if whole.null_count() == present.null_count() and (whole == present).all():
        return whole
    return series


# Rows of several columns


class Fault(NamedTuple):
    """Names that make their rows unusable."""

    role: str  # of the column
    is_bad: Mask  # of each name of the column


def _themselves(rows: Places) -> NDArray[Any]:
    return rows


@dataclass(frozen=True)
class CodedRows:
    """Rows of a file or of sequences, one coded column per role."""

    columns: Mapping[str, Coded]  # role ("user", "item", "tag", "count", "alias") -> its column
    source: str = "the columns"  # where the rows come from, for messages
    unit: str = "position"  # what `locate` counts in: "line", "row" or "position"
    locate: Callable[[Places], NDArray[Any]] = _themselves  # rows -> their places
    left_out: Mapping[str, list[int]] = field(default_factory=dict)  # reason -> places, so far

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Column],
        *,
        source: str = "the columns",
        unit: str = "position",
        locate: Callable[[Places], NDArray[Any]] = _themselves,
    ) -> "CodedRows":
        """Rows from sequences of equal length, by role, with the attributes named above."""
        strings = {}
        for role, values in columns.items():
            strings[role] = as_strings(values, name=role, fractions=role == "count")
        lengths = {role: len(values) for role, values in strings.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length:,} for '{role}'" for role, length in lengths.items())
            raise DataError(f"The columns must be of equal length, got {given}.")
        return cls(
            columns={role: encode(values) for role, values in strings.items()},
            source=source,
            unit=unit,
            locate=locate,
        )

    def values(self, role: str) -> pl.Series:
        """The column of a role as strings, (n,)."""
        column = self.columns[role]
        return column.names.gather(column.codes)

    def mapping(self, role: str, other: str) -> dict[str, str]:
        """The other role's value for each value of a role; there must be only one."""
        table: dict[str, str] = {}
        for key, value in zip(self.values(role), self.values(other), strict=True):
            if table.setdefault(key, value) != value:
                raise DataError(
                    f"{self.source} has two values of '{other}' for {key!r}: {table[key]!r} and "
                    f"{value!r}. Keep one of them."
                )
        return table

    def respelled(self, role: str, spell: Callable[[pl.Series], pl.Series]) -> "CodedRows":
        """The rows with a role's names respelt; names that become equal are merged."""
        column = self.columns[role]
        respelled = encode(spell(column.names))
        merged = Coded(respelled.codes[column.codes], respelled.names)
        return replace(self, columns={**self.columns, role: merged})

    def usable(self, faults: Mapping[str, Fault] | None = None) -> "CodedRows":
        """The rows without an empty name and without these faults, by their reason.

        One warning counts the rows left out by reason and says where the first are; if no row is
        left, that is an error.
        """
        all_faults = {**self._empty_names(), **(faults or {})}
        is_good = np.ones(len(self), dtype=np.bool_)
        left_out = dict(self.left_out)
        for reason, fault in all_faults.items():
            if not fault.is_bad.any():
                continue
            bad_rows = np.flatnonzero(fault.is_bad[self.columns[fault.role].codes] & is_good)
            if len(bad_rows):
                is_good[bad_rows] = False
                left_out[reason] = self.locate(bad_rows).tolist()
        if not left_out:
            return self

        n_good = int(is_good.sum())
        n_bad = sum(map(len, left_out.values()))
        account = ", ".join(self._account(reason, places) for reason, places in left_out.items())
        if not n_good:
            raise DataError(f"None of the {n_bad:,} rows of {self.source} can be used: {account}.")
        verb = "was" if n_bad == 1 else "were"
        warnings.warn(
            f"{n_bad:,} of {n_bad + n_good:,} rows of {self.source} {verb} left out: {account}.",
            DataWarning,
            stacklevel=4,  # the caller of read_triples, Triples.from_columns and the like
        )
        kept = {
            role: compact(Coded(column.codes[is_good], column.names))
            for role, column in self.columns.items()
        }
        return CodedRows(kept, self.source)

    def _empty_names(self) -> dict[str, Fault]:
        """The faults that every column may have."""
        faults = {}
        for role, column in self.columns.items():
            is_empty = (column.names.str.strip_chars() == "").to_numpy()
            faults[f"an empty {role}"] = Fault(role, is_empty)
        return faults

    def _account(self, reason: str, places: list[int]) -> str:
        """For example "2 with an empty tag (lines 5, 17)"."""
        shown = ", ".join(f"{place:,}" for place in places[:MAX_PLACES])
        if len(places) > MAX_PLACES:
            shown += f" and {len(places) - MAX_PLACES:,} more"
        unit = self.unit if len(places) == 1 else f"{self.unit}s"
        return f"{len(places):,} with {reason} ({unit} {shown})"
