"""Names to integer codes and back: strings are handled once each, rows are integers."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series
Codes: TypeAlias = NDArray[np.int32]


def as_strings(values: Column, *, name: str) -> pl.Series:
    """A column as strings, (n,): integers are written out, missing values stay null."""
    try:
        series = values if isinstance(values, pl.Series) else pl.Series(values)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"'{name}' must be a sequence of strings or of whole numbers, got mixed types: "
            f"{error}. Convert them with str() first."
        ) from None
    if series.dtype == pl.String:
        return series
    if series.dtype.is_integer() or series.dtype in (pl.Categorical, pl.Enum, pl.Null):
        return series.cast(pl.String)
    raise DataError(
        f"'{name}' must be a sequence of strings or of whole numbers, got {series.dtype}. "
        "Convert it with str() first."
    )


def encode(values: pl.Series) -> tuple[Codes, pl.Series]:
    """Codes (n,) and the distinct names they stand for, in alphabetical order."""
    names = values.unique().sort()
    codes = values.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)
    return codes, names


def compact(codes: Codes, names: pl.Series) -> tuple[Codes, pl.Series]:
    """The same rows with the names that none of them uses left out, order kept."""
    used = np.bincount(codes, minlength=len(names)) > 0
    new_code = (np.cumsum(used) - 1).astype(np.int32)
    return new_code[codes], names.filter(pl.Series(used))


def most_frequent(totals: NDArray[np.integer[Any]], names: pl.Series, n: int) -> NDArray[np.intp]:
    """Indices of the n largest totals, largest first; equal totals in alphabetical order."""
    if n < 1:
        raise DataError(f"'n', the number of tags to keep, must be at least 1, got {n}.")
    alphabetical = names.rank("ordinal").to_numpy()
    return np.lexsort((alphabetical, -totals))[:n]
