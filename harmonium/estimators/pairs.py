"""Pairs of a user and a clip: the smoother's inputs and results, without JAX.

The inputs are the others' tags u and the row numbers a. This module also reads triples in their
various forms, chooses the vocabulary, and stores both in a model file.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Arrays, Codes, Doubles, Floats, Mask, Numbers, Places
from harmonium.data import Conditioning, Triples, normalise_tag, read_triples
from harmonium.data.tables import as_strings, codes_in
from harmonium.data.triples import Pairs
from harmonium.errors import DataError, DataWarning, did_you_mean
from harmonium.estimators.model_files import log_odds

PARTS = ("user", "track", "clip")
PRIOR_PAIRS = 30.0  # the model of related tags counts as this many pairs of user and clip

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
        known, at = item >= 0, np.maximum(item, 0)
        track = np.where(known, data.item_track[at], -1)
        a = self.rows(user=user, track=track, clip=item)
        if self.others is None:
            return np.zeros((len(a), 0), np.float32), a
        row = pair_rows(data, user, item)
        counts = _kept(data.counts[at], known) - _kept(data.y[np.maximum(row, 0)], row >= 0)
        n = np.where(known, data.n_users[at], 0) - (row >= 0)
        return self.others(counts, n), a

    def rows(self, **codes: Codes) -> Codes:
        """a, (N, S), from the codes of every part, (N,); -1, an empty part, stays -1."""
        starts = np.cumsum((0, *self.sizes))
        columns = [
            np.where(codes[name] >= 0, codes[name] + start, -1)
            for name, start in zip(self.names, starts, strict=False)
        ]
        none = np.zeros((len(codes["clip"]), 0), np.int32)
        return np.column_stack([none, *columns]).astype(np.int32)

    def column(self, values: dict[str, float]) -> Floats:
        """A value for each part as one for each row of V, (A, 1)."""
        chosen = np.array([values[name] for name in self.names], np.float32)
        return np.repeat(chosen, self.sizes)[:, None]


def conditions_of(
    data: Conditioning, auxiliary: tuple[str, ...], others: Others | None
) -> Conditions:
    """The conditions of a model of these pairs."""
    # If every track is one clip, tracks would just repeat the clips, so they are left out.
    tracks_are_clips = len(data.tracks) == len(data.items) and "clip" in auxiliary
    sizes = {"user": len(data.users), "track": len(data.tracks), "clip": len(data.items)}
    kept = [n for n in PARTS if n in auxiliary and not (n == "track" and tracks_are_clips)]
    return Conditions(tuple(kept), tuple(sizes[name] for name in kept), others)


def others_of(data: Conditioning, prior_users: float) -> Others:
    """The rates, and spreads that give u a norm of about 1, with an equal share for each tag."""
    rates = tag_rates(data).astype(np.float32)
    plain = Others(rates, np.ones_like(rates), prior_users)
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
        found = triples
    elif isinstance(triples, str | os.PathLike):
        found = read_triples(triples)
    elif hasattr(triples, "columns"):
        roles = ("user", "item", "tag")
        missing = [role for role in roles if role not in list(triples.columns)]
        if missing:
            given = ", ".join(repr(str(name)) for name in list(triples.columns)[:10])
            raise DataError(
                f"A frame of triples must have the columns user, item and tag, but {missing[0]!r} "
                f"is not among its columns: {given}. Rename them."
            )
        found = Triples.from_columns(*(triples[role] for role in roles))
    elif isinstance(triples, tuple | list) and len(triples) == 3:
        found = Triples.from_columns(*triples)
    else:
        raise DataError(
            "'triples' must be Triples, a file of them, a frame with the columns user, item and "
            "tag, or three sequences (users, items, tags), such as tuple(zip(*rows)). "
            f"Got {type(triples).__name__} instead."
        )
    if not len(found):
        raise DataError("'triples' must hold at least one (user, item, tag). Got an empty table.")
    return found


def with_vocabulary(
    triples: Triples, n_tags: int | None, pairs: Pairs | None
) -> tuple[Triples, Pairs | None]:
    """The triples of the n most used tags, and who saw what."""
    # Somebody who gave an item only other tags has seen it and given none of these.
    if n_tags is None or n_tags >= len(triples.tags):
        return triples, pairs
    if pairs is None:
        return triples.top_tags(n_tags), triples
    if isinstance(pairs, Triples):
        pairs = pairs.users.gather(pairs.user), pairs.items.gather(pairs.item)
    more = (as_strings(column, name="pairs") for column in pairs)
    own = triples.users.gather(triples.user), triples.items.gather(triples.item)
    users, items = (pl.concat(columns) for columns in zip(own, more, strict=True))
    return triples.top_tags(n_tags), (users, items)


def tag_positions(tags: Any, vocabulary: Sequence[str]) -> list[int]:
    """The place of each tag, as given or normalised, in the vocabulary."""
    # Unknown tags are left out with a warning; if all are unknown, that is an error.
    place = {name: i for i, name in enumerate(vocabulary)}
    found: dict[str, int | None] = {}
    for name in [tags] if isinstance(tags, str) else tags:
        if not isinstance(name, str):
            raise DataError(f"'tags' must hold names of tags. Got {name!r} instead.")
        found[name] = place.get(name, place.get(normalise_tag(name)))
    positions = list(dict.fromkeys(at for at in found.values() if at is not None))
    if missing := [name for name, at in found.items() if at is None]:
        hint = did_you_mean(missing[0], vocabulary, n=3)
        message = f"{missing[0]!r} is not among the {len(vocabulary):,} tags of the model.{hint}"
        if not positions:
            raise DataError(message)
        warnings.warn(f"{message} It is ignored.", DataWarning, stacklevel=3)
    return positions


def name_codes(wanted: Any, names: pl.Series, *, name: str) -> Codes:
    """The code of each name, (n,), -1 for an unknown name; a single name is a list of one."""
    values = [wanted] if isinstance(wanted, str | int) else wanted
    return codes_in(as_strings(values, name=name), names)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The probability of every tag for some clips."""

    items: pl.Series  # of str, (n_items,)
    tags: pl.Series  # of str, (n_tags,)
    values: Floats  # (n_items, n_tags)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Smoothed({len(self.items):,} items × {len(self.tags):,} tags)"

    def frame(self) -> pl.DataFrame:
        """One row per clip: the column item, and one column for each tag."""
        if "item" in self.tags:
            raise DataError(
                "A tag is called 'item', as is the first column of the table. Use long() instead, "
                "which has a row for each clip and tag."
            )
        table = pl.DataFrame(self.values, schema=self.tags.to_list())
        return table.insert_column(0, self.items.alias("item"))

    def long(self) -> pl.DataFrame:
        """One row per clip and tag, clip by clip: the columns item, tag and probability."""
        n_items, n_tags = self.values.shape
        return pl.DataFrame(
            {
                "item": self.items.gather(np.repeat(np.arange(n_items), n_tags)),
                "tag": self.tags.gather(np.tile(np.arange(n_tags), n_items)),
                "probability": self.values.reshape(-1),
            }
        )


def changes(data: Conditioning, P: Floats) -> pl.DataFrame:
    """The table of `TagSmoother.changes`, from smoothed probabilities (n_items, n_tags).

    Tags filled in come first, the most probable at the top; then those doubted, the least probable
    at the top.
    """
    counts = data.counts.toarray()
    given = counts > 0
    medians = np.array(
        [np.median(p[g]) if g.any() else np.inf for p, g in zip(P.T, given.T, strict=True)],
        np.float32,
    )

    def table(where: Mask, change: str, *, descending: bool) -> pl.DataFrame:
        item, tag = np.nonzero(where)
        columns = {
            "item": data.items.gather(item),
            "tag": data.tags.gather(tag),
            "change": pl.Series([change] * len(item), dtype=pl.String),
            "count": counts[item, tag].astype(np.int32),
            "users": data.n_users[item],
            "probability": P[item, tag],
        }
        found = pl.DataFrame(columns)
        return found.sort("probability", descending=descending, maintain_order=True)

    filled, doubted = ~given & (medians <= P), given & (tag_rates(data) / 2 > P)
    parts = table(filled, "filled in", descending=True), table(doubted, "doubted", descending=False)
    return pl.concat(parts)


def with_counts(
    model: Numbers, said: sp.csr_array, known: list[int], *, present: bool = True
) -> Doubles:
    """The probability of each tag given known ones, (C,): (count + k p) / (n + k).

    Of all pairs of user and clip, ``said`` (N, C), n have all known tags, or none of them if not
    ``present``; ``count`` of these have the tag. p is what the model says, and k `PRIOR_PAIRS`:
    counting is best if there is enough to count, and the model if there is not.
    """
    found = np.asarray(said[:, known].sum(axis=1)).ravel()
    rows = found == len(known) if present else found == 0
    count = np.asarray(said[rows].sum(axis=0), np.float64).ravel()
    return (count + PRIOR_PAIRS * model) / (np.count_nonzero(rows) + PRIOR_PAIRS)


def suggestions(
    tags: pl.Series, given: Numbers, usual: Numbers, known: list[int], n: int
) -> pl.DataFrame:
    """The n most probable tags besides the known ones, from probabilities (C,)."""
    order = np.argsort(-given, kind="stable")
    order = order[~np.isin(order, known)][:n]
    return pl.DataFrame(
        {"tag": tags.gather(order), "probability": given[order], "usual": usual[order]}
    )


def relations(tags: pl.Series, present: Numbers, absent: Numbers, tag: int, n: int) -> pl.DataFrame:
    """The n largest log-odds ratios above 0 and the n smallest below 0, with and without a tag."""
    present_odds, absent_odds = (log_odds(p.astype(np.float64), 1e-7) for p in (present, absent))
    change = present_odds - absent_odds
    change[tag] = 0
    order = np.argsort(-change, kind="stable")
    positive, negative = order[change[order] > 0][:n], order[change[order] < 0][-n:]
    chosen = np.concatenate([positive, negative])
    return pl.DataFrame(
        {
            "tag": tags.gather(chosen),
            "log_odds": change[chosen],
            "with": present[chosen],
            "without": absent[chosen],
        }
    )


def packed_pairs(data: Conditioning) -> Arrays:
    """Who gave which tag to what, as arrays; counts follow from these."""
    names: Arrays = {}
    for kind in _NAMES:
        encoded = [name.encode() for name in getattr(data, kind)]
        names[f"{kind}.text"] = np.frombuffer(b"".join(encoded), np.uint8)
        names[f"{kind}.ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return names | {
        "pairs.user": data.user,
        "pairs.item": data.item,
        "pairs.tags": data.y.indices.astype(np.int32),
        "pairs.ends": data.y.indptr.astype(np.int64),
        "items.track": data.item_track,
    }


def unpacked_pairs(arrays: Arrays) -> Conditioning:
    """The pairs that `packed_pairs` was given, if the parts fit together."""
    users, items, tracks, tags = (_unpacked_names(arrays, kind) for kind in _NAMES)
    user, item = _codes(arrays, "pairs.user", users), _codes(arrays, "pairs.item", items)
    tag, track = _codes(arrays, "pairs.tags", tags), _codes(arrays, "items.track", tracks)
    ones = np.ones(len(tag), np.float32)
    y = sp.csr_array((ones, tag, arrays["pairs.ends"]), shape=(len(user), len(tags)))
    y.check_format()
    if not len(user) == len(item) or len(track) != len(items):
        raise ValueError("its pairs of users and items differ in length")
    return Conditioning(user, item, y, track, users, items, tracks, tags)


def _unpacked_names(arrays: Arrays, kind: str) -> pl.Series:
    text, ends = arrays[f"{kind}.text"].tobytes(), arrays[f"{kind}.ends"].tolist()
    starts = [0, *ends[:-1]]
    if ends and (ends[-1] != len(text) or any(a > b for a, b in zip(starts, ends, strict=True))):
        raise ValueError(f"its names of {kind} are incomplete")
    found = [text[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return pl.Series(found, dtype=pl.String)


def _codes(arrays: Arrays, name: str, among: pl.Series) -> Codes:
    """Codes of names, checked against the names."""
    array = arrays[name]
    if array.dtype != np.int32 or array.ndim != 1:
        raise TypeError(f"{name} must be a column of int32, not {array.dtype}")
    if len(array) and not 0 <= array.min() <= array.max() < len(among):
        raise ValueError(f"{name} has codes outside 0..{len(among) - 1}")
    return array
