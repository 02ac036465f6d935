"""A real server of a library on loopback, for tests."""

import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace

import httpx

from harmonium.web.app import bind, make_server
from harmonium.web.guard import ServerSettings


@contextmanager
def serving(place, **options):
    """A running server; gives a client whose paths begin at /api/v1/."""
    settings = ServerSettings(place=str(place), port=0, **options)
    listening = bind(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    server = make_server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
        address = f"http://127.0.0.1:{settings.port}"
        with httpx.Client(base_url=f"{address}/api/v1/", headers=headers, timeout=30) as client:
            client.server = server
            yield client
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(20)
        listening.close()


def root(client):
    """The address without /api/v1/."""
    return str(client.base_url).removesuffix("/api/v1/")


def raw(client, data, *, seconds=5.0):
    """What the server answers to bytes, until it closes the connection or the time is over."""
    with socket.create_connection((client.base_url.host, client.base_url.port), seconds) as wire:
        wire.sendall(data)
        wire.settimeout(seconds)
        answer = b""
        with suppress(TimeoutError):
            while part := wire.recv(65536):
                answer += part
    return answer
