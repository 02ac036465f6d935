"""One track: its tags, its sound, and answers about it; and files outside the library."""

import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import PurePath
from typing import Annotated, Any, BinaryIO

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from harmonium.audio.decoding import EXTENSIONS
from harmonium.audio.pictures import overview_png
from harmonium.errors import DataError
from harmonium.files import open_file, user_cache_folder
from harmonium.library.answers import Completion, Improvement, tags_by_sound, tags_of_track
from harmonium.library.filetags import read_cover
from harmonium.library.store.tracks import FORGOTTEN, Track, is_below
from harmonium.library.tagger import Tagger, builtin_kinds, builtin_model
from harmonium.library.tagging import TagsOverTime, extractor_named, tags_over_time
from harmonium.library.tags import Why
from harmonium.web import bodies
from harmonium.web.bodies import Problem, not_ready, sends
from harmonium.web.jobs import decode
from harmonium.web.service import Service, UsedService

router = APIRouter()

MAX_QUESTIONS = 200
MAX_SPECTRA, MAX_LISTENING, MAX_COVERS, SPECTRUM_SECONDS = 1, 1, 4, 20.0
"""How many spectra, tracks and covers are read at once, and how long other requests wait."""
MAX_UPLOADS, MAX_DECODED, DECODE_SECONDS = 4, 1, 60.0
"""How many uploads arrive at once, how many are decoded at once, and how long others wait."""
UPLOAD_SECONDS = 600.0
MEDIA_TYPES = {  # types and extensions of files that browsers play
    "audio/mpeg": (".mp3",),
    "audio/flac": (".flac",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/wav": (".wav", ".wave"),
    "audio/mp4": (".m4a", ".m4b"),
    "audio/aac": (".aac",),
    "audio/x-matroska": (".mka",),
}
BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


class OpenedFile(FileResponse):
    """A response from a file that is already open; closes it when sent."""

    file: BinaryIO

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self.file:
            await super().__call__(scope, receive, send)


@router.get("/tracks/{id}", tags=["tracks"], response_model=bodies.TrackDetail)
def track(service: UsedService, id: bodies.PathId) -> dict[str, Any]:
    """A track with everything that people and the model say about it."""
    return _detail(service, _track(service, id))


@router.get(
    "/tracks/{id}/audio",
    tags=["tracks"],
    response_class=FileResponse,
    responses={
        200: {"content": {"audio/*": {}}, "description": "The file."},
        206: {"content": {"audio/*": {}}, "description": "The part that Range asks for."},
        416: {"description": "The file does not have this part."},
    },
)
def audio(service: UsedService, id: bodies.PathId) -> FileResponse:
    """A track's file, or the part of it that the Range header asks for."""
    found, file = _opened(service, id)
    kind = _media_type(found) or "application/octet-stream"
    headers = {"Cache-Control": "private, no-cache"}
    path = f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else found.path
    answer = OpenedFile(path, media_type=kind, headers=headers)
    answer.file = file
    return answer


@router.get(
    "/tracks/{id}/spectrum",
    tags=["tracks"],
    **sends("image/png", "1200 × 128 pixels.", {304: "The browser already has the picture."}),
)
def spectrum(service: UsedService, id: bodies.PathId, request: Request) -> Response:
    """A track's spectrum: time from left to right, low tones at the bottom."""
    found, file = _opened(service, id)
    with file:
        headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{found.sound[:32]}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        with service.limited("drawing", MAX_SPECTRA, wait=SPECTRUM_SECONDS):
            picture = overview_png(file, cache=user_cache_folder(), key=found.sound)
    return Response(picture, media_type="image/png", headers=headers)


@router.get(
    "/tracks/{id}/cover",
    tags=["tracks"],
    **sends("image/*", "The picture.", {204: "The file has no picture."}),
)
def cover(service: UsedService, id: bodies.PathId) -> Response:
    """The picture in a track's file: JPEG, PNG or GIF, up to 5 MB."""
    _, file = _opened(service, id)
    with file, service.limited("reading covers", MAX_COVERS, wait=SPECTRUM_SECONDS):
        picture = read_cover(file)
    headers = {"Cache-Control": "private, max-age=3600"}
    if picture is None:
        return Response(status_code=204, headers=headers)
    return Response(picture[0], media_type=picture[1], headers=headers)


@router.get("/tracks/{id}/over-time", tags=["tracks"])
def over_time(service: UsedService, id: bodies.PathId) -> TagsOverTime:
    """How likely a track's tags are at up to thirty points in it, from the sound there alone.

    Tags that are unlikely everywhere are left out. The first answer for a track takes seconds.
    """
    found, file = _opened(service, id)
    with file, service.limited("listening", MAX_LISTENING, wait=SPECTRUM_SECONDS):
        return tags_over_time(service.library(), found.path, file=file)


@router.post("/tracks/{id}/complete", tags=["tracks"])
def complete(service: UsedService, id: bodies.PathId, asked: bodies.Answers) -> Completion:
    """What a person's answers on a track mean for its other tags; nothing is saved."""
    person = service.settings.person
    return service.library().complete(id, asked.yes, asked.no, person=person)


@router.post("/tracks/{id}/why", tags=["tracks"])
def why(service: UsedService, id: bodies.PathId, asked: bodies.WhyAsked) -> Why:
    """What the sound and each known tag add to a tag's log-odds."""
    library = service.library()
    with service.limited("explaining", 2, wait=5.0):
        return library.why(id, asked.tag, asked.yes, asked.no, person=service.settings.person)


@router.post("/tracks/{id}/say", tags=["tracks"], response_model=bodies.SaidAnswer)
def say(service: UsedService, id: bodies.PathId, said: bodies.Said) -> dict[str, Any]:
    """Save this person's answers on a track, as one change that can be undone."""
    found = _track(service, id)
    answers: dict[str, Any] = {"yes": said.yes, "no": said.no, "unsay": said.unknown}
    person = service.settings.person
    done = service.library().say(found, **answers, person=person, learn=False)
    service.learner.learn()
    return {"change": done.change, "track": _detail(service, found), "moved": done.moved}


def _track(service: Service, track_id: int) -> Track:
    found = service.library().tracks.get(track_id)
    if found.state == FORGOTTEN:
        raise Problem(404, f"Track #{track_id} was removed from the library.")
    return found


def _opened(service: Service, track_id: int) -> tuple[Track, BinaryIO]:
    """A track and its open file, unless somebody has replaced the file by a link."""
    found = _track(service, track_id)
    if found.state == "present":
        with suppress(OSError):
            file = open_file(found.path)
            status = os.fstat(file.fileno())
            folders = [os.path.realpath(one) for one in service.library().folders()]
            as_indexed = (status.st_size, status.st_mtime_ns) == (found.size, found.modified)
            real = os.path.realpath(found.path)
            inside = is_below(real, folders) and os.path.samestat(os.lstat(real), status)
            if as_indexed or inside or not folders:
                return found, file
            file.close()
    raise Problem(404, f"The file for track #{track_id} is missing.")


def _detail(service: Service, found: Track) -> dict[str, Any]:
    snapshot = service.snapshot()
    return {
        **vars(found),
        "name": found.name,
        "file": found.path,
        "playable": found.state == "present" and _media_type(found) is not None,
        "copies": snapshot.library.tracks.copies([found.id]).get(found.id, []),
        "tags": tags_of_track(snapshot, found.id, service.settings.person),
        "features": snapshot.features(np.array([found.id]))[0],
    }


def _media_type(found: Track) -> str | None:
    """The media type of a file that browsers play; None for others."""
    name = found.path.lower()
    return next((kind for kind, ends in MEDIA_TYPES.items() if name.endswith(ends)), None)


@router.get("/teach", tags=["teach"], response_model=bodies.Questions)
def questions(
    service: UsedService,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    n: Annotated[int, Query(ge=1, le=MAX_QUESTIONS)] = 20,
    skip: Annotated[
        str, Query(max_length=8000, description="Questions to leave out, as TRACK:TAG,…")
    ] = "",
) -> dict[str, Any]:
    """The questions that the model is least certain about, for one tag or for all."""
    library = service.library()
    if not library.snapshot().model.id:
        raise not_ready("No model yet; train one first.")
    with service.limited("looking for questions", 2, wait=10.0):
        return {"questions": library.doubts(tag or None, n, _skipped(skip))}


@router.post("/teach", tags=["teach"], response_model=bodies.Taught)
def teach(service: UsedService, asked: bodies.TeachAnswer) -> dict[str, Any]:
    """Save an answer; answers with the same change are undone together."""
    number = service.library().answer(
        asked.track, asked.tag, asked.answer, person=service.settings.person, change=asked.change
    )
    service.learner.learn()
    return {"change": number, "progress": service.learner.improvement(last=True)}


@router.get("/teach/progress", tags=["teach"], response_model=bodies.Progress)
def progress(service: UsedService) -> Improvement:
    """How much the answers since the last training have improved the model."""
    with service.limited("judging answers", 1, wait=10.0):
        return service.learner.improvement()


def _skipped(text: str) -> list[tuple[int, str]]:
    """(track, tag) of each pair in "12:rock,13:jazz"."""
    pairs = []
    for part in filter(None, text.split(",")):
        number, colon, tag = part.partition(":")
        if not colon or not number.strip().isdecimal() or not number.strip().isascii():
            raise Problem(422, f"Write TRACK:TAG, got {part[:100]!r}.", field="skip")
        pairs.append((int(number), tag.strip()))
    return pairs


@router.post(
    "/files",
    tags=["files"],
    response_model=bodies.FileTags,
    openapi_extra={"requestBody": {**BODY, "required": True}},
)
async def tag_file(
    service: UsedService,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=500, description="The file's name.")],
) -> dict[str, Any]:
    """The tags of the file in the body, which is not kept."""
    extension = PurePath(name).suffix.lower()
    if extension not in EXTENSIONS:
        raise Problem(415, f"Files like {name[-100:]!r} are not supported.", field="name")
    with (
        service.limited("receiving files", MAX_UPLOADS),
        tempfile.NamedTemporaryFile(prefix="harmonium-", suffix=extension) as file,
    ):
        async with asyncio.timeout(UPLOAD_SECONDS):
            async for part in request.stream():
                file.write(part)
        file.flush()
        if not file.tell():
            raise Problem(422, "The file is empty.")
        return await run_in_threadpool(_file_tags, service, file.name, name)


def _file_tags(service: Service, path: str, name: str) -> dict[str, Any]:
    library = service.library_if_any()
    snapshot = None if library is None else library.snapshot()
    if snapshot is not None and snapshot.tagger is not None:
        tagger, spellings, kinds = snapshot.tagger, snapshot.spellings, snapshot.kinds
    else:
        tagger, spellings, kinds = Tagger(builtin_model()), {}, builtin_kinds()
    try:
        extractor = extractor_named(tagger.extractor)
    except DataError as error:
        raise not_ready(str(error)) from None
    with service.limited("decoding files", MAX_DECODED, wait=DECODE_SECONDS):
        features, duration = decode(path, extractor.name)
    p = tagger.probabilities(np.array([features], np.float32))[0]
    values = {name: float(p[j]) for name, j in tagger.features.items()}
    tags = tags_by_sound(tagger, p, spellings, kinds)
    return {"name": name, "duration": duration, "tags": tags, "features": values}
