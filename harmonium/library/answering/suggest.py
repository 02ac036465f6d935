"""Which tags go with others: what to add to some, and what a tag makes likely or unlikely."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.estimators.smoother.results import relations, suggestions, with_counts
from harmonium.library.answering.shipped_model import shipped_model, tagger_of, use_shipped_model
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.library import Library
from harmonium.library.verdicts import with_kinds

FEWEST_PEOPLE = 3
"""Fewer are no crowd: a person's files have the genres, and the person says the rest."""


@dataclass(frozen=True)
class Suggestion:
    """A tag that goes with the given ones."""

    tag: str
    probability: float
    """Given those."""
    usual: float
    """Without them."""


@dataclass(frozen=True)
class Relation:
    """A tag that another makes more or less likely."""

    tag: str
    log_odds: float
    """By how much its log-odds are higher with the other tag than without."""
    probability_with: float
    probability_without: float


def said_together(library: Library, tags: Sequence[str]) -> sp.csr_array:
    """Which of these tags each person gave to each track of theirs, (n_pairs, n_tags).

    Fewer than `FEWEST_PEOPLE` count as one.
    """
    opinions = with_kinds(library.opinions.triples(), library.genres())
    if opinions["person"].n_unique() < FEWEST_PEOPLE:
        opinions = opinions.with_columns(person=pl.lit("all"))
    pairs = opinions.select("person", "track_id").unique(maintain_order=True).with_row_index("row")
    places = pl.DataFrame({"tag": tags, "column": range(len(tags))}, schema_overrides=_PLACES)
    said = opinions.filter(pl.col("value") > 0)
    found = said.join(pairs, on=("person", "track_id")).join(places, on="tag")
    ones = np.ones(len(found), np.float32)
    at = (found["row"].to_numpy(), found["column"].to_numpy())
    matrix = sp.csr_array((ones, at), shape=(len(pairs), len(tags)))
    matrix.data[:] = 1  # a tag may have come in two ways
    return matrix


_PLACES = {"tag": pl.String, "column": pl.Int32}


def suggest(library: Library | None, tags: Sequence[str], n: int = 10) -> list[Suggestion]:
    """The n most probable other tags of a track that has these, by people and the model in use.

    Without a library, or a model in it, the built-in model answers.
    """
    tagger, said = _tagger_and_said(library)
    return suggest_by(tagger, tags, n, said)


def related(library: Library | None, tag: str, n: int = 10) -> list[Relation]:
    """The n tags that a tag makes most likely, and the n that it makes least likely, below."""
    tagger, said = _tagger_and_said(library)
    return related_by(tagger, tag, n, said)


def _tagger_and_said(library: Library | None) -> tuple[StoredTagger, sp.csr_array | None]:
    if library is None:
        return tagger_of(shipped_model()), None
    tagger = tagger_of(use_shipped_model(library) or shipped_model())
    return tagger, said_together(library, tagger.tags)


def suggest_by(
    tagger: StoredTagger, tags: Sequence[str], n: int = 10, said: sp.csr_array | None = None
) -> list[Suggestion]:
    """The n most probable other tags of a track of which only some tags are known.

    What people said, ``said`` of `said_together`, counts first: see `with_counts`.
    """
    known = [tagger.place(tag) for tag in tags]
    if not known:
        raise DataError("Give at least one tag to go by.")
    given, usual = _given(tagger, known, 1, said), _given(tagger, [], 1, said)
    table = suggestions(pl.Series(tagger.tags), given, usual, known, n)
    return [Suggestion(*row) for row in table.iter_rows()]


def related_by(
    tagger: StoredTagger, tag: str, n: int = 10, said: sp.csr_array | None = None
) -> list[Relation]:
    """The n tags that a tag makes most likely, and the n that it makes least likely, below.

    ``said`` as for `suggest`.
    """
    place = tagger.place(tag)
    present, absent = _given(tagger, [place], 1, said), _given(tagger, [place], 0, said)
    table = relations(pl.Series(tagger.tags), present, absent, place, n)
    return [Relation(*row) for row in table.iter_rows()]


def _given(
    tagger: StoredTagger, places: list[int], value: float, said: sp.csr_array | None
) -> NDArray[np.float64]:
    y = np.full(len(tagger.tags), np.nan, np.float32)
    y[places] = value
    model = tagger.without_sound(y).astype(np.float64)
    return model if said is None else with_counts(model, said, places, present=value > 0)
