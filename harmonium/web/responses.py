"""Parts of responses that several routes share. What only one route sends is beside that route.

Records of the library are sent as they are where the API has the same fields. Elsewhere, `of` of a
response makes it of a record.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from fastapi import Response
from pydantic import AfterValidator, BaseModel, Field

from harmonium.errors import readable
from harmonium.library.models import ModelEntry
from harmonium.library.snapshot import Hit, TrackTag
from harmonium.library.store.tracks import Track

Text = Annotated[str, AfterValidator(readable)]  # a file's name, as well as JSON can hold it
AudioFeatures = Annotated[
    dict[str, float], Field(description="Audio features, such as energy, from 0 to 1.")
]
Source = Literal["people", "model", "nobody"]


class ChangeNumber(BaseModel):
    """The change that was made; null if nothing changed."""

    change: int | None


class TrackLine(BaseModel):
    """A track, as lists show it."""

    id: int
    name: Text
    title: str | None
    artist: str | None
    album: str | None
    duration: float | None

    @classmethod
    def of(cls, track: Track) -> "TrackLine":
        """A track of the library."""
        return TrackLine(
            id=track.id,
            name=track.name,
            title=track.title,
            artist=track.artist,
            album=track.album,
            duration=track.duration,
        )


class FoundTrack(TrackLine):
    """A track that was found, and why."""

    probability: float | None
    similarity: float | None
    holds: bool
    source: Source | None
    tags: list[TrackTag]
    features: AudioFeatures

    @classmethod
    def of_hit(cls, hit: Hit) -> Self:
        """A hit of a search."""
        return cls(
            id=hit.track.id,
            name=hit.track.name,
            title=hit.track.title,
            artist=hit.track.artist,
            album=hit.track.album,
            duration=hit.track.duration,
            probability=hit.probability,
            similarity=hit.similarity,
            holds=hit.holds,
            source=cast(Source | None, hit.source),
            tags=hit.shown_tags,
            features=hit.features,
        )


class ModelSummary(BaseModel):
    """A model, and how well it knows its tags."""

    id: int
    made_at: datetime
    in_use: bool
    built_in: bool
    tags: int
    learnt: int
    mean_auc: float | None
    tracks: int | None

    @classmethod
    def of(cls, entry: ModelEntry) -> Self:
        """A model of the library."""
        return cls(
            id=entry.id,
            made_at=entry.made_at,
            in_use=entry.in_use,
            built_in=entry.built_in,
            tags=entry.n_tags,
            learnt=entry.n_learnt,
            mean_auc=entry.mean_auc,
            tracks=entry.n_tracks,
        )


class Job(BaseModel):
    """Work that the server does in a process of its own."""

    id: int
    kind: Literal["index", "import", "train", "write", "tag"]
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    text: str
    done: int
    total: int | None
    started_at: datetime
    seconds: float
    result: dict[str, Any] | None
    error: str | None


def file_response(
    media_type: str, description: str, others: dict[int, str] | None = None
) -> dict[str, Any]:
    """For a route that sends a file: what it sends, and what its other statuses mean."""
    responses: dict[int, Any] = {200: {"content": {media_type: {}}, "description": description}}
    for status, meaning in (others or {}).items():
        responses[status] = {"description": meaning}
    return {"response_class": Response, "responses": responses}
