"""The routes of the HTTP API, by subject; each is thin over a method of `harmonium.Library`."""

from fastapi import APIRouter

from harmonium.web.routes import (
    changes,
    files,
    jobs,
    library,
    models,
    search,
    server,
    sound,
    tags,
    teach,
    tracks,
    write,
)

SUBJECTS = (
    server,
    library,
    search,
    tags,
    tracks,
    sound,
    teach,
    write,
    models,
    jobs,
    changes,
    files,
)


def routers() -> list[APIRouter]:
    """The routes of every subject."""
    return [subject.router for subject in SUBJECTS]
