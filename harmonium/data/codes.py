"""Names to integer codes: each distinct string is handled once, rows are integers.

Strings are told apart by a 64-bit hash, and a checksum of a second hash shows whether two of them
shared the first one; if so, all is done again with other hashes. The work is done in blocks that
stay in the processor's cache: at millions of rows fresh memory costs more than the arithmetic.
docs/design.md says why this is not left to polars.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.int32]
Keys: TypeAlias = NDArray[np.uint64]
Batch: TypeAlias = Mapping[str, pl.Series]

_BLOCK = 1 << 16
_ODD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: its products spread keys over the slots


class Coded(NamedTuple):
    """A column: codes (n,) and the distinct names they stand for, in order of first appearance."""

    codes: Codes
    names: pl.Series


def encode(values: pl.Series) -> Coded:
    """The codes of a column of strings without nulls, (n,)."""
    return encode_batches(lambda: [{"": values}], [""])[""]


def encode_batches(
    batches: Callable[[], Iterable[Batch]], columns: Sequence[str]
) -> dict[str, Coded]:
    """The codes of each of the columns, which come in batches of rows.

    The columns go through threads, and so does the making of the next batch: most of the work is
    outside Python's lock.
    """
    with ThreadPoolExecutor(len(columns) + 1) as pool:
        for seed in count():
            encoders = {column: _Encoder(seed) for column in columns}
            for batch in _prepared_ahead(batches(), pool):
                for done in [pool.submit(encoders[name].add, batch[name]) for name in columns]:
                    done.result()
            coded = {column: encoder.finish() for column, encoder in encoders.items()}
            if None not in coded.values():
                break
    return {column: found for column, found in coded.items() if found is not None}


def _prepared_ahead(batches: Iterable[Batch], pool: Executor) -> Iterator[Batch]:
    """The batches, each made in the pool while the one before it is used."""
    iterator = iter(batches)
    upcoming = pool.submit(next, iterator, None)
    while (batch := upcoming.result()) is not None:
        upcoming = pool.submit(next, iterator, None)
        yield batch


class _Encoder:
    """Gives names codes in order of first appearance, one batch of rows after another.

    A hash table with linear probing, at most a quarter full, leads from slots to codes. Each step
    of a search is taken for a whole block of rows at once.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._checksum = 0  # of all rows added
        self._n = 0  # codes given
        self._keys = np.empty(_BLOCK, dtype=np.uint64)  # of each code, with room for more
        self._table = np.full(4 * _BLOCK, -1, dtype=np.int32)  # slot -> code, -1 where vacant
        self._codes = [np.empty(0, dtype=np.int32)]
        self._names = [pl.Series(dtype=pl.String)]

    def add(self, values: pl.Series) -> None:
        """Encodes the next rows of the column."""
        for start in range(0, len(values), 8 * _BLOCK):
            part = values.slice(start, 8 * _BLOCK)
            keys = _hashes(part, 2 * self._seed)
            first = [self._add_block(keys, at) for at in range(0, len(part), _BLOCK)]
            self._names.append(part.gather(np.concatenate(first)))
            self._checksum += int(_hashes(part, 2 * self._seed + 1).sum(dtype=np.uint64))

    def finish(self) -> Coded | None:
        """The codes and names of all rows added; None if two names shared a hash."""
        codes, names = np.concatenate(self._codes), pl.concat(self._names)
        occurrences = np.bincount(codes, minlength=self._n).astype(np.uint64)
        checksum = (occurrences * _hashes(names, 2 * self._seed + 1)).sum(dtype=np.uint64)
        return Coded(codes, names) if int(checksum) == self._checksum % 2**64 else None

    def _add_block(self, keys: Keys, start: int) -> NDArray[np.intp]:
        """Encodes the rows of one block; gives those where a new name appears first."""
        keys = keys[start : start + _BLOCK]
        codes = self._find(keys)
        unknown = np.flatnonzero(codes < 0)
        new_keys = keys.take(unknown)
        first = first_equal(new_keys)
        is_first = first == np.arange(len(first), dtype=np.int32)
        codes[unknown] = (self._n - 1 + np.cumsum(is_first, dtype=np.int32)).take(first)
        self._codes.append(codes)
        self._insert(new_keys[is_first])
        return start + unknown[is_first]

    def _find(self, keys: Keys) -> Codes:
        """The code of each key, (b,), -1 if it has none yet."""
        slots = self._slots(keys)
        codes = self._table.take(slots)
        rows = self._others(codes, keys)
        keys, slots = keys.take(rows), slots.take(rows)
        while len(rows):
            slots = self._next(slots)
            found = self._table.take(slots)
            codes[rows] = found
            others = self._others(found, keys)
            rows, keys, slots = rows.take(others), keys.take(others), slots.take(others)
        return codes

    def _others(self, found: Codes, keys: Keys) -> NDArray[np.intp]:
        """The rows that found the code of another key."""
        # At -1, a vacant slot, some key or other is compared; the second step drops those rows.
        rows = np.flatnonzero(self._keys.take(found) != keys)
        return rows[found.take(rows) >= 0]

    def _insert(self, keys: Keys) -> None:
        """Gives new, distinct keys the next codes."""
        start, self._n = self._n, self._n + len(keys)
        if self._n > len(self._keys):
            self._keys = np.concatenate([self._keys, np.empty(self._n, dtype=np.uint64)])
        self._keys[start : self._n] = keys
        if 4 * self._n > len(self._table):
            start = 0  # all keys move to the larger table
            self._table = np.full(4 << self._n.bit_length(), -1, dtype=np.int32)
        codes = np.arange(start, self._n, dtype=np.int32)
        slots = self._slots(self._keys[start : self._n])
        while len(codes):
            vacant = np.flatnonzero(self._table.take(slots) < 0)
            self._table[slots.take(vacant)] = codes.take(vacant)
            homeless = np.flatnonzero(self._table.take(slots) != codes)
            codes, slots = codes.take(homeless), self._next(slots.take(homeless))

    def _slots(self, keys: Keys) -> NDArray[np.int64]:
        """Where the search for each key begins, (b,)."""
        bits = len(self._table).bit_length() - 1
        return (keys >> np.uint64(64 - bits)).view(np.int64)

    def _next(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return (slots + 1) & (len(self._table) - 1)


def first_equal(keys: Keys) -> NDArray[np.int32]:
    """For each of n keys the index of the first one equal to it, (n,).

    In a round every key left writes its index into its slot, the first of a slot last, so that it
    stays. Keys that find an equal there are done; the others try another slot in the next round.
    """
    first = np.empty(len(keys), dtype=np.int32)
    rows, left = np.arange(len(keys), dtype=np.int32), keys
    bits, multiplier = len(keys).bit_length() or 1, _ODD
    table = np.empty(1 << bits, dtype=np.int32)
    while len(rows):
        slots = ((left * np.uint64(multiplier)) >> np.uint64(64 - bits)).view(np.int64)
        table[slots[::-1]] = rows[::-1]
        owner = table.take(slots)
        first[rows] = owner
        lost = np.flatnonzero(keys.take(owner) != left)
        rows, left = rows.take(lost), left.take(lost)
        multiplier += 2
    return first


def _hashes(values: pl.Series, seed: int) -> Keys:
    return values.hash(seed=seed).to_numpy()


def compact(column: Coded) -> Coded:
    """The same rows with the names that none of them uses left out, order kept."""
    used = np.bincount(column.codes, minlength=len(column.names)) > 0
    if used.all():
        return column
    new_code = (np.cumsum(used) - 1).astype(np.int32)
    return Coded(new_code[column.codes], column.names.filter(pl.Series(used)))


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
