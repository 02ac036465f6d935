"""Request and response bodies, and errors in one shape: {"error": {"code", "message", "field"}}.

A route returns the library's record. FastAPI reads the fields of the answer from its attributes.
"""

from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
)
from starlette.exceptions import HTTPException
from starlette.routing import Match

from harmonium import errors
from harmonium.audio import decoding
from harmonium.library import tags as library_tags
from harmonium.library.answers import CompletedTag, Doubt, Improvement, TagOfTrack
from harmonium.library.doctor import Doubt as Doubted
from harmonium.library.doctor import Spellings
from harmonium.library.edits import RenamedTag
from harmonium.library.models import ModelComparison, ModelEntry
from harmonium.library.snapshot import Facet, Hit, SearchResult, TrackTag
from harmonium.library.store import changes as library_changes
from harmonium.library.store.tracks import Track
from harmonium.library.tags import TagEntry
from harmonium.library.write import OutlinedTag
from harmonium.web.jobs import TooLongError

MAX_ID = 2**53 - 1  # the largest integer that all JSON parsers read exactly
_WHOLE = BeforeValidator(lambda x: int(x) if isinstance(x, float) and x.is_integer() else x)
Id = Annotated[int, Field(ge=1, le=MAX_ID), _WHOLE]  # 3.0 is an integer in JSON
PathId = Annotated[int, Path(ge=1, le=MAX_ID)]
TagName = Annotated[str, Field(min_length=1, max_length=200)]
TagNames = Annotated[list[TagName], Field(max_length=1000)]
Text = Annotated[str, AfterValidator(errors.readable)]  # a file's name, as well as JSON can hold it
AudioFeatures = Annotated[
    dict[str, float], Field(description="Audio features, such as energy, from 0 to 1.")
]
TAG_ACTIONS = ("/rename", "/hide", "/kind")  # ends of paths that are not tags
IfAny = BeforeValidator(lambda value: value is not None)


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
    """The tag whose probability to explain."""

    tag: TagName


class Said(Answers):
    """Answers to save, and answers to remove."""

    unknown: TagNames = []


class NewName(Asked):
    """The new name of a tag or a saved search."""

    to: TagName


class KindAsked(Asked):
    """The kind of a tag."""

    kind: Literal["genre", "mood", "instrument", "voice", "era", "sound", "own", "none"]


class FieldsAsked(Asked):
    """Kind or tag → its field in files; null for the default."""

    fields: dict[TagName, Literal["genre", "mood", "grouping", "comment", "none"] | None]


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


class ImportAsked(Asked):
    """The file fields whose tags to learn."""

    fields: list[Literal["genre", "mood", "grouping", "comment"]] = ["genre"]


class TrainAsked(Asked):
    """How to train."""

    take_over: bool = False


class IndexAsked(Asked):
    """The folder to index."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]


def picked(record: type, *names: str) -> dict[str, Any]:
    """The types of some fields of a record."""
    kinds = get_type_hints(record)
    return {name: kinds[name] for name in names}


def sends(kind: str, text: str, others: dict[int, str] | None = None) -> dict[str, Any]:
    """Describes a route that answers with a file, and what its other statuses mean."""
    responses: dict[int, Any] = {n: {"description": what} for n, what in (others or {}).items()}
    responses[200] = {"content": {kind: {}}, "description": text}
    return {"response_class": Response, "responses": responses}


def answer(name: str, record: type | None = None, /, **fields: Any) -> Any:
    """A response model: a record's fields, and others as name=type or name=[type]."""
    kinds = {} if record is None else get_type_hints(record)
    for key, kind in fields.items():
        kinds[key] = GenericAlias(list, (kind[0],)) if isinstance(kind, list) else kind
    types: dict[str, Any] = {key: (kind, ...) for key, kind in kinds.items()}
    return create_model(name, **types)


def read_from(kind: Any, *path: str) -> Any:
    """A field whose value is somewhere else in the record."""
    return Annotated[kind, Field(validation_alias=AliasPath(*path))]


TRACK = {"id": int, "name": Text} | picked(Track, "title", "artist", "album", "duration")
TrackLine = answer("TrackLine", **TRACK)
FoundTrack = answer(
    "FoundTrack",
    **{name: read_from(kind, "track", name) for name, kind in TRACK.items()},
    **picked(Hit, "probability", "similarity"),
    source=Literal["people", "model", "nobody"] | None,
    tags=read_from(list[TrackTag], "shown_tags"),
    features=AudioFeatures,
)
TrackDetail = answer(
    "TrackDetail",
    **TRACK,
    **{"state": str, "file": Text, "playable": bool, "copies": [Text], "tags": [TagOfTrack]},
    features=AudioFeatures,
)
SaidAnswer = answer("SaidAnswer", change=int | None, track=TrackDetail, moved=[CompletedTag])
Found = answer("Found", SearchResult, hits=[FoundTrack])
SavedSearch = answer("SavedSearch", name=str, words=str, query=dict[str, Any])
SavedSearches = answer("SavedSearches", searches=[SavedSearch])
Facets = answer("Facets", facets=[Facet], total=int)
FileTags = answer(
    "FileTags", name=Text, duration=float | None, tags=[TagOfTrack], features=AudioFeatures
)

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
Renamed = answer("Renamed", **picked(RenamedTag, "change", "merged", "needs_training"))
ChangeNumber = answer("ChangeNumber", change=int | None)
Progress = answer(
    "Progress",
    answers=read_from(int, "n"),
    **picked(Improvement, "right_before", "right_now"),
    text=str,
)
Question = answer("Question", Doubt, track=TrackLine)
Questions = answer("Questions", questions=[Question])
Taught = answer("Taught", change=int, progress=Progress)

Job = answer(
    "Job",
    id=int,
    kind=Literal["index", "import", "train", "write", "tag"],
    state=Literal["waiting", "running", "done", "failed", "stopped"],
    text=str,
    done=int,
    total=int | None,
    started_at=datetime,
    seconds=float,
    result=dict[str, Any] | None,
    error=str | None,
)
Jobs = answer("Jobs", jobs=[Job])
Folder = answer("Folder", decoding.Folder, path=Text, name=Text)
Folders = answer(
    "Folders", decoding.Folder, path=Text, name=Text, parent=Text | None, folders=[Folder]
)
DoubtedTag = answer("DoubtedTag", Doubted, id=int, track=Text)
Health = answer(
    "Health",
    unreadable=[answer("UnreadableFile", path=Text, reason=Text | None)],
    missing=[Text],
    copies=[answer("FileCopy", path=Text, track=Text)],
    recordings=[list[Text]],
    unused=[str],
    once=[str],
    spellings=[answer("SpelledTag", Spellings)],
    doubts=GenericAlias(list, (DoubtedTag,)) | None,
)
FileTagsToImport = answer(
    "FileTagsToImport",
    tracks=read_from(int, "n_tracks"),
    tags=read_from(int, "n_tags"),
    new=read_from(int, "n_added"),
    ignored=dict[str, int],
)
ModelSummary = answer(
    "ModelSummary",
    **picked(ModelEntry, "id", "made_at", "in_use", "built_in"),
    tags=read_from(int, "n_tags"),
    learnt=read_from(int, "n_learnt"),
    mean_auc=float | None,
    tracks=read_from(int | None, "n_tracks"),
)
Models = answer("Models", models=[ModelSummary])
Comparison = answer("Comparison", ModelComparison, a=ModelSummary, b=ModelSummary)
Person = answer("Person", name=str, n=read_from(int, "n_tracks"))
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
    built_in=answer("BuiltInModel", ready=bool, why=str | None),
    jobs=[Job],
    empty=bool,
)
Change = answer(
    "Change",
    **picked(library_changes.Change, "id", "at", "command", "summary"),
    undone=Annotated[read_from(bool, "undone_by"), IfAny],
    undone_in_part=Annotated[read_from(bool, "undone_in_part_by"), IfAny],
)
Changes = answer("Changes", changes=[Change])
Undone = answer("Undone", change=int, complete=bool, done=int, left=int, problems=[str])
FieldChange = answer("FieldChange", field=str, before=[Text], after=[Text])
WriteFields = answer("WriteFields", fields=dict[str, str])
UnreachedTag = answer("UnreachedTag", tag=str, best=float | None)
PlannedFile = answer("PlannedFile", track=TrackLine, fields=[FieldChange], guessed=dict[str, float])
WritePlan = answer(
    "WritePlan",
    files=int,
    tags=[OutlinedTag],
    not_reached=[UnreachedTag],
    total=int,
    guessed=int,
    expected_wrong=float,
    features=int,
    preview=[PlannedFile],
)

ErrorAnswer = answer(
    "ErrorAnswer", error=answer("ErrorBody", code=str, message=str, field=str | None)
)
ERRORS: dict[int | str, tuple[str, str]] = {  # status → default code, and what it means
    400: ("bad_request", "The request does not match this document."),
    401: ("unauthorized", "The token is missing or wrong."),
    403: ("forbidden", "The request comes from a page of another site."),
    404: ("not_found", "There is no such track, tag, file or folder."),
    405: ("bad_request", "The method is not supported here."),
    408: ("bad_request", "The request did not arrive in time."),
    409: ("conflict", "The library's state does not allow it."),
    413: ("too_large", "The body is too large."),
    415: ("unsupported_media", "The body has the wrong type, or is not music."),
    422: ("bad_request", "The request cannot be carried out; the message says why."),
    500: ("failed", "An error in the server; its log says more."),
    503: ("busy", "The server is busy; Retry-After says when to try again."),
    "default": ("bad_request", "Any other error."),
}
LIBRARY_ERRORS: tuple[tuple[type[errors.HarmoniumError], int, str | None], ...] = (
    (errors.UnknownTagError, 404, "unknown_tag"),
    (errors.NotInLibraryError, 404, None),
    (errors.NoLibraryError, 409, "not_ready"),
    (TooLongError, 413, None),
    (errors.AudioError, 415, None),
    (errors.DataError, 422, None),
    (errors.ServerError, 503, None),
)
"""Library error, status and code; the first that fits counts."""
TEMPORARY = ("locked", "connection", "server stopped", "disk is")
"""Words in library errors that may pass soon: it is locked, restarting or out of space."""


class Problem(HTTPException):
    """An answer that says what is wrong and what to do.

    ``code`` is by default the status's own; ``field`` is the invalid parameter.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status in (408, 413):  # The rest of the body may still arrive.
            headers["Connection"] = "close"
        super().__init__(status, message, headers)
        self.code, self.field = code or ERRORS.get(status, ERRORS["default"])[0], field

    def response(self) -> JSONResponse:
        """The error as a response, in the one shape."""
        error = {"code": self.code, "message": self.detail, "field": self.field}
        return JSONResponse({"error": error}, self.status_code, self.headers)


def not_ready(message: str) -> Problem:
    """The library or a model is missing."""
    return Problem(409, message, code="not_ready")


def problem_of(error: errors.HarmoniumError) -> Problem:
    """The response to a library error."""
    message = str(error)
    for kind, status, code in LIBRARY_ERRORS:
        if isinstance(error, kind):
            return Problem(status, message, code=code, retry_after=5 if status == 503 else None)
    if isinstance(error, errors.LibraryError) and any(word in message for word in TEMPORARY):
        return Problem(503, message, retry_after=5)
    return Problem(409, message)


def install_errors(app: FastAPI) -> None:
    """Give every error of an app the same shape."""

    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> JSONResponse:
        if not isinstance(error, Problem):
            words = {404: "Nothing is at this address.", 405: "This method is not supported here."}
            error = Problem(error.status_code, words.get(error.status_code, str(error.detail)))
        if error.status_code == 405:
            error.headers = {"Allow": ", ".join(_methods(app, request))}
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = [str(part) for part in first.get("loc", ())]
        field = where[-1] if len(where) > 1 else None
        said = str(first.get("msg", "cannot be read"))
        message = f"{field or 'The request'}: {said[:1].lower()}{said[1:]}."
        return Problem(400, message, field=field).response()

    @app.exception_handler(errors.HarmoniumError)
    async def expected(_: Request, error: errors.HarmoniumError) -> JSONResponse:
        return problem_of(error).response()

    @app.exception_handler(OSError)
    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        reason = getattr(error, "strerror", None) or type(error).__name__  # a full disk, say
        status = 503 if isinstance(error, OSError) else 500
        return Problem(status, f"The server failed: {reason}.", retry_after=5).response()


def _methods(app: FastAPI, request: Request) -> list[str]:
    """The methods that a path supports; several routes may have the same path."""
    found: set[str] = set()
    for method in ("GET", "POST", "PUT", "DELETE"):
        scope = dict(request.scope, method=method)
        if any(route.matches(scope)[0] == Match.FULL for route in app.router.routes):
            found.add(method)
    if request.scope["path"].endswith(TAG_ACTIONS):
        found.discard("GET")
    return sorted(found)
