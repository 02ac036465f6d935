"""Routes of searching: tracks, facets, playlists and saved searches."""

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel

from harmonium.library.export import playlist
from harmonium.library.searching.saved import MAX_NAME
from harmonium.library.searching.saved import SavedSearch as LibrarySearch
from harmonium.library.snapshot import ORDERS, Facet, Question, SearchResult
from harmonium.web.requests import MAX_ID, Offset, RenameRequest
from harmonium.web.responses import ChangeNumber, FoundTrack, file_response
from harmonium.web.service import UsedService

router = APIRouter(tags=["search"])
MAX_HITS = 500
MAX_FACETS = 500
MAX_PLAYLIST = 10_000
SearchTitle = Annotated[str, Query(min_length=1, max_length=MAX_NAME)]


class Found(BaseModel):
    """A page of what a search found: the tracks that match, then less likely ones.

    `total` tracks match, `n_below` are less likely, and `n_other` cannot match.
    """

    hits: list[FoundTrack]
    total: int | None
    offset: int
    n_below: int
    n_other: int
    people_only: list[str]

    @classmethod
    def of(cls, result: SearchResult) -> Self:
        """The result of a search."""
        return cls(
            hits=[FoundTrack.of_hit(hit) for hit in result.hits],
            total=result.total,
            offset=result.offset,
            n_below=result.n_below,
            n_other=result.n_other,
            people_only=result.people_only,
        )


class Facets(BaseModel):
    """The most common tags of what a search found, and how many tags there are in all."""

    facets: list[Facet]
    total: int


class SavedSearch(BaseModel):
    """A saved search, in words and as the parameters of `/search`."""

    name: str
    words: str
    query: dict[str, Any]

    @classmethod
    def of(cls, search: LibrarySearch) -> Self:
        """A saved search of the library."""
        return cls(name=search.name, words=search.words, query=_parameters(search.question))


class SavedSearches(BaseModel):
    """All saved searches."""

    searches: list[SavedSearch]


def _asked(
    q: Annotated[str, Query(max_length=1000, description="A query of tags.")] = "",
    like: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="The track to find similar ones to.")
    ] = None,
    order: Annotated[str | None, Query(json_schema_extra={"enum": [*ORDERS]})] = None,
    min_probability: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Tracks of at least this probability match; by default, those that have "
            "the tags do, and less likely ones follow them.",
        ),
    ] = None,
    owner: Literal["own", "built-in", "all"] = "all",
    predicted: bool = False,
    name: Annotated[
        str, Query(max_length=1000, description="Words of titles, artists, albums or file names.")
    ] = "",
    features: Annotated[bool, Query(description="All audio features of each track.")] = False,
    start: Annotated[
        int | None,
        Query(alias="from", ge=1, le=MAX_ID, description="Where a path starts: a track."),
    ] = None,
    end: Annotated[
        int | None, Query(alias="to", ge=1, le=MAX_ID, description="Where the path ends.")
    ] = None,
    stops: Annotated[
        int, Query(ge=1, le=MAX_ID, description="Tracks in a path or smooth order, or to save.")
    ] = 20,
) -> Question:
    """The search that the parameters of a request describe."""
    return Question(
        text=q.strip(),
        like=like,
        order=order,
        min_probability=min_probability,
        owner=None if owner == "all" else owner,
        predicted=predicted,
        name=name,
        features=features,
        start=start,
        end=end,
        stops=stops,
    )


AskedSearch = Annotated[Question, Depends(_asked)]

PARAMETERS = {"text": "q", "start": "from", "end": "to"}
"""Field of a search → its parameter, where that has another name."""


def _parameters(search: Question) -> dict[str, Any]:
    """The parameters of a search that differ from the defaults."""
    defaults = Question()._asdict()
    defaults |= {"stops": None}  # the page has a default of its own
    return {
        PARAMETERS.get(field, field): value
        for field, value in search._asdict().items()
        if value != defaults[field]
    }


@router.get("/search")
def search(
    service: UsedService,
    asked: AskedSearch,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 50,
) -> Found:
    """The tracks that match a query, are like a track, or both; with neither, all tracks."""
    return Found.of(service.snapshot().search(asked, limit, offset, shown_tags=True))


@router.get("/facets")
def facets(service: UsedService, asked: AskedSearch) -> Facets:
    """The most common tags among the tracks that match a query."""
    snapshot = service.snapshot()
    counted = snapshot.facets(snapshot.find(asked))
    return Facets(facets=counted[:MAX_FACETS], total=len(counted))


@router.get("/playlist", **file_response("audio/x-mpegurl", "A playlist (.m3u8)."))
def make_playlist(
    service: UsedService,
    asked: AskedSearch,
    limit: Annotated[int, Query(ge=1, le=MAX_PLAYLIST)] = 500,
) -> Response:
    """The tracks that match a query, as a playlist."""
    snapshot = service.snapshot()
    tracks = snapshot.library.tracks.many(snapshot.find(asked).first(limit))
    headers = {"Content-Disposition": 'attachment; filename="harmonium.m3u8"'}
    return Response(playlist(tracks), media_type="audio/x-mpegurl", headers=headers)


@router.get("/searches")
def searches(service: UsedService) -> SavedSearches:
    """The saved searches by name; `query` holds the parameters of `/search`."""
    library = service.library_if_any()
    saved = [] if library is None else library.searches.list()
    return SavedSearches(searches=[SavedSearch.of(search) for search in saved])


@router.put("/searches")
def save(service: UsedService, asked: AskedSearch, title: SearchTitle) -> ChangeNumber:
    """Save a search, with the parameters of `/search`; replaces one with the same title."""
    return ChangeNumber(change=service.library().searches.save(title, asked))


@router.post("/searches/rename")
def rename(service: UsedService, title: SearchTitle, body: RenameRequest) -> ChangeNumber:
    """Rename a saved search."""
    return ChangeNumber(change=service.library().searches.rename(title, body.to))


@router.delete("/searches")
def delete(service: UsedService, title: SearchTitle) -> ChangeNumber:
    """Delete a saved search."""
    return ChangeNumber(change=service.library().searches.delete(title))
