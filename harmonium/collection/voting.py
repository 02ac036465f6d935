"""What people agree on about a few tags, for all tracks at once."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.collection.labels import MIN_SHARE
from harmonium.collection.schema import opinion, person, tag

if TYPE_CHECKING:
    from harmonium.collection.library import Library

Ids = NDArray[np.int64]


class Said(NamedTuple):
    """The tracks of which people agree that a tag holds, and that it does not; ascending."""

    yes: Ids
    no: Ids


def said_of(library: "Library", name: str) -> Said:
    """What people agree on about a tag, by its normalised name; the rule is `labels.agreed`."""
    signed = sa.cast(opinion.c.track_id * opinion.c.value, sa.String)  # -12: not of track 12
    query = (
        # as one text: thousands of rows would each become an object first
        sa.select(sa.func.aggregate_strings(signed, ","))
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name)
    )
    with library.connect() as connection:
        text = connection.scalar(query)
        crowds = _crowds(connection, name)
    numbers = np.fromstring(text or "", np.int64, sep=",")
    tracks, places = np.unique(np.abs(numbers), return_inverse=True)
    present = np.bincount(places, numbers > 0, len(tracks))
    absent = np.bincount(places, numbers < 0, len(tracks))
    enough = present >= MIN_SHARE * np.array([crowds.get(int(track), 0) for track in tracks])
    return Said(tracks[(present > absent) & enough], tracks[absent > present])


def _crowds(connection: sa.Connection, name: str) -> dict[int, int]:
    """How many people have spoken of the tracks of a tag, where one voice may be too few."""
    few = 1 / MIN_SHARE
    if connection.execute(sa.select(sa.func.count(person.c.id))).scalar_one() <= few:
        return {}
    of_tag = (
        sa.select(opinion.c.track_id)
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name, opinion.c.value > 0)
    )
    people = sa.func.count(sa.distinct(opinion.c.person_id)).label("people")
    query = (
        sa.select(opinion.c.track_id, people)
        .where(opinion.c.ended_by.is_(None), opinion.c.track_id.in_(of_tag))
        .group_by(opinion.c.track_id)
        .having(sa.func.count(sa.distinct(opinion.c.person_id)) > few)
    )
    return {row.track_id: row.people for row in connection.execute(query)}


def tag_names(library: "Library") -> set[str]:
    """Every tag that anybody ever used."""
    with library.connect() as connection:
        return set(connection.execute(sa.select(tag.c.name)).scalars())
