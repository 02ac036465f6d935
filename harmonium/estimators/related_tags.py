"""Which tags go with which, in the words of a smoother: suggestions and relations.

SciPy and polars are enough to import this.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Doubles, Numbers
from harmonium.data import normalise_tag
from harmonium.errors import DataError, DataWarning, did_you_mean
from harmonium.logistic import log_odds

PRIOR_PAIRS = 30.0  # the model of related tags counts as this many pairs of user and clip
SMALLEST = 1e-7  # distance from 0 and 1 at which probabilities are limited for log-odds


def tag_positions(tags: Any, vocabulary: Sequence[str]) -> list[int]:
    """The place of each tag, as given or normalised, in the vocabulary.

    Unknown tags are left out with a warning; if all are unknown, that is an error.
    """
    place_of = {name: place for place, name in enumerate(vocabulary)}
    places = []
    unknown = []
    for name in [tags] if isinstance(tags, str) else tags:
        if not isinstance(name, str):
            raise DataError(f"'tags' must hold names of tags. Got {name!r} instead.")
        place = place_of.get(name, place_of.get(normalise_tag(name)))
        if place is None:
            unknown.append(name)
        elif place not in places:
            places.append(place)
    if unknown:
        hint = did_you_mean(unknown[0], vocabulary, n=3)
        message = f"{unknown[0]!r} is not among the {len(vocabulary):,} tags of the model.{hint}"
        if not places:
            raise DataError(message)
        warnings.warn(f"{message} It is ignored.", DataWarning, stacklevel=3)
    return places


def with_counts(
    model: Numbers, said: sp.csr_array, known: list[int], *, present: bool = True
) -> Doubles:
    """The probability of each tag given known ones, (C,): (count + k p) / (n + k).

    Of all pairs of user and clip, ``said`` (N, C), n have all known tags, or none of them if not
    ``present``; ``count`` of these have the tag. p is what the model says, and k `PRIOR_PAIRS`:
    counting is best if there is enough to count, and the model if there is not.
    """
    n_known = np.asarray(said[:, known].sum(axis=1)).ravel()
    rows = n_known == len(known) if present else n_known == 0
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
    change = _limited_log_odds(present) - _limited_log_odds(absent)
    change[tag] = 0
    order = np.argsort(-change, kind="stable")
    positive = order[change[order] > 0][:n]
    negative = order[change[order] < 0][-n:]
    chosen = np.concatenate([positive, negative])
    return pl.DataFrame(
        {
            "tag": tags.gather(chosen),
            "log_odds": change[chosen],
            "with": present[chosen],
            "without": absent[chosen],
        }
    )


def _limited_log_odds(p: Numbers) -> Doubles:
    return log_odds(p.astype(np.float64), SMALLEST)
