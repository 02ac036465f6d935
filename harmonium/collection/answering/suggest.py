"""Which tags go with others: what to add to some, and what a tag makes likely or unlikely."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.collection.answering.stored_tagger import StoredTagger
from harmonium.errors import DataError
from harmonium.estimators.smoother.results import relations, suggestions


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
    """The n most probable other tags of a track of which only some tags are known."""
    known = [tagger.place(tag) for tag in tags]
    if not known:
        raise DataError("Give at least one tag to go by.")
    given, usual = _given(tagger, known, 1), _given(tagger, [], 1)
    table = suggestions(pl.Series(tagger.tags), given, usual, known, n)
    return [Suggestion(*row) for row in table.iter_rows()]


def related(tagger: StoredTagger, tag: str, n: int = 10) -> list[Relation]:
    """The n tags that a tag makes most likely, and the n that it makes least likely, below."""
    place = tagger.place(tag)
    present, absent = _given(tagger, [place], 1), _given(tagger, [place], 0)
    table = relations(pl.Series(tagger.tags), present, absent, place, n)
    return [Relation(*row) for row in table.iter_rows()]


def _given(tagger: StoredTagger, places: list[int], value: float) -> NDArray[np.float64]:
    y = np.full(len(tagger.tags), np.nan, np.float32)
    y[places] = value
    return tagger.without_sound(y).astype(np.float64)
