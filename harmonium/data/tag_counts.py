"""How many users gave each tag to each item, and the labels that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.coded_rows import CodedRows
from harmonium.data.name_columns import Column, as_strings, most_frequent, positions
from harmonium.data.normalise import speller
from harmonium.errors import DataError

_LARGEST = np.iinfo(np.int32).max


@dataclass(frozen=True)
class TagCounts:
    """How many users gave each tag to each item.

    Attributes
    ----------
    items : pl.Series of str, (n_items,)
    tags : pl.Series of str, (n_tags,)
    matrix : scipy.sparse.csr_array of int32, (n_items, n_tags), in canonical format
    """

    items: pl.Series
    tags: pl.Series
    matrix: sp.csr_array

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
    ) -> TagCounts:
        """Counts from three columns of equal length.

        Counts of the same item and tag (two spellings of one tag, say) are added up. Rows with an
        empty item or tag, or with a count that is not a whole number from 0 on, are left out with
        one DataWarning.

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

    def top(self, n: int) -> TagCounts:
        """The n tags with the largest total count, largest first; equal totals alphabetically."""
        totals = np.asarray(self.matrix.sum(axis=0, dtype=np.int64))
        columns = most_frequent(totals, self.tags, n)
        matrix = self.matrix[:, columns]
        matrix.sort_indices()
        return TagCounts(self.items, self.tags.gather(columns), matrix)

    def labels(self, *, min_count: int) -> NDArray[np.float32]:
        """Ternary labels, (n_items, n_tags): 1 from min_count users on, 0 for none, NaN between."""
        return self._filled(np.where(self.frequent(min_count), np.float32(1), np.float32(np.nan)))

    def share_labels(
        self, *, min_share: float, listeners: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Labels, (n_items, n_tags): 1 from this share of an item's listeners on, 0 elsewhere."""
        return self._filled(self.shared(min_share, listeners).astype(np.float32))

    def frequent(self, min_count: int) -> NDArray[np.bool_]:
        """Which stored entries of the matrix, (nnz,), count at least so many users."""
        if min_count < 1:
            raise DataError(f"'min_count' must be at least 1, got {min_count}.")
        return self.matrix.data >= min_count

    def shared(self, min_share: float, listeners: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which stored entries of the matrix, (nnz,), are given by this share of the listeners.

        `listeners`, (n_items,), is how many people judged each item.
        """
        if not 0 < min_share <= 1:
            raise DataError(f"'min_share' must be above 0 and at most 1, got {min_share}.")
        return self.matrix.data / listeners[self._rows()] >= min_share

    def _filled(self, entries: NDArray[np.float32]) -> NDArray[np.float32]:
        """A dense matrix with these in place of the stored entries, and 0 elsewhere."""
        dense = np.zeros(self.matrix.shape, dtype=np.float32)
        dense[self._rows(), self.matrix.indices] = entries
        return dense

    def _rows(self) -> NDArray[np.intp]:
        """The row of each stored entry, (nnz,)."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.matrix.indptr))


def counts_from_rows(
    rows: CodedRows,
    *,
    all_items: Column | None,
    normalise: bool,
    aliases: Mapping[str, str] | None,
) -> TagCounts:
    """TagCounts of rows with the roles item, tag and count."""
    _, no_count = _whole_numbers(rows.columns["count"].names)
    rows = rows.respelt("tag", speller(normalise=normalise, aliases=aliases))
    rows = rows.usable({"a count that is not a whole number from 0 on": ("count", no_count)})
    (item, items), (tag, tags) = rows.columns["item"], rows.columns["tag"]
    count = _whole_numbers(rows.columns["count"].names)[0][rows.columns["count"].codes]
    if all_items is not None:
        known = as_strings(all_items, name="all_items")
        repeated = known.filter(known.is_duplicated())
        if len(repeated):
            raise DataError(f"'all_items' must name each item once, got {repeated[0]!r} again.")
        item = positions(items, known, name="items").astype(np.int32)[item]
        items = known
    return TagCounts(items, tags, _summed(count, item, tag, shape=(len(items), len(tags))))


def _whole_numbers(texts: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The counts that the texts say, (n,), and which of them are no counts, (n,)."""
    number = texts.str.strip_chars().cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    whole = (number >= 0) & (number <= _LARGEST) & (np.floor(number) == number)
    return np.where(whole, number, 0).astype(np.int64), ~whole


def _summed(
    count: NDArray[np.int64],
    item: NDArray[np.integer],
    tag: NDArray[np.integer],
    *,
    shape: tuple[int, int],
) -> sp.csr_array:
    """The (n_items, n_tags) matrix of counts, equal pairs added up, in int32."""
    matrix = sp.coo_array((count, (item, tag)), shape=shape).tocsr()
    matrix.eliminate_zeros()
    if matrix.nnz and matrix.data.max() > _LARGEST:
        raise DataError(
            f"The counts of one item and tag add up to {matrix.data.max():,}, more than the "
            f"{_LARGEST:,} that fit. Scale them down."
        )
    return matrix.astype(np.int32)
