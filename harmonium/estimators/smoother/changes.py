"""Where smoothing departs from what was said: tags filled in, and tags doubted."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data import Conditioning
from harmonium.estimators.smoother.rows import Floats, tag_rates

FILLED, DOUBTED = "filled in", "doubted"


def changes(data: Conditioning, P: Floats) -> pl.DataFrame:
    """The clips and tags of which smoothed probabilities (n_items, n_tags) say something else.

    A tag is filled in where nobody gave it to the clip, and yet it is as probable as for the median
    clip that somebody gave it to. It is doubted where somebody gave it, and yet it is less than
    half as probable as it is of a user and a clip in general.

    The columns: item, tag, change ("filled in" or "doubted"), count (users who gave it), users (of
    the clip) and probability. Those filled in come first, the most probable at the top, then those
    doubted, the least probable at the top.
    """
    counts = data.counts.toarray()
    given = counts > 0
    filled = ~given & (_medians(P, given) <= P)
    doubted = given & (tag_rates(data) / 2 > P)
    return pl.concat(
        [
            _rows(data, P, counts, np.argwhere(filled), FILLED).sort(
                "probability", descending=True, maintain_order=True
            ),
            _rows(data, P, counts, np.argwhere(doubted), DOUBTED).sort(
                "probability", maintain_order=True
            ),
        ]
    )


def _medians(P: Floats, given: NDArray[np.bool_]) -> Floats:
    """The median probability of each tag over the clips that were given it, (C,); else infinite."""
    columns = (p[g] for p, g in zip(P.T, given.T, strict=True))
    return np.array([np.median(p) if len(p) else np.inf for p in columns], np.float32)


def _rows(
    data: Conditioning, P: Floats, counts: Floats, where: NDArray[np.intp], change: str
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
