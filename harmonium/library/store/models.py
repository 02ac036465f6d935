"""The models that were trained on a library, stored in it whole.

`Models.current` and `Models.get` give them with what their tags gained from answers since.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from harmonium.arrays import Floats, Mask
from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.library.store.database import LibraryPart, stored_json
from harmonium.library.store.predictions import Refinement, read_refinements
from harmonium.library.store.schema import (
    completed_track,
    key_of,
    model,
    prediction,
    refined_prediction,
    refined_tag,
    to_datetime,
    to_microseconds,
)

CURRENT = "current_model"
"""The setting that holds the number of the model in use."""
Owner = Literal["own", "built-in", "people"]
"""Whose tag it is: learnt from the library, of the built-in model, or only of people."""
MIN_WRITTEN_PRECISION = 0.8
"""The precision on held-out clips that a tag of the built-in model needs to be written."""
UNREACHABLE = 2.0
"""The threshold of a tag that is not predicted: no probability reaches it."""
_WITHOUT_BYTES = [column for column in model.c if column is not model.c.bytes]


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A model with what is needed to use it."""

    id: int | None = None
    """Its number; None until it is stored."""
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    name: str
    vocabulary: list[str]
    """Its tags, in the order of its outputs."""
    thresholds: Floats
    """(n_tags,) the probability from which on a track gets the tag."""
    extractor: str
    """The key of the extractor whose features it takes."""
    bytes: bytes = field(repr=False)
    """The model itself."""
    report: dict[str, Any] = field(repr=False)
    """How it was trained and how good it is; what JSON can hold."""
    refinements: tuple[Refinement, ...] = field(default=(), repr=False)
    """What its tags gained from answers since it was trained."""
    n_new: int = 0
    """How many of its tags, the last ones, are new words, learnt from answers alone."""

    @property
    def learnt(self) -> Mask:
        """(n_tags,) which tags it has learnt: the threshold of the others is above 1."""
        return self.thresholds <= 1

    @property
    def n_trained(self) -> int:
        """How many of its tags, the first ones, it was trained with."""
        return len(self.vocabulary) - self.n_new

    @property
    def n_own(self) -> int:
        """How many of those, the first ones, were learnt from the library; others are built-in."""
        return int(self.report.get("own", self.n_trained))

    @property
    def is_own(self) -> Mask:
        """(n_tags,) which tags were learnt from the library."""
        places = np.arange(len(self.vocabulary))
        return (places < self.n_own) | (places >= self.n_trained)

    def as_trained(self) -> StoredModel:
        """The same model without what its tags gained since."""
        if not self.refinements:
            return self
        thresholds = self.thresholds[: self.n_trained].copy()
        alone = [one.place for one in self.refinements if not one.has_model]
        thresholds[[place for place in alone if place < self.n_trained]] = UNREACHABLE
        tags = self.vocabulary[: self.n_trained]
        return replace(self, vocabulary=tags, thresholds=thresholds, refinements=(), n_new=0)

    def refined(self, refinements: Sequence[Refinement]) -> StoredModel:
        """The same model with what its tags gained since."""
        if not refinements:
            return self
        n = len(self.vocabulary)
        new = [one.name for one in refinements if one.place >= n]
        thresholds = np.append(self.thresholds, np.full(len(new), UNREACHABLE, np.float32))
        for one in refinements:
            if one.threshold is not None:
                thresholds[one.place] = one.threshold
        return replace(
            self,
            vocabulary=self.vocabulary + new,
            thresholds=thresholds,
            refinements=tuple(refinements),
            n_new=len(new),
        )

    def only(self, owner: Owner | None) -> StoredModel:
        """The same model as if it had learnt one's own tags only, or only the built-in ones."""
        return self if owner is None else self._predicting(self.is_own == (owner == "own"))

    def without(self, hidden: Collection[str], renamed: Mapping[str, str]) -> StoredModel:
        """The same model without hidden tags, and with the new names of renamed ones.

        One whose new name is that of another tag is not predicted: the other is.
        """
        tags, wanted = list(self.vocabulary), np.ones(len(self.vocabulary), bool)
        for j, tag in enumerate(tags):
            new = renamed.get(tag, tag)
            wanted[j] = new not in hidden and (new == tag or new not in tags)
            tags[j] = new if wanted[j] else tag
        return replace(self._predicting(wanted), vocabulary=tags)

    def sure(self) -> StoredModel:
        """The same model without built-in tags that are wrong too often to be written."""
        precision = self.report.get("precision", {})
        wanted = np.arange(len(self.vocabulary)) < self.n_own
        least = MIN_WRITTEN_PRECISION
        return self._predicting(
            wanted | [(precision.get(tag) or 0) >= least for tag in self.vocabulary]
        )

    def _predicting(self, wanted: Mask) -> StoredModel:
        """The same model with some tags (n_tags,) predicted, and no others."""
        thresholds = np.where(wanted, self.thresholds, np.float32(UNREACHABLE))
        return replace(self, thresholds=thresholds)


class Models(LibraryPart):
    """The models of a library."""

    def add(self, stored: StoredModel, *, use: bool = True) -> int:
        """Store a model, and use it from now on; its number.

        Without ``use``, another that is in use stays so.
        """
        values = _values(stored)
        with self._library.begin() as connection:
            number = key_of(connection.execute(sa.insert(model).values(values)))
            if use or self._library.settings.get(CURRENT) is None:
                self._library.settings.set(CURRENT, number)
        return number

    def remove(self, model_id: int, *, instead: int | None) -> None:
        """Drop a model with all that it says; if it is in use, the one ``instead`` is from now on.

        Nothing brings it back.
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
        """The model of a number, or a LibraryError; with `whole` False, without its bytes."""
        columns = model.c if whole else _WITHOUT_BYTES
        with self._library.connect() as connection:
            query = sa.select(*columns).where(model.c.id == int(model_id))
            rows = connection.execute(query).all()
            refinements = read_refinements(connection, int(model_id))
        if not rows:
            known = ", ".join(str(one.id) for one in self.list())
            way_out = f"There are {known}." if known else "`harmonium train` makes one."
            raise NotInLibraryError(f"There is no model {model_id} in the library. {way_out}")
        return _stored(rows[0]).refined(refinements)

    def list(self) -> Sequence[StoredModel]:
        """All models as they were trained, the oldest first, each without its bytes."""
        query = sa.select(*_WITHOUT_BYTES).order_by(model.c.id)
        return [_stored(row) for row in self._library.fetch(query)]


def _values(stored: StoredModel) -> dict[str, Any]:
    """The columns of a model."""
    if len(stored.thresholds) != len(stored.vocabulary):
        raise LibraryError(
            f"'thresholds' must have one for each of the {len(stored.vocabulary)} tags, got "
            f"{len(stored.thresholds)}."
        )
    return {
        "made_at": to_microseconds(stored.made_at),
        "name": stored.name,
        "vocabulary": json.dumps(stored.vocabulary),
        "thresholds": np.ascontiguousarray(stored.thresholds, "<f4").tobytes(),
        "extractor": stored.extractor,
        "bytes": stored.bytes,
        "report": json.dumps(stored.report),
    }


def _stored(row: Any) -> StoredModel:
    values = {"bytes": b"", **row._mapping}
    return StoredModel(
        **values
        | {
            "made_at": to_datetime(row.made_at),
            "vocabulary": stored_json(row.vocabulary),
            "thresholds": np.frombuffer(row.thresholds, "<f4").astype(np.float32),
            "report": stored_json(row.report),
        }
    )
