"""Routes of a track's sound: its file, spectrum, cover, and its tags over time."""

import os
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.types import Receive, Scope, Send

from harmonium.audio.pictures import overview_png
from harmonium.files import is_below, open_file, user_cache_folder
from harmonium.library import Library
from harmonium.library.filetags import read_cover
from harmonium.library.store.tracks import Track
from harmonium.library.tagging import TagsOverTime, tags_over_time
from harmonium.web.problems import Problem
from harmonium.web.requests import PathId
from harmonium.web.responses import file_response
from harmonium.web.service import Service, UsedService

router = APIRouter(tags=["tracks"])

# How many spectra, tracks and covers are read at once, and how long other requests wait.
MAX_SPECTRA = 1
MAX_LISTENING = 1
MAX_COVERS = 4
WAIT_SECONDS = 20.0
N_TRIES = 3  # to open a file that is replaced meanwhile, as a write does
MEDIA_TYPES = {  # types and extensions of files that browsers play
    "audio/mpeg": (".mp3",),
    "audio/flac": (".flac",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/wav": (".wav", ".wave"),
    "audio/mp4": (".m4a", ".m4b"),
    "audio/aac": (".aac",),
    "audio/x-matroska": (".mka",),
}
PLAYED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"audio/*": {}}, "description": "The file."},
    206: {"content": {"audio/*": {}}, "description": "The part that Range asks for."},
    416: {"description": "The file does not have this part."},
}


def media_type(track: Track) -> str | None:
    """The media type of a file that browsers play; None for others."""
    name = track.path.lower()
    for media, extensions in MEDIA_TYPES.items():
        if name.endswith(extensions):
            return media
    return None


class OpenedFile(FileResponse):
    """A response from a file that is already open; closes it when sent."""

    file: BinaryIO

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self.file:
            await super().__call__(scope, receive, send)


@router.get("/tracks/{id}/audio", response_class=FileResponse, responses=PLAYED)
def audio(service: UsedService, id: PathId) -> FileResponse:
    """A track's file, or the part of it that the Range header asks for."""
    track, file = open_track(service, id)
    path = f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else track.path
    response = OpenedFile(
        path,
        media_type=media_type(track) or "application/octet-stream",
        headers={"Cache-Control": "private, no-cache"},
    )
    response.file = file
    return response


@router.get(
    "/tracks/{id}/spectrum",
    **file_response(
        "image/png", "1200 × 128 pixels.", {304: "The browser already has the picture."}
    ),
)
def spectrum(service: UsedService, id: PathId, request: Request) -> Response:
    """A track's spectrum: time from left to right, low tones at the bottom."""
    track, file = open_track(service, id)
    with file:
        headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{track.sound[:32]}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        with service.limited("drawing", MAX_SPECTRA, wait=WAIT_SECONDS):
            picture = overview_png(file, cache=user_cache_folder(), key=track.sound)
    return Response(picture, media_type="image/png", headers=headers)


@router.get(
    "/tracks/{id}/cover",
    **file_response("image/*", "The picture.", {204: "The file has no picture."}),
)
def cover(service: UsedService, id: PathId) -> Response:
    """The picture in a track's file: JPEG, PNG or GIF, up to 5 MB."""
    _, file = open_track(service, id, states=("present", "unreadable"))
    with file, service.limited("reading covers", MAX_COVERS, wait=WAIT_SECONDS):
        picture = read_cover(file)
    headers = {"Cache-Control": "private, max-age=3600"}
    if picture is None:
        return Response(status_code=204, headers=headers)
    content, media = picture
    return Response(content, media_type=media, headers=headers)


@router.get("/tracks/{id}/over-time")
def over_time(service: UsedService, id: PathId) -> TagsOverTime:
    """How likely a track's tags are at up to thirty points in it, from the sound there alone.

    Tags that are unlikely everywhere are left out. The first answer for a track takes seconds.
    """
    track, file = open_track(service, id)
    with file, service.limited("listening", MAX_LISTENING, wait=WAIT_SECONDS):
        return tags_over_time(service.library(), track.path, file=file)


def open_track(
    service: Service, track_id: int, *, states: tuple[str, ...] = ("present",)
) -> tuple[Track, BinaryIO]:
    """A track and its open file, unless somebody has replaced the file by a link."""
    for _ in range(N_TRIES):
        track = service.track(track_id)
        if track.state not in states:
            break
        with suppress(OSError):
            file = open_file(track.path)
            if _may_be_sent(service.library(), track, file):
                return track, file
            file.close()
    raise Problem(404, f"The file for track #{track_id} is missing.")


def _may_be_sent(library: Library, track: Track, file: BinaryIO) -> bool:
    """Whether an open file is the one that was indexed, or is in a folder of the library."""
    folders = [os.path.realpath(folder) for folder in library.folders()]
    if not folders:
        return True
    status = os.fstat(file.fileno())
    if (status.st_size, status.st_mtime_ns) == (track.size, track.modified):
        return True
    with suppress(OSError):
        real_path = os.path.realpath(track.path)
        if is_below(real_path, folders):
            return os.path.samestat(os.lstat(real_path), status)
    return False
