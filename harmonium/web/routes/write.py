"""Routes of writing: what would go into the files, the fields of tags, and writing them."""

from itertools import islice
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel

from harmonium.errors import with_path
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.tag_table import WriteDecision
from harmonium.library.writing import file_plans
from harmonium.library.writing.outline import OutlinedTag
from harmonium.web.requests import FieldsRequest, Offset, WriteRequest
from harmonium.web.responses import Job, Text, TrackLine
from harmonium.web.service import UsedService

router = APIRouter()
MAX_PREVIEW = 100
MAX_FAILURES = 100


class FieldChange(BaseModel):
    """A field of a file, before and after."""

    field: str
    before: list[Text]
    after: list[Text]


class PlannedFile(BaseModel):
    """What would change in a file, and the probabilities of its predicted tags."""

    track: TrackLine
    fields: list[FieldChange]
    guessed: dict[str, float]

    @classmethod
    def of(cls, file: file_plans.PlannedFile) -> Self:
        """A file of a plan."""
        fields = [
            FieldChange(
                field=change.field,
                before=list(change.before),
                after=list(change.after),
            )
            for change in file.change.fields
        ]
        return cls(
            track=TrackLine.of(file.track),
            fields=fields,
            guessed=dict(file.new_guesses),
        )


class UnreachedTag(BaseModel):
    """A predicted tag that is not written, and why."""

    tag: str
    best: float | None
    reason: str | None
    why: str | None

    @classmethod
    def of(cls, tag: str, decision: WriteDecision) -> Self:
        """A tag, and what the library decided about it."""
        return cls(
            tag=tag,
            best=decision.best,
            reason=decision.reason,
            why=None if decision.reason is None else decision.reason.explanation,
        )


class WritePlan(BaseModel):
    """What writing would add to the files.

    `failed` files cannot be written and count nowhere else; `failures` says why, for the first.
    """

    files: int
    tags: list[OutlinedTag]
    not_reached: list[UnreachedTag]
    total: int
    guessed: int
    expected_wrong: float
    features: int
    failed: int
    failures: list[str]
    preview: list[PlannedFile]


class WriteFields(BaseModel):
    """Kind or tag → its field in files."""

    fields: dict[str, str]


@router.get("/write/plan", tags=["write"])
def plan(
    service: UsedService,
    precision: Annotated[float, Query(ge=0, lt=1)] = USUAL_PRECISION,
    q: Annotated[str, Query(max_length=1000)] = "",
    ignore: Annotated[str, Query(max_length=6000, description="Tags, separated by commas.")] = "",
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=0, le=MAX_PREVIEW)] = 20,
) -> WritePlan:
    """What writing would add to the files, tag by tag, and some files before and after.

    The numbers come from what the library knows about the files. The preview reads the files.
    """
    library = service.library()
    rules = {"ignore": [tag.strip() for tag in ignore.split(",") if tag.strip()]}
    preview: list[PlannedFile] = []
    with service.limited("planning", 2, wait=10.0):
        outline = library.writer.outline(query=q, precision=precision, rules=rules)
        tracks = outline.tracks[offset : offset + limit]
        if tracks:
            planned = library.writer.plan(*tracks, precision=precision, rules=rules)
            preview = [PlannedFile.of(file) for file in planned.files]
    accepted = outline.accepted
    some_failures = islice(outline.failures.items(), MAX_FAILURES)
    return WritePlan(
        files=outline.n_files,
        tags=outline.tags,
        not_reached=[UnreachedTag.of(*item) for item in outline.not_written.items()],
        total=sum(tag.n for tag in accepted),
        guessed=sum(tag.n - tag.n_said for tag in accepted),
        expected_wrong=sum(tag.expected_wrong for tag in accepted),
        features=outline.n_features,
        failed=len(outline.failures),
        failures=[with_path(path, reason) for path, reason in some_failures],
        preview=preview,
    )


@router.post("/write", tags=["jobs"])
def write(service: UsedService, body: WriteRequest) -> Job:
    """Write tags into files, as one change that can be undone."""
    service.snapshot().matching(body.q)  # An invalid query is refused at once.
    return Job.model_validate(service.jobs.start("write", body.model_dump()))


@router.get("/write/fields", tags=["write"])
def fields(service: UsedService) -> WriteFields:
    """Which field each kind of tags is written to, and each tag that has a field of its own."""
    return WriteFields(fields=service.library().writer.fields())


@router.put("/write/fields", tags=["write"])
def set_fields(service: UsedService, body: FieldsRequest) -> WriteFields:
    """Set the fields that kinds of tags, or single tags, are written to; null for the default."""
    writer = service.library().writer
    writer.set_fields(body.fields)
    return WriteFields(fields=writer.fields())
