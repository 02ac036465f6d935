"""The models that were trained, side by side, and which of them is in use."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from harmonium.library.answering.compare import compare_models
from harmonium.library.correcting.models import list_models, use_model
from harmonium.web import answers
from harmonium.web.problems import Problem
from harmonium.web.routes.library import summary
from harmonium.web.service import UsedService

router = APIRouter(prefix="/models", tags=["models"])

ModelNumber = Annotated[int, Query(ge=1, le=answers.LARGEST_ID)]


@router.get("")
def models(service: UsedService) -> answers.Models:
    """All models, the newest first."""
    service.view()
    return answers.Models(models=[summary(one) for one in list_models(service.library())])


@router.get("/compare")
def compare(service: UsedService, a: ModelNumber, b: ModelNumber) -> answers.Comparison:
    """How well two models know each tag, and how many tracks get other tags from b than from a."""
    service.view()
    with service.limited("comparing", 2, wait=10.0):
        found = compare_models(service.library(), a, b)
    entries = {one.id: summary(one) for one in list_models(service.library())}
    tags = [answers.ComparedTag(**one._asdict()) for one in found.tags]
    return answers.Comparison(
        a=entries[a],
        b=entries[b],
        tags=tags,
        better=found.better,
        worse=found.worse,
        changed_tracks=found.changed_tracks,
    )


@router.post("/{id}/use")
def use(
    service: UsedService,
    request: Request,
    id: Annotated[int, Path(ge=1, le=answers.LARGEST_ID)],
) -> answers.ChangeNumber:
    """Use this model from now on; what it has not tagged yet, it tags."""
    service.view()
    library = service.library()
    number = use_model(library, id)
    request.app.state.learner.learn()
    entry = next(one for one in list_models(library) if one.id == id)
    if entry.n_tagged < library.tracks.count("present"):
        with suppress(Problem):  # it may be tagging already
            request.app.state.jobs.start("tag", {})
    return answers.ChangeNumber(change=number)
