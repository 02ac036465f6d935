"""Who gave which tag to what: triples, the counts and labels made from them, and files of both.

A file that cannot be used is a DataError. Single rows that cannot be used are left out, with one
DataWarning that counts them by reason and names the first lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Codes, Floats, Ids, Mask, Places
from harmonium.data.tables import (
    Coded,
    CodedRows,
    Column,
    PathLike,
    as_strings,
    compact,
    distinct_rows,
    encode,
    most_frequent,
    positions,
    read_rows,
)
from harmonium.data.tag_names import speller
from harmonium.errors import DataError, counted

_MAX_COUNT = np.iinfo(np.int32).max


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
        sizes = (counted(len(getattr(self, f"{one}s")), one) for one in ("user", "item", "tag"))
        return f"Triples({len(self):,}: {', '.join(sizes)})"

    def frame(self) -> pl.DataFrame:
        """The triples as a table of strings with the columns user, item and tag."""
        return pl.DataFrame(
            {
                "user": self.users.gather(self.user),
                "item": self.items.gather(self.item),
                "tag": self.tags.gather(self.tag),
            }
        )

    def counts(self) -> "TagCounts":
        """The number of users of each item and tag, (n_items, n_tags)."""
        shape = (len(self.items), len(self.tags))
        return TagCounts(self.items, self.tags, _ones(self.item, self.tag, shape, np.int32))

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
        names: pl.Series = getattr(self, f"{role}s")
        new_code = np.full(len(names), -1, dtype=np.int32)
        new_code[kept] = np.arange(len(kept))
        columns = {"user": self.user, "item": self.item, "tag": self.tag}
        columns[role] = new_code[columns[role]]
        rows = columns[role] >= 0
        changed: dict[str, Any] = {name: codes[rows] for name, codes in columns.items()}
        return replace(self, **changed | {f"{role}s": names.gather(kept)})

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
        names = (self.users, self.items, self.tags)
        user, item, tag = (compact(Coded(*column)) for column in zip(columns, names, strict=True))
        return Triples(user.codes, item.codes, tag.codes, user.names, item.names, tag.names)


def triples_from_rows(
    rows: CodedRows, *, normalise: bool, aliases: Mapping[str, str] | None
) -> Triples:
    """Triples from rows with the roles user, item and tag."""
    rows = rows.respelled("tag", speller(normalise=normalise, aliases=aliases)).usable()
    (user, users), (item, items), (tag, tags) = (
        rows.columns[role] for role in ("user", "item", "tag")
    )
    return sorted_triples(user, item, tag, users, items, tags)


def sorted_triples(
    user: Codes, item: Codes, tag: Codes, users: pl.Series, items: pl.Series, tags: pl.Series
) -> Triples:
    """Triples of codes into these names, each once, by item, then by tag, then by user."""
    item, tag, user = distinct_rows(item, tag, user)
    return Triples(user, item, tag, users, items, tags)


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
    _, no_count = _whole_numbers(rows.columns["count"].names)
    rows = rows.respelled("tag", speller(normalise=normalise, aliases=aliases))
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
    matrix = sp.coo_array((count, (item, tag)), shape=(len(items), len(tags))).tocsr()
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
    whole = (number >= 0) & (number <= _MAX_COUNT) & (np.floor(number) == number)
    return np.where(whole, number, 0).astype(np.int64), ~whole


Pairs: TypeAlias = Triples | tuple[Column, Column]  # triples, or users and items: who saw what


@dataclass(frozen=True)
class Conditioning:
    """One row per pair of a user and an item that the user saw.

    The tags y of a row are the user's own for the item. They are conditioned on the mean of the
    *other* users of that item, (counts of the item - y) / n_others, and on the user, the track and
    the item. The size is linear in the number of triples: the means are not stored.
    """

    user: Codes  # (n_pairs,) places in ``users``
    item: Codes  # (n_pairs,) places in ``items``, ascending; of one item, by user
    y: sp.csr_array  # of float32, (n_pairs, n_tags), 1 where the user gave the item the tag
    item_track: Codes  # (n_items,) the track of each item, a place in ``tracks``
    users: pl.Series  # of str, as the other names are
    items: pl.Series
    tracks: pl.Series
    tags: pl.Series

    @classmethod
    def from_triples(
        cls,
        triples: Triples,
        *,
        tracks: Mapping[str, str] | Column | None = None,
        pairs: Pairs | None = None,
    ) -> "Conditioning":
        """The smoother's matrices and indices, from triples.

        Parameters
        ----------
        triples : who gave which tag to which item (clip)
        tracks : the track of each item, as a mapping from item to track or as a sequence in the
            order of `triples.items`; by default each item is its own track
        pairs : who saw what, for users who saw an item but gave it none of the tags, which triples
            cannot show: a pair of sequences (users, items), or triples of more tags. The pairs of
            `triples` itself are always included.

        For the 100 most used tags, for example:
        ``Conditioning.from_triples(triples.top_tags(100), pairs=triples)``.
        """
        seen_by, seen = _merged_pairs(triples, pairs)
        item, user = distinct_rows(seen.codes, seen_by.codes)
        pair = item.astype(np.int64) * len(seen_by.names) + user  # ascending
        wanted = triples.item.astype(np.int64) * len(seen_by.names) + triples.user
        shape = (len(pair), len(triples.tags))
        item_track = _tracks(tracks, triples.items, seen.names)
        return cls(
            user=user,
            item=item,
            y=_ones(np.searchsorted(pair, wanted), triples.tag, shape, np.float32),
            item_track=item_track.codes,
            users=seen_by.names,
            items=seen.names,
            tracks=item_track.names,
            tags=triples.tags,
        )

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def n_users(self) -> Codes:
        """How many users saw each item, (n_items,)."""
        return np.bincount(self.item, minlength=len(self.items)).astype(np.int32)

    @cached_property
    def counts(self) -> sp.csr_array:
        """How many users gave each item each tag, (n_items, n_tags), of float32."""
        # pairs of one item are adjacent, so sums over them are a product with this matrix
        ends, ones = np.append(0, np.cumsum(self.n_users)), np.ones(len(self), np.float32)
        shape = (len(self.items), len(self))
        counts = sp.csr_array((ones, np.arange(len(self)), ends), shape=shape) @ self.y
        counts.sort_indices()
        return counts

    @property
    def n_others(self) -> Codes:
        """How many other users saw the item of each row, (n_pairs,)."""
        return self.n_users[self.item] - 1


def _merged_pairs(triples: Triples, pairs: Pairs | None) -> tuple[Coded, Coded]:
    """The users and the items of all pairs; the names of the triples keep their codes."""
    users, items = Coded(triples.user, triples.users), Coded(triples.item, triples.items)
    if pairs is None:
        return users, items
    if isinstance(pairs, Triples):
        pairs = pairs.users.gather(pairs.user), pairs.items.gather(pairs.item)
    columns = {"user": pairs[0], "item": pairs[1]}
    rows = CodedRows.from_columns(columns, source="the pairs").usable()
    return _appended(users, rows.values("user")), _appended(items, rows.values("item"))


def _appended(column: Coded, values: pl.Series) -> Coded:
    """The column with more rows; new names come after the old ones."""
    codes, names = encode(pl.concat([column.names, values]))
    return Coded(np.concatenate([column.codes, codes[len(column.names) :]]), names)


def _ones(row: Any, column: Any, shape: tuple[int, int], dtype: type) -> sp.csr_array:
    """How often each pair of row and column occurs."""
    return sp.coo_array((np.ones(len(row), dtype=dtype), (row, column)), shape=shape).tocsr()


def _tracks(
    tracks: Mapping[str, str] | Column | None, items: pl.Series, all_items: pl.Series
) -> Coded:
    """The track of each of all items, (n_items,)."""
    if tracks is None:
        return Coded(np.arange(len(all_items), dtype=np.int32), all_items)
    if isinstance(tracks, Mapping):
        missing = [item for item in all_items if item not in tracks]
        if missing:
            raise DataError(
                f"'tracks' must have a track for every item, but has none for {len(missing):,} of "
                f"them, such as {missing[0]!r}."
            )
        tracks = [tracks[item] for item in all_items]
    elif len(tracks) != len(all_items):
        further = len(all_items) - len(items)
        raise DataError(
            f"'tracks' must have a track for each of the {len(items):,} items, got {len(tracks):,}."
            + (f" Give a mapping, as 'pairs' has {further:,} further items." if further else "")
        )
    names = as_strings(tracks, name="tracks")
    if (names == "").any():
        raise DataError("'tracks' has an empty name. Give every item a track.")
    return encode(names)


def read_triples(
    path: PathLike,
    *,
    user: str | int = "user",
    item: str | int = "item",
    tag: str | int = "tag",
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    **layout: Any,
) -> Triples:
    """The (user, item, tag) triples of a file; repeated ones count once.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    user, item, tag : the columns, by name or by position from 0; by default also found under other
        common names, such as listener, clip and label
    normalise : whether tags are brought to one spelling, see `normalise_tag`
    aliases : spelling -> tag, or a file of them for `read_aliases`; applied after normalisation
    layout : `header`, `delimiter`, `quote` and `encoding` of a text file, as in `tables.read_rows`
    """
    rows = read_rows(path, {"user": user, "item": item, "tag": tag}, **layout)
    return triples_from_rows(rows, normalise=normalise, aliases=_alias_table(aliases))


def read_counts(
    path: PathLike,
    *,
    item: str | int = "item",
    tag: str | int = "tag",
    count: str | int = "count",
    all_items: Column | None = None,
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    **layout: Any,
) -> TagCounts:
    """The (item, tag, count) rows of a file; counts of the same item and tag are added up.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    item, tag, count : the columns, by name or by position from 0
    all_items : the rows of the matrix in this order, for items that may have no tag at all
    normalise, aliases, layout : as in `read_triples`
    """
    rows = read_rows(path, {"item": item, "tag": tag, "count": count}, **layout)
    table = _alias_table(aliases)
    return counts_from_rows(rows, all_items=all_items, normalise=normalise, aliases=table)


def read_aliases(
    path: PathLike, *, alias: str | int = "alias", tag: str | int = "tag", **layout: Any
) -> dict[str, str]:
    """An alias table, spelling -> tag, from a file with the columns alias and tag.

    `layout` is as in `read_triples`.
    """
    return read_rows(path, {"alias": alias, "tag": tag}, **layout).usable().mapping("alias", "tag")


def _alias_table(aliases: Mapping[str, str] | PathLike | None) -> Mapping[str, str] | None:
    return aliases if aliases is None or isinstance(aliases, Mapping) else read_aliases(aliases)
