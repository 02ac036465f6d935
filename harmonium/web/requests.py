"""What requests contain: their bodies, and parameters that several routes have."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from harmonium.library.model import USUAL_PRECISION

MAX_ID = 2**53 - 1  # the largest integer that all JSON parsers read exactly
MAX_TAG = 200  # the length of a tag
TAG_ACTIONS = ("/rename", "/hide", "/kind")  # ends of paths that are not tags


def _as_integer(value: Any) -> Any:
    """3 for 3.0, which JSON does not tell apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Id = Annotated[int, Field(ge=1, le=MAX_ID), BeforeValidator(_as_integer)]
PathId = Annotated[int, Path(ge=1, le=MAX_ID)]
QueryId = Annotated[int, Query(ge=1, le=MAX_ID)]
Offset = Annotated[int, Query(ge=0, le=MAX_ID)]
TagName = Annotated[str, Field(min_length=1, max_length=MAX_TAG)]
TagNames = Annotated[list[TagName], Field(max_length=1000)]


class RequestBody(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SignInRequest(RequestBody):
    """The token that signs a browser in."""

    token: Annotated[str, Field(max_length=1000)]


class AnswersRequest(RequestBody):
    """All of a person's answers on a track."""

    yes: TagNames = []
    no: TagNames = []


class WhyRequest(AnswersRequest):
    """The tag whose probability to explain."""

    tag: TagName


class SayRequest(AnswersRequest):
    """Answers to save, and answers to withdraw."""

    unknown: TagNames = []


class RenameRequest(RequestBody):
    """The new name of a tag or a saved search."""

    to: TagName


class KindRequest(RequestBody):
    """The kind of a tag."""

    kind: Literal["genre", "mood", "instrument", "voice", "era", "sound", "own", "none"]


class FieldsRequest(RequestBody):
    """Kind or tag → its field in files; null for the default."""

    fields: dict[TagName, Literal["genre", "mood", "grouping", "comment", "none"] | None]


class TeachRequest(RequestBody):
    """The answer to a question."""

    track: Id
    tag: TagName
    answer: bool
    change: Id | None = None


class WriteRequest(RequestBody):
    """Which tags to write, and into which files."""

    precision: Annotated[float, Field(ge=0, lt=1)] = USUAL_PRECISION
    q: Annotated[str, Field(max_length=1000)] = ""
    ignore: TagNames = []
    skip: Annotated[list[Id], Field(max_length=100_000)] = []


class ImportRequest(RequestBody):
    """The file fields whose tags to learn."""

    fields: list[Literal["genre", "mood", "grouping", "comment"]] = ["genre"]


class TrainRequest(RequestBody):
    """How to train."""

    take_over: bool = False


class IndexRequest(RequestBody):
    """The folder to index."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]
