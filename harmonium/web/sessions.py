"""Sessions of browsers that have shown the server's token: signed cookies without the token."""

import hashlib
import hmac
import time

SESSION_SECONDS = 30 * 24 * 3600
SIGNED_OUT: set[str] = set()  # cookies that were signed out, while this server runs


def same_secret(given: str, secret: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def cookie_name(port: int) -> str:
    """The cookie's name; it contains the port, which cookies themselves ignore."""
    return f"harmonium_{port}"


def new_session(token: str) -> str:
    """The cookie of a browser that has shown the token: its expiry time and a signature."""
    expires = str(int(time.time()) + SESSION_SECONDS)
    return f"{expires}.{_signature(expires, token)}"


def is_session(cookie: str, token: str) -> bool:
    """Whether a cookie is signed with the token and has not expired."""
    expires, _, signature = cookie.partition(".")
    if cookie in SIGNED_OUT or not same_secret(signature, _signature(expires, token)):
        return False
    return expires.isdecimal() and int(expires) > time.time()


def _signature(expires: str, token: str) -> str:
    message = f"harmonium session until {expires}".encode(errors="replace")
    return hmac.new(token.encode(), message, hashlib.sha256).hexdigest()
