"""The answers of people that a model was not trained with."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.library.library import Library
from harmonium.library.store.database import to_microseconds
from harmonium.library.store.models import StoredModel
from harmonium.library.store.opinions import REVIEW, VerdictTable
from harmonium.library.store.schema import change, opinion, person, tag

MOST_ANSWERS = 200
"""The latest answers of a tag that count."""

Ids = NDArray[np.int64]


class Answers(NamedTuple):
    """What people agree on about one tag, in the order in which it was said."""

    ids: Ids
    """(n,) tracks"""
    y: NDArray[np.float64]
    """(n,) 1 or 0"""
    asked: NDArray[np.bool_]
    """(n,) whether the answer was asked for"""
    changes: Ids
    """(n,) the change in which it was said"""
    numbers: Ids
    """(n,) ascending: the later, the larger"""

    def rows(self, which: Any) -> "Answers":
        """Some of them."""
        return Answers(*(column[which] for column in self))


def answers_since(library: Library, model: StoredModel) -> dict[str, Answers]:
    """Tag → the answers of people that a model was not trained with.

    Of tags that were learnt from the library those given since; of others all: the model that came
    along has learnt from none, and words that were too rare to be learnt have not been, either.
    """
    query = (
        sa.select(opinion.c.id, opinion.c.track_id, tag.c.name, opinion.c.at, opinion.c.begun_by)
        .join_from(opinion, tag)
        .join(person)
        .where(opinion.c.ended_by.is_(None), person.c.kind == "person")
        .order_by(opinion.c.id)
    )
    rows = [tuple(row) for row in library.fetch(query)]
    schema = {"id": pl.Int64, "track": pl.Int64, "tag": pl.String, "at": pl.Int64, "by": pl.Int64}
    said = pl.DataFrame(rows, schema=schema, orient="row")
    reviews = sa.select(change.c.at).where(change.c.command == REVIEW)
    times = pl.Series([row.at for row in library.fetch(reviews)], dtype=pl.Int64)
    said = said.with_columns(
        tag=pl.col("tag").map_elements(library.genres().canonical, pl.String),
        asked=pl.col("at").is_in(times.implode()),
    )
    trained = model.as_trained()
    own = [name for j, name in enumerate(trained.vocabulary[: trained.n_own]) if trained.learnt[j]]
    old = pl.col("tag").is_in(own) & (pl.col("at") <= to_microseconds(model.made_at))
    said = said.filter(~old, ~pl.col("tag").is_in(list(library.hidden_tags())))
    said = said.unique(["tag", "track"], keep="last", maintain_order=True)
    names = said["tag"].unique(maintain_order=True).to_list()
    found = {}
    table = VerdictTable.read(library, names)
    for name in names:
        yes, no = table.agreement(name)
        one = said.filter(pl.col("tag") == name)
        ids = one["track"].to_numpy()
        holds = np.isin(ids, yes)
        settled = np.flatnonzero(holds | np.isin(ids, no))[-MOST_ANSWERS:]
        if len(settled):
            columns = (one[key].to_numpy() for key in ("asked", "by", "id"))
            found[name] = Answers(ids, holds.astype(np.float64), *columns).rows(settled)
    return found
