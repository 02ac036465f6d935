"""Playlists on servers that speak Subsonic: Navidrome, gonic, Airsonic, Ampache, supysonic.

Requests are forms, so that no secret is part of an address, which servers and proxies log. The
password is sent as md5(password + salt), or plainly to servers that require it.
"""

import hashlib
import json
import secrets
import ssl
import time
import unicodedata
import urllib.error
import urllib.request
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from harmonium.errors import DataError, HarmoniumWarning, ServerError, readable
from harmonium.files import read_secret
from harmonium.library.library import Progress
from harmonium.library.store.tracks import Track

VERSION = "1.13.0"  # of the protocol: the first with tokens
SECONDS = 60  # time limit of a request
PAGE = 500  # songs that are listed at a time
MAX_APART = 5.0  # seconds by which two durations of one recording may differ
LOCAL = ("localhost", "127.0.0.1", "::1")
NO_TOKENS = (10, 41, 42)  # codes of servers that do not take tokens
WAYS_OUT = {
    40: "Check the name and the password.",
    50: "Ask for this permission on the server; only an administrator may start a scan.",
}


class Song(NamedTuple):
    """A track as the server knows it."""

    id: str
    path: str = ""  # relative to a folder on the server, or made up from tags
    title: str = ""
    artist: str = ""
    album: str = ""
    artistId: str = ""
    duration: float | None = None


@dataclass(frozen=True)
class Pushed:
    """A playlist on the server."""

    name: str
    n_tracks: int
    is_new: bool
    missing: list[Track] = field(default_factory=list)  # tracks that the server does not have


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # a form, with its secrets, goes to the server that was named


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
        self._ask, self._password, self._plain = password, "", False
        self._is_open = parts.scheme == "http" and parts.hostname not in LOCAL

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """The server's answer to a method; a ServerError if it fails."""
        if not self._password:
            self._password = self._ask(self)
            self._plain = self._answer("ping", {}).get("error", {}).get("code") in NO_TOKENS
            if self._plain and self._is_open:
                warning = f"{self.base} takes only plain passwords, over an unencrypted connection."
                warnings.warn(warning, HarmoniumWarning, stacklevel=2)
        answer = self._answer(method, values)
        if answer.get("status") != "ok":
            error = answer.get("error", {})
            way_out = WAYS_OUT.get(error.get("code"), "")
            raise ServerError(f"{self.base} refused {method}: {error.get('message')} {way_out}")
        return answer

    def _answer(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        proof = {"p": f"enc:{self._password.encode().hex()}"}
        if not self._plain:
            salt = secrets.token_hex(8)
            proof = {"t": hashlib.md5((self._password + salt).encode()).hexdigest(), "s": salt}
        form = {"u": self.user, **proof, "v": VERSION, "c": "harmonium", "f": "json", **values}
        data = urlencode(form, doseq=True).encode()
        try:
            with self._opener.open(f"{self.base}/rest/{method}.view", data, SECONDS) as response:
                return dict(json.load(response)["subsonic-response"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise ServerError(self._explained(error)) from None

    def _explained(self, error: Exception) -> str:
        """What went wrong, and a way out."""
        reason = getattr(error, "reason", error)
        if isinstance(error, urllib.error.HTTPError):
            error.close()
            if to := error.headers.get("Location"):
                return f"{self.base} redirects to {urlsplit(to).netloc}. Name that address instead."
        if isinstance(error, urllib.error.HTTPError | ValueError | KeyError | TypeError):
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
        tell, found = progress or (lambda *_: None), self._search("")
        while (new := self._search("", len(found))).keys() - found.keys():
            found |= new
            tell(len(found), 0)
        titles = () if found else [track.title for track in tracks if track.title]
        for done, title in enumerate(titles):
            found |= self._search(title)
            tell(done + 1, len(titles))
        return [*found.values()]

    def _search(self, query: str, offset: int = 0) -> dict[str, Song]:
        asked = {"query": query, "songCount": PAGE, "songOffset": offset}
        answer = self.call("search3", **asked, artistCount=0, albumCount=0)
        page = answer.get("searchResult3", {}).get("song", [])
        known = ({key: one[key] for key in Song._fields if one.get(key)} for one in page)
        return {str(one["id"]): Song(**one) for one in known}

    def push(self, name: str, tracks: Sequence[Track], songs: Iterable[Song]) -> Pushed:
        """Make a playlist of these tracks, or replace the user's playlist of this name."""
        found = matched(tracks, songs)
        if not found:
            why = f"{self.base} has none of its tracks; try --rescan" if tracks else "it is empty"
            raise ServerError(f"The playlist {name!r} was not changed: {why}.")
        lists = self.call("getPlaylists").get("playlists", {}).get("playlist", [])
        own = [x for x in lists if x.get("name") == name and x.get("owner", self.user) == self.user]
        which = {"playlistId": own[0]["id"]} if own else {"name": name}
        ids = [found[track.id].id for track in tracks if track.id in found]
        self.call("createPlaylist", **which, songId=ids)
        return Pushed(name, len(ids), not own, [one for one in tracks if one.id not in found])

    def rescan(self, progress: Progress) -> None:
        """Let the server scan its folders, and wait until it is done."""
        status = self.call("startScan").get("scanStatus", {})
        while status.get("scanning"):
            progress(int(status.get("count", 0)), 0)
            time.sleep(1)
            status = self.call("getScanStatus").get("scanStatus", {})


def matched(tracks: Iterable[Track], songs: Iterable[Song]) -> dict[int, Song]:
    """Number of a track → its song: by the end of the path, else by artist, title and album.

    The durations must agree. A folder and a file's name must be the same, or all of the path that
    the server shows.
    """
    by_file: dict[str, list[Song]] = defaultdict(list)
    by_name: dict[str, list[Song]] = defaultdict(list)
    for song in songs:
        by_file[_folded(song.path)[-1]].append(song)
        by_name[_named(song)].append(song)
    found: dict[int, tuple[tuple[int, bool, float], Song]] = {}
    for track in tracks:
        parts = _folded(track.path)
        ranked = [(_same_end(parts, _folded(song.path)), song) for song in by_file[parts[-1]]]
        ranked = [(n, song) for n, song in ranked if n >= 2 or n == len(_folded(song.path))]
        ranked += [(0, song) for song in by_name[_named(track)] if track.title]
        for n, song in ranked:
            gap = abs(track.duration - song.duration) if track.duration and song.duration else 0.0
            if gap <= MAX_APART:
                rank = (-n, _folded(song.album) != _folded(track.album), gap)
                found[track.id] = min(found.get(track.id, (rank, song)), (rank, song))
    return {number: song for number, (_, song) in found.items()}


def _same_end(one: list[str], other: list[str]) -> int:
    """How many parts two paths have in common at their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _named(one: Track | Song) -> str:
    return "\n".join([*_folded(one.artist), *_folded(one.title)])


def _folded(path: str | None) -> list[str]:
    """The parts of a path, or a name as one part, regardless of spelling."""
    text = unicodedata.normalize("NFC", path or "").casefold()
    return text.replace("\\", "/").strip("/ ").split("/")


def find_password(
    server: Server, file: Path | None, prompt: Callable[[str], str] | None = None
) -> str:
    """The user's password, from a file, the keyring (if the package is there) or a prompt."""
    if file is not None:
        if not (found := read_secret(file, "password")):
            raise DataError(f"The first line of '{readable(file)}' must be the password.")
        return found
    if find_spec("keyring") is not None:
        keyring: Any = import_module("keyring")
        with suppress(keyring.errors.KeyringError):  # this machine has no keyring
            if kept := keyring.get_password(server.base, server.user):
                return str(kept)
    if prompt is None:
        raise DataError(
            f"No password for {server.user} at {server.base}. Name a file that contains it "
            f"with --password-file, or store it: keyring set {server.base} {server.user}"
        )
    return prompt(f"Password of {server.user} at {server.base}: ")
