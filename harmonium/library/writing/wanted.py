"""Which tags a track's file should get: what people say, and what the model is sure enough of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Ids
from harmonium.errors import LibraryError
from harmonium.library.model.builtin import musical_outputs
from harmonium.library.store.database import PAGE, batches
from harmonium.library.store.models import Owner
from harmonium.library.verdicts import agreed_tags

if TYPE_CHECKING:
    from harmonium.library.library import Library
    from harmonium.library.snapshot import Snapshot


class WantedTags(NamedTuple):
    """The tags that a track's file should get."""

    said: tuple[str, ...] = ()  # people agree on them
    predicted: Mapping[str, float] = MappingProxyType({})
    """Tag → its probability, for the tags that only the model gives; the likeliest first."""

    def __bool__(self) -> bool:
        return bool(self.said or self.predicted)

    def without(self, tags: Collection[str]) -> WantedTags:
        """The others."""
        return WantedTags(
            said=tuple(tag for tag in self.said if tag not in tags),
            predicted={tag: p for tag, p in self.predicted.items() if tag not in tags},
        )

    def each(self) -> list[tuple[str, bool]]:
        """Each tag, and whether people say so."""
        return [(tag, True) for tag in self.said] + [(tag, False) for tag in self.predicted]

    @property
    def scores(self) -> dict[str, float]:
        """Tag → 1 if people say so, else its probability; in order."""
        return {**dict.fromkeys(self.said, 1.0), **self.predicted}


NO_TAGS = WantedTags()


@dataclass(frozen=True, kw_only=True)
class TagSources:
    """Where the tags to write come from."""

    people: bool = True  # what people say
    predicted: bool = True  # what the model predicts
    owner: Owner | None = None  # only tags learnt from the library, or only built-in ones
    precision: float | None = None
    """The precision that predictions must have, see `Tag.written`."""


ALL_SOURCES = TagSources()


def wanted_tags(
    library: Library, ids: Sequence[int], sources: TagSources = ALL_SOURCES
) -> dict[int, WantedTags]:
    """Track → the tags wanted in its file, for the tracks that have any.

    A tag is wanted if people agree that it fits. If they leave it open, it is wanted if the current
    model's probability reaches the tag's threshold for this precision, both as the model was
    trained, which is what held-out tracks measured, and with what it has learnt from answers since.
    Tags read from files do not count, since they are there already.
    """
    snapshot = library.snapshot()
    if sources.predicted and not sources.people and not snapshot.model.id:
        raise LibraryError(
            "There is no model, so there are no predictions to write. Run `harmonium train`, then "
            "`harmonium tag`."
        )
    opinions = library.opinions.triples(ids)
    files = [person.name for person in library.opinions.people() if person.kind == "file"]
    agreed = agreed_tags(opinions.filter(~pl.col("person").is_in(files)))
    predicted: dict[int, dict[str, float]] = {}
    if sources.predicted:
        predicted = _sure_predictions(snapshot, ids, sources)
    given: dict[int, set[str]] = {}
    for track_id, tag in opinions.filter(pl.col("value") > 0).select("track_id", "tag").rows():
        given.setdefault(track_id, set()).add(tag)

    wanted = {}
    hidden = snapshot.tags.facts.hidden
    for track_id in agreed.keys() | predicted.keys():
        verdicts = agreed.get(track_id, {})
        settled = {tag: holds for tag, holds in verdicts.items() if tag not in hidden}
        holding = tuple(tag for tag, holds in settled.items() if holds)
        present = given.get(track_id, set())
        sure = {}
        for tag, probability in predicted.get(track_id, {}).items():
            if tag in settled and (sources.people or not settled[tag]):
                continue
            if not (snapshot.tags.has_synonym(tag, present) or has_part(tag, present)):
                sure[tag] = probability
        tags = WantedTags(said=holding if sources.people else (), predicted=sure)
        if tags:
            wanted[track_id] = tags
    return wanted


def has_part(tag: str, tags: Collection[str]) -> bool:
    """Whether a tag such as pop/rock says no more than one of these tags."""
    if "/" not in tag:
        return False
    last_words = {other.rpartition(" ")[2] for other in tags}  # hard rock is rock
    return not last_words.union(tags).isdisjoint(tag.split("/"))


def _sure_predictions(
    snapshot: Snapshot, ids: Sequence[int], sources: TagSources
) -> dict[int, dict[str, float]]:
    """Track → the tags whose probability reaches their threshold, likeliest first."""
    thresholds = np.full(len(snapshot.model.vocabulary), np.nan, np.float32)
    for tag in snapshot.tags.only(sources.owner).trained:
        threshold = tag.written(sources.precision).threshold
        if threshold is not None:
            thresholds[tag.place] = threshold
    predicted: dict[int, dict[str, float]] = {}
    for numbers in batches(ids, 10 * PAGE):
        trained = snapshot.probabilities(np.array(numbers), refined=False)
        if not trained.shape[1]:
            return {}
        refined = snapshot.probabilities(np.array(numbers))
        probabilities = np.minimum(trained, refined[:, : len(thresholds)])
        for row, place, probability in _reaching(probabilities, thresholds):
            name = snapshot.model.vocabulary[place]
            predicted.setdefault(numbers[row], {})[name] = probability
    return predicted


def _reaching(probabilities: Floats, thresholds: Floats) -> list[tuple[int, int, float]]:
    """(row, place, probability) wherever a threshold is reached; in each row, likeliest first."""
    rows, tags = np.nonzero(probabilities >= thresholds)  # not where they are NaN
    reached = probabilities[rows, tags]
    order = np.lexsort((-reached, rows))
    columns = (rows[order].tolist(), tags[order].tolist(), reached[order].tolist())
    return list(zip(*columns, strict=True))


def expected_precision(snapshot: Snapshot, sources: TagSources) -> dict[str, float]:
    """Tag → how often its predictions will be right, as measured on held-out tracks.

    Without a precision that they must have, none is measured: the predictions that are left to
    write are then often the less likely ones, and their own probabilities say more.
    """
    if sources.precision is None:
        return {}
    expected = {}
    for name, decision in snapshot.tags.written(sources.precision).items():
        if decision.precision is not None:
            expected[name] = decision.precision
    return expected


def wanted_features(snapshot: Snapshot, ids: Sequence[int]) -> dict[int, dict[str, float]]:
    """Track → its audio features, for the tracks that are music."""
    numbers = np.asarray(ids, np.int64)
    model = snapshot.model
    musical = musical_outputs(model.outputs, model.features)
    is_music = np.ones(len(numbers), bool)
    if musical.any():
        probabilities = snapshot.probabilities(numbers, np.flatnonzero(musical).tolist())
        is_music = np.median(probabilities, axis=1) > 0
    features = {}
    for track_id, values, music in zip(ids, snapshot.features(numbers), is_music, strict=True):
        if values and music:
            features[track_id] = values
    return features


def count_untagged(library: Library, ids: Sequence[int] | Ids) -> int:
    """How many of the tracks the current model has not tagged yet; 0 without a model."""
    model = library.models.current(whole=False)
    if model is None or model.id is None:
        return 0
    tagged = library.predictions.matrix(model.id, [0], refined=False).ids
    return int((~np.isin(np.asarray(ids, np.int64), tagged)).sum())
