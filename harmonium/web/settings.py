"""How the server is set up."""

import ipaddress
import socket
from dataclasses import dataclass, field

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServerSettings:
    """What `harmonium serve` was told."""

    place: str | None = None
    """The library, as `Library.open` takes it."""
    host: str = "127.0.0.1"
    port: int = 8040
    person: str = "me"
    """Whose tags those are that the page keeps."""
    token: str | None = field(default=None, repr=False)
    """What whoever calls must know; None: everybody on this machine may."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which a browser may call the server."""
    log: bool = False
    """Whether to print a line for each request."""

    def allows_host(self, name: str) -> bool:
        """Whether the server may be called by this name; else a page elsewhere leads here."""
        name = name.lower().rstrip(".").strip("[]")
        if name in LOCAL_NAMES or name in (self.host.lower(), *map(str.lower, self.allowed_hosts)):
            return True
        if is_loopback(self.host):
            return False
        here = socket.gethostname().lower()
        return _is_address(name) or name in (here, f"{here}.local")


def is_loopback(host: str) -> bool:
    """Whether only this machine can call an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    """A number cannot be led elsewhere, as a name can."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
