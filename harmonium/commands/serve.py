"""`harmonium serve`: the library in a browser."""

from __future__ import annotations

import logging
import secrets
import threading
import webbrowser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.options import LibraryOption, PersonOption
from harmonium.commands.screen import say

SHORTEST_TOKEN = 16


def serve(
    library: LibraryOption = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where to listen. By default only this machine can connect; any other address "
            "wants a token.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8040,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page at once.")
    ] = True,
    person: PersonOption = "me",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file whose first line is the token that callers must know; without one, a new "
            "token is made where one is needed.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A further name of this server, as a proxy or a router gives it."
        ),
    ] = None,
    log: Annotated[
        bool,
        typer.Option("--log", help="Print a line for each request, without anything secret."),
    ] = False,
) -> None:
    """Open the library in a browser: search, listen, correct, teach, train, write.

    Serves a page and an HTTP API (under /api/v1) until Ctrl-C. Without
    a library it begins with an empty page that offers to index a folder.
    It listens to this machine only, unless --host names another address;
    then whoever connects needs the token that is printed.

    [dim]Example:[/dim]  harmonium serve --port 9000

    [dim]Exit codes:[/dim]  0 stopped by Ctrl-C; 2 it could not begin, with the
    reason.
    """
    from harmonium.web.app import bind, make_server
    from harmonium.web.guard import ServerSettings, is_loopback

    token = _read_token(token_file)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(32)
    settings = ServerSettings(library, host, port, person, token, tuple(allow_host or ()), log)
    socket = bind(settings)
    settings = replace(settings, port=socket.getsockname()[1])
    server = make_server(settings)
    address = _address(settings.host, settings.port) + (f"#token={token}" if token else "")
    print(f"Harmonium is at {address}", flush=True)
    errors = Console(stderr=True)
    say(errors, "Ctrl-C ends it.")
    if log:
        logging.getLogger("harmonium.web").addHandler(logging.StreamHandler())
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    with suppress(KeyboardInterrupt):  # uvicorn passes it on when all has ended
        server.run(sockets=[socket])
    say(errors, "Stopped. What was said and written is kept.")


def _address(host: str, port: int) -> str:
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def _read_token(file: Path | None) -> str | None:
    from harmonium.errors import DataError

    if file is None:
        return None
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise DataError(f"The token file '{file}' cannot be read: {reason}.") from None
    token = lines[0].strip() if lines else ""
    if len(token) < SHORTEST_TOKEN:
        raise DataError(
            f"The first line of '{file}' must be a token of at least {SHORTEST_TOKEN} characters, "
            f"got {len(token)}."
        )
    return token
