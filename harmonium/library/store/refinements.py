"""What a model's tags gained from answers since it was trained.

A tag's log-odds gain, for every track, its likeness in sound to the tracks that were answered,
weighted by what each of them taught (`Refinement`). What that makes of all tracks is kept beside
the predictions, and so is what follows, for a track, from what people said of it: the model's own
predictions stay as they were. `harmonium.library.learning.quick` works all of it out.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from safetensors.numpy import load, save

from harmonium.library.store.database import LibraryPart
from harmonium.library.store.predictions import Steps, fill_block, packed, steps_of
from harmonium.library.store.schema import (
    BLOCK,
    completed_track,
    refined_prediction,
    refined_tag,
)
from harmonium.library.store.versions import PREDICTIONS, count_on


class Refinement(NamedTuple):
    """What a tag gained from answers."""

    place: int
    """In the model's vocabulary; a new word's is after the tags that the model was trained with."""
    name: str
    threshold: float | None
    """None: the model's own."""
    has_model: bool
    """Whether it adds to what the model says; otherwise it stands alone."""
    ids: NDArray[np.int64]
    """(n,) the tracks that it was learnt from,"""
    weights: NDArray[np.float64]
    """(n,) and what each of them taught."""
    bias: float
    """What all tracks gain."""
    n_yes: int
    n_no: int
    digest: str
    """Of what it was learnt from."""


class Refinements(LibraryPart):
    """What the tags of a library's models gained."""

    def of(self, model_id: int) -> list[Refinement]:
        """Those of a model, by place."""
        with self._library.connect() as connection:
            return read(connection, model_id)

    def put(
        self,
        model_id: int,
        refinements: Iterable[Refinement],
        columns: Mapping[int, tuple[NDArray[np.int64], NDArray[np.float32]]],
    ) -> None:
        """Keep these and no others; new probabilities of tags, by place: of tracks (n,), (n,)."""
        rows = [_row(model_id, one) for one in refinements]
        with self._library.begin() as connection:
            connection.execute(sa.delete(refined_tag).where(refined_tag.c.model_id == model_id))
            if rows:
                connection.execute(sa.insert(refined_tag), rows)
            table = refined_prediction
            void = table.c.tag.in_(columns) | table.c.tag.not_in([row["tag"] for row in rows])
            connection.execute(sa.delete(table).where(table.c.model_id == model_id, void))
            self.put_columns(model_id, columns)

    def put_columns(
        self,
        model_id: int,
        columns: Mapping[int, tuple[NDArray[np.int64], NDArray[np.float32]]],
    ) -> None:
        """Keep new probabilities of all tracks that have any, by tag."""
        table = refined_prediction
        rows = []
        for place, (ids, p) in columns.items():
            blocks, steps = ids // BLOCK, packed(p)
            for block in np.unique(blocks).tolist():
                here = blocks == block
                data = fill_block(ids[here] % BLOCK, steps[here])
                values = {"model_id": model_id, "tag": place, "block": block}
                rows.append({**values, "probabilities": data})
        with self._library.begin() as connection:
            old = (table.c.model_id == model_id, table.c.tag.in_(columns))
            connection.execute(sa.delete(table).where(*old))
            if rows:
                connection.execute(sa.insert(table), rows)
            count_on(connection, PREDICTIONS)

    def completed(self, model_id: int) -> dict[int, tuple[str, Steps]]:
        """Track → digest of what was said of it, and what follows from that, (n_tags,)."""
        table = completed_track
        query = sa.select(table.c.track_id, table.c.digest, table.c.completed)
        rows = self._library.fetch(query.where(table.c.model_id == model_id))
        return {row.track_id: (row.digest, steps_of(row.completed)) for row in rows}

    def put_completed(
        self, model_id: int, digests: Mapping[int, str], completed: Steps, probabilities: Steps
    ) -> None:
        """Keep these rows, (n, n_tags) of the tracks in the order of the digests, and no others."""
        rows = [
            {
                "model_id": model_id,
                "track_id": track_id,
                "completed": completed[i].tobytes(),
                "probabilities": probabilities[i].tobytes(),
                "digest": digest,
            }
            for i, (track_id, digest) in enumerate(digests.items())
        ]
        table = completed_track
        with self._library.begin() as connection:
            connection.execute(sa.delete(table).where(table.c.model_id == model_id))
            if rows:
                connection.execute(sa.insert(table), rows)
            count_on(connection, PREDICTIONS)


def read(connection: sa.Connection, model_id: int) -> list[Refinement]:
    """The refinements of a model, by place."""
    query = sa.select(refined_tag).where(refined_tag.c.model_id == model_id)
    found = []
    for row in connection.execute(query.order_by(refined_tag.c.tag)):
        arrays = load(bytes(row.answers))
        has_model, n_yes, n_no = arrays["counts"].tolist()
        found.append(
            Refinement(
                row.tag,
                row.name,
                row.threshold,
                bool(has_model),
                arrays["ids"],
                arrays["weights"],
                float(arrays["bias"][0]),
                n_yes,
                n_no,
                row.digest,
            )
        )
    return found


def _row(model_id: int, one: Refinement) -> dict[str, object]:
    arrays = {
        "ids": one.ids,
        "weights": one.weights,
        "bias": np.array([one.bias]),
        "counts": np.array([one.has_model, one.n_yes, one.n_no], np.int64),
    }
    return {
        "model_id": model_id,
        "tag": one.place,
        "name": one.name,
        "threshold": one.threshold,
        "answers": save(arrays),
        "digest": one.digest,
    }
