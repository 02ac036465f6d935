"""What models say of tracks: a probability for each tag of a model's vocabulary.

They are stored by tag, in blocks of `BLOCK` track numbers: searching reads few tags of all tracks,
and tagging writes all tags of one block after the other. A probability takes two bytes and is kept
to within `STEP`, far closer than any model knows it: half the bytes take half the time in a search.

What is read takes in what the tags gained from answers since the model was trained (`refinements`),
unless it is asked for as the model was trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.errors import LibraryError
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.schema import (
    BLOCK,
    completed_track,
    prediction,
    refined_prediction,
)
from harmonium.library.store.versions import PREDICTIONS, count_on

STEP = 1 / 65534
"""Between two probabilities that can be told apart in the library."""
_NONE = 65535
"""In place of the probability of a track that has none."""

Steps = NDArray[np.uint16]
"""Stored probabilities, in units of `STEP`."""


def packed(probabilities: NDArray[np.float32]) -> Steps:
    """Probabilities as they are stored; NaN is none. Only 0 and 1 become 0 and 1."""
    p = np.clip(probabilities, 0, 1).astype(np.float64)
    steps = np.clip(np.rint(p / STEP), np.ceil(p), 65533 + np.floor(p))
    return np.where(np.isnan(p), _NONE, steps).astype("<u2")


def unpacked(steps: Steps) -> NDArray[np.float32]:
    """Stored probabilities, NaN where there are none."""
    result = steps * np.float32(STEP)
    result[steps == _NONE] = np.nan
    return result


def steps_of(data: bytes) -> Steps:
    """The blocks of a tag, one after the other, as the database has them."""
    return np.frombuffer(data, "<u2")


class Predictions(LibraryPart):
    """The predictions of a library's models."""

    def put(self, model_id: int, ids: ArrayLike, probabilities: ArrayLike) -> None:
        """Store the probabilities (n, n_tags) of tracks (n,), in place of what these had."""
        numbers, values = np.asarray(ids, np.int64), np.asarray(probabilities, np.float32)
        if values.ndim != 2 or len(values) != len(numbers):
            raise LibraryError(
                f"'probabilities' must have a row for each of the {len(numbers)} tracks, got "
                f"{values.shape}."
            )
        blocks = numbers // BLOCK
        with self._library.begin() as connection:
            for block in np.unique(blocks).tolist():
                rows = np.flatnonzero(blocks == block)
                _put_block(connection, model_id, block, numbers[rows] % BLOCK, values[rows])
            count_on(connection, PREDICTIONS)

    def columns(
        self, model_id: int, tags: Sequence[int], *, refined: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The tracks that have predictions (n,), ascending, and those of some tags (n, len(tags)).

        tags : places in the model's vocabulary
        refined : whether to take in what the tags gained from answers since the model was trained
        """
        wanted = [int(tag) for tag in tags]
        with self._library.connect() as connection:
            found = _read_tags(connection, prediction, model_id, wanted)
            better = _read_tags(connection, refined_prediction, model_id, wanted) if refined else {}
            rows = _completed(connection, model_id) if refined and wanted else {}
        for key, steps in better.items():
            old = found.get(key)
            found[key] = steps if old is None else np.where(steps == _NONE, old, steps)
        blocks = sorted({block for _, block in found})
        if not blocks or not wanted:
            return np.empty(0, np.int64), np.empty((0, len(wanted)), np.float32)
        empty = np.full(BLOCK, _NONE, "<u2")
        columns = [
            np.concatenate([found.get((tag, block), empty) for block in blocks]) for tag in wanted
        ]
        numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        have = columns[0] != _NONE
        ids, result = numbers[have], np.stack([unpacked(one[have]) for one in columns], axis=1)
        known = np.array([track for track in rows if _is_in(track, ids)], np.int64)
        if len(known):
            at, steps = np.searchsorted(ids, known), np.stack([rows[i] for i in known.tolist()])
            for i, tag in enumerate(wanted):
                if tag < steps.shape[1]:
                    result[at, i] = unpacked(steps[:, tag])
        return ids, result

    def matrix(self, model_id: int, *, refined: bool = True) -> tuple[NDArray[np.int64], Steps]:
        """The tracks that have predictions (n,), ascending, and all of these (n_tags, n).

        They are as `columns` gives them, with new words after the model's tags.
        """
        tables = (prediction, refined_prediction) if refined else (prediction,)
        with self._library.connect() as connection:
            found = [_read_tags(connection, table, model_id) for table in tables]
            n_tags = max(_n_tags(connection, model_id, table) for table in tables)
            rows = _completed(connection, model_id) if refined else {}
        blocks = sorted({block for _, block in found[0]})
        steps = np.full((n_tags, len(blocks) * BLOCK), _NONE, "<u2")
        for one in found:
            for (tag, block), data in one.items():
                begin = blocks.index(block) * BLOCK
                here = steps[tag, begin : begin + BLOCK]
                np.copyto(here, data, where=data != _NONE)
        numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        if not n_tags:
            return numbers[:0], steps[:, :0]
        have = steps[0] != _NONE
        ids, steps = numbers[have], np.ascontiguousarray(steps[:, have])
        for track, row in rows.items():
            if _is_in(track, ids):
                steps[: len(row), np.searchsorted(ids, track)] = row
        return ids, steps

    def probabilities(
        self, model_id: int, ids: ArrayLike, *, refined: bool = True
    ) -> NDArray[np.float32]:
        """The probabilities of tracks (n,), (n, n_tags); NaN where there are none.

        refined : as of `columns`; there may be new words after the model's tags
        """
        numbers = np.asarray(ids, np.int64).ravel()
        blocks = numbers // BLOCK
        tables = (prediction, refined_prediction) if refined else (prediction,)
        with self._library.connect() as connection:
            n_tags = max(_n_tags(connection, model_id, table) for table in tables)
            result = np.full((len(numbers), n_tags), np.nan, np.float32)
            for block in np.unique(blocks).tolist():
                rows = np.flatnonzero(blocks == block)
                for table in tables:
                    for tag, steps in _read_block(connection, model_id, block, table).items():
                        found = unpacked(steps[numbers[rows] % BLOCK])
                        result[rows, tag] = np.where(np.isnan(found), result[rows, tag], found)
            if refined:
                said = _completed(connection, model_id, numbers)
                for row in (i for i, number in enumerate(numbers.tolist()) if number in said):
                    found = unpacked(said[int(numbers[row])])
                    result[row, : len(found)] = found
        return result

    def forget_tracks(self, ids: ArrayLike) -> None:
        """Drop what all models say about these tracks (n,): their sound has changed."""
        numbers = np.asarray(ids, np.int64).ravel()
        with self._library.begin() as connection:
            models = connection.execute(sa.select(prediction.c.model_id).distinct()).scalars().all()
            for model_id in models:
                nothing = np.full((len(numbers), _n_tags(connection, model_id)), np.nan, np.float32)
                self.put(model_id, numbers, nothing)
            here = completed_track.c.track_id.in_(numbers.tolist())
            connection.execute(sa.delete(completed_track).where(here))
            _forget_refined(connection, numbers)


def fill_block(places: NDArray[np.int64], steps: Steps) -> bytes:
    """A block with these probabilities (n,) at places (n,), and none elsewhere."""
    whole = np.full(BLOCK, _NONE, "<u2")
    whole[places] = steps
    return whole.tobytes()


def _is_in(number: int, ascending: NDArray[np.int64]) -> bool:
    at = int(np.searchsorted(ascending, number))
    return at < len(ascending) and ascending[at] == number


def _n_tags(connection: sa.Connection, model_id: int, table: sa.Table = prediction) -> int:
    """How many tags a model predicts; 0 where it has not predicted any."""
    query = sa.select(sa.func.max(table.c.tag)).where(table.c.model_id == model_id)
    last = connection.scalar(query)
    return 0 if last is None else int(last) + 1


def _read_tags(
    connection: sa.Connection, table: sa.Table, model_id: int, tags: list[int] | None = None
) -> dict[tuple[int, int], Steps]:
    """(tag, block) → the stored probabilities, (BLOCK,), of some tags or of all."""
    query = sa.select(table.c.tag, table.c.block, table.c.probabilities)
    query = query.where(table.c.model_id == model_id)
    if tags is not None:
        query = query.where(table.c.tag.in_(set(tags)))
    return {(tag, block): steps_of(data) for tag, block, data in connection.execute(query)}


def _completed(
    connection: sa.Connection, model_id: int, ids: NDArray[np.int64] | None = None
) -> dict[int, Steps]:
    """Track → its probabilities given what people said of it, (n_tags,), where that is kept."""
    table = completed_track
    query = sa.select(table.c.track_id, table.c.probabilities).where(table.c.model_id == model_id)
    if ids is not None:
        query = query.where(table.c.track_id.in_(ids.tolist()))
    return {number: steps_of(data) for number, data in connection.execute(query)}


def _forget_refined(connection: sa.Connection, ids: NDArray[np.int64]) -> None:
    """Drop what tags of all models had gained for these tracks."""
    table = refined_prediction
    for block in np.unique(ids // BLOCK).tolist():
        places = ids[ids // BLOCK == block] % BLOCK
        here = sa.select(table).where(table.c.block == block)
        for row in connection.execute(here).all():
            steps = steps_of(row.probabilities).copy()
            steps[places] = _NONE
            same = (table.c[name] == row._mapping[name] for name in ("model_id", "tag", "block"))
            change = sa.update(table).where(*same).values(probabilities=steps.tobytes())
            connection.execute(change)


def _put_block(
    connection: sa.Connection,
    model_id: int,
    block: int,
    places: NDArray[np.int64],
    values: NDArray[np.float32],
) -> None:
    """Write values (n, n_tags) at places (n,) of a block."""
    old = _read_block(connection, model_id, block)
    rows = []
    for tag, column in enumerate(values.T):
        whole = old[tag].copy() if tag in old else np.full(BLOCK, _NONE, "<u2")
        whole[places] = packed(column)
        data = whole.tobytes()
        rows.append({"model_id": model_id, "tag": tag, "block": block, "probabilities": data})
    here = (prediction.c.model_id == model_id, prediction.c.block == block)
    connection.execute(sa.delete(prediction).where(*here))
    connection.execute(sa.insert(prediction), rows)


def _read_block(
    connection: sa.Connection, model_id: int, block: int, table: sa.Table = prediction
) -> dict[int, Steps]:
    """Tag → the stored probabilities of a block, (BLOCK,)."""
    query = sa.select(table.c.tag, table.c.probabilities).where(
        table.c.model_id == model_id, table.c.block == block
    )
    return {tag: steps_of(data) for tag, data in connection.execute(query)}
