"""What was changed, and undoing it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from harmonium.files import readable
from harmonium.library.write import undo_change
from harmonium.web import answers
from harmonium.web.service import UsedService

router = APIRouter(prefix="/changes", tags=["changes"])


@router.get("")
def changes(
    service: UsedService,
    offset: Annotated[int, Query(ge=0, le=answers.LARGEST_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> answers.Changes:
    """The changes of the library, the latest first."""
    service.view()
    found = service.library().changes.list(limit, offset=offset)
    return answers.Changes(
        changes=[
            answers.ChangeAnswer(
                id=one.id,
                at=one.at,
                command=one.command,
                summary=one.summary,
                undone=one.undone_by is not None,
                undone_in_part=one.undone_in_part_by is not None,
            )
            for one in found
        ]
    )


@router.post("/{id}/undo")
def undo(
    service: UsedService, request: Request, id: Annotated[int, Path(ge=1, le=answers.LARGEST_ID)]
) -> answers.UndoAnswer:
    """Undo a change: people's tags, and files to the byte."""
    service.view()
    with service.limited("undoing", 1, wait=5.0):
        report = undo_change(service.library(), id)
    request.app.state.learner.learn()
    problems = [f"{readable(path)}: {why}" for path, why in report.files_left.items()]
    problems += [f"{what}: {why}" for what, why in report.values_left.items()]
    problems += [f"change {by} touched {n} of it later" for by, n in report.conflicts.items()]
    return answers.UndoAnswer(
        change=report.change,
        complete=report.complete,
        done=report.n_done,
        left=report.n_left,
        problems=problems,
    )
