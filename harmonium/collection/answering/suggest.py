"""Which tags go with others: what to add to some, and what a tag makes likely or unlikely."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.answering.numpy_inference import tag_probabilities
from harmonium.collection.answering.stored_tagger import StoredTagger
from harmonium.errors import DataError

Doubles = NDArray[np.float64]


class Suggestion(NamedTuple):
    """A tag that goes with the given ones."""

    tag: str
    probability: float
    """Given those."""
    usual: float
    """Without them."""


class Relation(NamedTuple):
    """A tag that another makes more or less likely."""

    tag: str
    log_odds: float
    """By how much its log-odds are higher with the other tag than without."""
    probability_with: float
    probability_without: float


def suggest(tagger: StoredTagger, tags: Sequence[str], n: int = 10) -> list[Suggestion]:
    """The n most probable other tags of a track, of which nothing but some tags is known."""
    known = [tagger.place(tag) for tag in tags]
    if not known:
        raise DataError("Give at least one tag to go by.")
    given, usual = _given(tagger, known, 1), _given(tagger, [], 1)
    order = [j for j in np.argsort(-given, kind="stable") if j not in known][:n]
    return [Suggestion(tagger.tags[j], float(given[j]), float(usual[j])) for j in order]


def related(tagger: StoredTagger, tag: str, n: int = 10) -> list[Relation]:
    """The n tags that a tag makes most likely, and the n that it makes least likely, below."""
    place = tagger.place(tag)
    present, absent = _given(tagger, [place], 1), _given(tagger, [place], 0)
    change = _log_odds(present) - _log_odds(absent)
    change[place] = 0
    order = np.argsort(-change, kind="stable")
    more, less = order[change[order] > 0][:n], order[change[order] < 0][-n:]
    return [
        Relation(tagger.tags[j], float(change[j]), float(present[j]), float(absent[j]))
        for j in np.concatenate([more, less])
    ]


def _given(tagger: StoredTagger, places: list[int], value: float) -> Doubles:
    y = np.full(len(tagger.tags), np.nan)
    y[places] = value
    return tag_probabilities(tagger.together, y)


def _log_odds(p: Doubles) -> Doubles:
    limited = np.clip(p, 1e-7, 1 - 1e-7)
    return np.log(limited) - np.log1p(-limited)
