"""Routes of the tags: all, one, how they relate; renaming, hiding, and setting the kind."""

from typing import Annotated, Literal, Self

from fastapi import APIRouter, Path
from pydantic import BaseModel

from harmonium.library import tags as library_tags
from harmonium.library.edits import RenamedTag
from harmonium.library.store.models import Owner
from harmonium.library.tags import TagEntry, TagMap
from harmonium.web.problems import Problem
from harmonium.web.requests import MAX_TAG, TAG_ACTIONS, KindRequest, RenameRequest
from harmonium.web.responses import ChangeNumber, FoundTrack
from harmonium.web.service import UsedService

router = APIRouter(tags=["tags"])
TagPath = Annotated[str, Path(min_length=1, max_length=MAX_TAG)]


class Tags(BaseModel):
    """All tags."""

    tags: list[TagEntry]


class RelatedTag(BaseModel):
    """How likely another tag is with a tag, and without it."""

    tag: str
    probability_with: float
    probability_without: float

    @classmethod
    def of(cls, relation: library_tags.Relation) -> Self:
        """A relation of the library."""
        return cls(
            tag=relation.tag,
            probability_with=relation.probability_with,
            probability_without=relation.probability_without,
        )


class TagDetail(BaseModel):
    """A tag, its precision and recall, related tags, and tracks to look at."""

    tag: str
    shown: str
    kind: str
    owner: Owner
    auc: float | None
    examples: int
    people: int
    predicted: int
    threshold: float | None
    precision: float | None
    recall: float | None
    hidden: bool
    quality: str | None
    curve: list[dict[Literal["threshold", "precision", "low", "recall"], float]]
    related: list[RelatedTag]
    surest: list[FoundTrack]
    doubtful: list[FoundTrack]
    surprising: list[FoundTrack]

    @classmethod
    def of(cls, detail: library_tags.TagDetail) -> Self:
        """A tag of the library."""
        return cls(
            tag=detail.tag,
            shown=detail.shown,
            kind=detail.kind,
            owner=detail.owner,
            auc=detail.auc,
            examples=detail.examples,
            people=detail.people,
            predicted=detail.predicted,
            threshold=detail.threshold,
            precision=detail.precision,
            recall=detail.recall,
            hidden=detail.hidden,
            quality=detail.quality,
            curve=detail.curve,
            related=[RelatedTag.of(relation) for relation in detail.related],
            surest=[FoundTrack.of_hit(hit) for hit in detail.surest],
            doubtful=[FoundTrack.of_hit(hit) for hit in detail.doubtful],
            surprising=[FoundTrack.of_hit(hit) for hit in detail.surprising],
        )


class Renamed(BaseModel):
    """What a rename did."""

    change: int
    merged: bool
    needs_training: bool

    @classmethod
    def of(cls, renamed: RenamedTag) -> Self:
        """The report of a rename."""
        return cls(
            change=renamed.change,
            merged=renamed.merged,
            needs_training=renamed.needs_training,
        )


@router.get("/tags")
def tags(service: UsedService) -> Tags:
    """All tags that people gave or the model has learnt, the most used first."""
    return Tags(tags=list(service.library().tags.list()))


@router.get("/tags/map")
def tag_map(service: UsedService) -> TagMap:
    """How the tags relate, by the weights that the model has learnt."""
    library = service.library()
    with service.limited("drawing the map", 1, wait=20.0):
        return service.cached("map", library.snapshot().model_id, library.tags.map)


@router.post("/tags/{tag:path}/rename")
def rename(service: UsedService, tag: TagPath, body: RenameRequest) -> Renamed:
    """Rename a tag; if the new name is a tag already, the two are merged."""
    return Renamed.of(service.library().rename(tag, body.to))


@router.post("/tags/{tag:path}/hide")
def hide(service: UsedService, tag: TagPath) -> ChangeNumber:
    """Hide a tag: it is no longer predicted, suggested or written."""
    return ChangeNumber(change=service.library().hide(tag))


@router.put("/tags/{tag:path}/kind")
def set_kind(service: UsedService, tag: TagPath, body: KindRequest) -> ChangeNumber:
    """Set a tag's kind, which decides the field of the files that it is written to."""
    return ChangeNumber(change=service.library().set_kind(tag, kind=body.kind))


@router.get("/tags/{tag:path}")
def tag_detail(service: UsedService, tag: TagPath) -> TagDetail:
    """A tag with its precision and recall, related tags, and tracks to look at."""
    if tag.endswith(TAG_ACTIONS):
        raise Problem(405, "Use POST for this, or PUT for the kind.")
    with service.limited("describing a tag", 2, wait=10.0):
        return TagDetail.of(service.library().tags.detail(tag))
