"""Sessions of browsers that have shown the server's token.

A cookie is a random text. The library's settings have its digest under the token, and when it
expires. So a session outlives a server, signing out ends it also for the next server, and a new
token ends all of them.
"""

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from harmonium.errors import LibraryError

if TYPE_CHECKING:
    from harmonium.web.service import Service

SESSION_SECONDS = 30 * 24 * 3600
SETTING = "session:"  # before the digest, in the names of settings


def same_secret(given: str, secret: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def cookie_name(port: int) -> str:
    """The cookie's name; it contains the port, which cookies themselves ignore."""
    return f"harmonium_{port}"


class Sessions:
    """The sessions of a server; threads may share them."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._known: dict[str, int] = {}  # digest of a cookie → when it expires

    def begin(self) -> str:
        """The cookie of a new session, for a browser that has shown the token."""
        cookie = secrets.token_urlsafe(32)
        digest = self._digest(cookie)
        self._known[digest] = int(time.time()) + SESSION_SECONDS
        # In a library that is missing or read-only, the session ends with this server.
        with suppress(LibraryError):
            self._remove_expired()
            self._store(digest, self._known[digest])
        return cookie

    def is_known(self, cookie: str) -> bool:
        """Whether this server has seen a session, which has not ended."""
        return self._known.get(self._digest(cookie), 0) > time.time()

    def look_up(self, cookie: str) -> bool:
        """Whether a session has not ended, by what the library stores, too."""
        digest = self._digest(cookie)
        library = self._service.library_if_any()
        if digest not in self._known and library is not None:
            expires = library.settings.get(SETTING + digest, 0)
            if expires:
                self._known[digest] = expires
        return self.is_known(cookie)

    def end(self, cookie: str) -> None:
        """End a session; a LibraryError if the library that stores it cannot be written to."""
        digest = self._digest(cookie)
        library = self._service.library_if_any()
        if library is not None and library.settings.get(SETTING + digest, 0):
            self._store(digest, None)
        self._known.pop(digest, None)

    def _digest(self, cookie: str) -> str:
        token = self._service.settings.token or ""
        return hmac.new(token.encode(), cookie.encode(errors="replace"), hashlib.sha256).hexdigest()

    def _remove_expired(self) -> None:
        library = self._service.library_if_any()
        if library is not None:
            for digest, expires in library.settings.beginning_with(SETTING).items():
                if expires <= time.time():
                    self._store(digest, None)

    def _store(self, digest: str, expires: int | None) -> None:
        library = self._service.library_if_any()
        if library is not None:
            library.settings.set(SETTING + digest, expires)
