"""The models that were trained on a library, and the probabilities that they predict.

Predictions are stored by tag, in blocks of `BLOCK` track numbers: searching reads few tags of all
tracks, and tagging writes all tags of one block after another. A probability takes two bytes and is
accurate to `STEP`, far better than any model.

What a model's tags gained from answers since it was trained (`harmonium.library.answers`) is kept
beside its predictions, which do not change: what each answered track taught (`Refinement`), and the
resulting probabilities. Reading includes these, unless the model as trained is asked for.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from harmonium.arrays import Doubles, Floats, Ids, Mask, Places
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.library.store import database
from harmonium.library.store.schema import (
    BLOCK,
    completed_track,
    model,
    prediction,
    refined_prediction,
    refined_tag,
)

CURRENT = "current_model"  # the setting that holds the number of the model in use
Owner = Literal["own", "built-in", "people"]  # learnt here, of the built-in model, people's alone
MIN_WRITTEN_PRECISION = 0.8  # held-out precision that a built-in tag needs to be written
UNREACHABLE = 2.0  # the threshold of a tag that is never predicted
_WITHOUT_BYTES = [column for column in model.c if column is not model.c.bytes]


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A model with everything needed to use it."""

    id: int = 0  # its number; 0 until it is stored
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    name: str
    vocabulary: list[str]  # its tags, in the order of its outputs
    thresholds: Floats  # (n_tags,) the probability at which a track gets the tag
    extractor: str  # the key of the extractor whose features it takes
    bytes: bytes = field(repr=False)  # the model itself
    report: dict[str, Any] = field(repr=False)  # how it was trained, how good it is; JSON
    refinements: tuple["Refinement", ...] = field(default=(), repr=False)  # learnt from answers
    n_new: int = 0  # how many of its tags, the last ones, are new words learnt only from answers

    @property
    def learnt(self) -> Mask:
        """(n_tags,) which tags it has learnt: the threshold of the others is above 1."""
        return self.thresholds <= 1

    @property
    def n_trained(self) -> int:
        """How many of its tags, the first ones, were trained."""
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

    @property
    def features(self) -> dict[str, int]:
        """Audio feature → its place in the vocabulary, for those that it has."""
        places = {tag: j for j, tag in enumerate(self.vocabulary)}
        return {name: places[name] for name in AUDIO_FEATURES if name in places}

    @property
    def confirmed(self) -> Mask:
        """(n_tags,) all but built-in moods whose precision no second collection confirms."""
        return self.is_own | ~np.isin(self.vocabulary, self.report.get("unconfirmed", []))

    def as_trained(self) -> Self:
        """The same model without what its tags gained since."""
        if not self.refinements:
            return self
        thresholds = self.thresholds[: self.n_trained].copy()
        alone = [one.place for one in self.refinements if not one.has_model]
        thresholds[[place for place in alone if place < self.n_trained]] = UNREACHABLE
        tags = self.vocabulary[: self.n_trained]
        return replace(self, vocabulary=tags, thresholds=thresholds, refinements=(), n_new=0)

    def refined(self, refinements: Sequence["Refinement"]) -> Self:
        """The same model with what its tags gained since."""
        if not refinements:
            return self
        n = len(self.vocabulary)
        new = [one.name for one in refinements if one.place >= n]
        if any(one.place not in range(n + len(new)) for one in refinements):
            raise database.damaged("what tags gained from answers is of other tags")
        if any(not 0 <= (one.threshold or 0) <= UNREACHABLE for one in refinements):
            raise database.damaged("the threshold of a tag is out of range")
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

    def only(self, owner: Owner | None) -> Self:
        """The same model, but only with own tags, or only with built-in ones."""
        return self if owner is None else self._predicting(self.is_own == (owner == "own"))

    def without(self, hidden: Collection[str], renamed: Mapping[str, str]) -> Self:
        """The same model without hidden tags, and with the new names of renamed ones."""
        # If a tag was merged into another, only the other is predicted.
        tags, wanted = list(self.vocabulary), np.ones(len(self.vocabulary), bool)
        for j, tag in enumerate(tags):
            new = tag if tag in AUDIO_FEATURES else renamed.get(tag, tag)
            wanted[j] = new not in hidden and (new == tag or new not in tags)
            tags[j] = new if wanted[j] else tag
        return replace(self._predicting(wanted), vocabulary=tags)

    def sure(self) -> Self:
        """The same model without built-in tags that are wrong too often to be written."""
        precision = self.report.get("precision", {})
        wanted = np.arange(len(self.vocabulary)) < self.n_own
        sure = [(precision.get(tag) or 0) >= MIN_WRITTEN_PRECISION for tag in self.vocabulary]
        return self._predicting((wanted | sure) & self.confirmed)

    def _predicting(self, wanted: Mask) -> Self:
        """The same model, predicting only some tags (n_tags,)."""
        thresholds = np.where(wanted, self.thresholds, np.float32(UNREACHABLE))
        return replace(self, thresholds=thresholds)


NO_MODEL = StoredModel(
    name="", vocabulary=[], thresholds=np.empty(0, np.float32), extractor="", bytes=b"", report={}
)
"""The model of a library without one: it knows no tags, and its number is 0."""


class Models(database.LibraryPart):
    """The models of a library."""

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
            "made_at": database.to_microseconds(stored.made_at),
            "name": stored.name,
            "vocabulary": json.dumps(stored.vocabulary),
            "thresholds": np.asarray(stored.thresholds, "<f4").tobytes(),
            "extractor": stored.extractor,
            "bytes": stored.bytes,
            "report": json.dumps(stored.report),
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
            known = ", ".join(str(one.id) for one in self.list())
            way_out = f"There are {known}." if known else "`harmonium train` makes one."
            raise NotInLibraryError(f"There is no model {model_id} in the library. {way_out}")
        return _stored(rows[0]).refined(refinements)

    def list(self) -> Sequence[StoredModel]:
        """All models as trained, the oldest first, without their bytes."""
        query = sa.select(*_WITHOUT_BYTES).order_by(model.c.id)
        return [_stored(row) for row in self._library.fetch(query)]


_NUMBER = int | float | None
_IN_REPORT: dict[str, Any] = dict.fromkeys(("mean_auc", "tracks"), _NUMBER)
_IN_REPORT |= {"own": int, "precision": dict, "aliases": dict, "unconfirmed": list, "tags": list}
_IN_REPORT |= {"min_count": int, "min_share": int | float}
_OF_TAG = {"tag": str, **dict.fromkeys(("examples", "auc", "precision", "recall"), _NUMBER)}


def _fits(found: dict[str, Any], kinds: Mapping[str, Any]) -> bool:
    return all(isinstance(found[name], kinds[name]) for name in kinds if name in found)


def _stored(row: Any) -> StoredModel:
    with database.intact(model, row):
        tags, report = database.stored_json(row.vocabulary), database.stored_json(row.report)
        thresholds = np.frombuffer(row.thresholds, "<f4").astype(np.float32)
        fits = [*map(type, tags)] == [str] * len(thresholds) and _fits({} | report, _IN_REPORT)
        if not fits or not all(_fits({"tag": 0} | tag, _OF_TAG) for tag in report.get("tags", [])):
            raise ValueError("its tags, thresholds and report do not fit together")
        made_at = database.to_datetime(row.made_at)
        about = {"made_at": made_at, "vocabulary": tags, "thresholds": thresholds, "report": report}
        return StoredModel(**{"bytes": b"", **row._mapping, **about})


STEP = 1 / 65534  # the smallest difference between stored probabilities
_BLOCK_KEY = ("model_id", "tag", "block")
_NONE = 65535  # stands for a missing probability

Steps = NDArray[np.uint16]  # stored probabilities, in units of `STEP`


def packed(probabilities: Floats) -> Steps:
    """Probabilities as stored; NaN for none. Only exact 0 and 1 become 0 and 1."""
    p = np.clip(probabilities, 0, 1).astype(np.float64)
    steps = np.clip(np.rint(p / STEP), np.ceil(p), 65533 + np.floor(p))
    return np.where(np.isnan(p), _NONE, steps).astype("<u2")


def unpacked(steps: Steps) -> Floats:
    """Stored probabilities as floats; NaN for none."""
    result = steps * np.float32(STEP)
    result[steps == _NONE] = np.nan
    return result


def places_in(everyone: Ids, some: Ids) -> tuple[Places, Mask]:
    """Where each of ``some`` belongs in ``everyone``, ascending, and whether it is there, (m,)."""
    if not len(everyone):
        return np.zeros(len(some), np.intp), np.zeros(len(some), bool)
    at = np.minimum(np.searchsorted(everyone, some), len(everyone) - 1)
    return at, everyone[at] == some


def _steps_in(table: sa.Table, row: Any, name: str = "probabilities") -> Steps:
    """The array in a row's column."""
    with database.intact(table, row):
        return np.frombuffer(getattr(row, name), "<u2")


class Refinement(NamedTuple):
    """What a tag gained from answers."""

    place: int  # in the model's vocabulary; new words come after the tags it was trained with
    name: str
    threshold: float | None  # None: the model's own
    has_model: bool  # whether it adds to the model's log-odds or stands alone
    ids: Ids  # (n,) the tracks that it was learnt from
    weights: Doubles  # (n,) what each of these tracks taught
    bias: float  # what all tracks gain
    n_yes: int
    n_no: int
    digest: str  # the digest of what it was learnt from


class ModelPredictions(NamedTuple):
    """What a model says about tracks."""

    ids: Ids  # (n,) ascending
    steps: Steps  # (n_tags, n) as stored

    def mean(self, tag: int) -> float:
        """How common a tag is."""
        if not len(self.ids):
            return 0.0
        return float(unpacked(np.rint(self.steps[[tag]].mean(axis=1)).astype(np.uint16))[0])

    def rows(self, ids: Ids, tags: Sequence[int] | None = None) -> Floats:
        """(len(ids), n_tags) for some tracks, and some tags or all; NaN if missing."""
        chosen = np.arange(len(self.steps)) if tags is None else np.asarray(tags, np.intp)
        found = np.full((len(ids), len(chosen)), np.nan, np.float32)
        at, here = places_in(self.ids, ids)
        found[here] = unpacked(self.steps[np.ix_(chosen, at[here])]).T
        return found


class Predictions(database.LibraryPart):
    """The predictions of a library's models."""

    def put(self, model_id: int, ids: ArrayLike, probabilities: ArrayLike) -> None:
        """Store the probabilities (n, n_tags) of tracks (n,), replacing the old ones."""
        numbers, values = np.asarray(ids, np.int64), np.asarray(probabilities, np.float32)
        blocks = np.unique(numbers // BLOCK).tolist()
        here = (prediction.c.model_id == model_id, prediction.c.block.in_(blocks))
        with self._library.begin() as connection:
            old = _read_blocks(connection, prediction, *here)
            rows = [
                row
                for tag, column in enumerate(values.T)
                for row in _block_rows(model_id, tag, numbers, column, old)
            ]
            database.replace_rows(connection, prediction, rows, *here)
            database.bump_version(connection, database.PREDICTIONS)

    def columns(
        self, model_id: int, tags: Sequence[int], *, refined: bool = True
    ) -> tuple[Ids, Floats]:
        """The tracks with predictions (n,), ascending, and those of some tags (n, len(tags)).

        tags : places in the model's vocabulary
        refined : whether to include what the tags gained from answers since training
        """
        ids, steps = self.matrix(model_id, [int(tag) for tag in tags], refined=refined)
        return ids, np.ascontiguousarray(unpacked(steps).T)

    def probabilities(
        self,
        model_id: int,
        ids: ArrayLike,
        tags: Sequence[int] | None = None,
        *,
        refined: bool = True,
    ) -> Floats:
        """The probabilities of tracks (n,), (n, n_tags); NaN if missing.

        tags, refined : as in `columns`; by default all, perhaps followed by new words
        """
        numbers = np.asarray(ids, np.int64).ravel()
        return self.matrix(model_id, tags, numbers, refined=refined).rows(numbers)

    def matrix(
        self,
        model_id: int,
        tags: Sequence[int] | None = None,
        ids: Ids | None = None,
        *,
        refined: bool = True,
    ) -> ModelPredictions:
        """Predictions for some tags, for some tracks or all that have any; as in `columns`."""
        tables = (prediction, refined_prediction) if refined else (prediction,)
        found: dict[tuple[int, int], Steps] = {}
        of_some = tags is not None
        if tags is None:
            stored = self._library.models.get(model_id, whole=False) if model_id else NO_MODEL
            tags = range(len(stored.vocabulary) if refined else stored.n_trained)
        with self._library.connect() as connection:
            for table in tables:
                where = [table.c.model_id == model_id]
                if of_some:
                    where.append(table.c.tag.in_(tags))
                if ids is not None:
                    where.append(table.c.block.in_(np.unique(ids // BLOCK).tolist()))
                for key, new in _read_blocks(connection, table, *where).items():
                    found[key] = np.where(new == _NONE, found[key], new) if key in found else new
            table = completed_track
            where = [table.c.model_id == model_id]
            if ids is not None:
                where.append(table.c.track_id.in_(ids.tolist()))
            query = sa.select(table.c.track_id, table.c.probabilities).where(*where)
            completed = connection.execute(query).all() if refined and tags else []
        blocks = sorted({block for _, block in found})
        if ids is None:
            numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        else:
            numbers = np.unique(ids[np.isin(ids // BLOCK, blocks)])
        steps = np.full((len(tags), len(numbers)), _NONE, "<u2")
        for block in blocks:
            begin, end = np.searchsorted(numbers, [block * BLOCK, (block + 1) * BLOCK])
            places = slice(None) if ids is None else numbers[begin:end] % BLOCK
            for row, tag in enumerate(tags):
                if (tag, block) in found:
                    steps[row, begin:end] = found[tag, block][places]
        have = steps[0] != _NONE if tags else np.zeros(len(numbers), bool)
        numbers, steps, places = numbers[have], steps[:, have], np.array(tags, np.int64)
        for one in completed:
            known = _steps_in(completed_track, one)
            at = int(np.searchsorted(numbers, one.track_id))
            if at < len(numbers) and numbers[at] == one.track_id:
                inside = places < len(known)  # a new word has none
                steps[inside, at] = known[places[inside]]
        return ModelPredictions(numbers, steps)

    def forget_tracks(self, ids: ArrayLike) -> None:
        """Delete all predictions for these tracks (n,): their sound has changed."""
        numbers = np.asarray(ids, np.int64).ravel()
        with self._library.begin() as connection:
            for table in (prediction, refined_prediction):
                blocks = np.unique(numbers // BLOCK).tolist()
                query = sa.select(table).where(table.c.block.in_(blocks))
                for row in connection.execute(query).all():
                    steps = _block_in(table, row).copy()
                    steps[numbers[numbers // BLOCK == row.block] % BLOCK] = _NONE
                    same = (table.c[name] == getattr(row, name) for name in _BLOCK_KEY)
                    change = sa.update(table).where(*same).values(probabilities=steps.tobytes())
                    connection.execute(change)
            here = completed_track.c.track_id.in_(numbers.tolist())
            connection.execute(sa.delete(completed_track).where(here))
            database.bump_version(connection, database.PREDICTIONS)


class Refinements(database.LibraryPart):
    """What the tags of a library's models gained from answers."""

    def put(
        self,
        model_id: int,
        refinements: Iterable[Refinement],
        columns: Mapping[int, tuple[Ids, Floats]],
    ) -> None:
        """Keep these and no others; new probabilities by place: tracks (n,), and theirs (n,)."""
        rows = [
            {
                **{"model_id": model_id, "tag": one.place, "name": one.name},
                **{"threshold": one.threshold, "digest": one.digest, "answers": _saved(one)},
            }
            for one in refinements
        ]
        others = refined_prediction.c.tag.not_in([row["tag"] for row in rows])
        with self._library.begin() as connection:
            database.replace_rows(connection, refined_tag, rows, refined_tag.c.model_id == model_id)
            void = (refined_prediction.c.model_id == model_id, others)
            connection.execute(sa.delete(refined_prediction).where(*void))
            self.put_columns(model_id, columns)

    def put_columns(self, model_id: int, columns: Mapping[int, tuple[Ids, Floats]]) -> None:
        """Store new probabilities by tag, for all tracks that have any."""
        table = refined_prediction
        rows = [
            row
            for tag, (ids, p) in columns.items()
            for row in _block_rows(model_id, tag, ids, p, {})
        ]
        with self._library.begin() as connection:
            old = (table.c.model_id == model_id, table.c.tag.in_(columns))
            database.replace_rows(connection, table, rows, *old)
            database.bump_version(connection, database.PREDICTIONS)

    def completed(self, model_id: int) -> dict[int, tuple[str, Steps]]:
        """Track → digest of what was said about it, and the resulting probabilities, (n_tags,)."""
        table = completed_track
        query = sa.select(table.c.track_id, table.c.digest, table.c.completed)
        rows = self._library.fetch(query.where(table.c.model_id == model_id))
        return {row.track_id: (row.digest, _steps_in(table, row, "completed")) for row in rows}

    def put_completed(
        self, model_id: int, digests: Mapping[int, str], completed: Steps, probabilities: Steps
    ) -> None:
        """Keep only these rows, (n, n_tags), of the tracks in the order of the digests."""
        rows = [
            {"model_id": model_id, "track_id": track_id, "digest": digest}
            | {"completed": completed[i].tobytes(), "probabilities": probabilities[i].tobytes()}
            for i, (track_id, digest) in enumerate(digests.items())
        ]
        old = completed_track.c.model_id == model_id
        with self._library.begin() as connection:
            database.replace_rows(connection, completed_track, rows, old)
            database.bump_version(connection, database.PREDICTIONS)


def read_refinements(connection: sa.Connection, model_id: int) -> list[Refinement]:
    """The refinements of a model, by place."""
    query = sa.select(refined_tag).where(refined_tag.c.model_id == model_id)
    found = []
    for row in connection.execute(query.order_by(refined_tag.c.tag)):
        with database.intact(refined_tag, row):
            arrays = load(row.answers)
            has_model, n_yes, n_no = arrays["counts"].tolist()
            if arrays["ids"].shape != arrays["weights"].shape:
                raise ValueError("not a weight for each track")
            threshold = None if row.threshold is None else float(row.threshold)
            learnt = (arrays["ids"], arrays["weights"], float(arrays["bias"][0]))
            about = (row.tag, row.name, threshold, bool(has_model))
            found.append(Refinement(*about, *learnt, n_yes, n_no, row.digest))
    return found


def _saved(one: Refinement) -> bytes:
    counts = np.array([one.has_model, one.n_yes, one.n_no], np.int64)
    about = {"ids": one.ids, "weights": one.weights, "bias": np.array([one.bias])}
    return save({**about, "counts": counts})


def _read_blocks(
    connection: sa.Connection, table: sa.Table, *conditions: Any
) -> dict[tuple[int, int], Steps]:
    """(tag, block) → the stored probabilities, (BLOCK,)."""
    query, found = sa.select(table.c.tag, table.c.block, table.c.probabilities), {}
    for row in connection.execute(query.where(*conditions)):
        found[row.tag, row.block] = _block_in(table, row)
    return found


def _block_in(table: sa.Table, row: Any) -> Steps:
    with database.intact(table, row):
        if row.block not in range(1 << 31):
            raise ValueError(f"block {row.block}")
        return _steps_in(table, row).reshape(BLOCK)


def _block_rows(
    model_id: int, tag: int, ids: Ids, p: Floats, old: Mapping[tuple[int, int], Steps]
) -> Iterator[dict[str, Any]]:
    """A tag's rows with new probabilities (n,) for tracks (n,); the others stay."""
    blocks, steps = ids // BLOCK, packed(p)
    for block in np.unique(blocks).tolist():
        here = blocks == block
        whole = old.get((tag, block), np.full(BLOCK, _NONE, "<u2")).copy()
        whole[ids[here] % BLOCK] = steps[here]
        values = (model_id, tag, block, whole.tobytes())
        yield dict(zip((*_BLOCK_KEY, "probabilities"), values, strict=True))
