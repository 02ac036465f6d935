"""How many users gave each tag to each item, and the labels made from that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Codes, Floats, Ids, Mask, Places
from harmonium.data.aliases import read_alias_table, speller
from harmonium.data.coded import CodedRows, Column, Fault, as_strings, most_frequent, positions
from harmonium.data.tables import read_rows
from harmonium.errors import DataError, counted
from harmonium.files import PathLike

_MAX_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False, repr=False)
class TagCounts:
    """How many users gave each tag to each item."""

    items: pl.Series  # of str, (n_items,)
    tags: pl.Series  # of str, (n_tags,)
    matrix: sp.csr_array  # of int32, (n_items, n_tags), in canonical format

    @classmethod
    def from_columns(
        cls,
        items: Column,
        tags: Column,
        counts: Column,
        *,
        all_items: Column | None = None,
        normalise: bool = True,
        aliases: Mapping[str, str] | None = None,
    ) -> "TagCounts":
        """Counts from three columns of equal length.

        Counts of the same item and tag (two spellings of one tag, say) are added up. Rows with an
        empty item or tag, or with a count that is not a whole number of at least 0, are left out
        with one DataWarning.

        Parameters
        ----------
        items, tags : sequences of str or int, (n,)
        counts : sequence of whole numbers, (n,)
        all_items : the rows of the matrix in this order, for items that may have no tag at all; by
            default the items that occur, in order of first appearance
        normalise : whether tags are brought to one spelling, see `normalise_tag`
        aliases : spelling -> tag, applied after normalisation
        """
        rows = CodedRows.from_columns({"item": items, "tag": tags, "count": counts})
        return counts_from_rows(rows, all_items=all_items, normalise=normalise, aliases=aliases)

    def __repr__(self) -> str:
        return f"TagCounts({counted(len(self.items), 'item')} × {counted(len(self.tags), 'tag')})"

    def top(self, n: int) -> "TagCounts":
        """The n tags with the largest total count, largest first; equal totals alphabetically."""
        totals = np.asarray(self.matrix.sum(axis=0, dtype=np.int64))
        columns = most_frequent(totals, self.tags, n)
        matrix = self.matrix[:, columns]
        matrix.sort_indices()
        return TagCounts(self.items, self.tags.gather(columns), matrix)

    def labels(self, *, min_count: int) -> Floats:
        """Ternary labels, (n_items, n_tags): 1 from min_count users on, 0 for none, NaN between."""
        return self._filled(np.where(self.frequent(min_count), np.float32(1), np.float32(np.nan)))

    def share_labels(self, *, min_share: float, listeners: NDArray[np.integer]) -> Floats:
        """Labels, (n_items, n_tags): 1 if at least this share of its listeners agree, else 0."""
        return self._filled(self.shared(min_share, listeners).astype(np.float32))

    def frequent(self, min_count: int) -> Mask:
        """Which stored entries of the matrix, (nnz,), have at least ``min_count`` users."""
        if min_count < 1:
            raise DataError(f"'min_count' must be at least 1, got {min_count}.")
        return self.matrix.data >= min_count

    def shared(self, min_share: float, listeners: NDArray[np.integer]) -> Mask:
        """Which stored entries of the matrix, (nnz,), are given by this share of the listeners.

        `listeners`, (n_items,), is how many people judged each item.
        """
        if not 0 < min_share <= 1:
            raise DataError(f"'min_share' must be above 0 and at most 1, got {min_share}.")
        return self.matrix.data / listeners[self._rows()] >= min_share

    def _filled(self, entries: Floats) -> Floats:
        """A dense matrix with these instead of the stored entries, and 0 elsewhere."""
        dense = np.zeros(self.matrix.shape, dtype=np.float32)
        dense[self._rows(), self.matrix.indices] = entries
        return dense

    def _rows(self) -> Places:
        """The row of each stored entry, (nnz,)."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.matrix.indptr))


def counts_from_rows(
    rows: CodedRows,
    *,
    all_items: Column | None,
    normalise: bool,
    aliases: Mapping[str, str] | None,
) -> TagCounts:
    """TagCounts from rows with the roles item, tag and count."""
    _, is_no_count = _whole_numbers(rows.columns["count"].names)
    rows = rows.respelled("tag", speller(normalise=normalise, aliases=aliases))
    rows = rows.usable(
        {"a count that is not a whole number from 0 on": Fault("count", is_no_count)}
    )
    item, items = rows.columns["item"]
    tag, tags = rows.columns["tag"]
    count_codes, count_texts = rows.columns["count"]
    numbers, _ = _whole_numbers(count_texts)
    if all_items is not None:
        known = as_strings(all_items, name="all_items")
        repeated = known.filter(known.is_duplicated())
        if len(repeated):
            raise DataError(f"'all_items' must name each item once, got {repeated[0]!r} again.")
        item = positions(items, known, name="items").astype(np.int32)[item]
        items = known
    shape = (len(items), len(tags))
    matrix = sp.coo_array((numbers[count_codes], (item, tag)), shape=shape).tocsr()
    matrix.eliminate_zeros()
    if matrix.nnz and matrix.data.max() > _MAX_COUNT:
        raise DataError(
            f"The counts of one item and tag add up to {matrix.data.max():,}, more than the "
            f"{_MAX_COUNT:,} that fit. Scale them down."
        )
    return TagCounts(items, tags, matrix.astype(np.int32))


def _whole_numbers(texts: pl.Series) -> tuple[Ids, Mask]:
    """The counts in the texts, (n,), and which texts are not counts, (n,)."""
    number = texts.str.strip_chars().cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    is_count = (number >= 0) & (number <= _MAX_COUNT) & (np.floor(number) == number)
    return np.where(is_count, number, 0).astype(np.int64), ~is_count


def read_counts(
    path: PathLike,
    *,
    item: str | int = "item",
    tag: str | int = "tag",
    count: str | int = "count",
    all_items: Column | None = None,
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> TagCounts:
    """The (item, tag, count) rows of a file; counts of the same item and tag are added up.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    item, tag, count : the columns, by name or by position from 0
    all_items : the rows of the matrix in this order, for items that may have no tag at all
    normalise, aliases : as in `read_triples`
    header, delimiter, quote, encoding : of a text file, as in `tables.read_rows`
    """
    rows = read_rows(
        path,
        {"item": item, "tag": tag, "count": count},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    table = read_alias_table(aliases)
    return counts_from_rows(rows, all_items=all_items, normalise=normalise, aliases=table)


def how_often(
    row: Codes | Places, column: Codes, shape: tuple[int, int], dtype: type
) -> sp.csr_array:
    """How often each pair of row and column occurs."""
    ones: NDArray[Any] = np.ones(len(row), dtype=dtype)
    return sp.coo_array((ones, (row, column)), shape=shape).tocsr()
