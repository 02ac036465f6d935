"""What the smoother gives: probabilities of tags for clips, changes, and relations of tags."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Mask, log_odds
from harmonium.data import Conditioning
from harmonium.errors import DataError
from harmonium.estimators.smoother.pairs import tag_rates

FILLED, DOUBTED = "filled in", "doubted"
PRIOR_PAIRS = 30.0
"""What a model says of which tags go together counts as much as so many pairs of user and clip."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The probability of every tag for some clips.

    Attributes
    ----------
    items : pl.Series of str, (n_items,)
    tags : pl.Series of str, (n_tags,)
    values : array of float32, (n_items, n_tags)
    """

    items: pl.Series
    tags: pl.Series
    values: Floats

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

    def tags_of(self, item: str, n: int | None = None) -> pl.DataFrame:
        """The tags of one clip, most probable first: the columns tag and probability."""
        row = self.items.index_of(item)
        if row is None:
            raise DataError(f"{item!r} is not among these {len(self.items):,} items.")
        order = np.argsort(-self.values[row], kind="stable")[:n]
        return pl.DataFrame(
            {"tag": self.tags.gather(order), "probability": self.values[row][order]}
        )


def changes(data: Conditioning, P: Floats) -> pl.DataFrame:
    """The clips and tags for which smoothed probabilities (n_items, n_tags) say something else.

    A tag is filled in where nobody gave it to the clip, although it is at least as probable as for
    the median clip that was given it. It is doubted where somebody gave it, although it is less
    than half as probable as for a user and a clip in general.

    The columns: item, tag, change ("filled in" or "doubted"), count (users who gave it), users (of
    the clip) and probability. Those filled in come first, the most probable at the top, then those
    doubted, the least probable at the top.
    """
    counts = data.counts.toarray()
    given = counts > 0
    filled = ~given & (_medians(P, given) <= P)
    doubted = given & (tag_rates(data) / 2 > P)
    first = _rows(data, P, counts, np.argwhere(filled), FILLED)
    last = _rows(data, P, counts, np.argwhere(doubted), DOUBTED)
    first = first.sort("probability", descending=True, maintain_order=True)
    return pl.concat([first, last.sort("probability", maintain_order=True)])


def _medians(P: Floats, given: Mask) -> Floats:
    """The median probability of each tag over the clips that were given it, (C,); else infinite."""
    columns = (p[g] for p, g in zip(P.T, given.T, strict=True))
    return np.array([np.median(p) if len(p) else np.inf for p in columns], np.float32)


def _rows(
    data: Conditioning,
    P: Floats,
    counts: Floats,
    where: NDArray[np.intp],
    change: str,
) -> pl.DataFrame:
    item, tag = where.T
    return pl.DataFrame(
        {
            "item": data.items.gather(item),
            "tag": data.tags.gather(tag),
            "change": pl.Series([change] * len(where), dtype=pl.String),
            "count": counts[item, tag].astype(np.int32),
            "users": data.n_users[item],
            "probability": P[item, tag],
        }
    )


def with_counts(
    model: NDArray[np.floating], said: sp.csr_array, known: list[int], *, present: bool = True
) -> Doubles:
    """The probability of each tag where some are known, (C,): (count + k p) / (n + k).

    Of all pairs of user and clip, ``said`` (N, C), n have all known tags, or none of them if not
    ``present``; ``count`` of these have the tag. p is what the model says, and k `PRIOR_PAIRS`:
    counting is best where it can be done, and the model where hardly anybody said so.
    """
    found = np.asarray(said[:, known].sum(axis=1)).ravel()
    rows = found == len(known) if present else found == 0
    count = np.asarray(said[rows].sum(axis=0), np.float64).ravel()
    return (count + PRIOR_PAIRS * model) / (np.count_nonzero(rows) + PRIOR_PAIRS)


def suggestions(
    tags: pl.Series,
    given: NDArray[np.floating],
    usual: NDArray[np.floating],
    known: list[int],
    n: int,
) -> pl.DataFrame:
    """The n most probable tags that are not among the known, from probabilities (C,)."""
    order = np.argsort(-given, kind="stable")
    order = order[~np.isin(order, known)][:n]
    return pl.DataFrame(
        {"tag": tags.gather(order), "probability": given[order], "usual": usual[order]}
    )


def relations(
    tags: pl.Series, present: NDArray[np.floating], absent: NDArray[np.floating], tag: int, n: int
) -> pl.DataFrame:
    """The n largest and the n smallest log-odds ratios, from probabilities with a tag and without.

    Only tags above 0 are among the former, only tags below 0 among the latter.
    """
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
