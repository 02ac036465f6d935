"""What models say of tracks: a probability for each tag of a model's vocabulary.

They are stored by tag, in blocks of `BLOCK` track numbers: searching reads few tags of all tracks,
and tagging writes all tags of one block after the other. A probability takes two bytes and is kept
to within `STEP`, far closer than any model knows it: half the bytes take half the time in a search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.collection.store.database import LibraryPart
from harmonium.collection.store.schema import BLOCK, prediction
from harmonium.collection.store.versions import PREDICTIONS, count_on
from harmonium.errors import LibraryError

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
        self, model_id: int, tags: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The tracks that have predictions (n,), ascending, and those of some tags (n, len(tags)).

        tags : places in the model's vocabulary
        """
        wanted = [int(tag) for tag in tags]
        query = sa.select(prediction.c.tag, prediction.c.block, prediction.c.probabilities).where(
            prediction.c.model_id == model_id, prediction.c.tag.in_(set(wanted))
        )
        found = {(row.tag, row.block): row[2] for row in self._library.fetch(query)}
        blocks = sorted({block for _, block in found})
        if not blocks or not wanted:
            return np.empty(0, np.int64), np.empty((0, len(wanted)), np.float32)
        empty = np.full(BLOCK, _NONE, "<u2").tobytes()
        columns = [
            steps_of(b"".join(found.get((tag, block), empty) for block in blocks)) for tag in wanted
        ]
        numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        have = columns[0] != _NONE
        return numbers[have], np.stack([unpacked(column[have]) for column in columns], axis=1)

    def matrix(self, model_id: int) -> tuple[NDArray[np.int64], Steps]:
        """The tracks that have predictions (n,), ascending, and all of these (n_tags, n)."""
        query = sa.select(prediction.c.tag, prediction.c.block, prediction.c.probabilities).where(
            prediction.c.model_id == model_id
        )
        with self._library.connect() as connection:
            rows = connection.execute(query).all()
            n_tags = _n_tags(connection, model_id)
        blocks = sorted({row.block for row in rows})
        steps = np.full((n_tags, len(blocks) * BLOCK), _NONE, "<u2")
        for tag, block, data in rows:
            begin = blocks.index(block) * BLOCK
            steps[tag, begin : begin + BLOCK] = steps_of(data)
        numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        if not n_tags:
            return numbers[:0], steps[:, :0]
        have = steps[0] != _NONE
        return numbers[have], np.ascontiguousarray(steps[:, have])

    def probabilities(self, model_id: int, ids: ArrayLike) -> NDArray[np.float32]:
        """The probabilities of tracks (n,), (n, n_tags); NaN where there are none."""
        numbers = np.asarray(ids, np.int64).ravel()
        blocks = numbers // BLOCK
        with self._library.connect() as connection:
            result = np.full((len(numbers), _n_tags(connection, model_id)), np.nan, np.float32)
            for block in np.unique(blocks).tolist():
                rows = np.flatnonzero(blocks == block)
                for tag, steps in _read_block(connection, model_id, block).items():
                    result[rows, tag] = unpacked(steps[numbers[rows] % BLOCK])
        return result

    def forget_tracks(self, ids: ArrayLike) -> None:
        """Drop what all models say about these tracks (n,): their sound has changed."""
        numbers = np.asarray(ids, np.int64).ravel()
        with self._library.begin() as connection:
            models = connection.execute(sa.select(prediction.c.model_id).distinct()).scalars().all()
            for model_id in models:
                nothing = np.full((len(numbers), _n_tags(connection, model_id)), np.nan, np.float32)
                self.put(model_id, numbers, nothing)


def _n_tags(connection: sa.Connection, model_id: int) -> int:
    """How many tags a model predicts; 0 where it has not predicted any."""
    query = sa.select(sa.func.max(prediction.c.tag)).where(prediction.c.model_id == model_id)
    last = connection.scalar(query)
    return 0 if last is None else int(last) + 1


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


def _read_block(connection: sa.Connection, model_id: int, block: int) -> dict[int, Steps]:
    """Tag → the stored probabilities of a block, (BLOCK,)."""
    query = sa.select(prediction.c.tag, prediction.c.probabilities).where(
        prediction.c.model_id == model_id, prediction.c.block == block
    )
    return {tag: steps_of(data) for tag, data in connection.execute(query)}
