"""What models say of tracks: a probability for each tag of a model's vocabulary.

Stored for each tag in blocks of `BLOCK` numbers of tracks, NaN where a track has none: searching
reads few tags of all tracks, tagging writes all tags of one block after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.collection.schema import BLOCK, prediction
from harmonium.errors import LibraryError

if TYPE_CHECKING:
    from harmonium.collection.library import Library

Block = NDArray[np.float32]


class Predictions:
    """The predictions of a library's models."""

    def __init__(self, library: Library) -> None:
        self._library = library

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
        with self._library.connect() as connection:
            found = {(row.tag, row.block): _block(row[2]) for row in connection.execute(query)}
        blocks = sorted({block for _, block in found})
        if not blocks or not wanted:
            return np.empty(0, np.int64), np.empty((0, len(wanted)), np.float32)
        empty = np.full(BLOCK, np.nan, np.float32)
        columns = [
            np.concatenate([found.get((tag, block), empty) for block in blocks]) for tag in wanted
        ]
        numbers = (np.array(blocks, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        have = ~np.isnan(columns[0])
        return numbers[have], np.stack([column[have] for column in columns], axis=1)

    def of(self, model_id: int, ids: ArrayLike) -> NDArray[np.float32]:
        """The probabilities of tracks (n,), (n, n_tags); NaN where there are none."""
        numbers = np.asarray(ids, np.int64).ravel()
        blocks = numbers // BLOCK
        with self._library.connect() as connection:
            result = np.full((len(numbers), _n_tags(connection, model_id)), np.nan, np.float32)
            for block in np.unique(blocks).tolist():
                rows = np.flatnonzero(blocks == block)
                for tag, values in _read_block(connection, model_id, block).items():
                    result[rows, tag] = values[numbers[rows] % BLOCK]
        return result

    def count(self, model_id: int) -> int:
        """How many tracks have predictions."""
        query = sa.select(prediction.c.probabilities).where(
            prediction.c.model_id == model_id, prediction.c.tag == 0
        )
        with self._library.connect() as connection:
            blocks = connection.execute(query).scalars()
            return sum(int((~np.isnan(_block(data))).sum()) for data in blocks)

    def forget(self, model_id: int) -> None:
        """Drop all predictions of a model."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(prediction).where(prediction.c.model_id == model_id))

    def forget_tracks(self, ids: ArrayLike) -> None:
        """Drop what all models say of these tracks (n,): they sound otherwise now."""
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
        whole = old[tag] if tag in old else np.full(BLOCK, np.nan, np.float32)
        whole[places] = column
        data = np.ascontiguousarray(whole, "<f4").tobytes()
        rows.append({"model_id": model_id, "tag": tag, "block": block, "probabilities": data})
    here = (prediction.c.model_id == model_id, prediction.c.block == block)
    connection.execute(sa.delete(prediction).where(*here))
    connection.execute(sa.insert(prediction), rows)


def _read_block(connection: sa.Connection, model_id: int, block: int) -> dict[int, Block]:
    """Tag → the probabilities of a block, (BLOCK,)."""
    query = sa.select(prediction.c.tag, prediction.c.probabilities).where(
        prediction.c.model_id == model_id, prediction.c.block == block
    )
    return {tag: _block(data) for tag, data in connection.execute(query)}


def _block(data: bytes) -> Block:
    return np.frombuffer(data, "<f4").astype(np.float32)
