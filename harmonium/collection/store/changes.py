"""What was done to people's tags and to files, and how it is undone.

A change that undoes another is a change too, so that it can be undone. Each triple of person, track
and tag is looked at by itself: where later changes touched it, it stays as they left it. A change
and the one that undid it then cancel out, so one can go back step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from harmonium.collection.store import undo_opinions
from harmonium.collection.store.database import LibraryPart
from harmonium.collection.store.schema import (
    change,
    key_of,
    loaded_path,
    now,
    storable,
    stored_path,
    to_datetime,
    written_file,
)
from harmonium.errors import LibraryError


@dataclass(frozen=True)
class Change:
    """One command that altered people's tags, or files."""

    id: int
    at: datetime
    command: str
    summary: str
    undoes: int | None
    """The change that this one undid."""
    undone_by: int | None
    """The change that undid this one, wholly."""


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

    @property
    def complete(self) -> bool:
        """Whether nothing of the change is left."""
        return not self.conflicts and not self.files_left


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

    def list(self, limit: int | None = None) -> Sequence[Change]:
        """The changes, the latest first."""
        query = sa.select(change).order_by(change.c.id.desc()).limit(limit)
        return [_change(row) for row in self._library.fetch(query)]

    def get(self, change_id: int) -> Change:
        """The change of a number, or a LibraryError."""
        rows = self._library.fetch(sa.select(change).where(change.c.id == int(change_id)))
        if not rows:
            raise LibraryError(f"There is no change {change_id} in the library.")
        return _change(rows[0])

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
            if not n_keys and conflicts and not files:
                later = ", ".join(str(number) for number in sorted(conflicts))
                raise LibraryError(
                    f"Nothing of change {change_id} ({undone.command}) can be undone: later "
                    f"changes ({later}) touched all of it. Undo those first."
                )
            was = "an undo" if undone.undoes is not None else undone.summary
            number = self.begin("undo", f"change {change_id} undone: {was}", undoes=change_id)
            ended, revived = undo_opinions.carry_out(connection, change_id, number)
            if not files and not conflicts:
                _mark(connection, change_id, number)
        left = {}
        for file in files:
            assert restore is not None
            if reason := restore(file, number):
                left[file.path] = reason
        if files and not left and not conflicts:
            with self._library.begin() as connection:
                _check_not_undone(self.get(change_id))  # by another, while files were restored
                _mark(connection, change_id, number)
        restored = len(files) - len(left)
        return UndoReport(number, ended, revived, conflicts, restored, left)


def counted(number: int, what: str) -> str:
    """1 file, 2 files … for the summary of a change."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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


def _change(row: Any) -> Change:
    return Change(row.id, to_datetime(row.at), row.command, row.summary, row.undoes, row.undone_by)
