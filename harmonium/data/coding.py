"""Names to integer codes: each distinct string is handled once, rows are integers.

Strings are compared by two 64-bit hashes: two names would have to agree in 128 bits to be taken for
one. Work goes in blocks that stay in the processor's cache, since at millions of rows fresh memory
costs more than the arithmetic.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.int32]
Keys: TypeAlias = NDArray[np.uint64]

_BLOCK = 1 << 16
_ODD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: its products spread keys over the slots


class Coded(NamedTuple):
    """A column: codes (n,) and the distinct names they stand for, in order of first appearance."""

    codes: Codes
    names: pl.Series


def encode(values: pl.Series) -> Coded:
    """The codes of a column of strings without nulls, (n,)."""
    return encode_batches([{"": values}], [""])[""]


def encode_batches(
    batches: Iterable[Mapping[str, pl.Series]], columns: Sequence[str]
) -> dict[str, Coded]:
    """The codes of each of the columns, which come in batches of rows.

    The columns of a batch go through threads: most of the work is outside Python's lock.
    """
    encoders = {column: _Encoder() for column in columns}
    with ThreadPoolExecutor(len(encoders)) as pool:
        for batch in batches:
            for done in [pool.submit(encoders[column].add, batch[column]) for column in columns]:
                done.result()
    return {column: encoder.finish() for column, encoder in encoders.items()}


class _Encoder:
    """Gives names codes in order of first appearance, a batch of rows after the other.

    A hash table with linear probing, at most half full, leads from slots to codes. Each step of a
    search is taken for a whole block of rows at once.
    """

    def __init__(self) -> None:
        self._n = 0  # codes given
        self._keys = np.empty((2, _BLOCK), dtype=np.uint64)  # of each code, with room for more
        self._table = np.full(2 * _BLOCK, -1, dtype=np.int32)  # slot -> code, -1 where vacant
        self._codes = [np.empty(0, dtype=np.int32)]
        self._names = [pl.Series(dtype=pl.String)]

    def add(self, values: pl.Series) -> None:
        """Encodes the next rows of the column."""
        for start in range(0, len(values), 4 * _BLOCK):
            part = values.slice(start, 4 * _BLOCK)
            keys = np.stack([part.hash(seed=0).to_numpy(), part.hash(seed=1).to_numpy()])
            first = [self._add_block(keys, at) for at in range(0, len(part), _BLOCK)]
            self._names.append(part.gather(np.concatenate(first)))

    def finish(self) -> Coded:
        """The codes and names of all rows added."""
        return Coded(np.concatenate(self._codes), pl.concat(self._names))

    def _add_block(self, keys: Keys, start: int) -> NDArray[np.intp]:
        """Encodes the rows of one block; gives those where a new name appears first."""
        keys = keys[:, start : start + _BLOCK]
        codes = self._find(keys)
        unknown = np.flatnonzero(codes < 0)
        first = first_equal(keys[:, unknown])
        is_first = first == np.arange(len(first))
        codes[unknown] = (self._n + np.cumsum(is_first) - 1)[first]
        self._codes.append(codes)
        self._insert(keys[:, unknown[is_first]])
        return start + unknown[is_first]

    def _find(self, keys: Keys) -> Codes:
        """The code of each key, (b,), -1 if it has none yet."""
        slots = self._slots(keys)
        codes = self._table.take(slots)
        rows = np.flatnonzero(self._differ(codes, keys))
        while len(rows):
            rows = rows[codes[rows] >= 0]
            slots[rows] = self._next(slots[rows])
            codes[rows] = self._table[slots[rows]]
            rows = rows[self._differ(codes[rows], keys[:, rows])]
        return codes

    def _differ(self, codes: Codes, keys: Keys) -> NDArray[np.bool_]:
        """Where a code is that of another key, (b,); at -1, no code, either answer will do."""
        differ = self._keys[0].take(codes) != keys[0]
        differ |= self._keys[1].take(codes) != keys[1]
        return differ

    def _insert(self, keys: Keys) -> None:
        """Gives new, distinct keys the next codes."""
        start, self._n = self._n, self._n + keys.shape[1]
        while self._n > self._keys.shape[1]:
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)], axis=1)
        self._keys[:, start : self._n] = keys
        if 2 * self._n > len(self._table):
            start = 0  # a larger table, for all keys anew
            self._table = np.full(4 * self._keys.shape[1], -1, dtype=np.int32)
        codes = np.arange(start, self._n, dtype=np.int32)
        slots = self._slots(self._keys[:, start : self._n])
        while len(codes):
            vacant = self._table[slots] < 0
            self._table[slots[vacant]] = codes[vacant]
            homeless = self._table[slots] != codes
            codes, slots = codes[homeless], self._next(slots[homeless])

    def _slots(self, keys: Keys) -> NDArray[np.int64]:
        """Where the search for each key begins, (b,)."""
        bits = len(self._table).bit_length() - 1
        return (keys[0] >> np.uint64(64 - bits)).view(np.int64)

    def _next(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return (slots + 1) & (len(self._table) - 1)


def first_equal(keys: Keys) -> NDArray[np.int32]:
    """For each of the keys, (2, n), the index of the first one equal to it, (n,).

    In a round every key left writes its index into its slot, the first of a slot last, so that it
    stays. Keys that find an equal there are done; the others try another slot in the next round.
    """
    first = np.empty(keys.shape[1], dtype=np.int32)
    rows = np.arange(keys.shape[1], dtype=np.int32)
    bits, multiplier = max(len(rows), 1).bit_length(), _ODD
    table = np.empty(1 << bits, dtype=np.int32)
    while len(rows):
        spread = keys[0, rows] * np.uint64(multiplier)
        slots = (spread >> np.uint64(64 - bits)).view(np.int64)
        table[slots[::-1]] = rows[::-1]
        owner = table[slots]
        first[rows] = owner
        rows = rows[(keys[:, owner] != keys[:, rows]).any(axis=0)]
        multiplier += 2
    return first
