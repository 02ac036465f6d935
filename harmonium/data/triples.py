"""Who gave which tag to what: the (user, item, tag) triples everything else is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.coded_rows import CodedRows
from harmonium.data.codes import Coded, Codes, compact, distinct_rows
from harmonium.data.name_columns import Column, most_frequent, positions
from harmonium.data.normalise import speller
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataError


@dataclass(frozen=True)
class Triples:
    """Distinct (user, item, tag) triples, as integer codes into the names.

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

        Names are in order of first appearance. Rows with an empty user, item or tag are left out
        with one DataWarning.

        Parameters
        ----------
        users, items, tags : sequences of str or int, (n,)
        normalise : whether tags are brought to one spelling, see `normalise_tag`
        aliases : spelling -> tag, applied after normalisation
        """
        rows = CodedRows.from_columns({"user": users, "item": items, "tag": tags})
        return triples_from_rows(rows, normalise=normalise, aliases=aliases)

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
        """The number of users of each item and tag, (n_items, n_tags)."""
        ones = np.ones(len(self), dtype=np.int32)
        shape = (len(self.items), len(self.tags))
        matrix = sp.coo_array((ones, (self.item, self.tag)), shape=shape).tocsr()
        return TagCounts(self.items, self.tags, matrix)

    def top_tags(self, n: int) -> Triples:
        """The triples of the n most used tags, most used first; equally used ones alphabetically.

        Users and items keep their names and codes, those with no triple left too.
        """
        used = np.bincount(self.tag, minlength=len(self.tags))
        kept = most_frequent(used, self.tags, n)
        return self._with_names("tag", kept)

    def select_items(self, items: Column) -> Triples:
        """The triples of these items, by name or by index.

        `items` become exactly these, in this order; users and tags keep their names and codes.
        """
        kept = positions(items, self.items, name="items")
        if len(np.unique(kept)) < len(kept):
            raise DataError("'items' must name each item once, got one of them twice.")
        return self._with_names("item", kept)

    def _with_names(self, role: Literal["item", "tag"], kept: NDArray[np.intp]) -> Triples:
        """The triples whose item or tag is one of those kept, which get the codes 0, 1, …."""
        names: pl.Series = getattr(self, f"{role}s")
        new_code = np.full(len(names), -1, dtype=np.int32)
        new_code[kept] = np.arange(len(kept))
        columns = {"user": self.user, "item": self.item, "tag": self.tag}
        columns[role] = new_code[columns[role]]
        rows = columns[role] >= 0
        changed: dict[str, Any] = {name: codes[rows] for name, codes in columns.items()}
        return replace(self, **changed | {f"{role}s": names.gather(kept)})

    def core(self, k: int) -> Triples:
        """The largest subset in which each user, item and tag occurs at least k times.

        Names that no triple of the core uses are dropped, so codes change.
        """
        if k < 1:
            raise DataError(f"'k' must be at least 1, got {k}.")
        columns = [self.user, self.item, self.tag]
        keep = np.zeros(1, dtype=np.bool_)
        while not keep.all():
            often = [(np.bincount(column) >= k)[column] for column in columns]
            keep = np.logical_and.reduce(often)
            columns = [column[keep] for column in columns]
        user, item, tag = (
            compact(Coded(column, names))
            for column, names in zip(columns, (self.users, self.items, self.tags), strict=True)
        )
        return Triples(
            user.codes, item.codes, tag.codes, users=user.names, items=item.names, tags=tag.names
        )


def triples_from_rows(
    rows: CodedRows, *, normalise: bool, aliases: Mapping[str, str] | None
) -> Triples:
    """Triples of rows with the roles user, item and tag."""
    rows = rows.respelt("tag", speller(normalise=normalise, aliases=aliases)).usable()
    (user, users), (item, items), (tag, tags) = (
        rows.columns[role] for role in ("user", "item", "tag")
    )
    item, tag, user = distinct_rows((item, len(items)), (tag, len(tags)), (user, len(users)))
    return Triples(user, item, tag, users, items, tags)
