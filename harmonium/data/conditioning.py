"""What the smoother learns from: each user's own tags, and those of the other users."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Codes
from harmonium.data.coded import Coded, CodedRows, Column, as_strings, distinct_rows, encode
from harmonium.data.counts import how_often
from harmonium.data.triples import Triples
from harmonium.errors import DataError

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
        users, items = _merged_pairs(triples, pairs)
        item, user = distinct_rows(items.codes, users.codes)
        n_users = len(users.names)
        pair = item.astype(np.int64) * n_users + user  # ascending
        pair_of_triple = triples.item.astype(np.int64) * n_users + triples.user
        row_of_triple = np.searchsorted(pair, pair_of_triple)
        shape = (len(pair), len(triples.tags))
        item_track = _tracks(tracks, triples.items, items.names)
        return cls(
            user=user,
            item=item,
            y=how_often(row_of_triple, triples.tag, shape, np.float32),
            item_track=item_track.codes,
            users=users.names,
            items=items.names,
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
        ends = np.append(0, np.cumsum(self.n_users))
        ones = np.ones(len(self), np.float32)
        shape = (len(self.items), len(self))
        sum_over_pairs = sp.csr_array((ones, np.arange(len(self)), ends), shape=shape)
        counts = sum_over_pairs @ self.y
        counts.sort_indices()
        return counts

    @property
    def n_others(self) -> Codes:
        """How many other users saw the item of each row, (n_pairs,)."""
        return self.n_users[self.item] - 1


def _merged_pairs(triples: Triples, pairs: Pairs | None) -> tuple[Coded, Coded]:
    """The users and the items of all pairs; the names of the triples keep their codes."""
    users = Coded(triples.user, triples.users)
    items = Coded(triples.item, triples.items)
    if pairs is None:
        return users, items
    if isinstance(pairs, Triples):
        more_users: Column = pairs.users.gather(pairs.user)
        more_items: Column = pairs.items.gather(pairs.item)
    else:
        more_users, more_items = pairs
    columns = {"user": more_users, "item": more_items}
    rows = CodedRows.from_columns(columns, source="the pairs").usable()
    return _appended(users, rows.values("user")), _appended(items, rows.values("item"))


def _appended(column: Coded, values: pl.Series) -> Coded:
    """The column with more rows; new names come after the old ones."""
    codes, names = encode(pl.concat([column.names, values]))
    return Coded(np.concatenate([column.codes, codes[len(column.names) :]]), names)


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
        message = (
            f"'tracks' must have a track for each of the {len(items):,} items, got {len(tracks):,}."
        )
        n_further = len(all_items) - len(items)
        if n_further:
            message += f" Give a mapping, as 'pairs' has {n_further:,} further items."
        raise DataError(message)
    names = as_strings(tracks, name="tracks")
    if (names == "").any():
        raise DataError("'tracks' has an empty name. Give every item a track.")
    return encode(names)
