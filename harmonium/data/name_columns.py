"""Columns of names: checked, looked up, ranked and trimmed."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series


def as_strings(values: Column, *, name: str, fractions: bool = False) -> pl.Series:
    """A column as strings, (n,): whole numbers are written out, missing values become "".

    `fractions` lets numbers with a fraction through as well.
    """
    series = as_series(values, name=name)
    if series.dtype != pl.String:
        known = series.dtype.is_integer() or series.dtype in (pl.Categorical, pl.Enum, pl.Null)
        if not (known or (fractions and series.dtype.is_numeric())):
            raise DataError(
                f"'{name}' must hold strings or whole numbers, got {series.dtype}. "
                "Convert its values with str() first."
            )
        series = series.cast(pl.String)
    return series.fill_null("") if series.null_count() else series


def as_series(values: Column, *, name: str) -> pl.Series:
    """A list, tuple, array or pandas Series as a polars Series, (n,)."""
    if isinstance(values, pl.Series):
        return values
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
            return pl.Series(values)
        return pl.Series(list(values))
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"'{name}' must be one sequence of values of one type, got {type(values).__name__}: "
            f"{error}. Convert its values with str() first."
        ) from None


def most_frequent(totals: NDArray[Any], names: pl.Series, n: int) -> NDArray[np.intp]:
    """Indices of the n largest totals, largest first; equal totals in alphabetical order."""
    if n < 1:
        raise DataError(f"'n', the number of tags to keep, must be at least 1, got {n}.")
    if n < len(totals):
        least = np.partition(totals, -n)[-n]
        candidates = np.flatnonzero(totals >= least)
    else:
        candidates = np.arange(len(totals))
    alphabetical = names.gather(candidates).rank("ordinal").to_numpy()
    return candidates[np.lexsort((alphabetical, -totals[candidates]))[:n]]


def positions(wanted: Column, names: pl.Series, *, name: str) -> NDArray[np.intp]:
    """Where each wanted name, or index, is in names, (n,)."""
    series = as_series(wanted, name=name)
    if series.dtype.is_integer():
        index = series.to_numpy().astype(np.intp)
        if len(index) and not (index.min() >= 0 and index.max() < len(names)):
            raise DataError(
                f"'{name}' must hold names, or indices from 0 to {len(names) - 1}, "
                f"got {index.min()} to {index.max()}."
            )
        return index
    strings = as_strings(series, name=name)
    codes = codes_in(strings, names)
    if (codes < 0).any():
        missing = strings.filter(pl.Series(codes < 0)).unique(maintain_order=True)
        shown = ", ".join(repr(value) for value in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        raise DataError(
            f"'{name}' has names that are not among the {len(names):,} known: {shown}{more}."
        )
    return codes.astype(np.intp)


def codes_in(wanted: pl.Series, names: pl.Series) -> NDArray[np.int32]:
    """The index of each wanted name in names, (n,), -1 for one that is not there."""
    codes = pl.Series(np.arange(len(names), dtype=np.int32))
    return wanted.replace_strict(names, codes, default=-1, return_dtype=pl.Int32).to_numpy()
