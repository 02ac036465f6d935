"""The library in short, its changes and events, and signing in."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from harmonium import __version__
from harmonium.files import readable
from harmonium.library import Library
from harmonium.library.builtin import extractor_key
from harmonium.library.store.schema import EXTRACTOR, FOLDERS
from harmonium.web import bodies
from harmonium.web.guard import SESSION_SECONDS, cookie_name, new_session, same_secret
from harmonium.web.problems import Problem
from harmonium.web.service import UsedService

router = APIRouter()
STATES = {"tracks": "present", "missing": "missing", "unreadable": "unreadable"}


@router.get("/health", tags=["library"])
def health() -> dict[str, str]:
    """Whether the server works; needs no token."""
    return {"status": "ok", "version": __version__}


@router.get("/library", tags=["library"], response_model=bodies.LibrarySummary)
def library(service: UsedService) -> dict[str, Any]:
    """The library in short; it is empty if there is none yet."""
    opened = service.library_if_any()
    counts = dict.fromkeys(STATES, 0)
    more: dict[str, Any] = {"folders": [], "people": [], "model": None}
    if opened is not None:
        version = opened.version()
        counts = service.cached("counts", version.tracks, lambda: _counts(opened), may_lag=True)
        people = service.cached("people", version.opinion, opened.opinions.people, may_lag=True)
        more = {
            "folders": opened.settings.get(FOLDERS, []),
            "people": [one for one in people if one.n_tracks],
            "model": next((one for one in opened.list_models() if one.in_use), None),
        }
    return {
        "name": _name(service.place),
        "person": service.settings.person,
        "jobs": service.jobs.list(),
        **counts,
        **more,
        "shipped": _built_in(opened),
        "empty": not any(counts.values()),
    }


def _counts(library: Library) -> dict[str, int]:
    return {name: library.tracks.count(state) for name, state in STATES.items()}


def _name(place: str) -> str:
    if "://" in place:
        return place.rpartition("/")[2].partition("?")[0] or "library"
    return Path(place).stem


def _built_in(library: Library | None) -> dict[str, bool | str | None]:
    """Whether the built-in model can tag this library."""
    from harmonium.audio.musicnn import weights_file

    key = None if library is None else library.settings.get(EXTRACTOR)
    why = None
    if key != extractor_key() and not weights_file().is_file():
        why = "musicnn is not installed: run `harmonium extractor download musicnn` (29 MB)."
    elif key not in (extractor_key(), None):
        name = key.rpartition("@")[0] or key
        why = (
            f"The library was indexed with {name}. `harmonium index --extractor musicnn` computes "
            "the features that the built-in model needs."
        )
    return {"ready": why is None, "why": why}


@router.post("/session", tags=["session"], status_code=204, response_class=Response)
def sign_in(service: UsedService, asked: bodies.Token) -> Response:
    """Sign a browser in with the token; a cookie that scripts cannot read replaces it."""
    token = service.settings.token
    response = Response(status_code=204)
    if token is None:
        return response
    if not same_secret(asked.token, token):
        raise Problem(401, "That is not the token of this server.", field="token")
    response.set_cookie(
        cookie_name(service.settings),
        new_session(token),
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
    )
    return response


@router.delete("/session", tags=["session"], status_code=204, response_class=Response)
def sign_out(service: UsedService) -> Response:
    """Sign a browser out."""
    response = Response(status_code=204)
    response.delete_cookie(
        cookie_name(service.settings), path="/", httponly=True, samesite="strict"
    )
    return response


@router.get("/changes", tags=["changes"], response_model=bodies.Changes)
def changes(
    service: UsedService,
    offset: Annotated[int, Query(ge=0, le=bodies.MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """The changes of the library, the latest first."""
    return {"changes": service.library().changes.list(limit, offset=offset)}


@router.post("/changes/{id}/undo", tags=["changes"], response_model=bodies.Undone)
def undo(service: UsedService, id: bodies.PathId) -> dict[str, Any]:
    """Undo a change: people's tags, and files to the byte."""
    library = service.library()
    with service.limited("undoing", 1, wait=5.0):
        report = library.undo(id, learn=False)
    service.learner.learn()
    problems = [f"{readable(path)}: {why}" for path, why in report.files_left.items()]
    problems += [f"{what}: {why}" for what, why in report.values_left.items()]
    problems += [f"change {by} changed {n} of it later" for by, n in report.conflicts.items()]
    return {
        "change": report.change,
        "complete": report.complete,
        "done": report.n_done,
        "left": report.n_left,
        "problems": problems,
    }


@router.get(
    "/events",
    tags=["events"],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events, as they come."}},
)
async def events(service: UsedService) -> StreamingResponse:
    """Server-sent events: "job" (a job), "change" (its number and command), "learnt" (tags)."""
    return StreamingResponse(service.events.listen(), media_type="text/event-stream")
