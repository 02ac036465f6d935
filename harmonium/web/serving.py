"""Running the app: uvicorn, with limits on how long and how many."""

import asyncio
import logging
import socket
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from harmonium.errors import DataError
from harmonium.web.app import create_app
from harmonium.web.settings import ServerSettings

MOST_CONNECTIONS = 256
LONGEST_HEAD = 128 * 1024
"""Bytes of the first line and the headers together."""
HEADER_SECONDS = 10.0
"""How long a client may take for the first line and the headers."""
GOODBYE_SECONDS = 5
"""How long answers that are under way may take when the server ends."""


class ImpatientProtocol(H11Protocol):
    """HTTP that does not wait for ever until the head of a request has come."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait only while a head has begun and not ended."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self._wait_no_longer()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn that tells the app when it is about to end, so that open streams end first."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ctrl-C, or a polite kill."""
        app = self.config.app
        app.state.service.closing.set()  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def make_server(settings: ServerSettings) -> Server:
    """A server for a library, which `run` runs until it is stopped."""
    logging.getLogger("harmonium.web").setLevel(logging.INFO)
    return Server(
        uvicorn.Config(
            create_app(settings),
            host=settings.host,
            port=settings.port,
            http=ImpatientProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
        )
    )


def bind(settings: ServerSettings) -> socket.socket:
    """The socket to listen on; a DataError where it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # By its name: of a socket of protocol 0, asyncio does not know that it should send at once.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host.strip("[]"), settings.port))
        found.listen(MOST_CONNECTIONS)  # whoever comes before the server has started waits
    except OSError as error:
        found.close()
        raise DataError(
            f"{settings.host}:{settings.port} cannot be listened on: {error.strerror or error}. "
            "Choose another --port, or stop what is there."
        ) from None
    return found
