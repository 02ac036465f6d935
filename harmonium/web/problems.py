"""Errors, all in one shape: {"error": {"code", "message", "field"}}."""

from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from harmonium import errors
from harmonium.web.requests import TAG_ACTIONS
from harmonium.web.uploads import TooLongError

RETRY_SECONDS = 5  # when to repeat a request that may succeed later


class ErrorBody(BaseModel):
    """What was wrong."""

    code: str
    message: str
    field: str | None


class ErrorAnswer(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: ErrorBody


class Status(NamedTuple):
    """The meaning of a status."""

    code: str  # the code of its errors, unless they have one of their own
    description: str


STATUSES = {
    400: Status("bad_request", "The request does not match this document."),
    401: Status("unauthorized", "The token is missing or wrong."),
    403: Status("forbidden", "The request comes from a page of another site."),
    404: Status("not_found", "There is no such track, tag, file or folder."),
    405: Status("bad_request", "The method is not supported here."),
    408: Status("bad_request", "The request did not arrive in time."),
    409: Status("conflict", "The library's state does not allow it."),
    413: Status("too_large", "The body is too large."),
    415: Status("unsupported_media", "The body has the wrong type, or is not music."),
    422: Status("bad_request", "The request cannot be carried out; the message says why."),
    500: Status("failed", "An error in the server; its log says more."),
    503: Status("busy", "The server is busy; Retry-After says when to try again."),
}
OTHER_STATUS = Status("bad_request", "Any other error.")

LIBRARY_ERRORS: dict[type[Exception], tuple[int, str]] = {
    errors.HarmoniumError: (409, "conflict"),
    errors.UnknownTagError: (404, "unknown_tag"),
    errors.LibraryUnavailableError: (503, "busy"),
    errors.NotInLibraryError: (404, "not_found"),
    errors.NoLibraryError: (409, "not_ready"),
    errors.AudioError: (415, "unsupported_media"),
    TooLongError: (413, "too_large"),
    errors.DataError: (422, "bad_request"),
    errors.ServerError: (503, "busy"),
}
"""Library error → status and code; an error that is not listed has those of its base class."""


class Problem(HTTPException):
    """An answer that says what is wrong and what to do.

    ``code`` is by default the status's own; ``field`` is the invalid parameter.
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
        headers = {}
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        if status in (408, 413):  # The rest of the body may still arrive.
            headers["Connection"] = "close"
        super().__init__(status, message, headers)
        self.code = code or STATUSES.get(status, OTHER_STATUS).code
        self.field = field

    def response(self) -> JSONResponse:
        """The error as a response, in the one shape."""
        error = ErrorBody(code=self.code, message=self.detail, field=self.field)
        body = ErrorAnswer(error=error).model_dump()
        return JSONResponse(body, self.status_code, self.headers)


def not_ready(message: str) -> Problem:
    """The library or a model is missing."""
    return Problem(409, message, code="not_ready")


def problem_of(error: errors.HarmoniumError) -> Problem:
    """The answer to a library error."""
    known = next(kind for kind in type(error).__mro__ if kind in LIBRARY_ERRORS)
    status, code = LIBRARY_ERRORS[known]
    retry_after = RETRY_SECONDS if status == 503 else None
    return Problem(status, str(error), code=code, retry_after=retry_after)


def documented_errors() -> dict[int | str, dict[str, Any]]:
    """The errors of every route, for the OpenAPI document."""
    documented: dict[int | str, dict[str, Any]] = {}
    for status, meaning in (STATUSES | {"default": OTHER_STATUS}).items():
        documented[status] = {"description": meaning.description, "model": ErrorAnswer}
    return documented


def install_errors(app: FastAPI) -> None:
    """Give every error of an app the same shape."""

    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> JSONResponse:
        problem = error if isinstance(error, Problem) else _plainer(error)
        if problem.status_code == 405:
            problem.headers = {"Allow": ", ".join(_methods(app, request))}
        return problem.response()

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = [str(part) for part in first.get("loc", ())]
        field = where[-1] if len(where) > 1 else None
        reason = str(first.get("msg", "cannot be read"))
        message = f"{field or 'The request'}: {reason[:1].lower()}{reason[1:]}."
        return Problem(400, message, field=field).response()

    @app.exception_handler(errors.HarmoniumError)
    async def expected(_: Request, error: errors.HarmoniumError) -> JSONResponse:
        return problem_of(error).response()

    @app.exception_handler(OSError)
    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        reason = getattr(error, "strerror", None) or type(error).__name__  # a full disk, say
        status = 503 if isinstance(error, OSError) else 500
        message = f"The server failed: {reason}."
        return Problem(status, message, retry_after=RETRY_SECONDS).response()


def _plainer(error: HTTPException) -> Problem:
    """An error that FastAPI raised, in our words."""
    messages = {404: "Nothing is at this address.", 405: "This method is not supported here."}
    return Problem(error.status_code, messages.get(error.status_code, str(error.detail)))


def _methods(app: FastAPI, request: Request) -> list[str]:
    """The methods that a path supports; several routes may have the same path."""
    methods = ["DELETE", "GET", "POST", "PUT"]
    if request.scope["path"].endswith(TAG_ACTIONS):
        methods.remove("GET")  # It would take the end of the path for a part of the tag.
    supported = []
    for method in methods:
        scope = dict(request.scope, method=method)
        if any(route.matches(scope)[0] == Match.FULL for route in app.router.routes):
            supported.append(method)
    return supported
