"""Names to integer codes: each distinct string is handled once, rows are integers."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.grouping import blocks, first_equal
from harmonium.errors import DataError

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series
Codes: TypeAlias = NDArray[np.int32]


def as_strings(values: Column, *, name: str) -> pl.Series:
    """A column as strings, (n,): whole numbers are written out, missing values become ""."""
    series = as_series(values, name=name)
    if series.dtype != pl.String:
        if not (series.dtype.is_integer() or series.dtype in (pl.Categorical, pl.Enum, pl.Null)):
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


def encode(values: pl.Series) -> tuple[Codes, pl.Series]:
    """Codes (n,) and the distinct names they stand for, in order of first appearance.

    Rows are grouped by a 64-bit hash of their string, and a second one checks the groups; the exact
    way, slower for many names, is taken if they ever disagree.
    """
    first = first_equal(values.hash(seed=0).to_numpy())
    is_first = first == np.arange(len(first), dtype=np.int32)
    codes = (np.cumsum(is_first, dtype=np.int32) - 1).take(first)
    if not _constant_per_code(values.hash(seed=1).to_numpy(), codes, is_first):
        return _encode_exactly(values)
    return codes, values.gather(np.flatnonzero(is_first))


def _constant_per_code(
    values: NDArray[np.uint64], codes: Codes, is_first: NDArray[np.bool_]
) -> bool:
    """Whether rows with the same code have the same value."""
    expected = values[is_first]
    return all((expected.take(codes[b]) == values[b]).all() for b in blocks(len(values)))


def encode_all(*columns: pl.Series) -> list[tuple[Codes, pl.Series]]:
    """encode of each column, in threads: most of the work is outside Python's lock."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(encode, columns))


def _encode_exactly(values: pl.Series) -> tuple[Codes, pl.Series]:
    names = values.unique(maintain_order=True)
    return values.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32), names


def compact(codes: Codes, names: pl.Series) -> tuple[Codes, pl.Series]:
    """The same rows with the names that none of them uses left out, order kept."""
    used = np.bincount(codes, minlength=len(names)) > 0
    if used.all():
        return codes, names
    new_code = (np.cumsum(used) - 1).astype(np.int32)
    return new_code[codes], names.filter(pl.Series(used))


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
    return _positions_of_names(as_strings(series, name=name), names, name=name)


def _positions_of_names(wanted: pl.Series, names: pl.Series, *, name: str) -> NDArray[np.intp]:
    index = wanted.replace_strict(
        names, pl.Series(np.arange(len(names))), default=None, return_dtype=pl.Int64
    )
    if index.null_count():
        missing = wanted.filter(index.is_null()).unique(maintain_order=True)
        shown = ", ".join(repr(value) for value in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        raise DataError(
            f"'{name}' has names that are not among the {len(names):,} known: {shown}{more}."
        )
    return index.to_numpy().astype(np.intp)
