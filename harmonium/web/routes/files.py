"""The tags of a file that is not in the library; nothing of it is kept."""

import asyncio
import tempfile
from pathlib import PurePath
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from harmonium.audio.audio_files import EXTENSIONS
from harmonium.errors import DataError
from harmonium.files import readable
from harmonium.library.answering.shipped_model import shipped_model, tagger_of
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.answering.tag import extractor_named
from harmonium.library.answering.track_tags import tags_by_sound
from harmonium.web import answers
from harmonium.web.problems import Problem, not_ready
from harmonium.web.routes import shapes
from harmonium.web.service import Service, UsedService
from harmonium.web.uploads import TooLongError, hear

router = APIRouter(tags=["files"])

UPLOAD_SECONDS = 600.0
MOST_UPLOADS, HEARD_AT_ONCE, WAIT = 4, 1, 60.0
_BODY = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
}


@router.post("/files", openapi_extra={"requestBody": {**_BODY, "required": True}})
async def tag_file(
    service: UsedService,
    request: Request,
    name: Annotated[
        str, Query(min_length=1, max_length=500, description="What the file is called.")
    ],
) -> answers.FileAnswer:
    """What the model says of a sound that is sent as the body."""
    ending = PurePath(name).suffix.lower()
    if ending not in EXTENSIONS:
        raise Problem(415, f"{name[-100:]!r} does not end as a music file does.", field="name")
    with (
        service.limited("taking in files", MOST_UPLOADS),
        tempfile.NamedTemporaryFile(prefix="harmonium-", suffix=ending) as file,
    ):
        async with asyncio.timeout(UPLOAD_SECONDS):
            async for part in request.stream():
                file.write(part)
        file.flush()
        if not file.tell():
            raise Problem(400, "The file is empty.")
        return await run_in_threadpool(_heard, service, file.name, name)


def _heard(service: Service, path: str, name: str) -> answers.FileAnswer:
    tagger, shown = _tagger(service)
    try:
        extractor = extractor_named(tagger.extractor)
        if extractor.check:
            extractor.check()
    except DataError as error:
        raise not_ready(str(error)) from None
    with service.limited("listening to files", HEARD_AT_ONCE, wait=WAIT):
        try:
            heard = hear(path, extractor.name)
        except TooLongError as error:
            raise Problem(413, str(error)) from None
    p = tagger.probabilities(np.array([heard.features], np.float32))[0]
    tags = [shapes.tag_of_track(one) for one in tags_by_sound(tagger, p, shown)]
    return answers.FileAnswer(name=readable(name), duration=heard.duration, tags=tags)


def _tagger(service: Service) -> tuple[StoredTagger, dict[str, str]]:
    """The model in use, or the one that came along; and how tags are spelt."""
    if service.library_if_there() is not None:
        view = service.view()
        if view.tagger is not None:
            return view.tagger, view.spellings
    return tagger_of(shipped_model()), {}
