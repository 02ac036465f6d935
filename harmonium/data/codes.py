"""Columns of names as integer codes: each distinct name is handled once, rows are integers.

Names are told apart by a 64-bit hash, and a checksum of a second hash shows whether two of them
shared the first one; if so, all is done again with other hashes. The work is done in blocks that
stay in the processor's cache: at millions of rows fresh memory costs more than the arithmetic.
docs/design.md says why this is not left to polars.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Codes, Mask
from harmonium.errors import DataError, DataWarning

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series
Keys: TypeAlias = NDArray[np.uint64]
Batch: TypeAlias = Mapping[str, pl.Series]

MAX_PLACES = 5
"""A warning names the places of this many rows for each reason."""
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


def first_equal(keys: Keys) -> Codes:
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
        frame = pl.DataFrame([pl.Series(str(i), codes) for i, (codes, _) in enumerate(columns)])
        return [column.to_numpy() for column in frame.unique().sort(pl.all())]
    key = np.zeros(len(columns[0][0]), dtype=np.int64)
    for (codes, _), width in zip(columns, widths, strict=True):
        key <<= width
        key |= codes
    key.sort()
    key = key[np.diff(key, prepend=-1) != 0]
    unpacked = []
    for width in reversed(widths):
        codes = np.empty(len(key), dtype=np.int32)
        np.bitwise_and(key, (1 << width) - 1, out=codes, casting="unsafe")
        unpacked.append(codes)
        key >>= width
    return unpacked[::-1]


@dataclass(frozen=True)
class CodedRows:
    """Rows of a file or of sequences, one coded column per role."""

    columns: Mapping[str, Coded]  # role ("user", "item", "tag", "count", "alias") -> its column
    source: str = "the columns"  # where the rows come from, for messages
    unit: str = "position"  # what `locate` counts in: "line", "row" or "position"
    locate: Callable[[NDArray[np.intp]], NDArray[Any]] = lambda rows: rows  # rows -> their places
    left_out: Mapping[str, list[int]] = field(default_factory=dict)  # reason -> places, so far

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column], **attributes: Any) -> "CodedRows":
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

    def respelled(self, role: str, spell: Callable[[pl.Series], pl.Series]) -> "CodedRows":
        """The rows with other spellings of a role's names; names that become equal are merged."""
        codes, names = self.columns[role]
        new_code, names = encode(spell(names))
        return replace(self, columns={**self.columns, role: Coded(new_code[codes], names)})

    def usable(self, faults: Mapping[str, tuple[str, Mask]] | None = None) -> "CodedRows":
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
        return CodedRows(kept, self.source)

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
        shown = ", ".join(f"{number:,}" for number in where[:MAX_PLACES])
        more = f" and {len(where) - MAX_PLACES:,} more" if len(where) > MAX_PLACES else ""
        plural = "s" if len(where) > 1 else ""
        return f"{len(where):,} with {reason} ({self.unit}{plural} {shown}{more})"


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
    smallest = np.partition(totals, -n)[-n] if n < len(totals) else 0
    candidates = np.flatnonzero(totals >= smallest)
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
        raise DataError(f"'{name}' has names not among the {len(names):,} known: {shown}{more}.")
    return codes.astype(np.intp)


def codes_in(wanted: pl.Series, names: pl.Series) -> NDArray[np.int32]:
    """The index of each wanted name in names, (n,), -1 for one that is not there."""
    codes = pl.Series(np.arange(len(names), dtype=np.int32))
    return wanted.replace_strict(names, codes, default=-1, return_dtype=pl.Int32).to_numpy()
