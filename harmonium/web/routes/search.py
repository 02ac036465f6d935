"""Tracks by their tags: a page of them, their facets, a playlist."""

import os
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from harmonium.library.playlist import playlist
from harmonium.library.snapshot import Question
from harmonium.web import answers
from harmonium.web.routes import shapes
from harmonium.web.service import UsedService

router = APIRouter(tags=["search"])

MOST_HITS, MOST_IN_PLAYLIST = 500, 10_000
Offset = Annotated[int, Query(ge=0, le=answers.LARGEST_ID)]


def _question(
    q: Annotated[str, Query(max_length=1000, description="A question in tags.")] = "",
    like: Annotated[
        int | None, Query(ge=1, le=answers.LARGEST_ID, description="A track to be like.")
    ] = None,
    order: Literal["probability", "likeness", "name", "added"] | None = None,
    min_probability: Annotated[float, Query(ge=0, le=1)] = 0.05,
    owner: Literal["own", "built-in", "all"] = "all",
    predicted: bool = False,
    name: Annotated[
        str,
        Query(max_length=1000, description="Words of titles, artists, albums or file names."),
    ] = "",
) -> Question:
    return Question(
        q.strip(), like, order, min_probability, None if owner == "all" else owner, predicted, name
    )


AskedQuestion = Annotated[Question, Depends(_question)]


@router.get("/search")
def search(
    service: UsedService,
    question: AskedQuestion,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_HITS)] = 50,
) -> answers.SearchAnswer:
    """The tracks that answer a question, or are like a track, or both; without either, all."""
    view = service.view()
    found = view.find(question)
    return answers.SearchAnswer(
        total=len(found.ids),
        offset=offset,
        n_below=found.n_below,
        people_only=found.people_only,
        hits=[shapes.hit(view, one) for one in view.page(found, offset, limit)],
    )


@router.get("/facets")
def facets(service: UsedService, question: AskedQuestion) -> answers.Facets:
    """The commonest tags among the tracks that answer a question."""
    view = service.view()
    found = [
        answers.FacetAnswer(
            tag=one.tag, shown=view.shown(one.tag), group=view.group(one.tag), n=one.n
        )
        for one in view.facets(view.find(question))
    ]
    return answers.Facets(facets=found)


@router.get(
    "/playlist",
    response_class=Response,
    responses={200: {"content": {"audio/x-mpegurl": {}}, "description": "A playlist (.m3u8)."}},
)
def make_playlist(
    service: UsedService,
    question: AskedQuestion,
    limit: Annotated[int, Query(ge=1, le=MOST_IN_PLAYLIST)] = 500,
) -> Response:
    """The tracks that answer a question, as a playlist."""
    view = service.view()
    tracks = service.library().tracks.many(view.find(question).first(limit))
    headers = {"Content-Disposition": 'attachment; filename="harmonium.m3u8"'}
    return Response(os.fsencode(playlist(tracks)), media_type="audio/x-mpegurl", headers=headers)
