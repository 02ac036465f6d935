"""How many people have said something of each track.

It follows from the opinions in force, but counting it for thousands of tracks took most of a
search's time. So the numbers are kept, in blocks of `BLOCK` tracks, and whoever lets opinions begin
or end calls `recount` in the same transaction.
"""

from collections.abc import Iterable

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.library.store.schema import BLOCK, opinion, people_count

_FEW = 500
"""Tracks of a block that are counted one by one; where there are more, the whole block is."""


def recount(connection: sa.Connection, track_ids: Iterable[int]) -> None:
    """Count anew the people of tracks whose opinions have begun or ended."""
    touched = np.unique(np.fromiter(track_ids, np.int64))
    blocks = touched // BLOCK
    for block in np.unique(blocks).tolist():
        ids = touched[blocks == block]
        if len(ids) > _FEW:
            ids = block * BLOCK + np.arange(BLOCK)
            chosen = opinion.c.track_id.between(int(ids[0]), int(ids[-1]))
        else:
            chosen = opinion.c.track_id.in_(ids.tolist())
        people = _read(connection, [block]).get(block, np.zeros(BLOCK, np.int64))
        people[ids % BLOCK] = 0
        counted = (
            sa.select(opinion.c.track_id, sa.func.count(sa.distinct(opinion.c.person_id)))
            .where(opinion.c.ended_by.is_(None), chosen)
            .group_by(opinion.c.track_id)
        )
        for track_id, n_people in connection.execute(counted):
            people[track_id % BLOCK] = n_people
        data = people.astype("<i4").tobytes()
        connection.execute(sa.delete(people_count).where(people_count.c.block == block))
        connection.execute(sa.insert(people_count).values(block=block, people=data))


def people_of(connection: sa.Connection, track_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many people have said something of tracks, (n,)."""
    blocks = track_ids // BLOCK
    result = np.zeros(len(track_ids), np.int64)
    for block, people in _read(connection, np.unique(blocks).tolist()).items():
        here = blocks == block
        result[here] = people[track_ids[here] % BLOCK]
    return result


def _read(connection: sa.Connection, blocks: list[int]) -> dict[int, NDArray[np.int64]]:
    query = sa.select(people_count).where(people_count.c.block.in_(blocks))
    return {
        row.block: np.frombuffer(row.people, "<i4").astype(np.int64)
        for row in connection.execute(query)
    }
