"""`harmonium serve`: the library in a browser."""

import atexit
import logging
import secrets
import tempfile
import threading
import webbrowser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harmonium.commands import options
from harmonium.commands.options import argument, flag, number, value
from harmonium.commands.output import Output
from harmonium.commands.playlists import subsonic
from harmonium.errors import DataError, NoLibraryError
from harmonium.files import absolute_path, read_secret, user_cache_folder

MIN_TOKEN_LENGTH = 16


def serve(
    folder: Path | None = argument("FOLDER", "A folder of music to index at once."),
    library: str | None = options.LIBRARY,
    host: str = value(
        "ADDRESS",
        "Address to listen on. By default only this machine can connect; others need a token.",
        default="127.0.0.1",
    ),
    port: int = number(8040, "Port to listen on; 0 takes a free one.", min=0, max=65535),
    browser: bool = flag("Open the page in your browser.", "--browser/--no-browser", default=True),
    person: str = options.PERSON,
    token_file: Path | None = value(
        "FILE", "File with the token in its first line; by default a new one if needed."
    ),
    allow_host: list[str] | None = value(
        "NAME", "Another host name of this server, behind a proxy; repeatable."
    ),
    audiomuse: str | None = value(
        "URL",
        "Serve AudioMuse-AI's plugin for Navidrome; URL is the Subsonic server, https://USER@HOST.",
    ),
    password_file: Path | None = options.PASSWORD_FILE,
    log: bool = flag("Print a line per request, without secrets.", "--log"),
) -> None:
    """Open the library in a browser.

    Search, listen, correct, teach, train and write on a page; the HTTP API is under /api/v1. Runs
    until Ctrl-C. Without a library, the page asks for a folder of music; a FOLDER is indexed at
    once, and `harmonium FOLDER` is short for that. Other machines can connect only if --host names
    another address, and they need the token that is printed.

    Example: harmonium serve ~/Music
    Example: harmonium serve --port 9000
    Example: harmonium serve --host 0.0.0.0 --audiomuse https://me@music.example.org
    """
    from harmonium.library import Library
    from harmonium.web.app import bind, make_server
    from harmonium.web.guard import ServerSettings, is_loopback

    music = None if folder is None else absolute_path(folder)
    if music is not None and not Path(music).is_dir():
        raise DataError(f"'FOLDER' must be a folder of music, got {str(folder)!r}.")
    with suppress(NoLibraryError):  # the page creates one
        Library.open(library, create=False).close()
    token = _read_token(token_file)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(32)
    settings = ServerSettings(
        place=library,
        host=host,
        port=port,
        person=person,
        token=token,
        allowed_hosts=tuple(allow_host or ()),
        log=log,
        folder=music,
        subsonic=None if audiomuse is None else subsonic(audiomuse, password_file),
    )
    socket = bind(settings)
    settings = replace(settings, port=socket.getsockname()[1])
    server = make_server(settings)
    address = f"http://{_host_name(host)}:{settings.port}/"
    if token:
        address += f"#token={token}"
    print(f"Harmonium is at {address}", flush=True)
    out = Output()
    out.note("Ctrl-C stops it.")
    if log:
        logging.getLogger("harmonium.web").addHandler(logging.StreamHandler())
    if browser:
        threading.Timer(0.5, _open_browser, [address]).start()
    with suppress(KeyboardInterrupt):  # uvicorn passes it on at the end
        server.run(sockets=[socket])
    out.note("Stopped. All changes are saved.")


def _host_name(host: str) -> str:
    """How an address names the host that the server listens on."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _open_browser(address: str) -> None:
    """Open the page, but not with the token on the browser's command line, which all users see."""
    if "#" in address:
        folder = user_cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".html", delete=False) as file:
            file.write(f'<meta http-equiv="refresh" content="0; url={address}">')
        atexit.register(Path(file.name).unlink, missing_ok=True)
        address = Path(file.name).as_uri()
    webbrowser.open(address)


def _read_token(file: Path | None) -> str | None:
    if file is None:
        return None
    token = read_secret(file, "token")
    if len(token) < MIN_TOKEN_LENGTH:
        raise DataError(
            f"The first line of '{file}' must be a token of at least {MIN_TOKEN_LENGTH} "
            f"characters, got {len(token)}."
        )
    return token
