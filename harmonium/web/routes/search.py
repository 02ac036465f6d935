"""Searching tracks by their tags, and the tags themselves."""

import os
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from harmonium.library.edits import RenamedTag
from harmonium.library.export import playlist
from harmonium.library.snapshot import Order, Question, SearchResult
from harmonium.library.tags import TagDetail, TagMap
from harmonium.web import bodies
from harmonium.web.problems import Problem
from harmonium.web.service import UsedService

router = APIRouter()
TagPath = Annotated[str, Path(min_length=1, max_length=200)]
MAX_HITS, MAX_PLAYLIST = 500, 10_000


def _question(
    q: Annotated[str, Query(max_length=1000, description="A query of tags.")] = "",
    like: Annotated[
        int | None, Query(ge=1, le=bodies.MAX_ID, description="The track to find similar ones to.")
    ] = None,
    order: Order | None = None,
    min_probability: Annotated[float, Query(ge=0, le=1)] = 0.05,
    owner: Literal["own", "built-in", "all"] = "all",
    predicted: bool = False,
    name: Annotated[
        str,
        Query(max_length=1000, description="Words of titles, artists, albums or file names."),
    ] = "",
) -> Question:
    whose = None if owner == "all" else owner
    return Question(q.strip(), like, order, min_probability, whose, predicted, name)


AskedQuestion = Annotated[Question, Depends(_question)]


@router.get("/search", tags=["search"], response_model=bodies.Found)
def search(
    service: UsedService,
    question: AskedQuestion,
    offset: Annotated[int, Query(ge=0, le=bodies.MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 50,
) -> SearchResult:
    """The tracks that match a query, or are like a track, or both; all tracks without either."""
    return service.snapshot().search(question, limit, offset, shown_tags=True)


@router.get("/facets", tags=["search"], response_model=bodies.Facets)
def facets(service: UsedService, question: AskedQuestion) -> dict[str, Any]:
    """The most common tags among the tracks that match a query."""
    snapshot = service.snapshot()
    return {"facets": snapshot.facets(snapshot.find(question))}


@router.get(
    "/playlist",
    tags=["search"],
    response_class=Response,
    responses={200: {"content": {"audio/x-mpegurl": {}}, "description": "A playlist (.m3u8)."}},
)
def make_playlist(
    service: UsedService,
    question: AskedQuestion,
    limit: Annotated[int, Query(ge=1, le=MAX_PLAYLIST)] = 500,
) -> Response:
    """The tracks that match a query, as a playlist."""
    snapshot = service.snapshot()
    tracks = snapshot.library.tracks.many(snapshot.find(question).first(limit))
    headers = {"Content-Disposition": 'attachment; filename="harmonium.m3u8"'}
    return Response(os.fsencode(playlist(tracks)), media_type="audio/x-mpegurl", headers=headers)


@router.get("/tags", tags=["tags"], response_model=bodies.Tags)
def tags(service: UsedService) -> dict[str, Any]:
    """All tags that people gave or the model has learnt, the most used first."""
    return {"tags": service.library().tags()}


@router.get("/tags/map", tags=["tags"])
def tag_map(service: UsedService) -> TagMap:
    """How the tags relate, by the weights that the model has learnt."""
    library = service.library()
    with service.limited("drawing the map", 1, wait=20.0):
        return service.cached("map", library.snapshot().model_id, library.tag_map)


@router.post("/tags/{tag:path}/rename", tags=["tags"], response_model=bodies.Renamed)
def rename(service: UsedService, tag: TagPath, asked: bodies.NewName) -> RenamedTag:
    """Rename a tag; if the new name is a tag already, the two are merged."""
    done = service.library().rename(tag, asked.to, learn=False)
    service.learner.learn()
    return done


@router.post("/tags/{tag:path}/hide", tags=["tags"], response_model=bodies.ChangeNumber)
def hide(service: UsedService, tag: TagPath) -> dict[str, Any]:
    """Hide a tag: it is no longer predicted, suggested or written."""
    return {"change": service.library().hide(tag, learn=False)}


@router.get("/tags/{tag:path}", tags=["tags"], response_model=bodies.TagDetail)
def one_tag(service: UsedService, tag: TagPath) -> TagDetail:
    """A tag with its precision and recall, related tags, and tracks to look at."""
    if tag.endswith(("/rename", "/hide")):
        raise Problem(405, "Use POST for this.")
    library = service.library()
    with service.limited("describing a tag", 2, wait=10.0):
        return library.tag_detail(tag)
