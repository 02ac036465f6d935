"""Distinct rows of several columns of codes."""

import numpy as np
from numpy.typing import NDArray

from harmonium.data.coding import Codes


def distinct_rows(*columns: tuple[Codes, int]) -> list[Codes]:
    """Each distinct row once, ascending, of columns given as (codes, number of codes).

    The codes of a row are packed into one integer, so that one sort of integers does it.
    """
    widths = [max(size - 1, 0).bit_length() for _, size in columns]
    if sum(widths) > 63:
        return _distinct_rows_by_lexsort([codes for codes, _ in columns])
    key = np.zeros(len(columns[0][0]), dtype=np.int64)
    for (codes, _), width in zip(columns, widths, strict=True):
        key <<= width
        key |= codes
    key.sort()
    key = key[_starts_of_runs(key)]
    unpacked = []
    for width in reversed(widths):
        codes = np.empty(len(key), dtype=np.int32)
        np.bitwise_and(key, (1 << width) - 1, out=codes, casting="unsafe")
        unpacked.append(codes)
        key >>= width
    return unpacked[::-1]


def _distinct_rows_by_lexsort(columns: list[Codes]) -> list[Codes]:
    order = np.lexsort(columns[::-1])
    ordered = [codes[order] for codes in columns]
    new = np.logical_or.reduce([_starts_of_runs(codes) for codes in ordered])
    return [codes[new] for codes in ordered]


def _starts_of_runs(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it, (n,)."""
    new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new
