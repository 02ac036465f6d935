"""The app: routes, the guard before them, the page, and the OpenAPI document."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

from harmonium import __version__
from harmonium.web import answers, problems
from harmonium.web.events import Events
from harmonium.web.guard import Guard
from harmonium.web.jobs import Jobs
from harmonium.web.learner import Learner
from harmonium.web.routes import (
    changes,
    events,
    files,
    jobs,
    library,
    models,
    search,
    session,
    tags,
    teach,
    tracks,
    write,
)
from harmonium.web.service import Service
from harmonium.web.settings import ServerSettings

STATIC = Path(__file__).with_name("static")
PREFIX = "/api/v1"
ROUTERS = (
    *(library, session, search, tracks, tags, teach, write, changes, models, jobs, files, events),
)
ERRORS = {
    400: "The request is not as it should be.",
    401: "The token is missing or wrong.",
    403: "A page of another site asks.",
    404: "There is no such thing.",
    405: "The method is not known here.",
    408: "The request did not arrive in time.",
    409: "It does not fit the state of the library.",
    413: "The body is too large.",
    415: "The body is of the wrong type.",
    503: "The server is busy; Retry-After says when to ask again.",
}


def create_app(settings: ServerSettings) -> FastAPI:
    """The app for a library; an ASGI server runs it."""
    service = Service(settings)
    told = Events(service)
    learner = Learner(service, told.tell)
    work = Jobs(service, lambda job: told.tell("job", job))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        told.start()
        await run_in_threadpool(work.resume)
        threading.Thread(target=service.warm_up, daemon=True).start()
        try:
            yield
        finally:
            service.closing.set()
            await run_in_threadpool(work.close)
            await run_in_threadpool(learner.close)
            await told.stop()
            service.close()

    app = FastAPI(
        title="Harmonium",
        version=__version__,
        description="A library of music: search, tags, corrections, training.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service, app.state.events = service, told
    app.state.jobs, app.state.learner = work, learner
    problems.install(app)
    for module in ROUTERS:
        app.include_router(module.router, prefix=PREFIX)
    app.add_api_route("/", _page, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False), name="static")
    app.add_middleware(Guard, settings=settings)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def _page() -> Response:
    """The page itself."""
    file = STATIC / "index.html"
    if file.is_file():
        return FileResponse(file, media_type="text/html")
    return PlainTextResponse("The API is under /api/v1; the page is not installed.\n")


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, in which every error has the one shape."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for model in (answers.ErrorBody, answers.ErrorAnswer):
            schemas[model.__name__] = model.model_json_schema(
                ref_template="#/components/schemas/{model}"
            )
            schemas[model.__name__].pop("$defs", None)
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                for status, words in ERRORS.items():
                    operation["responses"].setdefault(
                        str(status), {"description": words, "content": content}
                    )
        app.openapi_schema = document
    return app.openapi_schema
