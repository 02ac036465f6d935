"""Routes of the changes: what was done to the library, and undoing it."""

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel

from harmonium.errors import with_path
from harmonium.library.store import changes as library_changes
from harmonium.web.requests import Offset, PathId
from harmonium.web.service import UsedService

router = APIRouter(tags=["changes"])


class Change(BaseModel):
    """Something that was done to the library."""

    id: int
    at: datetime
    command: str
    summary: str
    undone: bool
    undone_in_part: bool

    @classmethod
    def of(cls, change: library_changes.Change) -> Self:
        """A change of the library."""
        return cls(
            id=change.id,
            at=change.at,
            command=change.command,
            summary=change.summary,
            undone=change.undone_by is not None,
            undone_in_part=change.undone_in_part_by is not None,
        )


class Changes(BaseModel):
    """Some changes, the latest first."""

    changes: list[Change]


class Undone(BaseModel):
    """What undoing a change has restored, and what it has left."""

    change: int
    complete: bool
    done: int
    left: int
    problems: list[str]

    @classmethod
    def of(cls, report: library_changes.UndoReport) -> Self:
        """The report of an undo."""
        problems = []
        for path, reason in report.files_left.items():
            problems.append(with_path(path, reason))
        for value, reason in report.values_left.items():
            problems.append(f"{value}: {reason}")
        for change, n in report.conflicts.items():
            problems.append(f"change {change} changed {n} of it later")
        return cls(
            change=report.change,
            complete=report.complete,
            done=report.n_done,
            left=report.n_left,
            problems=problems,
        )


@router.get("/changes")
def changes(
    service: UsedService, offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Changes:
    """The changes of the library, the latest first."""
    listed = service.library().changes.list(limit, offset=offset)
    return Changes(changes=[Change.of(change) for change in listed])


@router.post("/changes/{id}/undo")
def undo(service: UsedService, id: PathId) -> Undone:
    """Undo a change: people's tags, and files to the byte."""
    with service.limited("undoing", 1, wait=5.0):
        return Undone.of(service.library().undo(id))
