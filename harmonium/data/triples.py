"""Triples: who gave which tag to what; and files of them.

A file that cannot be used is a DataError. Single rows that cannot be used are left out, with one
DataWarning that counts them by reason and names the first lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from harmonium.arrays import Codes, Places
from harmonium.data.aliases import read_alias_table, speller
from harmonium.data.coded import (
    Coded,
    CodedRows,
    Column,
    compact,
    distinct_rows,
    most_frequent,
    positions,
)
from harmonium.data.counts import TagCounts, how_often
from harmonium.data.tables import read_rows
from harmonium.errors import DataError, counted
from harmonium.files import PathLike


@dataclass(frozen=True, eq=False, repr=False)
class Triples:
    """Distinct (user, item, tag) triples, as integer codes into the names."""

    user: Codes  # (n,) places in ``users``
    item: Codes  # (n,) places in ``items``
    tag: Codes  # (n,) places in ``tags``
    users: pl.Series  # of str
    items: pl.Series  # of str
    tags: pl.Series  # of str

    @classmethod
    def from_columns(
        cls,
        users: Column,
        items: Column,
        tags: Column,
        *,
        normalise: bool = True,
        aliases: Mapping[str, str] | None = None,
    ) -> "Triples":
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

    def __repr__(self) -> str:
        users = counted(len(self.users), "user")
        items = counted(len(self.items), "item")
        tags = counted(len(self.tags), "tag")
        return f"Triples({len(self):,}: {users}, {items}, {tags})"

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
        shape = (len(self.items), len(self.tags))
        matrix = how_often(self.item, self.tag, shape, np.int32)
        return TagCounts(items=self.items, tags=self.tags, matrix=matrix)

    def top_tags(self, n: int) -> "Triples":
        """The triples of the n most used tags, most used first; equally used ones alphabetically.

        Users and items keep their names and codes, even without any triple left.
        """
        used = np.bincount(self.tag, minlength=len(self.tags))
        return self._with_names("tag", most_frequent(used, self.tags, n))

    def select_items(self, items: Column) -> "Triples":
        """The triples of these items.

        `items` become exactly these, in this order; users and tags keep their names and codes.
        """
        return self._with_names("item", positions(items, self.items, name="items"))

    def select_tags(self, tags: Column) -> "Triples":
        """The triples of these tags, as `select_items` does for items."""
        return self._with_names("tag", positions(tags, self.tags, name="tags"))

    def _with_names(self, role: Literal["item", "tag"], kept: Places) -> "Triples":
        """The triples whose item or tag is kept; these get the codes 0, 1, …."""
        if len(np.unique(kept)) < len(kept):
            raise DataError(f"'{role}s' must name each {role} once, got one twice.")
        names = self.items if role == "item" else self.tags
        codes = self.item if role == "item" else self.tag
        new_code = np.full(len(names), -1, dtype=np.int32)
        new_code[kept] = np.arange(len(kept))
        new_codes = new_code[codes]
        is_kept = new_codes >= 0
        triples = replace(
            self, user=self.user[is_kept], item=self.item[is_kept], tag=self.tag[is_kept]
        )
        if role == "item":
            return replace(triples, item=new_codes[is_kept], items=names.gather(kept))
        return replace(triples, tag=new_codes[is_kept], tags=names.gather(kept))

    def core(self, k: int) -> "Triples":
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
        user = compact(Coded(columns[0], self.users))
        item = compact(Coded(columns[1], self.items))
        tag = compact(Coded(columns[2], self.tags))
        return Triples(
            user=user.codes,
            item=item.codes,
            tag=tag.codes,
            users=user.names,
            items=item.names,
            tags=tag.names,
        )


def triples_from_rows(
    rows: CodedRows, *, normalise: bool, aliases: Mapping[str, str] | None
) -> Triples:
    """Triples from rows with the roles user, item and tag."""
    rows = rows.respelled("tag", speller(normalise=normalise, aliases=aliases)).usable()
    return sorted_triples(rows.columns["user"], rows.columns["item"], rows.columns["tag"])


def sorted_triples(users: Coded, items: Coded, tags: Coded) -> Triples:
    """The rows of three columns as triples, each once, by item, then by tag, then by user."""
    item, tag, user = distinct_rows(items.codes, tags.codes, users.codes)
    return Triples(
        user=user, item=item, tag=tag, users=users.names, items=items.names, tags=tags.names
    )


def read_triples(
    path: PathLike,
    *,
    user: str | int = "user",
    item: str | int = "item",
    tag: str | int = "tag",
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> Triples:
    """The (user, item, tag) triples of a file; repeated ones count once.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    user, item, tag : the columns, by name or by position from 0; by default also found under other
        common names, such as listener, clip and label
    normalise : whether tags are brought to one spelling, see `normalise_tag`
    aliases : spelling -> tag, or a file of them for `read_aliases`; applied after normalisation
    header, delimiter, quote, encoding : of a text file, as in `tables.read_rows`
    """
    rows = read_rows(
        path,
        {"user": user, "item": item, "tag": tag},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    return triples_from_rows(rows, normalise=normalise, aliases=read_alias_table(aliases))
