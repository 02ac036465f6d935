"""Routes of the models: all, two of them side by side, and using one."""

from contextlib import suppress
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel

from harmonium.errors import LibraryError
from harmonium.web.requests import PathId, QueryId
from harmonium.web.responses import ChangeNumber, ModelSummary
from harmonium.web.service import UsedService

router = APIRouter(tags=["models"])


class Models(BaseModel):
    """All models, the newest first."""

    models: list[ModelSummary]


class Comparison(BaseModel):
    """How well two models know each tag."""

    a: ModelSummary
    b: ModelSummary
    tags: list[dict[Literal["tag", "auc_a", "auc_b"], Any]]
    better: int
    worse: int
    mean_a: float | None
    mean_b: float | None
    error: float | None
    changed_tracks: int | None


@router.get("/models")
def models(service: UsedService) -> Models:
    """All models, the newest first."""
    entries = service.library().models.entries()
    return Models(models=[ModelSummary.of(entry) for entry in entries])


@router.get("/models/compare")
def compare(service: UsedService, a: QueryId, b: QueryId) -> Comparison:
    """The AUC of each tag in two models, and how many tracks get different tags from them."""
    library = service.library()
    with service.limited("comparing", 2, wait=10.0):
        comparison = library.models.compare(a, b)
    entries = {entry.id: entry for entry in library.models.entries()}
    return Comparison(
        a=ModelSummary.of(entries[a]),
        b=ModelSummary.of(entries[b]),
        tags=comparison.tags,
        better=comparison.better,
        worse=comparison.worse,
        mean_a=comparison.mean_a,
        mean_b=comparison.mean_b,
        error=comparison.error,
        changed_tracks=comparison.changed_tracks,
    )


@router.post("/models/{id}/use")
def use(service: UsedService, id: PathId) -> ChangeNumber:
    """Use a model from now on; it tags the tracks that it has not tagged yet."""
    library = service.library()
    change = library.models.use(id)
    entry = next(entry for entry in library.models.entries() if entry.id == id)
    if entry.n_tagged < library.tracks.count("present"):
        with suppress(LibraryError):  # A job may be tagging already.
            service.jobs.start("tag", {})
    return ChangeNumber(change=change)
