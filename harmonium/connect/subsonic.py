"""Playlists on servers that speak Subsonic: Navidrome, gonic, Airsonic, Ampache, supysonic.

Requests are forms, so that no secret is part of an address, which servers and proxies log. The
password is sent as md5(password + salt), or as it is to servers that take it only so.
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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from harmonium.errors import DataError, HarmoniumWarning, ServerError, readable
from harmonium.library.store.tracks import Track

VERSION = "1.13.0"  # of the protocol; the first with tokens
SECONDS = 60  # time limit of a request
PAGE = 500  # songs that are listed at a time
MAX_APART = 5.0  # seconds by which the durations of one recording may differ
LOCAL = ("localhost", "127.0.0.1", "::1")
NO_TOKENS = (10, 41, 42)  # codes of servers that do not take tokens
WAYS_OUT = {
    40: "Check the name and the password.",
    50: "Ask for the right on the server; only an administrator may start a scan.",
}


class Song(NamedTuple):
    """A track as the server knows it."""

    id: str
    path: str = ""  # relative to a folder of the server, or made up from tags
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
    """A server and a user of it, as https://USER@HOST; the password is asked for when needed."""

    def __init__(self, address: str, password: Callable[["Server"], str]) -> None:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.username:
            raise DataError(
                "The address of a Subsonic server must be https://USER@HOST, got "
                f"{parts.scheme}://{parts.hostname or ''}."
            )
        if parts.password is not None:
            raise DataError(
                "The address of a Subsonic server must not have a password, which other users of "
                "this machine could see. Use --password-file, the keyring, or type it."
            )
        self.user = unquote(parts.username)
        self.host = parts.hostname
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self.base = base.removesuffix("/rest")  # its address, without the user
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._password: str | None = None
        self._ask, self._plain = password, False

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """What the server answers to a method; a ServerError if it fails."""
        if self._password is None:
            self._password = self._ask(self)
            code = self._answer("ping", {}).get("error", {}).get("code")
            self._plain = code in NO_TOKENS
            if self._plain and self.base.startswith("http:") and self.host not in LOCAL:
                warnings.warn(
                    f"{self.base} takes passwords only as they are, over a connection that is not "
                    "encrypted. Use https if the network is not yours.",
                    HarmoniumWarning,
                    stacklevel=2,
                )
        answer = self._answer(method, values)
        if answer.get("status") != "ok":
            error = answer.get("error", {})
            way_out = WAYS_OUT.get(error.get("code"), "")
            message = str(error.get("message", "no reason given")).rstrip(".")
            raise ServerError(f"{self.base} refused {method}: {message}. {way_out}".strip())
        return answer

    def _answer(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        password, salt = self._password or "", secrets.token_hex(8)
        if self._plain:
            proof = {"p": f"enc:{password.encode().hex()}"}
        else:
            digest = hashlib.md5((password + salt).encode(), usedforsecurity=False)
            proof = {"t": digest.hexdigest(), "s": salt}
        form = {"u": self.user, **proof, "v": VERSION, "c": "harmonium", "f": "json", **values}
        data = urlencode(form, doseq=True).encode()
        try:
            with self._opener.open(f"{self.base}/rest/{method}.view", data, SECONDS) as response:
                body = response.read()
        except (OSError, HTTPException) as error:
            raise ServerError(self._explained(error)) from None
        try:
            answer = json.loads(body)["subsonic-response"]
        except (ValueError, KeyError, TypeError):
            raise ServerError(self._no_subsonic("its answer is something else")) from None
        return dict(answer)

    def _explained(self, error: Exception) -> str:
        reason = getattr(error, "reason", error)
        if isinstance(error, urllib.error.HTTPError):
            if to := error.headers.get("Location"):
                return f"{self.base} redirects to {urlsplit(to).netloc}. Name that address instead."
            return self._no_subsonic(f"it answers {error.code}")
        if isinstance(reason, ssl.SSLCertVerificationError):
            return (
                f"The certificate of {self.base} is not valid: {reason.verify_message}. Use the "
                "name that it was made for, or name your own certificate with SSL_CERT_FILE."
            )
        if isinstance(reason, TimeoutError):
            return f"{self.base} did not answer within {SECONDS} seconds. Try again later."
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return f"{self.base} cannot be reached: {why}. Check the address and whether it is running."

    def _no_subsonic(self, why: str) -> str:
        return (
            f"There is no Subsonic server at {self.base}: {why}. Give the address of its page, "
            "such as https://USER@HOST/music."
        )

    def songs(
        self, tracks: Iterable[Track] = (), progress: Callable[[int, int], None] | None = None
    ) -> list[Song]:
        """All songs of the server; if it does not list all, those with the titles of tracks."""
        found: dict[str, Song] = {}
        while new := self._search("", len(found)).items() - found.items():
            found |= dict(new)
            if progress:
                progress(len(found), 0)
        titles = () if found else [track.title for track in tracks if track.title]
        for done, title in enumerate(titles):
            found |= self._search(title, 0)
            if progress:
                progress(done + 1, len(titles))
        return [*found.values()]

    def _search(self, query: str, offset: int) -> dict[str, Song]:
        asked = {"query": query, "songCount": PAGE, "songOffset": offset}
        answer = self.call("search3", **asked, artistCount=0, albumCount=0)
        page = map(_song, answer.get("searchResult3", {}).get("song", []))
        return {song.id: song for song in page}

    def push(self, name: str, tracks: Sequence[Track], songs: Iterable[Song]) -> Pushed:
        """Make a playlist, or give the user's playlist of this name these tracks."""
        found = matched(tracks, songs)
        missing = [track for track in tracks if track.id not in found]
        if not found:
            why = (
                f"{self.base} has none of its tracks (--rescan lets it look)" if tracks else "empty"
            )
            raise ServerError(f"The playlist {name!r} stays as it is: {why}.")
        lists = self.call("getPlaylists").get("playlists", {}).get("playlist", [])
        own = [x for x in lists if x.get("name") == name and x.get("owner", self.user) == self.user]
        which = {"playlistId": own[0]["id"]} if own else {"name": name}
        ids = [found[track.id].id for track in tracks if track.id in found]
        self.call("createPlaylist", **which, songId=ids)
        return Pushed(name, len(ids), not own, missing)

    def rescan(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Let the server scan its folders, and wait until it is done."""
        status = self.call("startScan").get("scanStatus", {})
        while status.get("scanning"):
            if progress:
                progress(int(status.get("count", 0)), 0)
            time.sleep(1)
            status = self.call("getScanStatus").get("scanStatus", {})


def _song(record: dict[str, Any]) -> Song:
    names = ("id", "path", "title", "artist", "album", "artistId")
    words = {key: str(record.get(key) or "") for key in names}
    return Song(**words, duration=record.get("duration"))


def matched(tracks: Iterable[Track], songs: Iterable[Song]) -> dict[int, Song]:
    """Number of a track → its song: by the end of the path, else by artist, title and album.

    The durations must agree. A folder and a file's name must be the same, or all of the path that
    the server shows.
    """
    by_file: dict[str, list[Song]] = {}
    by_name: dict[tuple[str, str], list[Song]] = {}
    for song in songs:
        by_file.setdefault(_parts(song.path)[-1], []).append(song)
        by_name.setdefault((_folded(song.artist), _folded(song.title)), []).append(song)
    found = {}
    for track in tracks:
        parts, name = _parts(track.path), (_folded(track.artist or ""), _folded(track.title or ""))
        ends = ((_same_end(parts, _parts(song.path)), song) for song in by_file.get(parts[-1], ()))
        ranked = [(n, song) for n, song in ends if n >= 2 or n == len(_parts(song.path))]
        if name[1] and not any(_gap(track, song) <= MAX_APART for _, song in ranked):
            ranked = [(0, song) for song in by_name.get(name, ())]
        ranked = [(n, song) for n, song in ranked if _gap(track, song) <= MAX_APART]
        if ranked:
            album = _folded(track.album or "")
            found[track.id] = min(
                ranked,
                key=lambda pair: (-pair[0], _folded(pair[1].album) != album, _gap(track, pair[1])),
            )[1]
    return found


def _gap(track: Track, song: Song) -> float:
    if track.duration is None or not song.duration:
        return 0.0
    return max(abs(track.duration - song.duration) - 1, 0.0)  # servers round


def _same_end(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts two paths have in common at their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _parts(path: str) -> list[str]:
    return _folded(path.replace("\\", "/")).strip("/").split("/")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().strip()


def find_password(
    server: Server, file: Path | None, prompt: Callable[[str], str] | None = None
) -> str:
    """The user's password, from a file, the keyring (if the package is there) or a prompt."""
    if file is not None:
        try:
            lines = file.expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise DataError(
                f"The password file '{readable(file)}' cannot be read: {why}."
            ) from None
        if not lines or not lines[0]:
            raise DataError(f"The first line of '{readable(file)}' must be the password.")
        return lines[0]
    if find_spec("keyring") is not None:
        keyring: Any = import_module("keyring")
        with suppress(keyring.errors.KeyringError):  # there is none on this machine
            if (kept := keyring.get_password(server.base, server.user)) is not None:
                return str(kept)
    if prompt is None:
        raise DataError(
            f"The password of {server.user} at {server.base} is not known. Name a file that has it "
            f"with --password-file, or store it: keyring set {server.base} {server.user}"
        )
    return prompt(f"Password of {server.user} at {server.base}: ")
