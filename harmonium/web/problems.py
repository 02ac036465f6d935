"""What went wrong, in one shape: {"error": {"code", "message", "field"}}."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from harmonium.errors import (
    AudioError,
    DataError,
    HarmoniumError,
    LibraryError,
    NoLibraryError,
    NotInLibraryError,
    UnknownTagError,
)

CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "bad_request",
    408: "bad_request",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media",
    429: "busy",
    503: "busy",
}
"""Status → what it is called, unless a problem says otherwise."""


PASSING = ("locked", "connection", "server stopped", "disk")
"""Words in errors of a library that may be gone soon: it is busy, restarts, or lacks room."""


class Problem(HTTPException):
    """An answer that says what is wrong, and what to do.

    Parameters
    ----------
    status : the HTTP status
    message : a sentence
    code : one of `CODES`, or "unknown_tag" or "not_ready"; by default that of the status
    field : the parameter that is wrong
    retry_after : seconds
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        headers = None if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(status, message, headers)
        self.code = code or CODES.get(status, "bad_request")
        self.field = field


def not_ready(message: str) -> Problem:
    """What is needed first is not there."""
    return Problem(409, message, code="not_ready")


def body_of(code: str, message: str, field: str | None = None) -> dict[str, Any]:
    """The one shape."""
    return {"error": {"code": code, "message": message, "field": field}}


def of_error(error: HarmoniumError) -> Problem:
    """The problem that an error of the library is to who asked."""
    message = str(error)
    if isinstance(error, UnknownTagError):
        return Problem(400, message, code="unknown_tag")
    if isinstance(error, NotInLibraryError):
        return Problem(404, message)
    if isinstance(error, NoLibraryError):
        return not_ready(message)
    if isinstance(error, AudioError):
        return Problem(415, message)
    if isinstance(error, DataError):
        return Problem(400, message)
    if isinstance(error, LibraryError) and any(words in message for words in PASSING):
        return Problem(503, message, retry_after=5)
    return Problem(409, message)


def answer(problem: Problem) -> JSONResponse:
    """A problem as it is sent; where the rest of a body may still come, nothing more is read."""
    content = body_of(problem.code, str(problem.detail), problem.field)
    headers = dict(problem.headers or {})
    if problem.status_code in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse(content, problem.status_code, headers)


def _methods(app: FastAPI, request: Request) -> list[str]:
    """What the path of a request can be asked; a path may have several routes."""
    found: set[str] = set()
    for method in ("GET", "POST", "DELETE"):
        scope = dict(request.scope, method=method)
        if any(route.matches(scope)[0] == Match.FULL for route in app.router.routes):
            found.add(method)
    if request.scope["path"].endswith(("/rename", "/hide")):  # and not a tag that ends so
        found.discard("GET")
    return sorted(found)


def install(app: FastAPI) -> None:
    """Let every error of an app have the one shape."""

    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 405:
            error.headers = {"Allow": ", ".join(_methods(app, request))}
        if isinstance(error, Problem):
            return answer(error)
        words = {404: "There is nothing at this address.", 405: "This method is not known here."}
        message = words.get(error.status_code, str(error.detail))
        code = CODES.get(error.status_code, "bad_request")
        return JSONResponse(body_of(code, message), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = [str(part) for part in first.get("loc", ())]
        field = where[-1] if len(where) > 1 else None
        said = str(first.get("msg", "cannot be read"))
        message = f"{field or 'The request'}: {said[:1].lower()}{said[1:]}."
        return answer(Problem(400, message, field=field))

    @app.exception_handler(HarmoniumError)
    async def expected(_: Request, error: HarmoniumError) -> JSONResponse:
        return answer(of_error(error))
