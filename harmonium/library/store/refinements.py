"""The rows of what tags gained from answers since their model was trained.

For each tag: what each answered track taught (`Refinement`), and the resulting probabilities of all
tracks. For each answered track: what follows for its other tags.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from safetensors.numpy import load, save

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.library.store import database
from harmonium.library.store.failures import intact
from harmonium.library.store.predictions import Steps, block_rows, steps_in
from harmonium.library.store.schema import completed_track, refined_prediction, refined_tag


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


class CompletedRow(NamedTuple):
    """A track's probabilities given what people said about it, without what tags gained."""

    digest: str  # of what was said
    probabilities: Steps  # (n_tags,)


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
                "model_id": model_id,
                "tag": refinement.place,
                "name": refinement.name,
                "threshold": refinement.threshold,
                "digest": refinement.digest,
                "answers": _saved(refinement),
            }
            for refinement in refinements
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
        rows: list[dict[str, Any]] = []
        for tag, (ids, p) in columns.items():
            rows += block_rows(model_id, tag, ids, p, {})
        with self._library.begin() as connection:
            old = (table.c.model_id == model_id, table.c.tag.in_(columns))
            database.replace_rows(connection, table, rows, *old)
            database.bump_version(connection, database.PREDICTIONS)

    def completed(self, model_id: int) -> dict[int, CompletedRow]:
        """Track → what follows from what was said about it."""
        table = completed_track
        query = sa.select(table.c.track_id, table.c.digest, table.c.completed)
        rows = self._library.fetch(query.where(table.c.model_id == model_id))
        return {
            row.track_id: CompletedRow(row.digest, steps_in(table, row, "completed"))
            for row in rows
        }

    def put_completed(
        self, model_id: int, digests: Mapping[int, str], completed: Steps, probabilities: Steps
    ) -> None:
        """Keep only these rows, (n, n_tags), of the tracks in the order of the digests."""
        rows = [
            {
                "model_id": model_id,
                "track_id": track_id,
                "digest": digest,
                "completed": completed[i].tobytes(),
                "probabilities": probabilities[i].tobytes(),
            }
            for i, (track_id, digest) in enumerate(digests.items())
        ]
        old = completed_track.c.model_id == model_id
        with self._library.begin() as connection:
            database.replace_rows(connection, completed_track, rows, old)
            database.bump_version(connection, database.PREDICTIONS)


def read_refinements(connection: sa.Connection, model_id: int) -> list[Refinement]:
    """The refinements of a model, by place."""
    query = sa.select(refined_tag).where(refined_tag.c.model_id == model_id)
    refinements = []
    for row in connection.execute(query.order_by(refined_tag.c.tag)):
        with intact(refined_tag, row):
            arrays = load(row.answers)
            has_model, n_yes, n_no = arrays["counts"].tolist()
            if arrays["ids"].shape != arrays["weights"].shape:
                raise ValueError("not a weight for each track")
            refinement = Refinement(
                place=row.tag,
                name=row.name,
                threshold=None if row.threshold is None else float(row.threshold),
                has_model=bool(has_model),
                ids=arrays["ids"],
                weights=arrays["weights"],
                bias=float(arrays["bias"][0]),
                n_yes=n_yes,
                n_no=n_no,
                digest=row.digest,
            )
            refinements.append(refinement)
    return refinements


def _saved(refinement: Refinement) -> bytes:
    counts = [refinement.has_model, refinement.n_yes, refinement.n_no]
    return save(
        {
            "ids": refinement.ids,
            "weights": refinement.weights,
            "bias": np.array([refinement.bias]),
            "counts": np.array(counts, np.int64),
        }
    )
