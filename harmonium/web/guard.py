"""What stands before every route: who may call, with what, how long, and what browsers may do.

- Host: a name of another site that leads to this machine (DNS rebinding) is refused.
- Origin and Sec-Fetch-Site: a page of another site cannot call by way of its reader's browser.
- Content-Type: a form of another site cannot send JSON.
- A token, compared in constant time, wherever the server can be reached from elsewhere.
- Bodies are limited in size and time.
- Headers that let browsers run nothing but what comes from here.
"""

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from harmonium.web.problems import Problem, answer
from harmonium.web.settings import ServerSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/v1/"
FILES = f"{API}files"
LARGEST_BODY = 1_000_000
LARGEST_FILE = 200_000_000
BODY_SECONDS = 30.0
"""How long to wait for the next part of a body."""
SEND_SECONDS = 300.0
"""How long to wait for a client that does not read what it asked for."""
SESSION_SECONDS = 30 * 24 * 3600
OPEN = {("GET", f"{API}health"), ("POST", f"{API}session")}
"""What needs no token."""

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


class Guard:
    """An ASGI app around another."""

    def __init__(self, app: App, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        response = _Response(scope, send, log=self.settings.log)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            body = _Body(scope, headers, receive)
            await self.app(scope, body.receive, response.send)
        except Problem as problem:
            if not response.begun:
                await answer(problem)(scope, receive, response.send)
        except TimeoutError:
            return  # the client does not read: the connection is closed

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        method, path = scope["method"], scope["path"]
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if not self.settings.allows_host(name):
            raise Problem(
                400,
                f"The server is not to be called by the name {name[:100]!r}. `harmonium serve "
                "--allow-host NAME` allows one.",
            )
        if (origin := headers.get("origin")) is not None and origin.lower() not in (
            f"http://{host}".lower(),
            f"https://{host}".lower(),
        ):
            raise Problem(403, "A page of another site may not call this server.")
        site = headers.get("sec-fetch-site", "none")
        if path.startswith("/api/") and site not in ("none", "same-origin"):
            raise Problem(403, "A page of another site may not call this server.")
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            _check_type(path, headers)
        if path.startswith("/api/") and (method, path) not in OPEN:
            self._check_token(headers)

    def _check_token(self, headers: dict[str, str]) -> None:
        token = self.settings.token
        if token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same_secret(given.strip(), token):
            return
        if is_session(_cookie(headers.get("cookie", ""), self.settings), token):
            return
        raise Problem(
            401,
            "This server wants its token: open the address that `harmonium serve` printed, or "
            "send the header Authorization: Bearer TOKEN.",
        )


def same_secret(given: str, secret: str) -> bool:
    """Whether two texts are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def cookie_name(settings: ServerSettings) -> str:
    """Cookies do not tell ports apart, so the name does."""
    return f"harmonium_{settings.port}"


def new_session(token: str) -> str:
    """What the cookie of a browser holds that has shown the token: until when, and a proof."""
    until = str(int(time.time()) + SESSION_SECONDS)
    return f"{until}.{_proof(until, token)}"


def is_session(value: str, token: str) -> bool:
    """Whether a cookie proves that its browser has shown the token."""
    until, _, proof = value.partition(".")
    if not same_secret(proof, _proof(until, token)):
        return False
    return until.isdecimal() and int(until) > time.time()


def _proof(until: str, token: str) -> str:
    message = f"harmonium session until {until}".encode(errors="replace")
    return hmac.new(token.encode(), message, hashlib.sha256).hexdigest()


def _cookie(text: str, settings: ServerSettings) -> str:
    try:
        found = SimpleCookie(text).get(cookie_name(settings))
    except CookieError:
        return ""
    return "" if found is None else found.value


def _headers(scope: Scope) -> dict[str, str]:
    """Headers by name; one that decides anything must not be there twice."""
    found: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "content-type", "authorization"):
            raise Problem(400, f"The header {name} must not be there twice.")
        found[name] = value.decode("latin-1")
    return found


def _check_type(path: str, headers: dict[str, str]) -> None:
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if path == FILES:
        if kind != "application/octet-stream" and not kind.startswith("audio/"):
            raise Problem(415, "Send the file as application/octet-stream.", field="content-type")
    elif (has_body or kind) and kind != "application/json":
        raise Problem(415, "Send JSON, as application/json.", field="content-type")


class _Body:
    """The body of a request, as far as it is not too large and not too slow."""

    def __init__(self, scope: Scope, headers: dict[str, str], receive: Receive) -> None:
        self._receive, self._seen, self._ended = receive, 0, False
        self._limit = LARGEST_FILE if scope["path"] == FILES else LARGEST_BODY
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            raise self._too_large()

    async def receive(self) -> Message:
        if self._ended:  # from now on it is the end of the connection that is waited for
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, "The request did not arrive in time.") from None
        self._seen += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._seen > self._limit:
            raise self._too_large()
        return message

    def _too_large(self) -> Problem:
        return Problem(413, f"More than {self._limit // 1_000_000} MB are not taken.")


class _Response:
    """What is sent, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, *, log: bool) -> None:
        self._scope, self._send, self._log = scope, send, log
        self._began = time.perf_counter()
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._add_headers(message)
            if self._log:
                seconds = time.perf_counter() - self._began
                what = f"{self._scope['method']} {self._scope['path'][:200]!r}"  # without its query
                log.info("%s %s %.0f ms", what, message["status"], 1000 * seconds)
        async with asyncio.timeout(SEND_SECONDS):
            await self._send(message)

    def _add_headers(self, message: Message) -> None:
        there = {key.lower() for key, _ in message["headers"]}
        more = dict(HEADERS)
        path = self._scope["path"]
        more["cache-control"] = "no-store" if path.startswith("/api/") else "no-cache"
        message["headers"] = [
            *message["headers"],
            *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in there),
        ]
