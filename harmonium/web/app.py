"""The app (routes, guard, page, OpenAPI document) and the uvicorn server that runs it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import h11
import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from harmonium import __version__
from harmonium.errors import DataError
from harmonium.web.guard import Guard, ServerSettings
from harmonium.web.problems import documented_errors, install_errors
from harmonium.web.routes import routers
from harmonium.web.service import Service

STATIC = Path(__file__).with_name("static")
PREFIX = "/api/v1"
MAX_CONNECTIONS = 256
MAX_HEAD_BYTES = 128 * 1024  # size limit for the request line and the headers together
HEAD_SECONDS = 10.0  # time limit for the request line and the headers
SHUTDOWN_SECONDS = 5  # time that responses in progress get when the server shuts down


def create_app(settings: ServerSettings) -> FastAPI:
    """The app for a library; an ASGI server runs it."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.close()

    app = FastAPI(
        title="Harmonium",
        version=__version__,
        description="A music library: search, tags, corrections, training.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    install_errors(app)
    for router in routers():
        app.include_router(router, prefix=PREFIX, responses=documented_errors())
    page = STATIC / "index.html"
    app.add_api_route("/", lambda: FileResponse(page), include_in_schema=False)
    if settings.subsonic is not None:
        from harmonium.web import audiomuse

        app.include_router(audiomuse.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, settings=settings, open_sessions=service.sessions)
    return app


class TimedProtocol(H11Protocol):
    """HTTP with a time limit for the head of each request."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request; drop the connection if there are far too many."""
        super().connection_made(transport)
        self._start_timer()
        if len(self.connections) > 2 * MAX_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Keep the timer running only while a head is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self._stop_timer()
        elif self._timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """uvicorn that tells the app when it shuts down, so that open streams end first."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C or SIGTERM."""
        self.config.app.state.service.events.stop()  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def make_server(settings: ServerSettings) -> Server:
    """A server for a library; its method `run` serves until it is stopped."""
    logging.getLogger("harmonium.web").setLevel(logging.INFO)
    return Server(
        uvicorn.Config(
            create_app(settings),
            host=settings.host,
            port=settings.port,
            http=TimedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


def bind(settings: ServerSettings) -> socket.socket:
    """The socket to listen on; a DataError if the address is in use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio switches off Nagle's algorithm only if the socket's protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(MAX_CONNECTIONS)  # Clients that connect before the server has started wait.
    except OSError as error:
        listener.close()
        raise DataError(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror or error}. "
            "Choose another --port, or stop the program that uses it."
        ) from None
    return listener
