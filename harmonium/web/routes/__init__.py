"""The routes of the API, by subject."""

from harmonium.web.routes import library, search, tracks, work

ROUTERS = (library.router, search.router, tracks.router, work.router)
