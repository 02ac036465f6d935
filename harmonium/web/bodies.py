"""The bodies of requests, and of the answers that are not records of the library as they are.

A route returns the library's record. FastAPI reads the fields of the answer from its attributes.
"""

from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import Path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from harmonium.files import readable
from harmonium.library import tags as library_tags
from harmonium.library.doubts import Doubt
from harmonium.library.models import ModelComparison
from harmonium.library.snapshot import Facet, Hit, SearchResult, ShownTag
from harmonium.library.tags import TagEntry
from harmonium.library.track_tags import CompletedTag, TagOfTrack
from harmonium.library.write_outline import OutlinedTag, UnreachedTag

MAX_ID = 2**53 - 1
"""The largest integer that all JSON parsers read exactly."""
Id = Annotated[int, Field(ge=1, le=MAX_ID)]
PathId = Annotated[int, Path(ge=1, le=MAX_ID)]
TagName = Annotated[str, Field(min_length=1, max_length=200)]
TagNames = Annotated[list[TagName], Field(max_length=1000)]
Text = Annotated[str, AfterValidator(readable)]
"""A name of a file, of which JSON may not be able to hold every byte."""


def answer(name: str, record: type | None = None, /, **fields: Any) -> Any:
    """A model of an answer: the fields of a record, and others, as name=type.

    [type] stands for a list of that type.
    """
    kinds = {} if record is None else get_type_hints(record)
    for key, kind in fields.items():
        kinds[key] = GenericAlias(list, (kind[0],)) if isinstance(kind, list) else kind
    types: dict[str, Any] = {key: (kind, ...) for key, kind in kinds.items()}
    return create_model(name, **types)


# Requests.


class Asked(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Token(Asked):
    """The token that signs a browser in."""

    token: Annotated[str, Field(max_length=1000)]


class Answers(Asked):
    """All of a person's answers on a track."""

    yes: TagNames = []
    no: TagNames = []


class WhyAsked(Answers):
    """The tag whose probability is to be explained."""

    tag: TagName


class Said(Answers):
    """Answers to save, and answers to remove."""

    unknown: TagNames = []


class NewName(Asked):
    """The new name of a tag."""

    to: TagName


class TeachAnswer(Asked):
    """The answer to a question."""

    track: Id
    tag: TagName
    answer: bool
    change: Id | None = None


class WriteAsked(Asked):
    """Which tags to write, and into which files."""

    precision: Annotated[float, Field(ge=0, lt=1)] = 0.8
    q: Annotated[str, Field(max_length=1000)] = ""
    ignore: TagNames = []
    skip: Annotated[list[Id], Field(max_length=100_000)] = []


class TrainAsked(Asked):
    """How to train."""

    take_over: bool = False


class IndexAsked(Asked):
    """The folder to index."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]


# Tracks.


class TrackLine(BaseModel):
    """A track in a line."""

    id: int
    name: Text
    title: str | None
    artist: str | None
    album: str | None
    duration: float | None


class FoundTrack(TrackLine):
    """A track that was found."""

    probability: float | None
    similarity: float | None
    source: Literal["people", "model", "nobody"] | None
    tags: list[ShownTag]

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, hit: Hit) -> dict[str, Any]:
        fields = {name: getattr(hit.track, name) for name in TrackLine.model_fields}
        return {**fields, **vars(hit), "tags": hit.shown_tags}


class TrackDetail(TrackLine):
    """A track with all its tags."""

    state: str
    file: Text
    playable: bool
    copies: list[Text]
    tags: list[TagOfTrack]


SaidAnswer = answer("SaidAnswer", change=int | None, track=TrackDetail, moved=[CompletedTag])
Found = answer("Found", SearchResult, hits=[FoundTrack])
Facets = answer("Facets", facets=[Facet])
FileTags = answer("FileTags", name=Text, duration=float | None, tags=[TagOfTrack])


# Tags.

RelatedTag = answer("RelatedTag", tag=str, probability_with=float, probability_without=float)
Tags = answer("Tags", tags=[TagEntry])
TagDetail = answer(
    "TagDetail",
    library_tags.TagDetail,
    related=[RelatedTag],
    surest=[FoundTrack],
    doubtful=[FoundTrack],
    surprising=[FoundTrack],
)
Renamed = answer("Renamed", change=int, merged=bool, needs_training=bool)
ChangeNumber = answer("ChangeNumber", change=int | None)


class Progress(BaseModel):
    """How much the last answers have improved the model."""

    answers: int = Field(validation_alias="n")
    right_before: int
    right_now: int
    log_loss_before: float | None = Field(validation_alias="loss_before")
    log_loss_now: float | None = Field(validation_alias="loss_now")
    text: str


Question = answer("Question", Doubt, track=TrackLine)
Questions = answer("Questions", questions=[Question])
Taught = answer("Taught", change=int, progress=Progress)


# Work.


class Job(BaseModel):
    """Work that a process of its own does."""

    id: int
    kind: Literal["index", "train", "write", "tag"]
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    text: str
    done: int
    total: int | None
    started_at: datetime
    seconds: float
    result: dict[str, Any] | None
    error: str | None


class ModelSummary(BaseModel):
    """A model in short."""

    id: int
    made_at: datetime
    in_use: bool
    tags: int = Field(validation_alias="n_tags")
    learnt: int = Field(validation_alias="n_learnt")
    mean_auc: float | None
    tracks: int | None = Field(validation_alias="n_tracks")


Person = answer("Person", name=str, n=Annotated[int, Field(validation_alias="n_tracks")])
BuiltInModel = answer("BuiltInModel", ready=bool, why=str | None)
LibrarySummary = answer(
    "LibrarySummary",
    name=Text,
    tracks=int,
    missing=int,
    unreadable=int,
    folders=[Text],
    people=[Person],
    person=str,
    model=ModelSummary | None,
    shipped=BuiltInModel,
    jobs=[Job],
    empty=bool,
)
IfAny = BeforeValidator(lambda value: value is not None)
Change = answer(
    "Change",
    id=int,
    at=datetime,
    command=str,
    summary=str,
    undone=Annotated[bool, Field(validation_alias="undone_by"), IfAny],
    undone_in_part=Annotated[bool, Field(validation_alias="undone_in_part_by"), IfAny],
)
FieldChange = answer("FieldChange", field=str, before=[Text], after=[Text])
PlannedFile = answer("PlannedFile", track=TrackLine, fields=[FieldChange], guessed=dict[str, float])
Jobs = answer("Jobs", jobs=[Job])
Models = answer("Models", models=[ModelSummary])
Comparison = answer("Comparison", ModelComparison, a=ModelSummary, b=ModelSummary)
WritePlan = answer(
    "WritePlan",
    files=int,
    tags=[OutlinedTag],
    not_reached=[UnreachedTag],
    expected_wrong=float,
    guessed=int,
    preview=[PlannedFile],
)
Changes = answer("Changes", changes=[Change])
Undone = answer("Undone", change=int, complete=bool, done=int, left=int, problems=[str])
