"""The server's settings, and the checks that every request passes before a route sees it.

- Host: another site's name that points to this machine (DNS rebinding) is refused.
- Origin and Sec-Fetch-Site: another site's page cannot call the server from its visitor's browser.
- Content-Type: another site's form cannot send JSON.
- A token, compared in constant time, if the server can be reached from other machines.
- Bodies are limited in size and time.
- Response headers make browsers run only scripts from this server.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harmonium.web.bodies import Problem

if TYPE_CHECKING:
    from harmonium.connect.subsonic import Server

API = "/api/v1/"
FILES = f"{API}files"
MAX_BODY_BYTES = 1_000_000
MAX_FILE_BYTES = 200_000_000
BODY_SECONDS = 30.0  # time limit for the next part of a body
SEND_SECONDS = 300.0  # time limit for a client to read a part of its response
SESSION_SECONDS = 30 * 24 * 3600
OPEN_ROUTES = {("GET", f"{API}health"), ("POST", f"{API}session")}  # routes that need no token
SIGNED_OUT: set[str] = set()  # cookies that were signed out, while this server runs
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
        if name in LOCAL_NAMES or name in (self.host.lower(), *map(str.lower, self.allowed_hosts)):
            return True
        if is_loopback(self.host):
            return False
        here = socket.gethostname().lower()
        # A name can be pointed at another machine; a numeric address cannot.
        return _address(name) is not None or name in (here, f"{here}.local")


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

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        response = _Response(scope, send, log=self.settings.log)
        try:
            self._check(HTTPConnection(scope))
            await self.app(scope, _limited(scope, receive), response.send)
        except Problem as problem:
            if not response.begun:
                await problem.response()(scope, receive, response.send)
        except TimeoutError:
            return  # The client does not read; the connection is closed.

    def _check(self, request: HTTPConnection) -> None:
        method, path, headers = request.scope["method"], request.scope["path"], request.headers
        for name in ("host", "origin", "content-type", "authorization"):
            if len(headers.getlist(name)) > 1:
                raise Problem(400, f"The header {name} is repeated.")
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if not self.settings.allows_host(name):
            way_out = "`harmonium serve --allow-host NAME` adds it."
            raise Problem(400, f"Host {name[:100]!r} is not allowed. {way_out}")
        own = (None, f"http://{host}".lower(), f"https://{host}".lower())
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        is_api = path.startswith("/api/")
        if (origin and origin.lower()) not in own or (
            is_api and site not in ("none", "same-origin")
        ):
            raise Problem(403, "Pages from other sites may not call this server.")
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            _check_type(path, headers)
        if is_api and (method, path) not in OPEN_ROUTES and not self._has_token(request):
            raise Problem(
                401,
                "This server needs its token. Open the address that `harmonium serve` printed, or "
                "send the header Authorization: Bearer TOKEN.",
            )

    def _has_token(self, request: HTTPConnection) -> bool:
        token = self.settings.token
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return (
            token is None
            or (scheme.lower() == "bearer" and same_secret(given.strip(), token))
            or is_session(request.cookies.get(cookie_name(self.settings), ""), token)
        )


def same_secret(given: str, secret: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def cookie_name(settings: ServerSettings) -> str:
    """The cookie's name; it contains the port, which cookies themselves ignore."""
    return f"harmonium_{settings.port}"


def new_session(token: str) -> str:
    """The cookie of a browser that has shown the token: its expiry time and a signature."""
    until = str(int(time.time()) + SESSION_SECONDS)
    return f"{until}.{_signature(until, token)}"


def is_session(value: str, token: str) -> bool:
    """Whether a cookie is signed with the token and has not expired."""
    until, _, signature = value.partition(".")
    if value in SIGNED_OUT or not same_secret(signature, _signature(until, token)):
        return False
    return until.isdecimal() and int(until) > time.time()


def _signature(until: str, token: str) -> str:
    message = f"harmonium session until {until}".encode(errors="replace")
    return hmac.new(token.encode(), message, hashlib.sha256).hexdigest()


def _check_type(path: str, headers: Headers) -> None:
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if path == FILES:
        if kind != "application/octet-stream" and not kind.startswith("audio/"):
            raise Problem(415, "Send the file as application/octet-stream.", field="content-type")
    elif (has_body or kind) and kind != "application/json":
        raise Problem(415, "Send JSON, as application/json.", field="content-type")


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Receives the body of a request, with limits on its size and time."""
    limit = MAX_FILE_BYTES if scope["path"] == FILES else MAX_BODY_BYTES
    too_large = f"The body is larger than {limit // 1_000_000} MB."
    length = Headers(scope=scope).get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        raise Problem(413, too_large)
    seen, ended = 0, False

    async def receive_part() -> Message:
        nonlocal seen, ended
        if ended:  # Only the end of the connection is still to come.
            return await receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise Problem(408, "The request did not arrive in time.") from None
        seen, ended = seen + len(message.get("body", b"")), not message.get("more_body", False)
        if seen > limit:
            raise Problem(413, too_large)
        return message

    return receive_part


class _Response:
    """The response, with the headers that every response has."""

    def __init__(self, scope: Scope, send: Send, *, log: bool) -> None:
        self._scope, self._send, self._log = scope, send, log
        self._began = time.perf_counter()
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, path = True, self._scope["path"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault(
                "cache-control", "no-store" if path.startswith("/api/") else "no-cache"
            )
            if self._log:
                seconds = time.perf_counter() - self._began
                what = f"{self._scope['method']} {path[:200]!r}"  # without the query
                log.info("%s %s %.0f ms", what, message["status"], 1000 * seconds)
        async with asyncio.timeout(SEND_SECONDS):
            await self._send(message)
