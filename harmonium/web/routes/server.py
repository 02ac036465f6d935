"""Routes of the server itself: whether it works, signing in and out, and events."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from harmonium import __version__
from harmonium.web import sessions
from harmonium.web.problems import Problem
from harmonium.web.requests import SignInRequest
from harmonium.web.responses import file_response
from harmonium.web.service import UsedService

router = APIRouter()
COOKIE: Any = {"path": "/", "httponly": True, "samesite": "strict"}


@router.get("/health", tags=["library"])
async def health() -> dict[str, str]:
    """Whether the server works; needs no token."""
    return {"status": "ok", "version": __version__}


@router.post("/session", tags=["session"], status_code=204, response_class=Response)
def sign_in(service: UsedService, body: SignInRequest) -> Response:
    """Sign a browser in with the token; a cookie that scripts cannot read replaces it."""
    token = service.settings.token
    response = Response(status_code=204)
    if token is not None:
        if not sessions.same_secret(body.token, token):
            raise Problem(401, "That is not this server's token.", field="token")
        name = sessions.cookie_name(service.settings.port)
        session = service.sessions.begin()
        response.set_cookie(name, session, max_age=sessions.SESSION_SECONDS, **COOKIE)
    return response


@router.delete("/session", tags=["session"], status_code=204, response_class=Response)
def sign_out(service: UsedService, request: Request) -> Response:
    """Sign a browser out; its cookie stops working, also after a restart of the server."""
    name = sessions.cookie_name(service.settings.port)
    service.sessions.end(request.cookies.get(name, ""))
    response = Response(status_code=204)
    response.delete_cookie(name, **COOKIE)
    return response


@router.get(
    "/events", tags=["events"], **file_response("text/event-stream", "Events, as they come.")
)
async def events(service: UsedService) -> StreamingResponse:
    """Server-sent events: "job" (a job), "change" (its number and command), "learnt" (tags)."""
    return StreamingResponse(service.events.listen(), media_type="text/event-stream")
