"""Equal values among millions, found with arrays.

Work goes in blocks that stay in the processor's cache, since fresh memory costs more than the work.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16
_SLOTS = 20  # log2 of the first table's size, 4 MiB
_MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads keys over the slots


def first_equal(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """For each key the index of the first key equal to it, (n,).

    Keys go into a hash table a round at a time. A slot belongs to the first key that comes to it;
    keys that find another key there wait for the next round, with a larger table and other slots.
    """
    first = np.empty(len(keys), dtype=np.int32)
    rows = np.arange(len(keys), dtype=np.int32)
    multiplier, bits = _MULTIPLIER, _SLOTS
    while len(rows):
        bits = min(bits, len(rows).bit_length())
        rows = _one_round(keys, rows, first, multiplier=multiplier, bits=bits)
        multiplier, bits = multiplier + 2, bits + 2
    return first


def _one_round(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    first: NDArray[np.int32],
    *,
    multiplier: int,
    bits: int,
) -> NDArray[np.int32]:
    """Fills in `first` for the rows whose key owns its slot, and gives back the other rows."""
    table = np.full(1 << bits, -1, dtype=np.int32)
    lost = []
    for block in blocks(len(rows)):
        row = rows[block]
        key = keys.take(row)
        slot = ((key * np.uint64(multiplier)) >> np.uint64(64 - bits)).view(np.int64)
        owner = table.take(slot)
        empty = np.flatnonzero(owner < 0)
        if len(empty):
            # Of equal indices the last assignment stays, so the first row must come last.
            table[slot.take(empty)[::-1]] = row.take(empty)[::-1]
            owner = table.take(slot)
        first[row] = owner
        lost.append(row.take(np.flatnonzero(keys.take(owner) != key)))
    return np.concatenate(lost)


def distinct_rows(*columns: tuple[NDArray[np.int32], int]) -> list[NDArray[np.int32]]:
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


def _distinct_rows_by_lexsort(columns: list[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
    order = np.lexsort(columns[::-1])
    ordered = [codes[order] for codes in columns]
    new = np.logical_or.reduce([_starts_of_runs(codes) for codes in ordered])
    return [codes[new] for codes in ordered]


def _starts_of_runs(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it, (n,)."""
    new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def blocks(n: int) -> Iterator[slice]:
    """Consecutive slices over n rows."""
    return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))
