"""Playlists on servers that speak Subsonic: Navidrome, gonic, Airsonic, Ampache, supysonic.

Requests are forms, so that no secret is part of an address, which servers and proxies log. The
password is sent as md5(password + salt), or plainly to servers that require it.
"""

import hashlib
import secrets
import ssl
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from harmonium.connect.answers import Answer, OddAnswer
from harmonium.connect.songs import Song, matched
from harmonium.errors import DataError, HarmoniumWarning, ServerError, readable
from harmonium.files import read_secret
from harmonium.library.library import Progress
from harmonium.library.store.tracks import Track

VERSION = "1.13.0"  # of the protocol: the first with tokens
SECONDS = 60  # time limit of a request
PAGE = 500  # songs that are listed at a time
MAX_PAGES = 2000  # of these
MAX_SONGS = PAGE * MAX_PAGES
MAX_BYTES = 1 << 26  # of an answer
MAX_SCAN_SECONDS = 12 * 3600.0
LOCAL = ("localhost", "127.0.0.1", "::1")
NO_TOKENS = (10, 41, 42)  # codes of servers that do not take tokens
WAYS_OUT = {
    40: "Check the name and the password.",
    50: "Ask for this permission on the server; only an administrator may start a scan.",
}


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """A playlist on the server."""

    name: str
    n_tracks: int
    is_new: bool
    missing: list[Track] = field(default_factory=list)  # tracks that the server does not have


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A form, with its secrets, goes only to the server that was named."""

    def http_error_302(self, *_: Any) -> None:
        """Leave the answer to the handler of all other errors."""

    http_error_301 = http_error_303 = http_error_302  # type: ignore[assignment]
    http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


class Server:
    """A server and one of its users, as https://USER@HOST; asks for the password when needed."""

    def __init__(self, address: str, password: Callable[["Server"], str]) -> None:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.username:
            shown = f"{parts.scheme}://{parts.hostname or ''}"
            raise DataError(f"A Subsonic server's address must be https://USER@HOST, got {shown}.")
        if parts.password is not None:
            raise DataError(
                "A Subsonic server's address must not have a password, which other users of this "
                "machine could see. Use --password-file, the keyring, or type it."
            )
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self.user = unquote(parts.username)
        self.base = base.removesuffix("/rest")  # its address, without the user
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._ask_password = password
        self._password = ""  # until it is needed
        self._takes_tokens = True
        self._is_open = parts.scheme == "http" and parts.hostname not in LOCAL

    def call(self, method: str, **values: Any) -> Answer:
        """The server's answer to a method; a ServerError if it fails."""
        if not self._password:
            self._password = self._ask_password(self)
            self._takes_tokens = self._answer("ping", {}).error_code not in NO_TOKENS
            if not self._takes_tokens and self._is_open:
                warning = f"{self.base} takes only plain passwords, over an unencrypted connection."
                warnings.warn(warning, HarmoniumWarning, stacklevel=2)
        answer = self._answer(method, values)
        if not answer.is_ok:
            way_out = WAYS_OUT.get(answer.error_code or 0, "")
            raise ServerError(f"{self.base} refused {method}: {answer.error_message} {way_out}")
        return answer

    def _answer(self, method: str, values: dict[str, Any]) -> Answer:
        if self._takes_tokens:
            salt = secrets.token_hex(8)
            token = hashlib.md5((self._password + salt).encode()).hexdigest()
            proof = {"t": token, "s": salt}
        else:
            proof = {"p": f"enc:{self._password.encode().hex()}"}
        form = {"u": self.user, **proof, "v": VERSION, "c": "harmonium", "f": "json", **values}
        data = urlencode(form, doseq=True, errors="replace").encode()
        try:
            with self._opener.open(f"{self.base}/rest/{method}.view", data, SECONDS) as response:
                content = _read(response)
            return Answer.from_json(content)
        except OddAnswer as error:
            raise ServerError(f"{self.base} answers {method} oddly: {error}.") from None
        except (OSError, HTTPException, ValueError) as error:
            raise ServerError(self._explained(error)) from None

    def _explained(self, error: Exception) -> str:
        """What went wrong, and a way out."""
        reason = getattr(error, "reason", error)
        if isinstance(error, urllib.error.HTTPError):
            error.close()
            location = error.headers.get("Location")
            if location:
                return f"{self.base} redirects to {_host(location)}. Name that address instead."
        if isinstance(error, urllib.error.HTTPError | ValueError):
            code = f"it answers {error.code}" if hasattr(error, "code") else "not its answer"
            return f"There is no Subsonic server at {self.base}: {code}. Check the address."
        if isinstance(reason, ssl.SSLCertVerificationError):
            way_out = "Use the host name it was issued for, or name your own in SSL_CERT_FILE."
            return f"The certificate of {self.base} is invalid: {reason.verify_message}. {way_out}"
        if isinstance(reason, TimeoutError):
            return f"{self.base} did not answer within {SECONDS} seconds. Try again later."
        why = getattr(reason, "strerror", None) or reason
        return f"{self.base} cannot be reached: {why}. Check the address and whether it is running."

    def songs(self, tracks: Iterable[Track] = (), progress: Progress | None = None) -> list[Song]:
        """All songs on the server; if it does not list all, those with the tracks' titles."""
        songs = self._all_songs(progress)
        if not songs:
            titles = [track.title for track in tracks if track.title]
            for n_done, title in enumerate(titles, start=1):
                songs |= self._search(title)
                if progress:
                    progress(n_done, len(titles))
        return [*songs.values()]

    def _all_songs(self, progress: Progress | None) -> dict[str, Song]:
        """The songs that the server lists, by their id; none if it needs words to search for."""
        songs = self._search("")
        for _ in range(MAX_PAGES):
            page = self._search("", offset=len(songs))
            if page.keys() <= songs.keys():
                return songs
            songs |= page
            if len(songs) > MAX_SONGS:
                break
            if progress:
                progress(len(songs), 0)
        raise ServerError(f"{self.base} lists more and more songs; we stopped at {len(songs):,}.")

    def _search(self, query: str, *, offset: int = 0) -> dict[str, Song]:
        """One page of the songs that are found, by their id."""
        answer = self.call(
            "search3",
            query=query,
            songCount=PAGE,
            songOffset=offset,
            artistCount=0,
            albumCount=0,
        )
        return {song.id: song for song in answer.songs}

    def push(self, name: str, tracks: Sequence[Track], songs: Iterable[Song]) -> Pushed:
        """Make a playlist of these tracks, or replace the user's playlist of this name."""
        matches = matched(tracks, songs)
        if not tracks:
            raise ServerError(f"The playlist {name!r} was not changed: it is empty.")
        if not matches:
            raise ServerError(
                f"The playlist {name!r} was not changed: {self.base} has none of its tracks; try "
                "--rescan."
            )
        ids = [matches[track.id].id for track in tracks if track.id in matches]
        playlist_id = self._own_playlist(name)
        if playlist_id is None:
            self.call("createPlaylist", name=name, songId=ids)
        else:
            self.call("createPlaylist", playlistId=playlist_id, songId=ids)
        return Pushed(
            name=name,
            n_tracks=len(ids),
            is_new=playlist_id is None,
            missing=[track for track in tracks if track.id not in matches],
        )

    def _own_playlist(self, name: str) -> str | None:
        """The id of the user's playlist with this name; None if there is none."""
        for playlist in self.call("getPlaylists").playlists:
            if playlist.name == name and playlist.owner in (self.user, None):
                if not playlist.id:
                    raise ServerError(f"{self.base} does not say the id of the playlist {name!r}.")
                return playlist.id
        return None

    def rescan(self, progress: Progress) -> None:
        """Let the server scan its folders, and wait until it is done."""
        answer = self.call("startScan")
        end = time.monotonic() + MAX_SCAN_SECONDS
        while answer.is_scanning:
            if time.monotonic() > end:
                raise ServerError(f"{self.base} has been scanning for hours. Try again later.")
            progress(answer.n_scanned, 0)
            time.sleep(1)
            answer = self.call("getScanStatus")


def _read(response: HTTPResponse) -> bytes:
    """The body of a response, with limits on its size and time."""
    end = time.monotonic() + SECONDS
    content = bytearray()
    while part := response.read1(1 << 16):
        content += part
        if len(content) > MAX_BYTES:
            raise OddAnswer(f"it is longer than {MAX_BYTES >> 20} MiB")
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(content)


def _host(address: str) -> str:
    """The host of an address that a server names."""
    try:
        return urlsplit(address).netloc[:200] or "another address"
    except ValueError:
        return "an invalid address"


def find_password(
    server: Server, file: Path | None, prompt: Callable[[str], str] | None = None
) -> str:
    """The user's password, from a file, the keyring (if the package is there) or a prompt."""
    if file is not None:
        password = read_secret(file, "password")
        if not password:
            raise DataError(f"The first line of '{readable(file)}' must be the password.")
        return password
    stored = _from_keyring(server)
    if stored:
        return stored
    if prompt is None:
        raise DataError(
            f"No password for {server.user} at {server.base}. Name a file that contains it "
            f"with --password-file, or store it: keyring set {server.base} {server.user}"
        )
    return prompt(f"Password of {server.user} at {server.base}: ")


def _from_keyring(server: Server) -> str | None:
    """The password that the package keyring has, if it is installed."""
    if find_spec("keyring") is None:
        return None
    keyring: Any = import_module("keyring")
    with suppress(keyring.errors.KeyringError):  # this machine has no keyring
        password = keyring.get_password(server.base, server.user)
        return str(password) if password else None
    return None
