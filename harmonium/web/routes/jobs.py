"""Jobs: starting, watching and stopping them."""

from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from harmonium.files import absolute_path
from harmonium.web import answers
from harmonium.web.jobs import Jobs
from harmonium.web.problems import Problem
from harmonium.web.service import UsedService

router = APIRouter(tags=["jobs"])

JobId = Annotated[int, Path(ge=1, le=answers.LARGEST_ID)]


def _jobs(request: Request) -> Jobs:
    found: Jobs = request.app.state.jobs
    return found


def _job(shown: dict[str, Any]) -> answers.Job:
    return answers.Job.model_validate(shown)


@router.get("/jobs")
def jobs(request: Request) -> answers.Jobs:
    """All jobs that are remembered, the latest first."""
    return answers.Jobs(jobs=[_job(one) for one in _jobs(request).list()])


@router.get("/jobs/{id}")
def job(request: Request, id: JobId) -> answers.Job:
    """One job."""
    return _job(_jobs(request).get(id))


@router.post("/jobs/{id}/stop")
def stop(request: Request, id: JobId) -> answers.Job:
    """Ask a job to stop; it finishes what it is writing."""
    return _job(_jobs(request).stop(id))


@router.post("/index")
def index(request: Request, asked: answers.IndexAsked) -> answers.Job:
    """Bring the library up to date with a folder of music; it is made if there is none yet."""
    if "\0" in asked.folder:
        raise Problem(400, "The name of a folder has no null characters.", field="folder")
    folder = absolute_path(asked.folder)
    try:
        there = FilePath(folder).is_dir()
    except OSError:
        there = False
    if not there:
        raise Problem(
            400,
            f"There is no folder {asked.folder!r} on the machine that the server runs on.",
            field="folder",
        )
    return _job(_jobs(request).start("index", {"folder": folder}, create=True))


@router.post("/train")
def train(service: UsedService, request: Request, asked: answers.TrainAsked) -> answers.Job:
    """Train a new model; it waits to be taken over, unless it is asked to do so at once."""
    service.view()
    return _job(_jobs(request).start("train", asked.model_dump()))


@router.post("/write")
def write(service: UsedService, request: Request, asked: answers.WriteAsked) -> answers.Job:
    """Write tags to files, as one change that can be undone."""
    from harmonium.web.writing import tracks_to_write

    tracks_to_write(service.library(), asked.q, service.view())  # so that it is refused at once
    return _job(_jobs(request).start("write", asked.model_dump()))
