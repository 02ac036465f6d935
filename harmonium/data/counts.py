"""(item, tag, count) as a sparse matrix, and the ternary labels made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.coding import Column, as_strings, encode, most_frequent
from harmonium.data.normalise import canonical_names
from harmonium.errors import DataError


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

        Counts of the same item and tag (two spellings of one tag, say) are added up.

        Parameters
        ----------
        items, tags : sequences of str or int, (n,)
        counts : sequence of non-negative int, (n,)
        all_items : the rows of the matrix, in this order, for items that may have no tag at all;
            by default the items that occur, in alphabetical order
        normalise : whether tags are brought to one spelling (see `normalise_tag`)
        aliases : spelling -> tag, merged after normalisation
        """
        item_names = as_strings(items, name="items")
        tag_code, spellings = encode(as_strings(tags, name="tags"))
        of_spelling, tag_names = encode(
            canonical_names(spellings, normalise=normalise, aliases=aliases)
        )
        if all_items is None:
            item_code, item_names = encode(item_names)
        else:
            item_code, item_names = _rows_in(item_names, as_strings(all_items, name="all_items"))
        shape = (len(item_names), len(tag_names))
        count = np.asarray(counts, dtype=np.int32)
        matrix = sp.coo_array((count, (item_code, of_spelling[tag_code])), shape=shape).tocsr()
        matrix.eliminate_zeros()
        return cls(item_names, tag_names, matrix)

    def top(self, n: int) -> TagCounts:
        """The n tags with the largest total count, largest first; equal totals alphabetically."""
        totals = np.asarray(self.matrix.sum(axis=0))
        columns = most_frequent(totals, self.tags, n)
        matrix = self.matrix[:, columns]
        matrix.sort_indices()
        return TagCounts(self.items, self.tags.gather(columns), matrix)

    def select(self, items: Column) -> TagCounts:
        """The rows of these items, by name or by index, in this order."""
        wanted = items if isinstance(items, pl.Series) else pl.Series(items)
        if wanted.dtype == pl.String:
            rows, _ = _rows_in(wanted, self.items)
        else:
            rows = wanted.to_numpy()
        return TagCounts(self.items.gather(rows), self.tags, self.matrix[rows])

    def labels(self, *, min_count: int) -> NDArray[np.float32]:
        """Ternary labels, (n_items, n_tags): 1 from min_count users on, 0 for none, NaN between."""
        if min_count < 1:
            raise DataError(f"'min_count' must be at least 1, got {min_count}.")
        labels = np.zeros(self.matrix.shape, dtype=np.float32)
        rows = np.repeat(np.arange(labels.shape[0]), np.diff(self.matrix.indptr))
        labels[rows, self.matrix.indices] = np.where(self.matrix.data >= min_count, 1, np.nan)
        return labels


def _rows_in(names: pl.Series, rows: pl.Series) -> tuple[NDArray[np.int32], pl.Series]:
    """The index of each name in rows, (n,), and rows itself."""
    index = names.replace_strict(
        rows, pl.Series(np.arange(len(rows), dtype=np.int32)), default=None, return_dtype=pl.Int32
    )
    if index.null_count():
        missing = names.filter(index.is_null()).unique(maintain_order=True)
        raise DataError(
            f"{len(missing)} of the items are not among the rows: {', '.join(missing[:5])}."
        )
    return index.to_numpy(), rows
