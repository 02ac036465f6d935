"""What was done to people's tags, files and settings, and how to undo it.

An undo is a change too, so it can be undone. Each triple of person, track and tag is looked at on
its own: if later changes touched it, it stays as they left it. A change and its undo cancel out, so
you can go back step by step.

Besides opinions and files, a change sets values: a track's state, a model's tag, a setting of the
library. Undo sets each value back if it is still what the change made it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl
import sqlalchemy as sa

from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.library.store.database import LibraryPart, key_of, make_table, pairs
from harmonium.library.store.opinions import TRIPLE, recount_people
from harmonium.library.store.schema import change, changed_value, opinion, written_file
from harmonium.library.store.values import (
    loaded_path,
    now,
    storable,
    stored_json,
    stored_path,
    to_datetime,
)

TRACK_STATE = "track"
MODEL_TAG = "model"
SETTING = "setting"
"""The kinds of values. The key is a track's number, a model's number and a place in its vocabulary
("3:17"), or a setting's name."""


@dataclass(frozen=True)
class Change:
    """One command that changed people's tags, files, or values of the library."""

    id: int
    at: datetime
    command: str
    summary: str
    undoes: int | None  # the change that this one undid
    undone_by: int | None  # the change that undid all of this one
    undone_in_part_by: int | None = None  # the last change that undid only a part of this one
    left: int | None = None
    """How many tags, files and values it left; None while it is under way, or if it was
    interrupted."""


@dataclass(frozen=True)
class WrittenFile:
    """A file that a change wrote to."""

    id: int
    change_id: int
    track_id: int | None
    path: str  # where it was then
    record: bytes  # how to restore it, for `filetags.UndoRecord.from_bytes`


@dataclass(frozen=True)
class UndoReport:
    """What an undo did."""

    change: int  # the undo's own number
    ended: int = 0  # opinions that are no longer in force
    revived: int = 0  # opinions that are in force again
    conflicts: Counter[int] = field(default_factory=Counter)
    """Later change → opinions left because it touched them."""
    files_restored: int = 0
    files_left: dict[str, str] = field(default_factory=dict)
    """Path → why the file could not be restored."""
    values_restored: Counter[str] = field(default_factory=Counter)
    """"track", "model" or "setting" → how many were set back."""
    values_left: dict[str, str] = field(default_factory=dict)  # value → why it stays as it is

    @property
    def complete(self) -> bool:
        """Whether nothing of the change is left."""
        return not self.n_left

    @property
    def n_left(self) -> int:
        """How many tags, files and values are left."""
        return sum(self.conflicts.values()) + len(self.files_left) + len(self.values_left)

    @property
    def n_done(self) -> int:
        """How many tags, files and values were set back."""
        values = sum(self.values_restored.values())
        return self.ended + self.revived + self.files_restored + values


@dataclass
class RestoredFiles:
    """What became of the files of a change that is undone."""

    n_restored: int = 0
    done: set[str] = field(default_factory=set)  # paths of files that are as they were before
    left: dict[str, str] = field(default_factory=dict)  # path → why it could not be restored

    def note(self, path: str, *, restored: bool) -> None:
        """Note that a file is as it was before; ``restored``: because it was restored now."""
        self.n_restored += restored
        self.done.add(path)
        self.left.pop(path, None)


Restore = Callable[[Sequence[WrittenFile], int], RestoredFiles]
"""Restores the files that a change wrote to, as part of the change of this number."""


class Changes(LibraryPart):
    """The changes of a library."""

    def begin(self, command: str, summary: str, *, undoes: int | None = None) -> int:
        """Note that something is about to change; the change's number.

        Make the change itself in the same `Library.begin`, so that both are kept or neither.
        """
        values = {"at": now(), "command": storable(command), "summary": storable(summary)}
        with self._library.begin() as connection:
            return key_of(connection.execute(sa.insert(change).values(**values, undoes=undoes)))

    def describe(self, change_id: int, summary: str) -> None:
        """Replace a change's summary, once it is known what the change did."""
        with self._library.begin() as connection:
            values = {"summary": storable(summary)}
            connection.execute(sa.update(change).where(change.c.id == change_id).values(values))

    def check_open(self, change_id: int) -> None:
        """Refuse to add to a change that somebody has begun to undo."""
        later = sa.select(sa.func.min(change.c.id)).where(
            change.c.id > change_id, change.c.undoes == change_id, change.c.undone_by.is_(None)
        )
        if (number := self._library.fetch(later)[0][0]) is not None:
            raise LibraryError(f"Change {change_id} was stopped: change {number} undoes it.")

    def drop(self, change_id: int) -> None:
        """Remove a change that turned out to change nothing; in its own transaction."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(change).where(change.c.id == change_id))

    def list(self, limit: int | None = None, *, offset: int = 0) -> Sequence[Change]:
        """The changes, latest first, without the first ``offset``."""
        query = sa.select(change).order_by(change.c.id.desc()).limit(limit).offset(offset)
        with self._library.reading():
            return self._changes(query)

    def count(self) -> int:
        """How many changes there are."""
        with self._library.connect() as connection:
            return connection.scalar(sa.select(sa.func.count()).select_from(change)) or 0

    def commands_since(self, last: int) -> Sequence[tuple[int, str]]:
        """(number, command) of the changes after one, earliest first."""
        query = sa.select(change.c.id, change.c.command).where(change.c.id > last)
        return [(row.id, row.command) for row in self._library.fetch(query.order_by(change.c.id))]

    def times_of(self, command: str) -> Sequence[int]:
        """When the changes by a command were made, in microseconds since 1970."""
        query = sa.select(change.c.at).where(change.c.command == command)
        return [row.at for row in self._library.fetch(query)]

    def get(self, change_id: int) -> Change:
        """The change with this number, or a LibraryError."""
        changes = self._changes(sa.select(change).where(change.c.id == int(change_id)))
        if not changes:
            raise NotInLibraryError(f"There is no change {change_id} in the library.")
        return changes[0]

    def _changes(self, query: sa.Select[Any]) -> Sequence[Change]:
        """The changes of a query, each with the last undo that undid, or would undo, a part."""
        # An undo that could do nothing leaves a change as if nobody had tried.
        undos = (
            sa.select(change.c.undoes, change.c.id, change.c.left)
            .where(change.c.undoes.is_not(None), change.c.undone_by.is_(None))
            .where(sa.or_(change.c.left.is_(None), _DID_SOMETHING))
            .order_by(change.c.id)
        )
        last_undos = {row.undoes: row for row in self._library.fetch(undos)}
        changes = []
        for row in self._library.fetch(query):
            partial = last_undos.get(row.id) if row.undone_by is None else None
            changes.append(
                Change(
                    id=row.id,
                    at=to_datetime(row.at),
                    command=row.command,
                    summary=row.summary,
                    undoes=row.undoes,
                    undone_by=row.undone_by,
                    undone_in_part_by=None if partial is None else partial.id,
                    left=None if partial is None else partial.left,
                )
            )
        return changes

    def set_value(self, change_id: int, kind: str, key: int | str, value: Any) -> bool:
        """Set a value as part of a change; whether that changed it."""
        with self._library.begin() as connection:
            before = self._value(kind, str(key))
            if before == value:
                return False
            _keep_value(
                connection, change_id, kind, str(key), json.dumps(before), json.dumps(value)
            )
            self._write_value(kind, str(key), value)
            return True

    def set_settings(self, command: str, summary: str, settings: Mapping[str, Any]) -> int | None:
        """Set settings as one change; its number, or None if nothing changed."""
        with self._library.begin():
            number = self.begin(command, summary)
            n_changed = 0
            for key, value in settings.items():
                n_changed += self.set_value(number, SETTING, key, value)
            if n_changed:
                return number
            self.drop(number)
        return None

    def _value(self, kind: str, key: str) -> Any:
        """The present value: of a model's tag, its name and threshold; empty if it is gone."""
        if kind == SETTING:
            return self._library.settings.get(key)
        if kind == TRACK_STATE:
            return self._library.tracks.get(int(key)).state
        return self._library.models.tag_value(key)

    def _write_value(self, kind: str, key: str, value: Any) -> None:
        if kind == SETTING:
            self._library.settings.set(key, value)
        elif kind == TRACK_STATE:
            track = self._library.tracks.get(int(key))
            self._library.tracks.replace(replace(track, state=value))
        else:
            self._library.models.set_tag_value(key, value)

    def keep_file(self, change_id: int, track_id: int | None, path: str, record: bytes) -> int:
        """Store how to undo a write that is about to happen; the record's number."""
        row = {
            "change_id": change_id,
            "track_id": track_id,
            "record": record,
            "pending": 1,
            **stored_path(path),
        }
        with self._library.begin() as connection:
            return key_of(connection.execute(sa.insert(written_file).values(row)))

    def confirm_file(self, number: int) -> None:
        """Note that the write with this record has happened."""
        update = sa.update(written_file).where(written_file.c.id == number)
        with self._library.begin() as connection:
            connection.execute(update.values(pending=None))

    def forget_file(self, number: int) -> None:
        """Drop the record of a write that did not happen."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(written_file).where(written_file.c.id == number))

    def files(self, change_id: int) -> Sequence[WrittenFile]:
        """The files that a change wrote to, latest first."""
        return self._written_files(written_file.c.change_id == change_id)

    def pending_files(self) -> Sequence[WrittenFile]:
        """The files whose writes may not have happened: a process was killed, or is at work."""
        return self._written_files(written_file.c.pending.is_not(None))

    def _written_files(self, condition: sa.ColumnElement[bool]) -> Sequence[WrittenFile]:
        query = sa.select(written_file).where(condition).order_by(written_file.c.id.desc())
        return [
            WrittenFile(
                id=row.id,
                change_id=row.change_id,
                track_id=row.track_id,
                path=loaded_path(row),
                record=bytes(row.record),
            )
            for row in self._library.fetch(query)
        ]

    def undo(self, change_id: int, *, restore: Restore | None = None) -> UndoReport:
        """Undo a change, as far as no later one touched the same.

        ``restore`` gets the files that the change wrote to, latest first. From now on
        nothing can be added to the change. An undo that was interrupted is resumed. A LibraryError
        says that there is no such change, or that nothing of it is left to undo.
        """
        with self._library.begin() as connection:  # first, so that what is seen stays so
            undone = self.get(change_id)
            _check_not_undone(undone)
            files = self.files(change_id)
            if files and restore is None:
                raise LibraryError(
                    f"Change {change_id} wrote to files; undoing it needs 'restore'."
                )
            report = self._undo_rows(connection, undone)
            if report.conflicts and not report.n_done and not files:
                later = ", ".join(map(str, sorted(report.conflicts)))
                raise LibraryError(
                    f"Nothing of change {change_id} ({undone.command}) can be undone: later "
                    f"changes ({later}) touched all of it. Undo those first."
                )
            if not files or restore is None:
                return _end_undo(connection, undone, report)
        restored = restore(files, report.change)
        report = replace(report, files_restored=restored.n_restored, files_left=restored.left)
        with self._library.begin() as connection:
            undone = self.get(change_id)  # perhaps by another, while files were restored
            self.check_open(report.change)  # nor was this undone
            return _end_undo(connection, undone, report)

    def _undo_rows(self, connection: sa.Connection, undone: Change) -> UndoReport:
        """Undo a change's opinions and values, unless an interrupted undo has done so already."""
        conflicts = _plan_opinions(connection, undone.id)
        if undone.undone_in_part_by is not None and undone.left is None:
            return UndoReport(change=undone.undone_in_part_by)
        summary = f"change {undone.id} undone: {_summary(undone)}"
        number = self.begin("undo", summary, undoes=undone.id)
        ended, revived = _undo_opinions(connection, undone.id, number)
        report = UndoReport(change=number, ended=ended, revived=revived, conflicts=conflicts)
        self._undo_values(connection, undone.id, report)
        return report

    def _undo_values(self, connection: sa.Connection, number: int, report: UndoReport) -> None:
        """Set back the values that a change set, and report it."""
        query = (
            sa.select(changed_value)
            .where(changed_value.c.change_id == number)
            .order_by(changed_value.c.id.desc())
        )
        for row in connection.execute(query).all():
            if self._value(row.kind, row.key) == stored_json(row.after):
                _keep_value(connection, report.change, row.kind, row.key, row.after, row.before)
                self._write_value(row.kind, row.key, stored_json(row.before))
                report.values_restored[row.kind] += 1
                continue
            later = sa.select(sa.func.max(changed_value.c.change_id)).where(
                changed_value.c.kind == row.kind,
                changed_value.c.key == row.key,
                changed_value.c.id > row.id,
            )
            last = connection.scalar(later)
            if last is not None:
                report.conflicts[last] += 1
            else:
                report.values_left[f"{row.kind} {row.key}"] = (
                    "it is no longer what this change made it"
                )


_DID_SOMETHING = sa.or_(
    sa.exists().where(written_file.c.change_id == change.c.id),
    sa.exists().where(opinion.c.begun_by == change.c.id),
    sa.exists().where(opinion.c.ended_by == change.c.id),
    sa.exists().where(changed_value.c.change_id == change.c.id),
)


def _end_undo(connection: sa.Connection, undone: Change, report: UndoReport) -> UndoReport:
    """Note what an undo left."""
    _check_not_undone(undone)
    values: dict[str, Any] = {"left": report.n_left}
    if not report.n_done and not report.complete:
        values["summary"] = f"nothing of change {undone.id} could be undone"
    elif not report.complete:
        values["summary"] = f"change {undone.id} partly undone: {_summary(undone)}"
    connection.execute(sa.update(change).where(change.c.id == report.change).values(values))
    if report.complete:
        _mark(connection, undone.id, report.change)
    return report


def _summary(undone: Change) -> str:
    """What a change that is undone did."""
    return "an undo" if undone.undoes is not None else undone.summary


def _check_not_undone(undone: Change) -> None:
    if undone.undone_by is not None:
        raise LibraryError(
            f"Change {undone.id} ({undone.command}) was undone already, by change "
            f"{undone.undone_by}. Undo that change to redo it."
        )


def _mark(connection: sa.Connection, number: int, by: int | None) -> None:
    """Note which change undid this one, if any, and so whether what this undoes is undone."""
    connection.execute(sa.update(change).where(change.c.id == number).values(undone_by=by))
    undoes = connection.scalar(sa.select(change.c.undoes).where(change.c.id == number))
    if undoes is None:
        return
    # Perhaps by another undo, which was made while this one was undone.
    complete = (change.c.undoes == undoes, change.c.left == 0, change.c.undone_by.is_(None))
    last = connection.scalar(sa.select(sa.func.max(change.c.id)).where(*complete))
    _mark(connection, undoes, last)


_SAME = " AND ".join(f"o.{name} = k.{name}" for name in TRIPLE)
_MAKE_KEYS = f"""
CREATE TEMPORARY TABLE undo_key AS
SELECT DISTINCT {", ".join(TRIPLE)} FROM opinion WHERE begun_by = %d OR ended_by = %d"""
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


def _plan_opinions(connection: sa.Connection, number: int) -> Counter[int]:
    """Put the triples that can be undone into the temporary table undo_key.

    Returns later change → how many triples stay as it left them.
    """
    connection.exec_driver_sql("DROP TABLE IF EXISTS undo_key")
    connection.exec_driver_sql(_MAKE_KEYS % (number, number))
    connection.exec_driver_sql(f"CREATE INDEX undo_key_key ON undo_key ({', '.join(TRIPLE)})")
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE undo_key")
    later = connection.execute(sa.text(_LATER), {"change": number}).all()
    return _remove_touched(connection, number, later) if later else Counter[int]()


def _remove_touched(
    connection: sa.Connection, number: int, rows: Sequence[sa.Row[tuple[int, ...]]]
) -> Counter[int]:
    """Remove from undo_key what later changes touched; later change → how many."""
    schema = dict.fromkeys([*TRIPLE, "begun_by", "ended_by"], pl.Int64)
    opinions = pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row")
    touched = (
        opinions.unpivot(["begun_by", "ended_by"], index=TRIPLE, value_name="change")
        .filter(pl.col("change") > number)  # no nulls either
        .group_by(TRIPLE)
        .agg(changes=pl.col("change").unique().sort())
    )
    # Many triples were touched by the same later changes.
    patterns = touched.select("changes").unique()
    undoes = pairs(connection, change.c.id, change.c.undoes)
    standing_changes = [standing(number, later, undoes) for later in patterns["changes"]]
    patterns = patterns.with_columns(standing=pl.Series(standing_changes, dtype=pl.Int64))
    blocked = touched.join(patterns, on="changes").filter(
        pl.col("standing").ne_missing(pl.lit(number))
    )
    make_table(connection, blocked.select(TRIPLE))
    connection.exec_driver_sql(_DROP_BLOCKED)
    connection.exec_driver_sql("DROP TABLE incoming")
    counts = blocked.drop_nulls("standing").group_by("standing").len().sort("standing")
    return Counter(dict(counts.rows()))


def _undo_opinions(connection: sa.Connection, number: int, by: int) -> tuple[int, int]:
    """Undo what was planned, as part of the change `by`; how many opinions ended and began."""
    ended = connection.execute(sa.text(_END), {"by": by}).rowcount
    revived = connection.execute(sa.text(_REVIVE), {"by": by, "change": number}).rowcount
    tracks = connection.execute(sa.text("SELECT DISTINCT track_id FROM undo_key")).scalars().all()
    recount_people(connection, tracks)
    connection.exec_driver_sql("DROP TABLE undo_key")
    return ended, revived


def standing(base: int, later: Iterable[int], undoes: Mapping[int, int | None]) -> int | None:
    """The change that made a triple what it is, after `base` and then `later` touched it.

    None if what `base` did was undone. A change and its undo cancel out, and so do an undo and its
    redo, whichever of the changes that do the same was named.
    """
    first: dict[_Effect, int] = {}  # the first of these changes that has the effect
    in_force: list[_Effect] = []
    for number in (base, *sorted(later)):
        effect = _effect_of(number, undoes)
        first.setdefault(effect, number)
        inverse = _Effect(change=effect.change, is_undone=not effect.is_undone)
        if in_force and in_force[-1] == inverse:
            in_force.pop()
        else:
            in_force.append(effect)
    return first[in_force[-1]] if in_force else None


class _Effect(NamedTuple):
    """What a change does to a triple: what a change that is no undo did, or the reverse."""

    change: int
    is_undone: bool


def _effect_of(number: int, undoes: Mapping[int, int | None]) -> _Effect:
    is_undone = False
    undone = undoes.get(number)
    while undone is not None:
        number = undone
        is_undone = not is_undone
        undone = undoes.get(number)
    return _Effect(change=number, is_undone=is_undone)


def _keep_value(
    connection: sa.Connection, number: int, kind: str, key: str, before: str, after: str
) -> None:
    row = {"change_id": number, "kind": kind, "key": key, "before": before, "after": after}
    connection.execute(sa.insert(changed_value).values(row))
