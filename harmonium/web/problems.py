"""Errors in one shape: {"error": {"code", "message", "field"}}."""

from dataclasses import asdict, dataclass

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
    409: "conflict",
    413: "too_large",
    415: "unsupported_media",
    503: "busy",
}
"""Status → code, unless a problem has a code of its own; other statuses are bad requests."""
LIBRARY_ERRORS: tuple[tuple[type[HarmoniumError], int, str | None], ...] = (
    (UnknownTagError, 400, "unknown_tag"),
    (NotInLibraryError, 404, None),
    (NoLibraryError, 409, "not_ready"),
    (AudioError, 415, None),
    (DataError, 400, None),
)
"""Error of the library, status and code; the first that fits."""
TEMPORARY = ("locked", "connection", "server stopped", "disk")
"""Words in errors of the library that may soon be over: it is locked, restarts, or lacks space."""


@dataclass(frozen=True)
class ErrorBody:
    """What went wrong."""

    code: str
    message: str
    field: str | None = None


@dataclass(frozen=True)
class ErrorAnswer:
    """Every answer with a status of 400 or more."""

    error: ErrorBody


class Problem(HTTPException):
    """An answer that says what is wrong and what to do.

    ``code`` is by default that of the status; ``field`` is the parameter that is wrong.
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
        self.body = ErrorBody(code or CODES.get(status, "bad_request"), message, field)


def not_ready(message: str) -> Problem:
    """The library or a model is missing."""
    return Problem(409, message, code="not_ready")


def problem_of(error: HarmoniumError) -> Problem:
    """The answer to an error of the library."""
    message = str(error)
    for kind, status, code in LIBRARY_ERRORS:
        if isinstance(error, kind):
            return Problem(status, message, code=code)
    if isinstance(error, LibraryError) and any(word in message for word in TEMPORARY):
        return Problem(503, message, retry_after=5)
    return Problem(409, message)


def answer(problem: Problem) -> JSONResponse:
    """The response to a problem; the connection closes if the rest of a body may still come."""
    headers = dict(problem.headers or {})
    if problem.status_code in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse(asdict(ErrorAnswer(problem.body)), problem.status_code, headers)


def install(app: FastAPI) -> None:
    """Give every error of an app the one shape."""

    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> JSONResponse:
        if not isinstance(error, Problem):
            words = {404: "Nothing is at this address.", 405: "This method is not supported here."}
            error = Problem(error.status_code, words.get(error.status_code, str(error.detail)))
        if error.status_code == 405:
            error.headers = {"Allow": ", ".join(_methods(app, request))}
        return answer(error)

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
        return answer(problem_of(error))


def _methods(app: FastAPI, request: Request) -> list[str]:
    """The methods that a path supports; several routes may have the same path."""
    found: set[str] = set()
    for method in ("GET", "POST", "DELETE"):
        scope = dict(request.scope, method=method)
        if any(route.matches(scope)[0] == Match.FULL for route in app.router.routes):
            found.add(method)
    if request.scope["path"].endswith(("/rename", "/hide")):  # not tags that end so
        found.discard("GET")
    return sorted(found)
