"""Jobs (index, train, write), what writing would do, and the models."""

import os
from contextlib import suppress
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray

from harmonium.data.tag_names import normalise_tag
from harmonium.files import absolute_path
from harmonium.library.snapshot import Snapshot
from harmonium.library.write import PlannedFile
from harmonium.library.write_outline import write_outline
from harmonium.web import bodies
from harmonium.web.jobs import Record
from harmonium.web.problems import Problem
from harmonium.web.service import UsedService

router = APIRouter()

MAX_PREVIEW = 100
ModelNumber = Annotated[int, Query(ge=1, le=bodies.MAX_ID)]


@router.get("/jobs", tags=["jobs"], response_model=bodies.Jobs)
def jobs(service: UsedService) -> dict[str, list[Record]]:
    """The last jobs, the latest first."""
    return {"jobs": service.jobs.list()}


@router.get("/jobs/{id}", tags=["jobs"], response_model=bodies.Job)
def job(service: UsedService, id: bodies.PathId) -> Record:
    """One job."""
    return service.jobs.get(id)


@router.post("/jobs/{id}/stop", tags=["jobs"], response_model=bodies.Job)
def stop(service: UsedService, id: bodies.PathId) -> Record:
    """Stop a job; a file that is being written is finished first."""
    return service.jobs.stop(id)


@router.post("/index", tags=["jobs"], response_model=bodies.Job)
def index(service: UsedService, asked: bodies.IndexAsked) -> Record:
    """Index a folder of music on the server's machine; creates a library if there is none."""
    folder = absolute_path(asked.folder)
    if not os.path.isdir(folder):  # noqa: PTH112 - names that no folder can have are no error
        message = f"There is no folder {asked.folder!r} on the server's machine."
        raise Problem(400, message, field="folder")
    return service.jobs.start("index", {"folder": folder}, create=True)


@router.post("/train", tags=["jobs"], response_model=bodies.Job)
def train(service: UsedService, asked: bodies.TrainAsked) -> Record:
    """Train a new model; it is used at once only if asked to, or if it is the first."""
    service.library()
    return service.jobs.start("train", asked.model_dump())


@router.post("/write", tags=["jobs"], response_model=bodies.Job)
def write(service: UsedService, asked: bodies.WriteAsked) -> Record:
    """Write tags into files, as one change that can be undone."""
    _tracks_to_write(service.snapshot(), asked.q)  # An invalid query is refused at once.
    return service.jobs.start("write", asked.model_dump())


@router.get("/write/plan", tags=["write"], response_model=bodies.WritePlan)
def plan(
    service: UsedService,
    precision: Annotated[float, Query(ge=0, lt=1)] = 0.8,
    q: Annotated[str, Query(max_length=1000)] = "",
    ignore: Annotated[str, Query(max_length=6000, description="Tags, with commas.")] = "",
    offset: Annotated[int, Query(ge=0, le=bodies.MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=0, le=MAX_PREVIEW)] = 20,
) -> dict[str, Any]:
    """What writing would add to the files, tag by tag, and some files before and after.

    The numbers are based on what the library knows of the files. The preview reads them.
    """
    snapshot = service.snapshot()
    ignored = {name for tag in ignore.split(",") if (name := normalise_tag(tag))}
    with service.limited("planning", 2, wait=10.0):
        tracks = _tracks_to_write(snapshot, q)
        outline = write_outline(snapshot, tracks, precision or None, ignored)
        some = outline.tracks[offset : offset + limit].tolist()
        files: list[PlannedFile] = []
        if some:
            rules = {"ignore": sorted(ignored)}
            files = snapshot.library.plan_write(*some, precision=precision, rules=rules).files
    return {
        "files": len(outline.tracks),
        "tags": outline.tags,
        "not_reached": outline.not_reached,
        "expected_wrong": outline.expected_wrong,
        "guessed": outline.n_guessed,
        "preview": [
            {"track": one.track, "fields": one.change.fields, "guessed": one.new_guesses}
            for one in files
        ],
    }


def _tracks_to_write(snapshot: Snapshot, query: str) -> NDArray[np.int64]:
    """The tracks for which a query is more likely than not; all tracks without one."""
    if not query.strip():
        return snapshot.ids
    return snapshot.likely(query)


@router.get("/models", tags=["models"], response_model=bodies.Models)
def models(service: UsedService) -> dict[str, Any]:
    """All models, the newest first."""
    return {"models": service.library().list_models()}


@router.get("/models/compare", tags=["models"], response_model=bodies.Comparison)
def compare(service: UsedService, a: ModelNumber, b: ModelNumber) -> dict[str, Any]:
    """The AUC of each tag in two models, and how many tracks get other tags from b than from a."""
    library = service.library()
    with service.limited("comparing", 2, wait=10.0):
        found = library.compare_models(a, b)
    entries = {one.id: one for one in library.list_models()}
    return {"a": entries[a], "b": entries[b], **vars(found)}


@router.post("/models/{id}/use", tags=["models"], response_model=bodies.ChangeNumber)
def use(service: UsedService, id: bodies.PathId) -> dict[str, Any]:
    """Use a model from now on; it tags the tracks that it has not tagged yet."""
    library = service.library()
    number = library.use_model(id, learn=False)
    service.learner.learn()
    entry = next(one for one in library.list_models() if one.id == id)
    if entry.n_tagged < library.tracks.count("present"):
        with suppress(Problem):  # It may be tagging already.
            service.jobs.start("tag", {})
    return {"change": number}
