"""The route that tags a file outside the library."""

import asyncio
import tempfile
from pathlib import PurePath
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from harmonium.audio.folders import EXTENSIONS
from harmonium.errors import DataError
from harmonium.library.model.builtin import builtin_model
from harmonium.library.model.tag_table import TagTable
from harmonium.library.model.tagger import Tagger
from harmonium.library.tagging import extractor_named
from harmonium.library.teaching.track_tags import TagOfTrack, tags_by_sound
from harmonium.web.problems import Problem, not_ready
from harmonium.web.responses import AudioFeatures, Text
from harmonium.web.service import Service, UsedService
from harmonium.web.uploads import decode

router = APIRouter(tags=["files"])
MAX_UPLOADS = 4  # how many uploads arrive at once
UPLOAD_SECONDS = 600.0
MAX_DECODED = 1  # how many are decoded at once
DECODE_SECONDS = 60.0  # how long others wait
BODY = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    "required": True,
}


class FileTags(BaseModel):
    """The tags and audio features of a file."""

    name: Text
    duration: float | None
    tags: list[TagOfTrack]
    features: AudioFeatures


@router.post("/files", openapi_extra={"requestBody": BODY})
async def tag_file(
    service: UsedService,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=500, description="The file's name.")],
) -> FileTags:
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


def _file_tags(service: Service, path: str, name: str) -> FileTags:
    """The tags of a file, by the model in use or the built-in one."""
    library = service.library_if_any()
    snapshot = None if library is None else library.snapshot()
    if snapshot is not None and snapshot.tagger is not None:
        tagger = snapshot.tagger
        table = snapshot.tags
    else:
        tagger = Tagger(builtin_model())
        table = TagTable.of_builtin()
    try:
        extractor = extractor_named(tagger.extractor)
    except DataError as error:
        raise not_ready(str(error)) from None
    with service.limited("decoding files", MAX_DECODED, wait=DECODE_SECONDS):
        features, duration = decode(path, extractor.name)
    p = tagger.probabilities(np.array([features], np.float32))[0]
    return FileTags(
        name=name,
        duration=duration,
        tags=tags_by_sound(tagger, table, p),
        features={feature: float(p[j]) for feature, j in tagger.features.items()},
    )
