"""From who tagged what to the smoother's inputs: the others' tags u and the row numbers a.

Also what people may pass as triples, which vocabulary is kept of them, and how a model file holds
them. Without JAX.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Arrays, Codes, Doubles, Floats, Mask
from harmonium.data import Conditioning, Triples, normalise_tag, read_triples
from harmonium.data.tables import as_strings, codes_in
from harmonium.data.triples import Pairs
from harmonium.errors import DataError, did_you_mean

PARTS = ("user", "track", "clip")
SEARCH = "search"
"""The selection of auxiliary variables that the held-out pairs choose."""

_ROLES = ("user", "item", "tag")
_NAMES = ("users", "items", "tracks", "tags")


class Others(NamedTuple):
    """How the others' tags become u: (counts - n p) / (n + k), each tag over its spread.

    n others gave these counts, p are the tags' rates over all pairs, and k is the weight of a prior
    in users: the mean of few is drawn to the rates. Nobody's tags are u = 0, which stands for the
    rates. With k = 0 it is the mean of the others itself, less the rates.
    """

    rates: Floats  # (C,)
    spread: Floats  # (C,)
    prior_users: float

    def __call__(self, counts: sp.csr_array, n: NDArray[Any]) -> Floats:
        """u, (N, C), of counts (N, C) by so many others (N,)."""
        n = n.astype(np.float32)[:, None]
        weight = np.maximum(n + np.float32(self.prior_users), np.float32(1e-6))
        deviation = counts.toarray().astype(np.float32) - n * self.rates
        return deviation / (weight * self.spread)


class Parts(NamedTuple):
    """Which rows of V are users, tracks and clips."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """A, the number of rows of V."""
        return sum(self.sizes)

    def __call__(self, **codes: Codes) -> Codes:
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


class Conditions(NamedTuple):
    """What turns a user and a clip into the model's inputs."""

    others: Others | None  # None: the singly conditional model
    parts: Parts

    def __call__(self, data: Conditioning, user: Codes, item: Codes) -> tuple[Floats, Codes]:
        """u (N, C or 0) and a (N, S) of users for items, each (N,).

        u has the tags of the users of an item in ``data`` except the user's own. A user or an item
        of -1 is one that is not known.
        """
        known, at = item >= 0, np.maximum(item, 0)
        track = np.where(known, data.item_track[at], -1)
        a = self.parts(user=user, track=track, clip=item)
        if self.others is None:
            return np.zeros((len(a), 0), np.float32), a
        row = pair_rows(data, user, item)
        counts = _kept(data.counts[at], known) - _kept(data.y[np.maximum(row, 0)], row >= 0)
        n = np.where(known, data.n_users[at], 0) - (row >= 0)
        return self.others(counts, n), a


def conditions_of(
    data: Conditioning, *, auxiliary: tuple[str, ...], others: bool, prior_users: float
) -> Conditions:
    """The conditions of a model of these pairs; where every track is one clip, tracks are left out.

    They would be the clips a second time.
    """
    names = tuple(name for name in PARTS if name in auxiliary)
    if len(data.tracks) == len(data.items) and "clip" in names:
        names = tuple(name for name in names if name != "track")
    return Conditions(others_of(data, prior_users) if others else None, parts_of(data, names))


def parts_of(data: Conditioning, names: tuple[str, ...]) -> Parts:
    """The parts of these names, as large as they are in the data."""
    sizes = {"user": len(data.users), "track": len(data.tracks), "clip": len(data.items)}
    return Parts(names, tuple(sizes[name] for name in names))


def others_of(data: Conditioning, prior_users: float) -> Others:
    """The rates, and spreads with which u has a norm of about 1, each tag an equal share of it."""
    rates = tag_rates(data).astype(np.float32)
    plain = Others(rates, np.ones_like(rates), prior_users)
    u = plain(data.counts[data.item] - data.y, data.n_others)
    spread = np.sqrt(np.mean(np.square(u), axis=0))
    # a tag that hardly anybody has must not become a large number where somebody has it
    least = np.sqrt(rates * (1 - rates) / (1 + len(data)))
    return plain._replace(spread=np.maximum(spread, least) * np.float32(np.sqrt(len(rates))))


def tag_rates(data: Conditioning) -> Doubles:
    """The share of pairs that have each tag, (C,), counting one more with it and one without."""
    given = np.asarray(data.y.sum(axis=0, dtype=np.float64)).ravel()
    return (given + 1) / (len(data) + 2)


def pair_rows(data: Conditioning, user: Codes, item: Codes) -> NDArray[np.intp]:
    """The row of each pair of a user and an item, (N,); -1 where that user has not seen it."""
    n_users = max(len(data.users), 1)
    keys = data.item.astype(np.int64) * n_users + data.user
    wanted = item.astype(np.int64) * n_users + user
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (user >= 0) & (item >= 0), at, -1)


def without(data: Conditioning, rows: NDArray[np.intp]) -> Conditioning:
    """The data without these pairs; names and codes stay."""
    kept = np.delete(np.arange(len(data)), rows)
    return with_pairs(data, data.user[kept], data.item[kept], data.y[kept])


def with_pairs(data: Conditioning, user: Codes, item: Codes, y: sp.csr_array) -> Conditioning:
    """The same names with other pairs, which are in ascending order of item and user."""
    n_users = np.bincount(item, minlength=len(data.items)).astype(np.int32)
    # pairs of one item are neighbours, so that sums over them are a product with this matrix
    ends = np.concatenate([[0], np.cumsum(n_users)])
    ones = np.ones(len(item), np.float32)
    members = sp.csr_array((ones, np.arange(len(item)), ends), shape=(len(data.items), len(item)))
    return replace(
        data,
        user=user,
        item=item,
        track=data.item_track[item],
        y=y,
        counts=(members @ y).tocsr(),
        n_users=n_users,
    )


def _kept(rows: sp.csr_array, keep: Mask) -> sp.csr_array:
    """The rows with those not kept made 0."""
    return sp.diags_array(keep.astype(np.float32)).tocsr() @ rows


# What people may pass. --------------------------------------------------------------------------


def read_any_triples(triples: Any) -> Triples:
    """Triples as they are, of a file, of a frame with these columns, or of three sequences."""
    if isinstance(triples, Triples):
        found = triples
    elif isinstance(triples, str | os.PathLike):
        found = read_triples(triples)
    elif hasattr(triples, "columns"):
        found = _of_frame(triples)
    elif isinstance(triples, tuple | list) and len(triples) == 3:
        found = Triples.from_columns(*triples)
    else:
        raise DataError(
            "'triples' must be Triples, a file of them, a frame with the columns user, item and "
            f"tag, or three sequences (users, items, tags). Got {type(triples).__name__} instead."
        )
    if not len(found):
        raise DataError("'triples' must hold at least one (user, item, tag). Got none.")
    return found


def _of_frame(frame: Any) -> Triples:
    missing = [role for role in _ROLES if role not in list(frame.columns)]
    if missing:
        given = ", ".join(repr(str(name)) for name in list(frame.columns)[:10])
        raise DataError(
            f"A frame of triples must have the columns user, item and tag, but {missing[0]!r} is "
            f"not among its columns: {given}. Rename them."
        )
    return Triples.from_columns(*(frame[role] for role in _ROLES))


def with_vocabulary(
    triples: Triples, n_tags: int | None, pairs: Pairs | None
) -> tuple[Triples, Pairs | None]:
    """The triples of the n most used tags, and who saw what.

    Whoever gave an item only other tags has seen it and given none of these.
    """
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


def tag_positions(tags: Any, vocabulary: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where each tag, as it is or in the usual spelling, is in the vocabulary; and those not."""
    place = {name: i for i, name in enumerate(vocabulary)}
    found: dict[int, None] = {}
    strange: list[str] = []
    for name in [tags] if isinstance(tags, str) else tags:
        if not isinstance(name, str):
            raise DataError(f"'tags' must hold names of tags. Got {name!r} instead.")
        at = place.get(name, place.get(normalise_tag(name)))
        if at is None:
            strange.append(name)
        else:
            found[at] = None
    return list(found), strange


def unknown_tag(name: str, vocabulary: Sequence[str]) -> str:
    """What to say about a tag that the model does not know."""
    hint = did_you_mean(name, vocabulary, n=3)
    return f"{name!r} is not among the {len(vocabulary):,} tags of the model.{hint}"


def name_codes(wanted: Any, names: pl.Series, *, name: str) -> Codes:
    """The code of each name, (n,), -1 for one that is not there; a single name is a list of one."""
    values = [wanted] if isinstance(wanted, str | int) else wanted
    return codes_in(as_strings(values, name=name), names)


def auxiliary_selections(auxiliary: Any, data: Conditioning) -> list[tuple[str, ...]]:
    """The selections of auxiliary variables to try: the one that is asked for, or all."""
    if isinstance(auxiliary, str) and auxiliary == SEARCH:
        parts = [part for part in PARTS if part != "track" or len(data.tracks) < len(data.items)]
        sizes = range(len(parts), -1, -1)
        return [chosen for size in sizes for chosen in combinations(parts, size)]
    names = (auxiliary,) if isinstance(auxiliary, str) else tuple(auxiliary)
    for name in names:
        if name not in PARTS:
            raise DataError(
                f"'auxiliary' must be {SEARCH!r} or a selection of {', '.join(map(repr, PARTS))}. "
                f"Got {name!r} among it."
            )
    return [names]


# Model files. -----------------------------------------------------------------------------------


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
    """What `packed_pairs` was given, if its parts belong together."""
    users, items, tracks, tags = (_unpacked_names(arrays, kind) for kind in _NAMES)
    user, item = _codes(arrays, "pairs.user", users), _codes(arrays, "pairs.item", items)
    tag, track = _codes(arrays, "pairs.tags", tags), _codes(arrays, "items.track", tracks)
    ones = np.ones(len(tag), np.float32)
    y = sp.csr_array((ones, tag, arrays["pairs.ends"]), shape=(len(user), len(tags)))
    if not len(user) == len(item) or len(track) != len(items):
        raise ValueError("its pairs of users and items differ in length")
    none = sp.csr_array((len(items), len(tags)), dtype=np.float32)
    nobody = np.zeros(len(items), np.int32)
    empty = Conditioning(user, item, item, y, none, nobody, track, users, items, tracks, tags)
    return with_pairs(empty, user, item, y)


def _unpacked_names(arrays: Arrays, kind: str) -> pl.Series:
    text, ends = arrays[f"{kind}.text"].tobytes(), arrays[f"{kind}.ends"].tolist()
    starts = [0, *ends[:-1]]
    if ends and (ends[-1] != len(text) or any(a > b for a, b in zip(starts, ends, strict=True))):
        raise ValueError(f"its names of {kind} are not whole")
    found = [text[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return pl.Series(found, dtype=pl.String)


def _codes(arrays: Arrays, name: str, among: pl.Series) -> Codes:
    """Codes of names, which must be among those there are."""
    array = arrays[name]
    if array.dtype != np.int32 or array.ndim != 1:
        raise TypeError(f"{name} must be a column of int32, not {array.dtype}")
    if len(array) and not 0 <= array.min() <= array.max() < len(among):
        raise ValueError(f"{name} has codes outside 0..{len(among) - 1}")
    return array
