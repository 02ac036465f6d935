"""Routes of the jobs: those that run, stopping them; indexing, importing and training."""

import os
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel

from harmonium.files import absolute_path
from harmonium.library.imports import ImportReport
from harmonium.web.problems import Problem
from harmonium.web.requests import ImportRequest, IndexRequest, PathId, TrainRequest
from harmonium.web.responses import Job
from harmonium.web.service import UsedService

router = APIRouter(tags=["jobs"])


class Jobs(BaseModel):
    """The last jobs, the latest first."""

    jobs: list[Job]


class ImportableTags(BaseModel):
    """What importing the tags in the files would add."""

    tracks: int
    tags: int
    new: int
    ignored: dict[str, int]

    @classmethod
    def of(cls, report: ImportReport) -> Self:
        """The report of a dry run."""
        return cls(
            tracks=report.n_tracks,
            tags=report.n_tags,
            new=report.n_added,
            ignored=report.ignored,
        )


@router.get("/jobs")
def jobs(service: UsedService) -> Jobs:
    """The last jobs, the latest first."""
    return Jobs(jobs=[Job.model_validate(record) for record in service.jobs.list()])


@router.get("/jobs/{id}")
def job(service: UsedService, id: PathId) -> Job:
    """One job."""
    return Job.model_validate(service.jobs.get(id))


@router.post("/jobs/{id}/stop")
def stop(service: UsedService, id: PathId) -> Job:
    """Stop a job; a file that is being written is completed first."""
    return Job.model_validate(service.jobs.stop(id))


@router.get("/import")
def importable(
    service: UsedService, fields: Annotated[str, Query(max_length=100)] = "genre"
) -> ImportableTags:
    """What importing the tags in the files would add; `fields` is a list such as genre,mood."""
    library = service.library()
    report = service.cached(
        f"import {fields}",
        library.version()[:3],
        lambda: library.import_file_tags(fields.split(","), dry_run=True),
        may_lag=True,
    )
    return ImportableTags.of(report)


@router.post("/import")
def import_files(service: UsedService, body: ImportRequest) -> Job:
    """Import the tags in the files, train a model on all tags, and use it."""
    return Job.model_validate(service.jobs.start("import", body.model_dump()))


@router.post("/index")
def index(service: UsedService, body: IndexRequest) -> Job:
    """Index a folder of music on the server's machine; creates a library if there is none."""
    folder = absolute_path(body.folder)
    if not os.path.isdir(folder):  # noqa: PTH112 - names that no folder can have are no error
        message = f"There is no folder {body.folder!r} on the server's machine."
        raise Problem(404, message, field="folder")
    return Job.model_validate(service.jobs.start("index", {"folder": folder}, create=True))


@router.post("/train")
def train(service: UsedService, body: TrainRequest) -> Job:
    """Train a new model; it is used at once only if asked to, or if it is the first."""
    return Job.model_validate(service.jobs.start("train", body.model_dump()))
