"""Routes of a track's tags: what is known, what answers mean, why, and saving them."""

from typing import Self

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel

from harmonium.library.snapshot import Snapshot
from harmonium.library.store.tracks import Track
from harmonium.library.teaching.completion import CompletedTag, Completion, Why
from harmonium.library.teaching.track_tags import TagOfTrack, tags_of_track
from harmonium.web.requests import AnswersRequest, PathId, SayRequest, WhyRequest
from harmonium.web.responses import AudioFeatures, Text, TrackLine
from harmonium.web.routes.sound import media_type
from harmonium.web.service import UsedService

router = APIRouter(tags=["tracks"])


class TrackDetail(TrackLine):
    """A track with everything that people and the model say about it."""

    state: str
    file: Text
    playable: bool
    copies: list[Text]
    tags: list[TagOfTrack]
    features: AudioFeatures

    @classmethod
    def of_track(cls, track: Track, snapshot: Snapshot, person: str) -> Self:
        """A track of the library, as a person sees it."""
        return cls(
            id=track.id,
            name=track.name,
            title=track.title,
            artist=track.artist,
            album=track.album,
            duration=track.duration,
            state=track.state,
            file=track.path,
            playable=track.state == "present" and media_type(track) is not None,
            copies=snapshot.library.tracks.copies([track.id]).get(track.id, []),
            tags=tags_of_track(snapshot, track.id, person),
            features=snapshot.features(np.array([track.id]))[0],
        )


class SavedAnswers(BaseModel):
    """What saving answers did: the track is as it is now, and which tags moved."""

    change: int | None
    track: TrackDetail
    moved: list[CompletedTag]


@router.get("/tracks/{id}")
def track(service: UsedService, id: PathId) -> TrackDetail:
    """A track with everything that people and the model say about it."""
    person = service.settings.person
    return TrackDetail.of_track(service.track(id), service.snapshot(), person)


@router.post("/tracks/{id}/complete")
def complete(service: UsedService, id: PathId, body: AnswersRequest) -> Completion:
    """What a person's answers on a track mean for its other tags; nothing is saved."""
    person = service.settings.person
    return service.library().complete(id, body.yes, body.no, person=person)


@router.post("/tracks/{id}/why")
def why(service: UsedService, id: PathId, body: WhyRequest) -> Why:
    """What the sound and each known tag add to a tag's log-odds."""
    library = service.library()
    with service.limited("explaining", 2, wait=5.0):
        return library.why(id, body.tag, body.yes, body.no, person=service.settings.person)


@router.post("/tracks/{id}/say")
def say(service: UsedService, id: PathId, body: SayRequest) -> SavedAnswers:
    """Save this person's answers on a track, as one change that can be undone."""
    track = service.track(id)
    person = service.settings.person
    said = service.library().say(track, yes=body.yes, no=body.no, unsay=body.unknown, person=person)
    return SavedAnswers(
        change=said.change,
        track=TrackDetail.of_track(track, service.snapshot(), person),
        moved=said.moved,
    )
