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
    signed = sa.cast(opinion.c.track_id * opinion.c.value, sa.String)  # -12: not of track 12
    query = (
        # as one text: thousands of rows would each become an object first
        sa.select(sa.func.aggregate_strings(signed, ","))
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name)
    )
    with library.connect() as connection:
        text = connection.scalar(query)
    numbers = np.fromstring(text or "", np.int64, sep=",")
    yes, no = np.unique(numbers[numbers > 0]), np.unique(-numbers[numbers < 0])
    both = np.intersect1d(yes, no, assume_unique=True)
    return Said(np.setdiff1d(yes, both, assume_unique=True), np.setdiff1d(no, both, True))


def tag_names(library: "Library") -> set[str]:
    """Every tag that anybody ever used."""
    with library.connect() as connection:
        return set(connection.execute(sa.select(tag.c.name)).scalars())
