"""Pairs of a user and a clip: the smoother's inputs, without JAX.

The inputs are the others' tags u and the row numbers a. This module also reads triples in their
various forms, chooses the vocabulary, and stores the pairs in a model file.
"""

import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Arrays, Codes, Doubles, Floats, Mask, Places
from harmonium.data import Conditioning, Triples, read_triples
from harmonium.data.coded import as_strings, codes_in
from harmonium.data.conditioning import Pairs
from harmonium.errors import DataError

PARTS = ("user", "track", "clip")

_NAMES = ("users", "items", "tracks", "tags")


class Others(NamedTuple):
    """How the others' tags become u: (counts - n p) / (n + k), divided by each tag's spread.

    n others gave these counts, p are the tags' rates over all pairs, and k is the weight of a prior
    in users: the mean of a few is pulled towards the rates. Without other users, u = 0, which
    stands for the rates. With k = 0 it is the others' mean itself, less the rates.
    """

    rates: Floats  # (C,)
    spread: Floats  # (C,)
    prior_users: float

    def __call__(self, counts: sp.csr_array, n: NDArray[Any]) -> Floats:
        """u, (N, C), of counts (N, C) by n other users (N,)."""
        n = n.astype(np.float32)[:, None]
        weight = np.maximum(n + np.float32(self.prior_users), np.float32(1e-6))
        deviation = counts.toarray().astype(np.float32) - n * self.rates
        return deviation / (weight * self.spread)


class Conditions(NamedTuple):
    """What turns a user and a clip into the model's inputs."""

    names: tuple[str, ...]  # which of PARTS have rows in V, one part after another
    sizes: tuple[int, ...]  # how many each has
    others: Others | None  # None: the singly conditional model

    def __call__(self, data: Conditioning, user: Codes, item: Codes) -> tuple[Floats, Codes]:
        """u (N, C or 0) and a (N, S) of users for items, each (N,).

        u has the tags that an item's users gave in ``data``, except the user's own. -1 is an
        unknown user or item.
        """
        known = item >= 0
        at = np.maximum(item, 0)
        track = np.where(known, data.item_track[at], -1)
        a = self.rows(user=user, track=track, clip=item)
        if self.others is None:
            return np.zeros((len(a), 0), np.float32), a
        row = pair_rows(data, user, item)
        has_seen = row >= 0
        own_tags = _kept(data.y[np.maximum(row, 0)], has_seen)
        counts = _kept(data.counts[at], known) - own_tags
        n_others = np.where(known, data.n_users[at], 0) - has_seen
        return self.others(counts, n_others), a

    def rows(self, **codes: Codes) -> Codes:
        """a, (N, S), from the codes of every part, (N,); -1, an empty part, stays -1."""
        a = np.full((len(codes["clip"]), len(self.names)), -1, np.int32)
        first_row = 0
        for part, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            known = codes[name] >= 0
            a[known, part] = codes[name][known] + first_row
            first_row += size
        return a

    def column(self, values: dict[str, float]) -> Floats:
        """A value for each part as one for each row of V, (A, 1)."""
        chosen = np.array([values[name] for name in self.names], np.float32)
        return np.repeat(chosen, self.sizes)[:, None]


def conditions_of(
    data: Conditioning, auxiliary: tuple[str, ...], others: Others | None
) -> Conditions:
    """The conditions of a model of these pairs.

    If every track is one clip, tracks would just repeat the clips, so they are left out.
    """
    sizes = {"user": len(data.users), "track": len(data.tracks), "clip": len(data.items)}
    names = [name for name in PARTS if name in auxiliary]
    if "clip" in names and "track" in names and sizes["track"] == sizes["clip"]:
        names.remove("track")
    return Conditions(
        names=tuple(names),
        sizes=tuple(sizes[name] for name in names),
        others=others,
    )


def others_of(data: Conditioning, prior_users: float) -> Others:
    """The rates, and spreads that give u a norm of about 1, with an equal share for each tag."""
    rates = tag_rates(data).astype(np.float32)
    plain = Others(rates=rates, spread=np.ones_like(rates), prior_users=prior_users)
    u = plain(data.counts[data.item] - data.y, data.n_others)
    spread = np.sqrt(np.mean(np.square(u), axis=0))
    # a tag that hardly anybody gives must not become a large number when somebody does
    least = np.sqrt(rates * (1 - rates) / (1 + len(data)))
    return plain._replace(spread=np.maximum(spread, least) * np.float32(np.sqrt(len(rates))))


def tag_rates(data: Conditioning) -> Doubles:
    """The share of pairs that have each tag, (C,), counting one more with it and one without."""
    given = np.asarray(data.y.sum(axis=0, dtype=np.float64)).ravel()
    return (given + 1) / (len(data) + 2)


def pair_rows(data: Conditioning, user: Codes, item: Codes) -> Places:
    """The row of each pair of user and item, (N,); -1 if that user has not seen it."""
    n_users = max(len(data.users), 1)
    keys = data.item.astype(np.int64) * n_users + data.user
    wanted = item.astype(np.int64) * n_users + user
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (user >= 0) & (item >= 0), at, -1)


def without(data: Conditioning, rows: Places) -> Conditioning:
    """The data without these pairs; names and codes stay."""
    kept = np.delete(np.arange(len(data)), rows)
    return replace(data, user=data.user[kept], item=data.item[kept], y=data.y[kept])


def _kept(rows: sp.csr_array, keep: Mask) -> sp.csr_array:
    """The rows, set to 0 where not kept."""
    return sp.diags_array(keep.astype(np.float32)).tocsr() @ rows


def read_any_triples(triples: Any) -> Triples:
    """Triples as given, or from a file, a frame with these columns, or three sequences."""
    if isinstance(triples, Triples):
        read = triples
    elif isinstance(triples, str | os.PathLike):
        read = read_triples(triples)
    elif hasattr(triples, "columns"):
        read = _triples_of_frame(triples)
    elif isinstance(triples, tuple | list) and len(triples) == 3:
        users, items, tags = triples
        read = Triples.from_columns(users, items, tags)
    else:
        raise DataError(
            "'triples' must be Triples, a file of them, a frame with the columns user, item and "
            "tag, or three sequences (users, items, tags), such as tuple(zip(*rows)). "
            f"Got {type(triples).__name__} instead."
        )
    if not len(read):
        raise DataError("'triples' must hold at least one (user, item, tag). Got an empty table.")
    return read


def _triples_of_frame(frame: Any) -> Triples:
    columns = list(frame.columns)
    for role in ("user", "item", "tag"):
        if role not in columns:
            given = ", ".join(repr(str(name)) for name in columns[:10])
            raise DataError(
                f"A frame of triples must have the columns user, item and tag, but {role!r} "
                f"is not among its columns: {given}. Rename them."
            )
    return Triples.from_columns(frame["user"], frame["item"], frame["tag"])


def with_vocabulary(
    triples: Triples, n_tags: int | None, pairs: Pairs | None
) -> tuple[Triples, Pairs | None]:
    """The triples of the n most used tags, and who saw what.

    Somebody who gave an item only other tags has seen it and given none of these.
    """
    if n_tags is None or n_tags >= len(triples.tags):
        return triples, pairs
    if pairs is None:
        return triples.top_tags(n_tags), triples
    if isinstance(pairs, Triples):
        pairs = (pairs.users.gather(pairs.user), pairs.items.gather(pairs.item))
    more_users, more_items = (as_strings(column, name="pairs") for column in pairs)
    users = pl.concat([triples.users.gather(triples.user), more_users])
    items = pl.concat([triples.items.gather(triples.item), more_items])
    return triples.top_tags(n_tags), (users, items)


def name_codes(wanted: Any, names: pl.Series, *, name: str) -> Codes:
    """The code of each name, (n,), -1 for an unknown name; a single name is a list of one."""
    values = [wanted] if isinstance(wanted, str | int) else wanted
    return codes_in(as_strings(values, name=name), names)


def packed_pairs(data: Conditioning) -> Arrays:
    """Who gave which tag to what, as arrays; counts follow from these."""
    arrays: Arrays = {}
    for kind in _NAMES:
        encoded = [name.encode() for name in getattr(data, kind)]
        arrays[f"{kind}.text"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays[f"{kind}.ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    arrays["pairs.user"] = data.user
    arrays["pairs.item"] = data.item
    arrays["pairs.tags"] = data.y.indices.astype(np.int32)
    arrays["pairs.ends"] = data.y.indptr.astype(np.int64)
    arrays["items.track"] = data.item_track
    return arrays


def unpacked_pairs(arrays: Arrays) -> Conditioning:
    """The pairs that `packed_pairs` was given, if the parts fit together."""
    users = _unpacked_names(arrays, "users")
    items = _unpacked_names(arrays, "items")
    tracks = _unpacked_names(arrays, "tracks")
    tags = _unpacked_names(arrays, "tags")
    user = _codes(arrays, "pairs.user", users)
    item = _codes(arrays, "pairs.item", items)
    tag = _codes(arrays, "pairs.tags", tags)
    track = _codes(arrays, "items.track", tracks)
    ones = np.ones(len(tag), np.float32)
    y = sp.csr_array((ones, tag, arrays["pairs.ends"]), shape=(len(user), len(tags)))
    y.check_format()
    if len(user) != len(item) or len(track) != len(items):
        raise ValueError("its pairs of users and items differ in length")
    return Conditioning(
        user=user,
        item=item,
        y=y,
        item_track=track,
        users=users,
        items=items,
        tracks=tracks,
        tags=tags,
    )


def _unpacked_names(arrays: Arrays, kind: str) -> pl.Series:
    text = arrays[f"{kind}.text"].tobytes()
    ends = arrays[f"{kind}.ends"].tolist()
    names = []
    start = 0
    for end in ends:
        if end < start:
            raise ValueError(f"its names of {kind} are incomplete")
        names.append(text[start:end].decode())
        start = end
    if ends and start != len(text):
        raise ValueError(f"its names of {kind} are incomplete")
    return pl.Series(names, dtype=pl.String)


def _codes(arrays: Arrays, name: str, among: pl.Series) -> Codes:
    """Codes of names, checked against the names."""
    codes = arrays[name]
    if codes.dtype != np.int32 or codes.ndim != 1:
        raise TypeError(f"{name} must be a column of int32, not {codes.dtype}")
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(among):
        raise ValueError(f"{name} has codes outside 0..{len(among) - 1}")
    return codes
