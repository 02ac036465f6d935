"""What people agree on about a few tags, for all tracks at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.collection.learning.verdicts import MIN_SHARE
from harmonium.collection.store.people_counts import people_of
from harmonium.collection.store.schema import opinion, tag

if TYPE_CHECKING:
    from harmonium.collection.library import Library
    from harmonium.collection.store.models import StoredModel

Ids = NDArray[np.int64]


class Said(NamedTuple):
    """The tracks of which people agree that a tag holds, and that it does not; ascending."""

    yes: Ids
    no: Ids


def said_of(library: "Library", names: Sequence[str]) -> dict[str, Said]:
    """What people agree on about tags, by their normalised names; the rule is `labels.agreed`."""
    with library.connect() as connection:
        return {name: _said(connection, name) for name in names}


def _said(connection: sa.Connection, name: str) -> Said:
    signed = sa.cast(opinion.c.track_id * opinion.c.value, sa.String)  # -12: not of track 12
    query = (
        # as one text: thousands of rows would each become an object first
        sa.select(sa.func.aggregate_strings(signed, ","))
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name)
    )
    votes = np.fromstring(connection.scalar(query) or "", np.int64, sep=",")
    tracks, places = np.unique(np.abs(votes), return_inverse=True)
    present = np.bincount(places, votes > 0, len(tracks))
    absent = np.bincount(places, votes < 0, len(tracks))
    enough = present >= MIN_SHARE * people_of(connection, tracks)
    return Said(tracks[(present > absent) & enough], tracks[absent > present])


def known_tags(library: "Library", model: "StoredModel | None") -> set[str]:
    """Every tag that a track may have: that anybody ever used, or the model knows."""
    return tag_names(library).union([] if model is None else model.vocabulary)


def tag_names(library: "Library") -> set[str]:
    """Every tag that anybody ever used."""
    with library.connect() as connection:
        return set(connection.execute(sa.select(tag.c.name)).scalars())
