"""What a smoother says about clips: the probability of every tag, and what is new in it."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from harmonium.arrays import Codes, Floats, Mask
from harmonium.data import Conditioning
from harmonium.errors import DataError
from harmonium.estimators.pairs import tag_rates


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

    def of_any_user(self, n_users: Codes) -> "Smoothed":
        """1 - (1 - p)^(n + 1) for each p: that at least one of n + 1 users gives the tag.

        ``n_users``, (n_items,), is how many have seen each clip, so that one more is the new user.
        p is taken to be the same for all of them.
        """
        P = self.values.astype(np.float64)
        of_any = 1 - (1 - P) ** (n_users[:, None] + 1)
        return replace(self, values=of_any.astype(np.float32))

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
    is_given = data.counts.toarray() > 0
    filled_in = ~is_given & (_medians(P, is_given) <= P)
    doubted = is_given & (tag_rates(data) / 2 > P)
    return pl.concat(
        [
            _table(data, P, filled_in, "filled in").sort(
                "probability", descending=True, maintain_order=True
            ),
            _table(data, P, doubted, "doubted").sort("probability", maintain_order=True),
        ]
    )


def _medians(P: Floats, is_given: Mask) -> Floats:
    """The median probability of each tag on the clips that have it; infinite without such."""
    medians = np.full(P.shape[1], np.inf, np.float32)
    for tag in np.flatnonzero(is_given.any(axis=0)):
        medians[tag] = np.median(P[is_given[:, tag], tag])
    return medians


def _table(data: Conditioning, P: Floats, where: Mask, change: str) -> pl.DataFrame:
    """A row for each of these clips and tags."""
    item, tag = np.nonzero(where)
    counts = data.counts.toarray()
    return pl.DataFrame(
        {
            "item": data.items.gather(item),
            "tag": data.tags.gather(tag),
            "change": pl.Series([change] * len(item), dtype=pl.String),
            "count": counts[item, tag].astype(np.int32),
            "users": data.n_users[item],
            "probability": P[item, tag],
        }
    )
