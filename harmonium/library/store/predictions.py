"""The rows of predictions: what models say about tracks.

They are stored by tag, in blocks of `BLOCK` track numbers: searching reads few tags of all tracks,
and tagging writes all tags of one block after another. A probability takes two bytes and is
accurate to `STEP`, far better than any model.

What a model's tags gained from answers since it was trained (`store.refinements`) is kept beside
its predictions, which do not change. Reading includes it, unless the model as trained is asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.library.store import database
from harmonium.library.store.failures import intact
from harmonium.library.store.schema import (
    BLOCK,
    completed_track,
    prediction,
    refined_prediction,
)

STEP = 1 / 65534  # the smallest difference between stored probabilities
MISSING = 65535  # stands for a missing probability
_BLOCK_KEY = ("model_id", "tag", "block")

Steps = NDArray[np.uint16]  # stored probabilities, in units of `STEP`
Blocks = dict[tuple[int, int], Steps]  # (tag, block) → the stored probabilities, (BLOCK,)


def packed(probabilities: Floats) -> Steps:
    """Probabilities as stored; NaN for none. Only exact 0 and 1 become 0 and 1."""
    p = np.clip(probabilities, 0, 1).astype(np.float64)
    steps = np.clip(np.rint(p / STEP), np.ceil(p), 65533 + np.floor(p))
    return np.where(np.isnan(p), MISSING, steps).astype("<u2")


def unpacked(steps: Steps) -> Floats:
    """Stored probabilities as floats; NaN for none."""
    result = steps * np.float32(STEP)
    result[steps == MISSING] = np.nan
    return result


def packed_number(p: float) -> int:
    """One probability as `packed` stores it."""
    if p <= 0 or p >= 1:
        return 65534 if p >= 1 else 0
    return min(max(round(p / STEP), 1), 65533)


def places_in(everyone: Ids, some: Ids) -> tuple[Places, Mask]:
    """Where each of ``some`` belongs in ``everyone``, ascending, and whether it is there, (m,)."""
    if not len(everyone):
        return np.zeros(len(some), np.intp), np.zeros(len(some), bool)
    at = np.minimum(np.searchsorted(everyone, some), len(everyone) - 1)
    return at, everyone[at] == some


def steps_in(table: sa.Table, row: Any, name: str = "probabilities") -> Steps:
    """The array in a row's column."""
    with intact(table, row):
        return np.frombuffer(getattr(row, name), "<u2")


class ModelPredictions(NamedTuple):
    """What a model says about tracks."""

    ids: Ids  # (n,) ascending
    steps: Steps  # (n_tags, n) as stored; those of a tag are side by side in memory

    def mean(self, tag: int) -> float:
        """How common a tag is."""
        if not len(self.ids):
            return 0.0
        return float(unpacked(np.rint(self.steps[[tag]].mean(axis=1)).astype(np.uint16))[0])

    def rows(self, ids: Ids, tags: Sequence[int] | None = None) -> Floats:
        """(len(ids), n_tags) for some tracks, and some tags or all; NaN if missing."""
        chosen = np.arange(len(self.steps)) if tags is None else np.asarray(tags, np.intp)
        probabilities = np.full((len(ids), len(chosen)), np.nan, np.float32)
        at, known = places_in(self.ids, ids)
        probabilities[known] = unpacked(self.steps[np.ix_(chosen, at[known])]).T
        return probabilities

    def steps_of(self, ids: Ids) -> Steps:
        """(len(ids), n_tags) what is stored for some tracks; `MISSING` where nothing is."""
        steps = np.full((len(ids), len(self.steps)), MISSING, "<u2")
        at, known = places_in(self.ids, ids)
        steps[known] = self.steps[:, at[known]].T
        return steps


class Predictions(database.LibraryPart):
    """The predictions of a library's models."""

    def put(self, model_id: int, ids: ArrayLike, probabilities: ArrayLike) -> None:
        """Store the probabilities (n, n_tags) of tracks (n,), replacing the old ones."""
        numbers = np.asarray(ids, np.int64)
        columns = np.asarray(probabilities, np.float32).T
        blocks = np.unique(numbers // BLOCK).tolist()
        replaced = (prediction.c.model_id == model_id, prediction.c.block.in_(blocks))
        with self._library.begin() as connection:
            old = _read_blocks(connection, prediction, *replaced)
            rows: list[dict[str, Any]] = []
            for tag, column in enumerate(columns):
                rows += block_rows(model_id, tag, numbers, column, old)
            database.replace_rows(connection, prediction, rows, *replaced)
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
        wanted = range(self._n_tags(model_id, refined=refined)) if tags is None else tags
        conditions: dict[str, Any] = {} if tags is None else {"tag": tags}
        if ids is not None:
            conditions["block"] = np.unique(ids // BLOCK).tolist()
        with self._library.connect() as connection:
            blocks = _read_blocks(connection, prediction, *_in(prediction, model_id, conditions))
            completed: Sequence[Any] = []
            if refined:
                where = _in(refined_prediction, model_id, conditions)
                for key, new in _read_blocks(connection, refined_prediction, *where).items():
                    old = blocks.get(key)
                    blocks[key] = new if old is None else np.where(new == MISSING, old, new)
                if len(wanted):
                    completed = _read_completed(connection, model_id, ids)
        predictions = _assembled(blocks, wanted, ids)
        _complete(predictions, wanted, completed)
        return predictions

    def _n_tags(self, model_id: int, *, refined: bool) -> int:
        if not model_id:
            return 0
        model = self._library.models.get(model_id, whole=False)
        return len(model.outputs) if refined else len(model.vocabulary)

    def forget_tracks(self, ids: ArrayLike) -> None:
        """Delete all predictions for these tracks (n,): their sound has changed."""
        numbers = np.asarray(ids, np.int64).ravel()
        blocks = np.unique(numbers // BLOCK).tolist()
        with self._library.begin() as connection:
            for table in (prediction, refined_prediction):
                query = sa.select(table).where(table.c.block.in_(blocks))
                for row in connection.execute(query).all():
                    steps = _block_in(table, row).copy()
                    steps[numbers[numbers // BLOCK == row.block] % BLOCK] = MISSING
                    same = (table.c[name] == getattr(row, name) for name in _BLOCK_KEY)
                    change = sa.update(table).where(*same).values(probabilities=steps.tobytes())
                    connection.execute(change)
            forgotten = completed_track.c.track_id.in_(numbers.tolist())
            connection.execute(sa.delete(completed_track).where(forgotten))
            database.bump_version(connection, database.PREDICTIONS)


def _in(
    table: sa.Table, model_id: int, values: Mapping[str, Sequence[int]]
) -> list[sa.ColumnElement[bool]]:
    """The rows of a model whose columns have one of some values."""
    return [
        table.c.model_id == model_id,
        *(table.c[name].in_(allowed) for name, allowed in values.items()),
    ]


def _read_blocks(
    connection: sa.Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]
) -> Blocks:
    query = sa.select(table.c.tag, table.c.block, table.c.probabilities).where(*conditions)
    return {(row.tag, row.block): _block_in(table, row) for row in connection.execute(query)}


def _block_in(table: sa.Table, row: Any) -> Steps:
    with intact(table, row):
        if row.block not in range(1 << 31):
            raise ValueError(f"block {row.block}")
        return steps_in(table, row).reshape(BLOCK)


def _read_completed(connection: sa.Connection, model_id: int, ids: Ids | None) -> Sequence[Any]:
    """What follows from what people said about tracks, a row for each."""
    table = completed_track
    query = sa.select(table.c.track_id, table.c.probabilities)
    query = query.where(table.c.model_id == model_id)
    if ids is not None:
        query = query.where(table.c.track_id.in_(ids.tolist()))
    return connection.execute(query).all()


def _assembled(blocks: Blocks, tags: Sequence[int], ids: Ids | None) -> ModelPredictions:
    """The blocks of some tags as one array, for some tracks or all that have predictions."""
    present = sorted({block for _, block in blocks})
    if ids is None:
        numbers = (np.array(present, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    else:
        numbers = np.unique(ids[np.isin(ids // BLOCK, present)])
    steps = np.full((len(tags), len(numbers)), MISSING, "<u2")
    for block in present:
        begin, end = np.searchsorted(numbers, [block * BLOCK, (block + 1) * BLOCK])
        places = slice(None) if ids is None else numbers[begin:end] % BLOCK
        for row, tag in enumerate(tags):
            if (tag, block) in blocks:
                steps[row, begin:end] = blocks[tag, block][places]
    known = steps[0] != MISSING if len(tags) else np.zeros(len(numbers), bool)
    # compress keeps a tag's predictions side by side in memory; steps[:, known] would not
    return ModelPredictions(numbers[known], np.compress(known, steps, axis=1))


def _complete(predictions: ModelPredictions, tags: Sequence[int], completed: Sequence[Any]) -> None:
    """Put what follows from what people said in the place of the predictions."""
    columns = np.array(tags, np.int64)
    for row in completed:
        steps = steps_in(completed_track, row)
        at = int(np.searchsorted(predictions.ids, row.track_id))
        if at < len(predictions.ids) and predictions.ids[at] == row.track_id:
            trained = columns < len(steps)  # a new word has none
            predictions.steps[trained, at] = steps[columns[trained]]


def block_rows(
    model_id: int, tag: int, ids: Ids, p: Floats, old: Mapping[tuple[int, int], Steps]
) -> Iterator[dict[str, Any]]:
    """A tag's rows with new probabilities (n,) for tracks (n,); the others stay."""
    blocks = ids // BLOCK
    steps = packed(p)
    for block in np.unique(blocks).tolist():
        inside = blocks == block
        whole = old.get((tag, block), np.full(BLOCK, MISSING, "<u2")).copy()
        whole[ids[inside] % BLOCK] = steps[inside]
        yield {
            "model_id": model_id,
            "tag": tag,
            "block": block,
            "probabilities": whole.tobytes(),
        }
