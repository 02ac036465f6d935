"""The rows of models: those that were trained on a library, and the built-in one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import sqlalchemy as sa

from harmonium.arrays import Floats
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.library.store import database
from harmonium.library.store.failures import damaged, intact
from harmonium.library.store.refinements import Refinement, read_refinements
from harmonium.library.store.reports import ModelReport, read_report
from harmonium.library.store.schema import (
    completed_track,
    model,
    prediction,
    refined_prediction,
    refined_tag,
)
from harmonium.library.store.values import stored_json, to_datetime, to_microseconds

CURRENT = "current_model"  # the setting that holds the number of the model in use
Owner = Literal["own", "built-in", "people"]  # learnt here, of the built-in model, people's alone
Source = Literal["tracks", "built-in", "answers"]  # what a tag was learnt from
_STORED_NONE = 2.0  # in a row, the threshold of a tag that is never predicted
_WITHOUT_BYTES = [column for column in model.c if column is not model.c.bytes]


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output of a model: a tag or an audio feature."""

    name: str
    source: Source  # what it was learnt from; what answers added later does not count
    threshold: float | None  # the probability from which a track gets it; None: never
    refinement: Refinement | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A model with everything needed to use it."""

    id: int = 0  # its number; 0 until it is stored
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    name: str
    vocabulary: Sequence[str]  # the tags that it was trained with, in the order of its outputs
    thresholds: Floats  # (n_tags,) the probability from which a track gets the tag; NaN: never
    extractor: str  # the key of the extractor whose features it takes
    bytes: bytes = field(repr=False)  # the model itself
    report: ModelReport = field(repr=False)  # how it was trained, how good it is
    refinements: tuple[Refinement, ...] = field(default=(), repr=False)  # learnt from answers

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """All that it predicts, in order: what it was trained with, then words from answers."""
        n_own = len(self.vocabulary) if self.report.own is None else self.report.own
        refined = {refinement.place: refinement for refinement in self.refinements}
        outputs = []
        for place, name in enumerate(self.vocabulary):
            threshold = float(self.thresholds[place])
            refinement = refined.pop(place, None)
            if refinement is not None and refinement.threshold is not None:
                threshold = refinement.threshold
            output = Output(
                name=name,
                source="tracks" if place < n_own else "built-in",
                threshold=None if np.isnan(threshold) else threshold,
                refinement=refinement,
            )
            outputs.append(output)
        for place in sorted(refined):
            refinement = refined[place]
            word = Output(
                name=refinement.name,
                source="answers",
                threshold=refinement.threshold,
                refinement=refinement,
            )
            outputs.append(word)
        return tuple(outputs)

    @property
    def has_own(self) -> bool:
        """Whether tags of it were learnt from the library's tracks."""
        return any(output.source == "tracks" for output in self.outputs)

    @property
    def features(self) -> dict[str, int]:
        """Audio feature → its place among the outputs, for those that it has."""
        places = {output.name: place for place, output in enumerate(self.outputs)}
        return {name: places[name] for name in AUDIO_FEATURES if name in places}

    def as_trained(self) -> Self:
        """The same model without what its tags gained since."""
        return replace(self, refinements=()) if self.refinements else self

    def refined(self, refinements: Sequence[Refinement]) -> Self:
        """The same model with what its tags gained since."""
        if not refinements:
            return self
        n = len(self.vocabulary)
        n_new = sum(refinement.place >= n for refinement in refinements)
        for refinement in refinements:
            if refinement.place not in range(n + n_new):
                raise damaged("what tags gained from answers is of other tags")
            if refinement.threshold is not None and not 0 <= refinement.threshold <= 1:
                raise damaged("the threshold of a tag is out of range")
        return replace(self, refinements=tuple(refinements))

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same model with the present names of its tags.

        If a tag was merged into another of its tags, only the other is predicted.
        """
        tags = list(self.vocabulary)
        thresholds = self.thresholds.copy()
        for place, tag in enumerate(tags):
            new = tag if tag in AUDIO_FEATURES else names.get(tag, tag)
            if new != tag and new in tags:
                thresholds[place] = np.nan
            else:
                tags[place] = new
        return replace(self, vocabulary=tags, thresholds=thresholds)


NO_MODEL = StoredModel(
    name="",
    vocabulary=(),
    thresholds=np.empty(0, np.float32),
    extractor="",
    bytes=b"",
    report=ModelReport(),
)
"""The model of a library without one: it knows no tags, and its number is 0."""


class ModelRows(database.LibraryPart):
    """The stored models of a library."""

    def add(self, stored: StoredModel, *, use: bool = True) -> int:
        """Store a model, and use it from now on; its number.

        Without ``use``, the model in use stays in use.
        """
        if len(stored.thresholds) != len(stored.vocabulary):
            raise LibraryError(
                f"'thresholds' must have one for each of the {len(stored.vocabulary)} tags, got "
                f"{len(stored.thresholds)}."
            )
        values = {
            "made_at": to_microseconds(stored.made_at),
            "name": stored.name,
            "vocabulary": json.dumps(list(stored.vocabulary)),
            "thresholds": _stored_thresholds(stored.thresholds),
            "extractor": stored.extractor,
            "bytes": stored.bytes,
            "report": json.dumps(stored.report.to_json()),
        }
        with self._library.begin() as connection:
            number = database.key_of(connection.execute(sa.insert(model).values(values)))
            if use or self._library.settings.get(CURRENT) is None:
                self._library.settings.set(CURRENT, number)
        return number

    def remove(self, model_id: int, *, instead: int | None) -> None:
        """Delete a model and its predictions; if it is in use, ``instead`` replaces it.

        This cannot be undone.
        """
        tables = (completed_track, refined_prediction, refined_tag, prediction)
        with self._library.begin() as connection:
            for table in tables:
                connection.execute(sa.delete(table).where(table.c.model_id == model_id))
            connection.execute(sa.delete(model).where(model.c.id == model_id))
            if self._library.settings.get(CURRENT) == model_id:
                self._library.settings.set(CURRENT, instead)

    def current(self, *, whole: bool = True) -> StoredModel | None:
        """The model in use; with `whole` False, without its bytes, which is often enough."""
        number = self._library.settings.get(CURRENT)
        return None if number is None else self.get(number, whole=whole)

    def get(self, model_id: int, *, whole: bool = True) -> StoredModel:
        """The model with this number, or a LibraryError; with `whole` False, without its bytes."""
        columns = model.c if whole else _WITHOUT_BYTES
        with self._library.connect() as connection:
            query = sa.select(*columns).where(model.c.id == int(model_id))
            rows = connection.execute(query).all()
            refinements = read_refinements(connection, int(model_id))
        if not rows:
            known = ", ".join(str(stored.id) for stored in self.list())
            way_out = f"There are {known}." if known else "`harmonium train` makes one."
            raise NotInLibraryError(f"There is no model {model_id} in the library. {way_out}")
        return _stored(rows[0]).refined(refinements)

    def tag_value(self, key: str) -> list[Any]:
        """The name and stored threshold of a model's tag, for changes; empty if it is gone.

        ``key`` is MODEL:PLACE. A tag that is never predicted has the threshold 2.0 there.
        """
        number, place = map(int, key.split(":"))
        for stored in self.list():
            if stored.id == number:
                return tag_value(stored.vocabulary[place], stored.thresholds[place])
        return []

    def set_tag_value(self, key: str, value: Sequence[Any]) -> None:
        """Give a model's tag a name and a stored threshold, as `tag_value` returns them."""
        number, place = map(int, key.split(":"))
        stored = next(stored for stored in self.list() if stored.id == number)
        tags = list(stored.vocabulary)
        thresholds = stored.thresholds.copy()
        tags[place], thresholds[place] = value
        values = {"vocabulary": json.dumps(tags), "thresholds": _stored_thresholds(thresholds)}
        with self._library.begin() as connection:
            connection.execute(sa.update(model).where(model.c.id == number).values(values))

    def list(self) -> Sequence[StoredModel]:
        """All models as trained, the oldest first, without their bytes."""
        query = sa.select(*_WITHOUT_BYTES).order_by(model.c.id)
        return [_stored(row) for row in self._library.fetch(query)]


def tag_value(name: str, threshold: np.float32 | float | None) -> list[Any]:
    """A tag's name and threshold as changes store them."""
    if threshold is None or np.isnan(threshold):
        return [name, _STORED_NONE]
    return [name, float(threshold)]


def _stored_thresholds(thresholds: Floats) -> bytes:
    return np.where(np.isnan(thresholds), _STORED_NONE, thresholds).astype("<f4").tobytes()


def _stored(row: Any) -> StoredModel:
    with intact(model, row):
        tags = stored_json(row.vocabulary)
        thresholds = np.frombuffer(row.thresholds, "<f4").astype(np.float32)
        thresholds[thresholds > 1] = np.nan
        if [*map(type, tags)] != [str] * len(thresholds):
            raise ValueError("its tags and thresholds do not fit together")
        return StoredModel(
            id=row.id,
            made_at=to_datetime(row.made_at),
            name=row.name,
            vocabulary=tags,
            thresholds=thresholds,
            extractor=row.extractor,
            bytes=getattr(row, "bytes", b""),
            report=read_report(row.report),
        )
