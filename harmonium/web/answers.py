"""The shapes of what the API takes and gives; the OpenAPI document is made from them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LARGEST_ID = 2**53 - 1
"""The largest number that JSON's readers agree on."""
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
TagName = Annotated[str, Field(min_length=1, max_length=200)]
TagNames = Annotated[list[TagName], Field(max_length=1000)]
Owner = Literal["own", "built-in", "people"]


class Asked(BaseModel):
    """What a request says; anything else in it is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str
    message: str
    field: str | None = None


class ErrorAnswer(BaseModel):
    """Every answer with a status of 400 or more."""

    error: ErrorBody


class Health(BaseModel):
    """That the server works."""

    status: Literal["ok"]
    version: str


class Token(Asked):
    """What signs a browser in."""

    token: Annotated[str, Field(max_length=1000)]


class ModelSummary(BaseModel):
    """A model in short."""

    id: int
    made_at: datetime
    in_use: bool
    tags: int
    learnt: int
    mean_auc: float | None
    tracks: int | None


class PersonSummary(BaseModel):
    """Somebody who has said something."""

    name: str
    n: int


class Shipped(BaseModel):
    """Whether the model that comes along can be used."""

    ready: bool
    why: str | None


class Job(BaseModel):
    """Work that goes on in a process of its own."""

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


class Jobs(BaseModel):
    """All jobs, the latest first."""

    jobs: list[Job]


class LibrarySummary(BaseModel):
    """A library in short."""

    name: str
    tracks: int
    missing: int
    unreadable: int
    folders: list[str]
    people: list[PersonSummary]
    person: str
    model: ModelSummary | None
    shipped: Shipped
    jobs: list[Job]
    empty: bool


class HitTag(BaseModel):
    """A tag of a track in a list."""

    tag: str
    shown: str
    probability: float | None
    source: Literal["people", "model"]


class TrackBrief(BaseModel):
    """A track in a line."""

    id: int
    name: str
    title: str | None
    artist: str | None
    album: str | None
    duration: float | None


class Hit(TrackBrief):
    """A track that was found."""

    probability: float | None
    similarity: float | None
    source: Literal["people", "model", "nobody"] | None
    tags: list[HitTag]


class SearchAnswer(BaseModel):
    """One page of a result."""

    total: int
    offset: int
    n_below: int
    people_only: list[str]
    hits: list[Hit]


class FacetAnswer(BaseModel):
    """A tag, and how many tracks of a result have it."""

    tag: str
    shown: str
    group: str
    n: int


class Facets(BaseModel):
    """The commonest tags of a result."""

    facets: list[FacetAnswer]


class PeopleCount(BaseModel):
    """How many people say so, and how many deny it."""

    yes: int
    no: int


class TagOfTrack(BaseModel):
    """A tag, and what is known of it on a track."""

    tag: str
    shown: str
    group: str
    owner: Owner
    probability: float | None
    said: bool | None
    people: PeopleCount
    threshold: float | None
    predicted: bool
    precision: float | None


class TrackAnswer(TrackBrief):
    """A track with all its tags."""

    state: str
    file: str
    playable: bool
    copies: list[str]
    tags: list[TagOfTrack]


class Answered(Asked):
    """A person's whole answer on a track."""

    yes: TagNames = []
    no: TagNames = []


class CompletedTag(BaseModel):
    """A tag, given what is known of others."""

    tag: str
    probability: float
    before: float


class CompletionAnswer(BaseModel):
    """What follows from an answer."""

    tags: list[CompletedTag]
    moved: list[str]


class WhyAsked(Answered):
    """A question why a tag has its probability."""

    tag: TagName


class SoundPart(BaseModel):
    """What the sound adds."""

    log_odds: float
    probability: float


class WhyPart(BaseModel):
    """What a known tag adds."""

    tag: str
    said: bool
    log_odds: float


class WhyAnswer(BaseModel):
    """Where a probability comes from."""

    tag: str
    probability: float
    usual: float
    sound: SoundPart
    parts: list[WhyPart]


class Said(Answered):
    """What to keep, and what to take back."""

    unknown: TagNames = []


class SaidAnswer(BaseModel):
    """What was kept."""

    change: int | None
    track: TrackAnswer


class TagAnswer(BaseModel):
    """A tag of the library."""

    tag: str
    shown: str
    group: str
    owner: Owner
    auc: float | None
    examples: int
    people: int
    predicted: int
    threshold: float | None
    precision: float | None
    recall: float | None
    hidden: bool


class Tags(BaseModel):
    """All tags, the most used first."""

    tags: list[TagAnswer]


class MapTag(BaseModel):
    """A tag on the map."""

    tag: str
    shown: str
    group: str
    x: float
    y: float
    size: float


class MapLink(BaseModel):
    """Two tags that go together, or against each other where the weight is negative."""

    a: str
    b: str
    weight: float


class TagMap(BaseModel):
    """How tags relate."""

    tags: list[MapTag]
    links: list[MapLink]


class CurvePoint(BaseModel):
    """How often a tag is right from a probability on."""

    threshold: float
    precision: float
    low: float
    recall: float


class RelatedTag(BaseModel):
    """A tag that another makes more or less likely."""

    tag: str
    probability_with: float
    probability_without: float


class TagDetail(TagAnswer):
    """A tag with all that is known of it."""

    curve: list[CurvePoint]
    related: list[RelatedTag]
    surest: list[Hit]
    doubtful: list[Hit]
    surprising: list[Hit]


class Renamed(Asked):
    """Another name for a tag."""

    to: TagName


class RenameAnswer(BaseModel):
    """What became of it."""

    change: int
    merged: bool
    needs_training: bool


class ChangeNumber(BaseModel):
    """The number of a change; null where there was nothing to change."""

    change: int | None


class TeachQuestion(BaseModel):
    """Does the tag fit the track?"""

    track: TrackBrief
    tag: str
    shown: str
    probability: float
    guess: bool


class TeachQuestions(BaseModel):
    """What an answer is worth most for."""

    questions: list[TeachQuestion]


class TeachAnswered(Asked):
    """The answer to a question."""

    track: Id
    tag: TagName
    answer: bool
    change: Id | None = None


class Progress(BaseModel):
    """What the last answers have improved."""

    answers: int
    right_before: int
    right_now: int
    log_loss_before: float | None
    log_loss_now: float | None
    text: str


class TaughtAnswer(BaseModel):
    """That it was kept."""

    change: int
    progress: Progress


class PlannedTag(BaseModel):
    """A tag that would be written."""

    tag: str
    shown: str
    n: int
    precision: float | None
    expected_wrong: float
    accepted: bool
    elsewhere: Annotated[
        bool, Field(description="Whether its precision was measured on other music.")
    ]


class UnreachedTag(BaseModel):
    """A tag that is not right so often."""

    tag: str
    best: float | None


class FieldChange(BaseModel):
    """What would become of a field of a file."""

    field: str
    before: list[str]
    after: list[str]


class PlannedFile(BaseModel):
    """What would become of a file."""

    track: TrackBrief
    fields: list[FieldChange]
    guessed: dict[str, float]


class WritePlanAnswer(BaseModel):
    """What would be written."""

    files: int
    tags: list[PlannedTag]
    not_reached: list[UnreachedTag]
    expected_wrong: float
    guessed: int
    preview: list[PlannedFile]


class WriteAsked(Asked):
    """What to write."""

    precision: Annotated[float, Field(ge=0, lt=1)] = 0.8
    q: Annotated[str, Field(max_length=1000)] = ""
    ignore: TagNames = []
    skip: Annotated[list[Id], Field(max_length=100_000)] = []


class ChangeAnswer(BaseModel):
    """A change of the library."""

    id: int
    at: datetime
    command: str
    summary: str
    undone: bool
    undone_in_part: bool


class Changes(BaseModel):
    """Changes, the latest first."""

    changes: list[ChangeAnswer]


class UndoAnswer(BaseModel):
    """What undoing did."""

    change: int
    complete: bool
    done: int
    left: int
    problems: list[str]


class Models(BaseModel):
    """All models, the newest first."""

    models: list[ModelSummary]


class ComparedTag(BaseModel):
    """How well two models know a tag."""

    tag: str
    auc_a: float | None
    auc_b: float | None


class Comparison(BaseModel):
    """Two models side by side."""

    a: ModelSummary
    b: ModelSummary
    tags: list[ComparedTag]
    better: int
    worse: int
    changed_tracks: int | None


class TrainAsked(Asked):
    """How to train."""

    take_over: bool = False


class IndexAsked(Asked):
    """Which folder to index."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]


class FileAnswer(BaseModel):
    """The tags of a file that is not in the library."""

    name: str
    duration: float | None
    tags: list[TagOfTrack]
