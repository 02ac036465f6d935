"""The server's settings, and the checks that every request passes before a route sees it.

- Host: another site's name that points to this machine (DNS rebinding) is refused.
- Origin and Sec-Fetch-Site: another site's page cannot call the server from its visitor's browser.
- Content-Type: another site's form cannot send JSON.
- A token, compared in constant time, if the server can be reached from other machines.
- Bodies are limited in size and time.
- Response headers make browsers run only scripts from this server.
"""

import asyncio
import ipaddress
import logging
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harmonium.errors import LibraryError
from harmonium.web import sessions
from harmonium.web.problems import Problem, problem_of

if TYPE_CHECKING:
    from harmonium.connect.subsonic import Server
    from harmonium.web.sessions import Sessions

API = "/api/v1/"
FILES = f"{API}files"
MAX_BODY_BYTES = 1_000_000
MAX_FILE_BYTES = 200_000_000
BODY_SECONDS = 30.0  # time limit for the next part of a body
SEND_SECONDS = 300.0  # time limit for a client to read a part of its response
OPEN_ROUTES = {("GET", f"{API}health"), ("POST", f"{API}session")}  # routes that need no token
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
log = logging.getLogger("harmonium.web")


@dataclass(frozen=True)
class ServerSettings:
    """The options of `harmonium serve`."""

    place: str | None = None  # the library, as `Library.open` takes it
    host: str = "127.0.0.1"
    port: int = 8040
    person: str = "me"  # the person whose tags the page saves
    token: str | None = field(default=None, repr=False)  # that callers need, if any
    allowed_hosts: tuple[str, ...] = ()  # other host names that browsers may use for the server
    log: bool = False  # whether to log a line for each request
    folder: str | None = None  # a folder to index when the server starts
    subsonic: "Server | None" = None  # the server whose ids the AudioMuse routes take

    def allows_host(self, name: str) -> bool:
        """Whether a request may use this host name; other names may belong to other sites."""
        name = name.lower().rstrip(".").strip("[]")
        allowed = [host.lower() for host in (self.host, *self.allowed_hosts)]
        if name in LOCAL_NAMES or name in allowed:
            return True
        if is_loopback(self.host):
            return False
        if _address(name) is not None:
            return True  # A name can be pointed at another machine; a numeric address cannot.
        machine = socket.gethostname().lower()
        return name in (machine, f"{machine}.local")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    address = _address(host.strip("[]"))
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Guard:
    """An ASGI app that checks requests before another app sees them."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, open_sessions: "Sessions") -> None:
        self.app = app
        self.settings = settings
        self._sessions = open_sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        response = _Response(scope, send, log=self.settings.log)
        try:
            await self._check(HTTPConnection(scope))
            await self.app(scope, _limited(scope, receive), response.send)
        except Problem as problem:
            if not response.begun:
                await problem.response()(scope, receive, response.send)
        except TimeoutError:
            return  # The client does not read; the connection is closed.

    async def _check(self, request: HTTPConnection) -> None:
        """Raise a `Problem` if a request is not allowed."""
        method = request.scope["method"]
        path = request.scope["path"]
        is_api = path.startswith("/api/")
        for name in ("host", "origin", "content-type", "authorization"):
            if len(request.headers.getlist(name)) > 1:
                raise Problem(400, f"The header {name} is repeated.")
        host = request.headers.get("host", "")
        if not self.settings.allows_host(_without_port(host)):
            way_out = "`harmonium serve --allow-host NAME` adds it."
            raise Problem(400, f"Host {_without_port(host)[:100]!r} is not allowed. {way_out}")
        if not _is_own_page(request.headers, host, is_api=is_api):
            raise Problem(403, "Pages from other sites may not call this server.")
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            _check_type(path, request.headers)
        if is_api and (method, path) not in OPEN_ROUTES and not await self._has_token(request):
            raise Problem(
                401,
                "This server needs its token. Open the address that `harmonium serve` printed, or "
                "send the header Authorization: Bearer TOKEN.",
            )

    async def _has_token(self, request: HTTPConnection) -> bool:
        """Whether a request has the token or the cookie of a session, if the server needs one."""
        token = self.settings.token
        if token is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and sessions.same_secret(given.strip(), token):
            return True
        cookie = request.cookies.get(sessions.cookie_name(self.settings.port), "")
        if not cookie:
            return False
        if self._sessions.is_known(cookie):
            return True
        try:
            return await run_in_threadpool(self._sessions.look_up, cookie)
        except LibraryError as error:
            raise problem_of(error) from None


def _without_port(host: str) -> str:
    """The name in a Host header, such as [::1] in [::1]:8040."""
    if ":" not in host or host.endswith("]"):
        return host
    return host.rpartition(":")[0]


def _is_own_page(headers: Headers, host: str, *, is_api: bool) -> bool:
    """Whether a request comes from the server's own page, or from no page at all."""
    origin = headers.get("origin")
    own = (f"http://{host}".lower(), f"https://{host}".lower())
    if origin is not None and origin.lower() not in own:
        return False
    return not is_api or headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _check_type(path: str, headers: Headers) -> None:
    """Raise a `Problem` if a body is neither JSON nor, for `/files`, a file."""
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if path == FILES:
        if media_type != "application/octet-stream" and not media_type.startswith("audio/"):
            raise Problem(415, "Send the file as application/octet-stream.", field="content-type")
    elif (has_body or media_type) and media_type != "application/json":
        raise Problem(415, "Send JSON, as application/json.", field="content-type")


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Receives the body of a request, with limits on its size and time."""
    limit = MAX_FILE_BYTES if scope["path"] == FILES else MAX_BODY_BYTES
    too_large = f"The body is larger than {limit // 1_000_000} MB."
    length = Headers(scope=scope).get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        raise Problem(413, too_large)
    n_bytes = 0
    ended = False

    async def receive_part() -> Message:
        nonlocal n_bytes, ended
        if ended:  # Only the end of the connection is still to come.
            return await receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise Problem(408, "The request did not arrive in time.") from None
        n_bytes += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if n_bytes > limit:
            raise Problem(413, too_large)
        return message

    return receive_part


class _Response:
    """The response, with the headers that every response has."""

    def __init__(self, scope: Scope, send: Send, *, log: bool) -> None:
        self._scope = scope
        self._send = send
        self._log = log
        self._began = time.perf_counter()
        self.begun = False

    async def send(self, message: Message) -> None:
        """Send a part of it."""
        if message["type"] == "http.response.start":
            self.begun = True
            self._add_headers(message)
            if self._log:
                self._log_request(message["status"])
        async with asyncio.timeout(SEND_SECONDS):
            await self._send(message)

    def _add_headers(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        is_api = self._scope["path"].startswith("/api/")
        headers.setdefault("cache-control", "no-store" if is_api else "no-cache")

    def _log_request(self, status: int) -> None:
        """Log the method, the path without its query, the status and the time."""
        seconds = time.perf_counter() - self._began
        request = f"{self._scope['method']} {self._scope['path'][:200]!r}"
        log.info("%s %s %.0f ms", request, status, 1000 * seconds)
