"""What people agree on about a few tags, for all tracks at once."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.collection.schema import opinion, tag

if TYPE_CHECKING:
    from harmonium.collection.library import Library

Ids = NDArray[np.int64]


class Said(NamedTuple):
    """The tracks of which people say that a tag holds, and that it does not; ascending.

    A track of which some say one thing and some the other is in neither.
    """

    yes: Ids
    no: Ids


def said_of(library: "Library", name: str) -> Said:
    """What people say of a tag, by its normalised name."""
    query = (
        sa.select(opinion.c.track_id, sa.func.min(opinion.c.value), sa.func.max(opinion.c.value))
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name)
        .group_by(opinion.c.track_id)
        .order_by(opinion.c.track_id)
    )
    with library.connect() as connection:
        rows = connection.execute(query).all()
    table = np.array([tuple(row) for row in rows], np.int64).reshape(-1, 3)
    ids, least, most = table.T
    return Said(ids[least > 0], ids[most < 0])


def tag_names(library: "Library") -> set[str]:
    """Every tag that anybody ever used."""
    with library.connect() as connection:
        return set(connection.execute(sa.select(tag.c.name)).scalars())
