"""Who gave which tag to what: the (user, item, tag) triples everything else is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.coding import Codes, Column, as_strings, compact, encode, most_frequent
from harmonium.data.counts import TagCounts
from harmonium.data.normalise import canonical_names
from harmonium.errors import DataError


@dataclass(frozen=True)
class Triples:
    """Distinct (user, item, tag) triples as codes into the names, sorted by item, tag, user.

    Attributes
    ----------
    user, item, tag : arrays of int32, (n,), codes into the names below
    users, items, tags : pl.Series of str, the names
    """

    user: Codes
    item: Codes
    tag: Codes
    users: pl.Series
    items: pl.Series
    tags: pl.Series

    @classmethod
    def from_columns(
        cls,
        users: Column,
        items: Column,
        tags: Column,
        *,
        normalise: bool = True,
        aliases: Mapping[str, str] | None = None,
    ) -> Triples:
        """Triples from three columns of equal length; repeated ones count once.

        Parameters
        ----------
        users, items, tags : sequences of str or int, (n,)
        normalise : whether tags are brought to one spelling (see `normalise_tag`)
        aliases : spelling -> tag, merged after normalisation
        """
        user, user_names = encode(as_strings(users, name="users"))
        item, item_names = encode(as_strings(items, name="items"))
        spelling, spellings = encode(as_strings(tags, name="tags"))
        of_spelling, tag_names = encode(
            canonical_names(spellings, normalise=normalise, aliases=aliases)
        )
        rows = _distinct(
            (item, len(item_names)),
            (of_spelling[spelling], len(tag_names)),
            (user, len(user_names)),
        )
        return cls(rows[2], rows[0], rows[1], user_names, item_names, tag_names)

    def __len__(self) -> int:
        return len(self.tag)

    def frame(self) -> pl.DataFrame:
        """The triples as a table of strings with the columns user, item and tag."""
        return pl.DataFrame(
            {
                "user": self.users.gather(self.user),
                "item": self.items.gather(self.item),
                "tag": self.tags.gather(self.tag),
            }
        )

    def counts(self) -> TagCounts:
        """The number of users of each (item, tag), (n_items, n_tags)."""
        ones = np.ones(len(self), dtype=np.int32)
        shape = (len(self.items), len(self.tags))
        return TagCounts(
            self.items, self.tags, sp.coo_array((ones, (self.item, self.tag)), shape=shape).tocsr()
        )

    def top_tags(self, n: int) -> Triples:
        """The triples of the n most used tags, most used first; users and items stay."""
        used = np.bincount(self.tag, minlength=len(self.tags))
        kept = most_frequent(used, self.tags, n)
        new_code = np.full(len(self.tags), -1, dtype=np.int32)
        new_code[kept] = np.arange(len(kept))
        code = new_code[self.tag]
        rows = np.flatnonzero(code >= 0)
        rows = rows[np.lexsort((self.user[rows], code[rows], self.item[rows]))]
        return replace(
            self,
            user=self.user[rows],
            item=self.item[rows],
            tag=code[rows],
            tags=self.tags.gather(kept),
        )

    def core(self, k: int) -> Triples:
        """The largest subset in which each user, item and tag occurs at least k times.

        Names that no triple of the core uses are dropped, so codes change.
        """
        if k < 1:
            raise DataError(f"'k' must be at least 1, got {k}.")
        columns = [self.user, self.item, self.tag]
        while True:
            often = [(np.bincount(column) >= k)[column] for column in columns]
            keep = np.logical_and.reduce(often)
            if keep.all():
                break
            columns = [column[keep] for column in columns]
        user, users = compact(columns[0], self.users)
        item, items = compact(columns[1], self.items)
        tag, tags = compact(columns[2], self.tags)
        return Triples(user, item, tag, users, items, tags)


def _distinct(*columns: tuple[Codes, int]) -> list[NDArray[np.int32]]:
    """Each distinct row once, ascending, of columns given as (codes, number of codes)."""
    key = np.zeros(len(columns[0][0]), dtype=np.uint64)
    for codes, size in columns:
        key = key * np.uint64(size) + codes.astype(np.uint64)
    key = np.unique(key)
    rows: list[NDArray[np.int32]] = []
    for _, size in reversed(columns):
        key, code = np.divmod(key, np.uint64(max(size, 1)))
        rows.append(code.astype(np.int32))
    return rows[::-1]
