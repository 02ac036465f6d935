"""From who tagged what to the smoother's inputs: the others' tags u and the row numbers a."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data import Conditioning

PARTS = ("user", "track", "clip")

Codes = NDArray[np.int32]


class OthersScale(NamedTuple):
    """How the others' tags become u: (counts - n p) / (n + k), each tag over its scale.

    p are the tags' rates over all pairs and k the weight of the prior, in users: with few others
    the mean is drawn to the rates, and with none u is 0, which stands for the rates. k = 0 is the
    mean of the others itself, less the rates.
    """

    rates: NDArray[np.float32]  # (C,)
    scale: NDArray[np.float32]  # (C,)
    prior: float

    def __call__(self, counts: Any, n: NDArray[Any]) -> NDArray[np.float32]:
        """u of so many others who gave these counts of tags: csr (N, C), (N,) to (N, C)."""
        n = n.astype(np.float32)[:, None]
        total = np.maximum(n + np.float32(self.prior), np.float32(1e-6))
        mean = (counts.toarray().astype(np.float32) - n * self.rates) / total
        return np.where(n > 0, mean / self.scale, np.float32(0))


class Parts(NamedTuple):
    """Which rows of V belong to users, tracks and clips; the parts that are not used have none."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """A, the number of rows of V."""
        return sum(self.sizes)

    def indices(self, **codes: Codes) -> Codes:
        """a, (N, S), of the codes of each part, (N,); -1 stays -1, an empty part."""
        columns, first = [], 0
        for name, size in zip(self.names, self.sizes, strict=True):
            columns.append(np.where(codes[name] >= 0, codes[name] + first, -1))
            first += size
        length = len(next(iter(codes.values())))
        stacked = np.stack(columns, axis=1) if columns else np.zeros((length, 0))
        return stacked.astype(np.int32)

    def by_row(self, values: dict[str, float]) -> NDArray[np.float32]:
        """One value for each part as a column with one for each row of V, (A, 1)."""
        chosen = [np.float32(values[name]) for name in self.names]
        return np.repeat(np.array(chosen, np.float32), self.sizes)[:, None]


def parts_of(data: Conditioning, auxiliary: tuple[str, ...]) -> Parts:
    """The parts of a in their usual order."""
    names = tuple(name for name in PARTS if name in auxiliary)
    sizes = {"user": len(data.users), "track": len(data.tracks), "clip": len(data.items)}
    return Parts(names, tuple(sizes[name] for name in names))


def without(data: Conditioning, rows: NDArray[np.intp]) -> Conditioning:
    """The same names and fewer pairs: what is known when these rows are not."""
    kept = np.setdiff1d(np.arange(len(data)), rows)
    return with_pairs(data, data.user[kept], data.item[kept], data.y[kept])


def with_pairs(data: Conditioning, user: Codes, item: Codes, y: sp.csr_array) -> Conditioning:
    """The same names with other pairs, in ascending order of item and user."""
    n_items = len(data.items)
    return replace(
        data,
        user=user,
        item=item,
        track=data.item_track[item],
        y=y,
        counts=count_tags(item, y, n_items),
        n_users=np.bincount(item, minlength=n_items).astype(np.int32),
    )


def count_tags(item: Codes, y: sp.csr_array, n_items: int) -> sp.csr_array:
    """How many users gave each item each tag, (n_items, n_tags), of pairs sorted by item."""
    ones = np.ones(len(item), np.float32)
    ends = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=n_items))])
    members = sp.csr_array((ones, np.arange(len(item)), ends), shape=(n_items, len(item)))
    counts = members @ y
    counts.sort_indices()
    return counts


def tag_rates(data: Conditioning) -> NDArray[np.float64]:
    """The share of pairs that have each tag, with one that has and one that has not added, (C,)."""
    given = np.asarray(data.y.sum(axis=0, dtype=np.float64)).ravel()
    return (given + 1) / (len(data) + 2)


def others_scale(data: Conditioning, prior: float) -> OthersScale:
    """The rates, and the scale at which every tag of u varies as much as every other."""
    rates = tag_rates(data).astype(np.float32)
    plain = OthersScale(rates, np.ones_like(rates), prior)
    u = plain(data.counts[data.item] - data.y, data.n_others)
    spread = np.sqrt(np.mean(np.square(u), axis=0))
    floor = np.sqrt(rates * (1 - rates) / (len(data) + 1))
    return plain._replace(scale=np.maximum(spread, floor) * np.float32(np.sqrt(len(rates))))


def pair_row(data: Conditioning, user: Codes, item: Codes) -> NDArray[np.intp]:
    """The row of each pair, (n,), -1 where that user has not seen that item."""
    n_users = max(len(data.users), 1)
    keys = data.item.astype(np.int64) * n_users + data.user
    wanted = item.astype(np.int64) * n_users + user
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (user >= 0) & (item >= 0), at, -1)
