"""One track: its tags, its sound, and what a person says of it."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import FileResponse

from harmonium.audio.pictures import overview_png
from harmonium.files import user_cache_folder
from harmonium.library.answering.track_tags import complete_track
from harmonium.library.answering.why import why
from harmonium.library.correcting.say import say
from harmonium.library.store.tracks import FORGOTTEN, Track
from harmonium.web import answers
from harmonium.web.problems import Problem
from harmonium.web.routes import shapes
from harmonium.web.service import Service, UsedService

router = APIRouter(prefix="/tracks/{id}", tags=["tracks"])

TrackId = Annotated[int, Path(ge=1, le=answers.LARGEST_ID)]
SPECTRA_AT_ONCE, SPECTRUM_WAIT = 1, 20.0


@router.get("")
def track(service: UsedService, id: TrackId) -> answers.TrackAnswer:
    """A track with all that people and the model say of it."""
    view = service.view()
    return shapes.whole_track(view, _track(service, id), service.settings.person)


@router.get(
    "/audio",
    response_class=FileResponse,
    responses={
        200: {"content": {"audio/*": {}}, "description": "The file."},
        206: {"content": {"audio/*": {}}, "description": "A part of it, as Range asks."},
        416: {"description": "There is no such part."},
    },
)
def audio(service: UsedService, id: TrackId) -> FileResponse:
    """The file of a track; parts of it where the header Range asks for them."""
    found = _present(service, id)
    kind = shapes.media_type(found.path) or "application/octet-stream"
    headers = {"Cache-Control": "private, no-cache"}
    return FileResponse(found.path, media_type=kind, headers=headers)


@router.get(
    "/spectrum",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {}}, "description": "1200 × 128 pixels."},
        304: {"description": "It is the picture that the browser has."},
    },
)
def spectrum(service: UsedService, id: TrackId, request: Request) -> Response:
    """A picture of the sound: time runs from left to right, low tones are at the bottom."""
    found = _present(service, id)
    headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{found.sound[:32]}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    with service.limited("drawing", SPECTRA_AT_ONCE, wait=SPECTRUM_WAIT):
        picture = overview_png(found.path, cache=user_cache_folder(), key=found.sound)
    return Response(picture, media_type="image/png", headers=headers)


@router.post("/complete")
def complete(
    service: UsedService, id: TrackId, answered: answers.Answered
) -> answers.CompletionAnswer:
    """What follows for the other tags of a track from a person's whole answer; nothing is kept."""
    view = service.view()
    found = complete_track(view, id, answered.yes, answered.no, service.settings.person)
    tags = [answers.CompletedTag(**one._asdict()) for one in found.tags]
    return answers.CompletionAnswer(tags=tags, moved=found.moved)


@router.post("/why")
def explain(service: UsedService, id: TrackId, asked: answers.WhyAsked) -> answers.WhyAnswer:
    """What the sound adds to a tag's log-odds, and what each known tag adds."""
    view = service.view()
    person = service.settings.person
    with service.limited("explaining", 2, wait=5.0):
        found = why(view, id, asked.tag, asked.yes, asked.no, person)
    return answers.WhyAnswer(
        tag=found.tag,
        probability=found.probability,
        usual=found.usual,
        sound=answers.SoundPart(log_odds=found.sound_log_odds, probability=found.sound_probability),
        parts=[answers.WhyPart(**part._asdict()) for part in found.parts],
    )


@router.post("/say")
def keep(
    service: UsedService, request: Request, id: TrackId, said: answers.Said
) -> answers.SaidAnswer:
    """Keep what this person says of a track, as one change that can be undone."""
    found = _track(service, id)
    person = service.settings.person
    number = say(
        service.library(),
        found.id,
        present=said.yes,
        absent=said.no,
        unsaid=said.unknown,
        person=person,
    )
    request.app.state.learner.learn()
    return answers.SaidAnswer(
        change=number, track=shapes.whole_track(service.view(), found, person)
    )


def _track(service: Service, track_id: int) -> Track:
    service.view()  # where there is no library, it says so
    found = service.library().tracks.get(track_id)
    if found.state == FORGOTTEN:
        raise Problem(404, f"Track #{track_id} was taken out of the library.")
    return found


def _present(service: Service, track_id: int) -> Track:
    """A track whose file is there."""
    from pathlib import Path as FilePath

    found = _track(service, track_id)
    if found.state != "present" or not FilePath(found.path).is_file():
        raise Problem(404, f"The file of track #{track_id} is not there.")
    return found
