"""From who tagged what to the smoother's inputs: the others' tags u and the row numbers a."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data import Conditioning

PARTS = ("user", "track", "clip")

Codes = NDArray[np.int32]
Floats = NDArray[np.float32]


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


def tag_rates(data: Conditioning) -> NDArray[np.float64]:
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


def _kept(rows: sp.csr_array, keep: NDArray[np.bool_]) -> sp.csr_array:
    """The rows with those not kept made 0."""
    return sp.diags_array(keep.astype(np.float32)).tocsr() @ rows
