"""What was done to people's tags and to files, and how it is undone.

A change that undoes another is a change too, so that it can be undone. Each triple of person, track
and tag is looked at by itself: where later changes touched it, it stays as they left it. A change
and the one that undid it then cancel out, so one can go back step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.library.store import changed_values, undo_opinions
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.schema import (
    change,
    key_of,
    loaded_path,
    now,
    storable,
    stored_path,
    to_datetime,
    written_file,
)


@dataclass(frozen=True)
class Change:
    """One command that altered people's tags, files, or what belongs to the library."""

    id: int
    at: datetime
    command: str
    summary: str
    undoes: int | None
    """The change that this one undid."""
    undone_by: int | None
    """The change that undid this one, wholly."""
    undone_in_part_by: int | None = None
    """The last change that undid a part of this one, if it is not undone wholly."""
    left: int | None = None
    """How many tags, files and values that one has left; None while it is under way, or where it
    was interrupted."""


@dataclass(frozen=True)
class WrittenFile:
    """A file that a change wrote to."""

    id: int
    change_id: int
    track_id: int | None
    path: str
    """Where it was then."""
    record: bytes
    """What makes it what it was, for `filetags.UndoRecord.from_bytes`."""


@dataclass(frozen=True)
class UndoReport:
    """What undoing did."""

    change: int
    """The number of the change that undid."""
    ended: int
    """Opinions that are no longer in force."""
    revived: int
    """Opinions that are in force again."""
    conflicts: dict[int, int]
    """Later change → how many opinions it touched, so that they were left as they are."""
    files_restored: int
    files_left: dict[str, str]
    """Path → why the file could not be restored."""
    values_restored: dict[str, int] = field(default_factory=dict)
    """"track", "model" or "setting" → how many are what they were."""
    values_left: dict[str, str] = field(default_factory=dict)
    """Value → why it stays as it is."""

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
        """How many tags, files and values are what they were."""
        values = sum(self.values_restored.values())
        return self.ended + self.revived + self.files_restored + values


Restore = Callable[[WrittenFile, int], str | None]
"""Makes a file what it was, as part of the change of this number; or says why it cannot."""


class Changes(LibraryPart):
    """The changes of a library."""

    def begin(self, command: str, summary: str, *, undoes: int | None = None) -> int:
        """Note that something is about to be changed; the number of the change.

        What belongs to it goes into the same `Library.begin`, so that both are kept or neither.
        """
        values = {"at": now(), "command": storable(command), "summary": storable(summary)}
        with self._library.begin() as connection:
            return key_of(connection.execute(sa.insert(change).values(**values, undoes=undoes)))

    def describe(self, change_id: int, summary: str) -> None:
        """Say in other words what a change did, when that is known."""
        with self._library.begin() as connection:
            values = {"summary": storable(summary)}
            connection.execute(sa.update(change).where(change.c.id == change_id).values(values))

    def drop(self, change_id: int) -> None:
        """Take away a change that has turned out to change nothing; in its own transaction."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(change).where(change.c.id == change_id))

    def list(self, limit: int | None = None, *, offset: int = 0) -> Sequence[Change]:
        """The changes, the latest first, after the first ``offset`` of them."""
        query = sa.select(change).order_by(change.c.id.desc()).limit(limit).offset(offset)
        with self._library.reading():
            parts = self._undone_in_part()
            return [_change(row, parts) for row in self._library.fetch(query)]

    def commands_since(self, last: int) -> Sequence[tuple[int, str]]:
        """(number, command) of the changes after one, the earliest first."""
        query = sa.select(change.c.id, change.c.command).where(change.c.id > last)
        return [(row.id, row.command) for row in self._library.fetch(query.order_by(change.c.id))]

    def get(self, change_id: int) -> Change:
        """The change of a number, or a LibraryError."""
        rows = self._library.fetch(sa.select(change).where(change.c.id == int(change_id)))
        if not rows:
            raise NotInLibraryError(f"There is no change {change_id} in the library.")
        return _change(rows[0], self._undone_in_part())

    def _undone_in_part(self) -> dict[int, tuple[int, int | None]]:
        """Change → the last one that undid a part of it, or was to, and how much is left."""
        query = (
            sa.select(change.c.undoes, change.c.id, change.c.left)
            .where(change.c.undoes.is_not(None), change.c.undone_by.is_(None))
            .order_by(change.c.id)
        )
        return {row.undoes: (row.id, row.left) for row in self._library.fetch(query)}

    def set_value(self, change_id: int, kind: str, key: int | str, value: Any) -> bool:
        """Set a value of `changed_values` as part of a change; whether it was another before."""
        with self._library.begin() as connection:
            return changed_values.set_value(connection, change_id, kind, key, value)

    def keep_file(self, change_id: int, track_id: int | None, path: str, record: bytes) -> int:
        """Store what undoes the writing of a file; the number of this record."""
        values = {"change_id": change_id, "track_id": track_id, "record": record}
        adding = sa.insert(written_file).values(values | stored_path(path))
        with self._library.begin() as connection:
            return key_of(connection.execute(adding))

    def forget_file(self, number: int) -> None:
        """Drop the record of a write that did not take place."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(written_file).where(written_file.c.id == number))

    def files(self, change_id: int) -> Sequence[WrittenFile]:
        """The files that a change wrote to, the latest first."""
        query = (
            sa.select(written_file)
            .where(written_file.c.change_id == change_id)
            .order_by(written_file.c.id.desc())
        )
        return [
            WrittenFile(row.id, row.change_id, row.track_id, loaded_path(row), bytes(row.record))
            for row in self._library.fetch(query)
        ]

    def undo(self, change_id: int, *, restore: Restore | None = None) -> UndoReport:
        """Undo a change, as far as no later one touched the same.

        Parameters
        ----------
        change_id : its number
        restore : called for each file that the change wrote to, the latest first

        Raises
        ------
        LibraryError
            where there is no such change, or nothing of it is left to undo
        """
        with self._library.begin() as connection:  # first, so that what is seen stays so
            undone, files = self.get(change_id), self.files(change_id)
            _check_not_undone(undone)
            if files and restore is None:
                raise LibraryError(
                    f"Change {change_id} wrote to files; undoing it needs 'restore'."
                )
            n_keys, conflicts = undo_opinions.plan(connection, change_id)
            n_values = changed_values.count_values(connection, change_id)
            if not n_keys and conflicts and not files and not n_values:
                later = ", ".join(str(number) for number in sorted(conflicts))
                raise LibraryError(
                    f"Nothing of change {change_id} ({undone.command}) can be undone: later "
                    f"changes ({later}) touched all of it. Undo those first."
                )
            was = "an undo" if undone.undoes is not None else undone.summary
            number = self.begin("undo", f"change {change_id} undone: {was}", undoes=change_id)
            ended, revived = undo_opinions.carry_out(connection, change_id, number)
            values = changed_values.undo_values(connection, change_id, number)
            for by, n in values.conflicts.items():
                conflicts[by] = conflicts.get(by, 0) + n
            report = UndoReport(
                number, ended, revived, conflicts, 0, {}, values.restored, values.left
            )
            if not files:
                self._end_undo(connection, change_id, report)
        if not files:
            return report
        left = {}
        for file in files:
            assert restore is not None
            if reason := restore(file, number):
                left[file.path] = reason
        report = replace(report, files_restored=len(files) - len(left), files_left=left)
        with self._library.begin() as connection:
            _check_not_undone(self.get(change_id))  # by another, while files were restored
            self._end_undo(connection, change_id, report)
        return report

    def _end_undo(self, connection: sa.Connection, change_id: int, report: UndoReport) -> None:
        """Note how an undo ended."""
        here = sa.update(change).where(change.c.id == report.change)
        connection.execute(here.values(left=report.n_left))
        if report.complete:
            _mark(connection, change_id, report.change)


def _check_not_undone(undone: Change) -> None:
    if undone.undone_by is not None:
        raise LibraryError(
            f"Change {undone.id} ({undone.command}) was undone already, by change "
            f"{undone.undone_by}. Undo that one to have it back."
        )


def _mark(connection: sa.Connection, number: int, by: int | None) -> None:
    """Note which change undid one; the one that this had undone holds again, and so on."""
    connection.execute(sa.update(change).where(change.c.id == number).values(undone_by=by))
    before = connection.scalar(sa.select(change.c.undoes).where(change.c.id == number))
    if before is not None:
        _mark(connection, before, None if by is not None else number)


def _change(row: Any, undone_in_part: dict[int, tuple[int, int | None]]) -> Change:
    part = undone_in_part.get(row.id, (None, None)) if row.undone_by is None else (None, None)
    at = to_datetime(row.at)
    return Change(row.id, at, row.command, row.summary, row.undoes, row.undone_by, *part)
