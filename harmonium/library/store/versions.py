"""How far a library has come: whoever keeps parts of it in memory sees here when to read again.

Opinions and changes only ever get new numbers, so the last ones tell. Tracks and predictions change
in place; whoever alters them counts one further, in the same transaction.
"""

from typing import NamedTuple

import sqlalchemy as sa

from harmonium.library.store.schema import change, opinion, setting

TRACKS, PREDICTIONS = "version_of_tracks", "version_of_predictions"
"""The settings that count."""


class LibraryVersion(NamedTuple):
    """Numbers that differ where a part of the library does."""

    change: int
    opinion: int
    tracks: int
    predictions: int


def count_on(connection: sa.Connection, key: str) -> None:
    """Note that tracks, or predictions, are others from now on."""
    here = setting.c.key == key
    further = sa.cast(sa.cast(setting.c.value, sa.BigInteger) + 1, sa.Text)
    if not connection.execute(sa.update(setting).where(here).values(value=further)).rowcount:
        connection.execute(sa.insert(setting).values(key=key, value="1"))


def read_version(connection: sa.Connection) -> LibraryVersion:
    """The version of what the connection sees."""
    counter = sa.select(setting.c.value)
    query = sa.select(
        sa.select(sa.func.max(change.c.id)).scalar_subquery(),
        sa.select(sa.func.max(opinion.c.id)).scalar_subquery(),
        *(counter.where(setting.c.key == key).scalar_subquery() for key in (TRACKS, PREDICTIONS)),
    )
    return LibraryVersion(*(int(value or 0) for value in connection.execute(query).one()))
