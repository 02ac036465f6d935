"""What the tag smoother is conditioned on, from the triples it learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.coded_rows import CodedRows
from harmonium.data.codes import Coded, Codes, distinct_rows, encode
from harmonium.data.name_columns import Column, as_strings
from harmonium.data.triples import Triples
from harmonium.errors import DataError

Pairs: TypeAlias = Triples | tuple[Column, Column]


@dataclass(frozen=True)
class Conditioning:
    """One row per pair of a user and an item that the user saw.

    The tags y of a row are the user's own for the item. They are conditioned on the mean of the
    *other* users of that item, (counts of the item - y) / n_others, and on who the user is and
    which track and item it is about. The size is linear in the number of triples: the means are
    left to whoever needs them.

    Attributes
    ----------
    user, item, track : arrays of int32, (n_pairs,), codes into the names below
    y : csr_array of float32, (n_pairs, n_tags), 1 where the user gave the item the tag
    counts : csr_array of float32, (n_items, n_tags), how many users gave the item the tag
    n_users : array of int32, (n_items,), how many users saw the item
    item_track : array of int32, (n_items,), the track of each item
    users, items, tracks, tags : pl.Series of str, the names
    """

    user: Codes
    item: Codes
    track: Codes
    y: sp.csr_array
    counts: sp.csr_array
    n_users: NDArray[np.int32]
    item_track: Codes
    users: pl.Series
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
    ) -> Conditioning:
        """The smoother's matrices and indices, from triples.

        Parameters
        ----------
        triples : who gave which tag to which item (clip)
        tracks : the track of each item, as a mapping from item to track or as a sequence in the
            order of `triples.items`; by default each item is a track of its own
        pairs : who saw what, for users who saw an item but gave it none of the tags, which triples
            cannot tell: a pair of sequences (users, items), or triples of more tags. The pairs of
            `triples` itself are always there.

        For the 100 most used tags, for example:
        ``Conditioning.from_triples(triples.top_tags(100), pairs=triples)``.
        """
        seen_by, seen = _merged_pairs(triples, pairs)
        n_items, n_users = len(seen.names), len(seen_by.names)
        item, user = distinct_rows((seen.codes, n_items), (seen_by.codes, n_users))
        y = _tags_of_pairs(triples, user, item, n_users=n_users)
        ones = np.ones(len(triples), dtype=np.float32)
        shape = (n_items, len(triples.tags))
        counts = sp.coo_array((ones, (triples.item, triples.tag)), shape=shape).tocsr()
        item_track = _tracks(tracks, triples.items, seen.names)
        return cls(
            user=user,
            item=item,
            track=item_track.codes[item],
            y=y,
            counts=counts,
            n_users=np.bincount(item, minlength=n_items).astype(np.int32),
            item_track=item_track.codes,
            users=seen_by.names,
            items=seen.names,
            tracks=item_track.names,
            tags=triples.tags,
        )

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_others(self) -> NDArray[np.int32]:
        """How many other users saw the item of each row, (n_pairs,)."""
        return self.n_users[self.item] - 1


def _merged_pairs(triples: Triples, pairs: Pairs | None) -> tuple[Coded, Coded]:
    """The users and the items of all pairs; the names of the triples keep their codes."""
    if pairs is None:
        return Coded(triples.user, triples.users), Coded(triples.item, triples.items)
    if isinstance(pairs, Triples):
        users, items = pairs.users.gather(pairs.user), pairs.items.gather(pairs.item)
    else:
        rows = CodedRows.from_columns(
            {"user": pairs[0], "item": pairs[1]}, source="the pairs"
        ).usable()
        users, items = rows.values("user"), rows.values("item")
    return (
        _appended(Coded(triples.user, triples.users), users),
        _appended(Coded(triples.item, triples.items), items),
    )


def _appended(column: Coded, values: pl.Series) -> Coded:
    """The column with more rows; new names come after those there are."""
    codes, names = encode(pl.concat([column.names, values]))
    return Coded(np.concatenate([column.codes, codes[len(column.names) :]]), names)


def _tags_of_pairs(triples: Triples, user: Codes, item: Codes, *, n_users: int) -> sp.csr_array:
    """y, (n_pairs, n_tags), for pairs in ascending order of item and user."""
    pair = item.astype(np.int64) * n_users + user
    row = np.searchsorted(pair, triples.item.astype(np.int64) * n_users + triples.user)
    ones = np.ones(len(triples), dtype=np.float32)
    return sp.coo_array((ones, (row, triples.tag)), shape=(len(pair), len(triples.tags))).tocsr()


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
