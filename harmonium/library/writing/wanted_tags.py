"""Which tags tracks should have in their files: what people say, and what the model is sure of."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from harmonium.errors import LibraryError
from harmonium.library.library import Library
from harmonium.library.precision import knows_precision, thresholds_for
from harmonium.library.store.bulk import batches
from harmonium.library.store.models import Owner, StoredModel
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import agreed_tags

ScoredTags = dict[str, float]
"""Tag → score: 1 where people say so, else the model's probability. In the order of writing."""


class TagSources(NamedTuple):
    """Whose tags are wanted."""

    people: bool = True
    predicted: bool = True
    owner: Owner | None = None
    """Whose predictions: of tags learnt from the library, of those that came along, or both."""
    precision: float | None = None
    """The share of what is predicted that is to be right (`precision`), tag by tag; None takes
    all that reaches the thresholds by which `harmonium tag` goes."""


EVERY_SOURCE = TagSources()


def wanted_tags(
    library: Library, ids: Sequence[int], source: TagSources = EVERY_SOURCE
) -> Iterator[tuple[Track, ScoredTags]]:
    """(track, its tags) of each track, in this order.

    A tag is wanted where people agree that it holds (`verdicts`). Where they leave it open,
    it is wanted if the current model's probability reaches the threshold of the tag that
    ``source.precision`` asks for, as the model was trained, which is what held-out tracks speak
    of, and with what it learnt from answers since. Without a precision, a tag that came along is
    wanted only if its own threshold was right for most held-out clips (`StoredModel.sure`). Tags
    that were found in files are in them already, and do not count.

    Raises
    ------
    LibraryError
        where only predictions are asked for and there is no model
    """
    model = _model(library, source)
    if source.predicted and not source.people and model is None:
        raise LibraryError(
            "There is no model whose predictions could be written. `harmonium train` makes one, "
            "and `harmonium tag` uses it."
        )
    from_files = {one.name for one in library.opinions.people() if one.kind == "file"}
    for some in batches(map(int, ids)):
        opinions = library.opinions.triples(some)
        said = agreed_tags(opinions.filter(~pl.col("person").is_in(list(from_files))))
        guessed = {} if model is None else _guessed(library, model, some)
        for track in library.tracks.many(some):
            yield track, _combined(said.get(track.id, {}), guessed.get(track.id, {}), source)


def _model(library: Library, source: TagSources) -> StoredModel | None:
    """The model whose predictions are wanted, with the thresholds from which on they are."""
    if not source.predicted:
        return None
    model = library.models.current(whole=source.precision is not None)
    if model is None:
        return None
    model = model.as_trained()
    if source.precision is None or not knows_precision(model):
        return model.only(source.owner).sure()
    return replace(model, thresholds=thresholds_for(model, source.precision)).only(source.owner)


def imprecise_tags(library: Library, precision: float) -> list[str] | None:
    """The tags that are learnt, but not right so often; None where the model does not know."""
    model = library.models.current()
    if model is None or not knows_precision(model):
        return None
    model = model.as_trained()
    never = model.learnt & (thresholds_for(model, precision) > 1)
    return [model.vocabulary[j] for j in np.flatnonzero(never)]


def count_unheard(library: Library, ids: Sequence[int]) -> int:
    """How many of the tracks the current model has not tagged yet; 0 where there is no model."""
    model = library.models.current(whole=False)
    if model is None or model.id is None:
        return 0
    heard, _ = library.predictions.columns(model.id, [0], refined=False)
    return int((~np.isin(np.asarray(ids, np.int64), heard)).sum())


def _guessed(library: Library, model: StoredModel, ids: list[int]) -> dict[int, ScoredTags]:
    """Track → the tags whose probability reaches their threshold, the likeliest first."""
    if model.id is None:
        return {}
    trained = library.predictions.probabilities(model.id, ids, refined=False)
    if not trained.shape[1]:
        return {}
    now = library.predictions.probabilities(model.id, ids)[:, : trained.shape[1]]
    probabilities = np.minimum(trained, now)  # NaN where there are none
    enough = probabilities >= model.thresholds  # NaN is not
    found: dict[int, ScoredTags] = {}
    for row, number in enumerate(ids):
        tags = np.flatnonzero(enough[row])
        order = tags[np.argsort(-probabilities[row, tags], kind="stable")]
        found[number] = {model.vocabulary[j]: float(probabilities[row, j]) for j in order}
    return found


def _combined(said: dict[str, bool], guessed: ScoredTags, source: TagSources) -> ScoredTags:
    """People's tags, then those guessed that they leave open."""
    if source.people:
        own = {tag: 1.0 for tag, holds in said.items() if holds}
        return own | {tag: p for tag, p in guessed.items() if tag not in said}
    return {tag: p for tag, p in guessed.items() if said.get(tag, True)}
