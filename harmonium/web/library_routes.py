"""Routes of the library: search, tags, jobs, writing, models, changes, events, signing in."""

import os
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from platformdirs import user_music_path

from harmonium import __version__
from harmonium.audio.decoding import list_folders
from harmonium.errors import LibraryError, readable
from harmonium.files import absolute_path
from harmonium.library import Library
from harmonium.library.edits import RenamedTag
from harmonium.library.export import playlist
from harmonium.library.imports import ImportReport
from harmonium.library.index import kept_extractor
from harmonium.library.saved import MAX_NAME
from harmonium.library.saved import save as save_search
from harmonium.library.snapshot import ORDERS, Question, SearchResult
from harmonium.library.store.database import place_name
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.tagger import builtin_extractor
from harmonium.library.tags import TagDetail, TagMap
from harmonium.library.write import PlannedFile
from harmonium.web import bodies, guard
from harmonium.web.bodies import MAX_ID, Problem, sends
from harmonium.web.jobs import Record
from harmonium.web.service import UsedService

router = APIRouter()
STATES = {"tracks": "present", "missing": "missing", "unreadable": "unreadable"}
TagPath = Annotated[str, InPath(min_length=1, max_length=200)]
Offset = Annotated[int, Query(ge=0, le=MAX_ID)]
SearchTitle = Annotated[str, Query(min_length=1, max_length=MAX_NAME)]
ModelNumber = Annotated[int, Query(ge=1, le=MAX_ID)]
COOKIE: Any = {"path": "/", "httponly": True, "samesite": "strict"}
MAX_HITS, MAX_FACETS, MAX_PLAYLIST, MAX_PREVIEW = 500, 500, 10_000, 100


@router.get("/health", tags=["library"])
async def health() -> dict[str, str]:
    """Whether the server works; needs no token."""
    return {"status": "ok", "version": __version__}


@router.get("/library", tags=["library"], response_model=bodies.LibrarySummary)
def library(service: UsedService) -> dict[str, Any]:
    """A summary of the library; empty if there is no library yet."""
    opened = service.library_if_any()
    counts = dict.fromkeys(STATES, 0)
    more: dict[str, Any] = {"folders": [], "people": [], "model": None}
    if opened is not None:
        version = opened.version()
        counts = service.cached("counts", version.tracks, lambda: _counts(opened), may_lag=True)
        people = service.cached("people", version.opinion, opened.opinions.people, may_lag=True)
        more = {
            "folders": opened.folders(),
            "people": [one for one in people if one.n_tracks],
            "model": next((one for one in opened.list_models() if one.in_use), None),
        }
    return {
        "name": place_name(service.place),
        "person": service.settings.person,
        "jobs": service.jobs.list(),
        **counts,
        **more,
        "built_in": _built_in(opened),
        "empty": not any(counts.values()),
    }


def _counts(library: Library) -> dict[str, int]:
    return {name: library.tracks.count(state) for name, state in STATES.items()}


def _built_in(library: Library | None) -> dict[str, bool | str | None]:
    """Whether the built-in model can tag this library."""
    if library is None or library.settings.get(EXTRACTOR) in (builtin_extractor(), None):
        return {"ready": True, "why": None}
    why = (
        f"The library was indexed with {kept_extractor(library)}. `harmonium index --extractor "
        "musicnn` computes the features that the built-in model needs."
    )
    return {"ready": False, "why": why}


@router.post("/session", tags=["session"], status_code=204, response_class=Response)
def sign_in(service: UsedService, asked: bodies.Token) -> Response:
    """Sign a browser in with the token; a cookie that scripts cannot read replaces it."""
    token, response = service.settings.token, Response(status_code=204)
    if token is not None:
        if not guard.same_secret(asked.token, token):
            raise Problem(401, "That is not this server's token.", field="token")
        name, value = guard.cookie_name(service.settings), guard.new_session(token)
        response.set_cookie(name, value, max_age=guard.SESSION_SECONDS, **COOKIE)
    return response


@router.delete("/session", tags=["session"], status_code=204, response_class=Response)
def sign_out(service: UsedService, request: Request) -> Response:
    """Sign a browser out; its cookie stops working."""
    response, name = Response(status_code=204), guard.cookie_name(service.settings)
    if guard.is_session(cookie := request.cookies.get(name, ""), service.settings.token or ""):
        guard.SIGNED_OUT.add(cookie)
    response.delete_cookie(name, **COOKIE)
    return response


@router.get("/changes", tags=["changes"], response_model=bodies.Changes)
def changes(
    service: UsedService, offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> dict[str, Any]:
    """The changes of the library, the latest first."""
    return {"changes": service.library().changes.list(limit, offset=offset)}


@router.post("/changes/{id}/undo", tags=["changes"], response_model=bodies.Undone)
def undo(service: UsedService, id: bodies.PathId) -> dict[str, Any]:
    """Undo a change: people's tags, and files to the byte."""
    with service.limited("undoing", 1, wait=5.0):
        report = service.library().undo(id, learn=False)
    service.learner.learn()
    problems = [f"{readable(path)}: {why}" for path, why in report.files_left.items()]
    problems += [f"{what}: {why}" for what, why in report.values_left.items()]
    problems += [f"change {by} changed {n} of it later" for by, n in report.conflicts.items()]
    counts = {"done": report.n_done, "left": report.n_left, "problems": problems}
    return {"change": report.change, "complete": report.complete, **counts}


@router.get("/events", tags=["events"], **sends("text/event-stream", "Events, as they come."))
async def events(service: UsedService) -> StreamingResponse:
    """Server-sent events: "job" (a job), "change" (its number and command), "learnt" (tags)."""
    return StreamingResponse(service.events.listen(), media_type="text/event-stream")


def _question(
    q: Annotated[str, Query(max_length=1000, description="A query of tags.")] = "",
    like: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="The track to find similar ones to.")
    ] = None,
    order: Annotated[str | None, Query(json_schema_extra={"enum": [*ORDERS]})] = None,
    min_probability: Annotated[float, Query(ge=0, le=1)] = 0.05,
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
    whose = None if owner == "all" else owner
    asked = (q.strip(), like, order, min_probability, whose, predicted, name, features)
    return Question(*asked, start, end, stops)


AskedQuestion = Annotated[Question, Depends(_question)]


@router.get("/search", tags=["search"], response_model=bodies.Found)
def search(
    service: UsedService,
    question: AskedQuestion,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 50,
) -> SearchResult:
    """The tracks that match a query, are like a track, or both; with neither, all tracks."""
    return service.snapshot().search(question, limit, offset, shown_tags=True)


@router.get("/facets", tags=["search"], response_model=bodies.Facets)
def facets(service: UsedService, question: AskedQuestion) -> dict[str, Any]:
    """The most common tags among the tracks that match a query."""
    snapshot = service.snapshot()
    found = snapshot.facets(snapshot.find(question))
    return {"facets": found[:MAX_FACETS], "total": len(found)}


@router.get("/playlist", tags=["search"], **sends("audio/x-mpegurl", "A playlist (.m3u8)."))
def make_playlist(
    service: UsedService,
    question: AskedQuestion,
    limit: Annotated[int, Query(ge=1, le=MAX_PLAYLIST)] = 500,
) -> Response:
    """The tracks that match a query, as a playlist."""
    snapshot = service.snapshot()
    tracks = snapshot.library.tracks.many(snapshot.find(question).first(limit))
    headers = {"Content-Disposition": 'attachment; filename="harmonium.m3u8"'}
    return Response(playlist(tracks), media_type="audio/x-mpegurl", headers=headers)


@router.get("/searches", tags=["search"], response_model=bodies.SavedSearches)
def searches(service: UsedService) -> dict[str, Any]:
    """The saved searches by name; `query` holds the parameters of `/search`."""
    opened = service.library_if_any()
    saved = [] if opened is None else opened.saved_searches()
    found = [{"name": one.name, "words": one.words, "query": _asked(one.question)} for one in saved]
    return {"searches": found}


def _asked(question: Question) -> dict[str, Any]:
    """The parameters of a search that differ from the defaults."""
    names, usual = {"text": "q", "start": "from", "end": "to"}, Question()._asdict()
    usual |= {"min_probability": None, "stops": None}  # which depend on the page
    given = question._asdict().items()
    return {names.get(key, key): value for key, value in given if value != usual[key]}


@router.put("/searches", tags=["search"], response_model=bodies.ChangeNumber)
def save(service: UsedService, question: AskedQuestion, title: SearchTitle) -> dict[str, Any]:
    """Save a search, with the parameters of `/search`; replaces one with the same title."""
    return {"change": save_search(service.library(), title, question)}


@router.post("/searches/rename", tags=["search"], response_model=bodies.ChangeNumber)
def rename_search(
    service: UsedService, title: SearchTitle, asked: bodies.NewName
) -> dict[str, Any]:
    """Rename a saved search."""
    return {"change": service.library().rename_search(title, asked.to)}


@router.delete("/searches", tags=["search"], response_model=bodies.ChangeNumber)
def delete(service: UsedService, title: SearchTitle) -> dict[str, Any]:
    """Delete a saved search."""
    return {"change": service.library().delete_search(title)}


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


@router.put("/tags/{tag:path}/kind", tags=["tags"], response_model=bodies.ChangeNumber)
def set_kind(service: UsedService, tag: TagPath, asked: bodies.KindAsked) -> dict[str, Any]:
    """Set a tag's kind, which decides the field of the files that it is written to."""
    return {"change": service.library().set_kind(tag, kind=asked.kind)}


@router.get("/tags/{tag:path}", tags=["tags"], response_model=bodies.TagDetail)
def one_tag(service: UsedService, tag: TagPath) -> TagDetail:
    """A tag with its precision and recall, related tags, and tracks to look at."""
    if tag.endswith(bodies.TAG_ACTIONS):
        raise Problem(405, "Use POST for this, or PUT for the kind.")
    with service.limited("describing a tag", 2, wait=10.0):
        return service.library().tag_detail(tag)


@router.get("/jobs", tags=["jobs"], response_model=bodies.Jobs)
def jobs(service: UsedService) -> dict[str, list[Record]]:
    """The last jobs, the latest first."""
    return {"jobs": service.jobs.list()}


@router.get("/jobs/{id}", tags=["jobs"], response_model=bodies.Job)
def job(service: UsedService, id: bodies.PathId) -> Record:
    """One job."""
    return service.jobs.get(id)


@router.post("/jobs/{id}/stop", tags=["jobs"], response_model=bodies.Job)
def stop(service: UsedService, id: bodies.PathId) -> Record:
    """Stop a job; a file that is being written is completed first."""
    return service.jobs.stop(id)


@router.get("/folders", tags=["jobs"], response_model=bodies.Folders)
def folders(
    service: UsedService, path: Annotated[str, Query(max_length=4096)] = ""
) -> dict[str, Any]:
    """The folders inside a folder on the server's machine; by default inside the music folder."""
    music = user_music_path()
    here = absolute_path(path or (music if music.is_dir() else "~"))
    parent = os.path.dirname(here)  # noqa: PTH120
    with service.limited("listing folders", 2, wait=10.0):
        try:
            folder, found = list_folders(here)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "its name is invalid"
            raise Problem(404, f"{path!r} cannot be listed: {why}.", field="path") from None
    return {**vars(folder), "parent": None if parent == here else parent, "folders": found}


@router.get("/doctor", tags=["library"], response_model=bodies.Health)
def doctor(
    service: UsedService, doubts: Annotated[int, Query(ge=0, le=500)] = 20
) -> dict[str, Any]:
    """Problems with files and tags, with at most `doubts` doubtful tags by people."""
    with service.limited("checking", 1, wait=20.0):
        return service.library().doctor(doubts).to_dict()


@router.get("/import", tags=["jobs"], response_model=bodies.FileTagsToImport)
def importable(
    service: UsedService, fields: Annotated[str, Query(max_length=100)] = "genre"
) -> ImportReport:
    """What importing the tags in the files would add; `fields` is a list such as genre,mood."""
    library = service.library()
    return service.cached(
        f"import {fields}",
        library.version()[:3],
        lambda: library.import_file_tags(fields.split(","), dry_run=True),
        may_lag=True,
    )


@router.post("/import", tags=["jobs"], response_model=bodies.Job)
def import_files(service: UsedService, asked: bodies.ImportAsked) -> Record:
    """Import the tags in the files, train a model on all tags, and use it."""
    return service.jobs.start("import", asked.model_dump())


@router.post("/index", tags=["jobs"], response_model=bodies.Job)
def index(service: UsedService, asked: bodies.IndexAsked) -> Record:
    """Index a folder of music on the server's machine; creates a library if there is none."""
    folder = absolute_path(asked.folder)
    if not os.path.isdir(folder):  # noqa: PTH112 - names that no folder can have are no error
        message = f"There is no folder {asked.folder!r} on the server's machine."
        raise Problem(404, message, field="folder")
    return service.jobs.start("index", {"folder": folder}, create=True)


@router.post("/train", tags=["jobs"], response_model=bodies.Job)
def train(service: UsedService, asked: bodies.TrainAsked) -> Record:
    """Train a new model; it is used at once only if asked to, or if it is the first."""
    return service.jobs.start("train", asked.model_dump())


@router.post("/write", tags=["jobs"], response_model=bodies.Job)
def write(service: UsedService, asked: bodies.WriteAsked) -> Record:
    """Write tags into files, as one change that can be undone."""
    service.snapshot().likely(asked.q)  # An invalid query is refused at once.
    return service.jobs.start("write", asked.model_dump())


@router.get("/write/plan", tags=["write"], response_model=bodies.WritePlan)
def plan(
    service: UsedService,
    precision: Annotated[float, Query(ge=0, lt=1)] = 0.8,
    q: Annotated[str, Query(max_length=1000)] = "",
    ignore: Annotated[str, Query(max_length=6000, description="Tags, separated by commas.")] = "",
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=0, le=MAX_PREVIEW)] = 20,
) -> dict[str, Any]:
    """What writing would add to the files, tag by tag, and some files before and after.

    The numbers come from what the library knows about the files. The preview reads the files.
    """
    library = service.library()
    rules = {"ignore": [tag.strip() for tag in ignore.split(",") if tag.strip()]}
    with service.limited("planning", 2, wait=10.0):
        outline = library.outline_write(q, precision, rules)
        some = outline.tracks[offset : offset + limit]
        files: list[PlannedFile] = []
        if some:
            files = library.plan_write(*some, precision=precision, rules=rules).files
    return {
        "files": outline.n_files,
        "tags": outline.tags,
        "not_reached": [{"tag": tag, "best": p} for tag, p in outline.not_reached.items()],
        "total": sum(one.n for one in outline.accepted),
        "guessed": sum(one.n - one.n_said for one in outline.accepted),
        "expected_wrong": sum(one.expected_wrong for one in outline.accepted),
        "features": outline.n_features,
        "preview": [
            {"track": one.track, "fields": one.change.fields, "guessed": one.new_guesses}
            for one in files
        ],
    }


@router.get("/write/fields", tags=["write"], response_model=bodies.WriteFields)
def fields(service: UsedService) -> dict[str, Any]:
    """Which field each kind of tags is written to, and each tag that has a field of its own."""
    return {"fields": service.library().write_fields()}


@router.put("/write/fields", tags=["write"], response_model=bodies.WriteFields)
def set_fields(service: UsedService, asked: bodies.FieldsAsked) -> dict[str, Any]:
    """Set the fields that kinds of tags, or single tags, are written to; null for the default."""
    return {"fields": service.library().write_fields(asked.fields)}


@router.get("/models", tags=["models"], response_model=bodies.Models)
def models(service: UsedService) -> dict[str, Any]:
    """All models, the newest first."""
    return {"models": service.library().list_models()}


@router.get("/models/compare", tags=["models"], response_model=bodies.Comparison)
def compare(service: UsedService, a: ModelNumber, b: ModelNumber) -> dict[str, Any]:
    """The AUC of each tag in two models, and how many tracks get different tags from them."""
    library = service.library()
    with service.limited("comparing", 2, wait=10.0):
        found = library.compare_models(a, b)
    entries = {one.id: one for one in library.list_models()}
    return {"a": entries[a], "b": entries[b], **vars(found)}


@router.post("/models/{id}/use", tags=["models"], response_model=bodies.ChangeNumber)
def use(service: UsedService, id: bodies.PathId) -> dict[str, Any]:
    """Use a model from now on; it tags the tracks that it has not tagged yet."""
    library = service.library()
    number = library.use_model(id, learn=False)
    service.learner.learn()
    entry = next(one for one in library.list_models() if one.id == id)
    if entry.n_tagged < library.tracks.count("present"):
        with suppress(LibraryError):  # A job may be tagging already.
            service.jobs.start("tag", {})
    return {"change": number}
