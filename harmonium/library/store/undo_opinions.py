"""Which opinions a change touched, which of them can be undone, and undoing them."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
import sqlalchemy as sa

from harmonium.library.store import bulk, people_counts
from harmonium.library.store.schema import change

_KEY = ["track_id", "tag_id", "person_id"]
_SAME = " AND ".join(f"o.{name} = k.{name}" for name in _KEY)
_MAKE_KEYS = f"""
CREATE TEMPORARY TABLE undo_key AS
SELECT DISTINCT {", ".join(_KEY)} FROM opinion WHERE begun_by = %d OR ended_by = %d"""
_LATER = f"""
SELECT o.track_id, o.tag_id, o.person_id, o.begun_by, o.ended_by
FROM opinion o JOIN undo_key k ON {_SAME}
WHERE o.begun_by > :change OR o.ended_by > :change"""
_DROP_BLOCKED = f"""
DELETE FROM undo_key WHERE EXISTS (
    SELECT 1 FROM incoming o WHERE {_SAME.replace("k.", "undo_key.")}
)"""
_END = f"""
UPDATE opinion SET ended_by = :by WHERE id IN (
    SELECT o.id FROM undo_key k JOIN opinion o ON {_SAME} AND o.ended_by IS NULL
)"""
_REVIVE = f"""
INSERT INTO opinion (track_id, tag_id, person_id, value, at, begun_by)
SELECT o.track_id, o.tag_id, o.person_id, o.value, o.at, :by
FROM undo_key k JOIN opinion o ON {_SAME}
WHERE o.ended_by = :change AND o.begun_by <> :change"""


def plan(connection: sa.Connection, number: int) -> tuple[int, dict[int, int]]:
    """Find which part of a change can be undone; the triples go into the temporary table undo_key.

    Returns how many triples of person, track and tag can be restored; and later change → how many
    stay as it left them.
    """
    connection.exec_driver_sql("DROP TABLE IF EXISTS undo_key")
    connection.exec_driver_sql(_MAKE_KEYS % (number, number))
    connection.exec_driver_sql(f"CREATE INDEX undo_key_key ON undo_key ({', '.join(_KEY)})")
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE undo_key")
    conflicts = _set_aside_touched(connection, number)
    keys = connection.scalar(sa.text("SELECT count(*) FROM undo_key"))
    return int(keys or 0), conflicts


def carry_out(connection: sa.Connection, number: int, by: int) -> tuple[int, int]:
    """Undo what was planned, as part of the change `by`; how many opinions ended and began."""
    ended = connection.execute(sa.text(_END), {"by": by}).rowcount
    revived = connection.execute(sa.text(_REVIVE), {"by": by, "change": number}).rowcount
    tracks = connection.execute(sa.text("SELECT DISTINCT track_id FROM undo_key")).scalars().all()
    people_counts.recount(connection, tracks)
    connection.exec_driver_sql("DROP TABLE undo_key")
    return ended, revived


def standing(base: int, later: Iterable[int], undoes: Mapping[int, int | None]) -> int | None:
    """The change that made a triple what it is, after `base` and then `later` touched it.

    None where `base` itself was undone. A change and the one that undid it leave nothing; one that
    undid an undoing leaves what that had taken away.
    """
    stack = [base]
    added, taken = {base: base}, {}  # change → what it put on the stack, or took from it
    for number in sorted(later):
        undone = undoes.get(number)
        if undone in added and stack and stack[-1] == added[undone]:
            taken[number] = stack.pop()
        elif undone in taken:
            added[number] = taken[undone]
            stack.append(taken[undone])
        else:
            added[number] = number
            stack.append(number)
    return stack[-1] if stack else None


def _set_aside_touched(connection: sa.Connection, number: int) -> dict[int, int]:
    """Take from undo_key what later changes touched; later change → how many."""
    rows = connection.execute(sa.text(_LATER), {"change": number}).all()
    if not rows:
        return {}
    undoes = bulk.pairs(connection, change.c.id, change.c.undoes)
    touched = _touching(rows, number)
    patterns = touched.select("changes").unique()
    last = [standing(number, pattern, undoes) for pattern in patterns["changes"]]
    patterns = patterns.with_columns(standing=pl.Series(last, dtype=pl.Int64))
    blocked = touched.join(patterns, on="changes").filter(
        pl.col("standing").is_null() | (pl.col("standing") != number)
    )
    bulk.make_table(connection, blocked.select(_KEY))
    connection.exec_driver_sql(_DROP_BLOCKED)
    connection.exec_driver_sql("DROP TABLE incoming")
    counts = blocked.drop_nulls("standing").group_by("standing").len().sort("standing")
    return dict(counts.rows())


def _touching(rows: Sequence[sa.Row[tuple[int, ...]]], number: int) -> pl.DataFrame:
    """The later changes that touched each triple: the key's columns and changes, a list."""
    schema = dict.fromkeys([*_KEY, "begun_by", "ended_by"], pl.Int64)
    frame = pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row")
    touches = frame.unpivot(["begun_by", "ended_by"], index=_KEY, value_name="change")
    touches = touches.filter(pl.col("change") > number)  # no nulls either
    return touches.group_by(_KEY).agg(changes=pl.col("change").unique().sort())
