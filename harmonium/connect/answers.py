"""What a Subsonic server answers, checked once.

Servers differ: a list of one item may be the item itself, a title that is a number may be sent as
one, and what is empty may be missing or null. A text where a number belongs counts as unknown, and
a song without an id is left out. What has another shape is refused in one line.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Self

from harmonium.connect.songs import Song

MAX_MESSAGE = 200  # characters of a server's message that are shown


class OddAnswer(Exception):
    """An answer of another shape than Subsonic's."""


@dataclass(frozen=True, kw_only=True)
class Playlist:
    """A playlist on the server."""

    id: str  # empty if the server does not say
    name: str
    owner: str | None  # None if the server does not say


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to any method; what a method does not answer is empty."""

    is_ok: bool
    error_code: int | None = None
    error_message: str = ""
    songs: list[Song] = field(default_factory=list)
    playlists: list[Playlist] = field(default_factory=list)
    is_scanning: bool = False
    n_scanned: int = 0

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The answer in JSON.

        A ValueError says that it is not from a Subsonic server, or nested too deeply; an OddAnswer,
        that a part of it has another shape.
        """
        try:
            content = json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(content, dict) or not isinstance(content.get("subsonic-response"), dict):
            raise ValueError("not a Subsonic answer")
        answer = content["subsonic-response"]
        error = _record(answer, "error")
        scan = _record(answer, "scanStatus")
        return cls(
            is_ok=answer.get("status") == "ok",
            error_code=_whole_number(error.get("code")),
            error_message=_text(error.get("message"))[:MAX_MESSAGE],
            songs=[song for song in map(_song, _items(answer, "searchResult3", "song")) if song.id],
            playlists=[_playlist(entry) for entry in _items(answer, "playlists", "playlist")],
            is_scanning=scan.get("scanning") is True,
            n_scanned=_whole_number(scan.get("count")) or 0,
        )


def _song(entry: dict[str, Any]) -> Song:
    duration = _number(entry.get("duration"))
    return Song(
        id=_text(entry.get("id")),
        path=_text(entry.get("path")),
        title=_text(entry.get("title")),
        artist=_text(entry.get("artist")),
        album=_text(entry.get("album")),
        artistId=_text(entry.get("artistId")),
        duration=duration or None,
    )


def _playlist(entry: dict[str, Any]) -> Playlist:
    return Playlist(
        id=_text(entry.get("id")),
        name=_text(entry.get("name")),
        owner=_text(entry["owner"]) if "owner" in entry else None,
    )


def _items(answer: dict[str, Any], name: str, item: str) -> list[dict[str, Any]]:
    """The items of a list that is part of a record; a single item may stand for a list."""
    items = _record(answer, name).get(item)
    if items is None:
        return []
    if isinstance(items, dict):
        return [items]
    if not isinstance(items, list):
        raise _odd(item, "a list", items)
    for entry in items:
        if not isinstance(entry, dict):
            raise _odd(item, "a list of objects", entry)
    return items


def _record(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of an answer; empty if it is missing or null."""
    record = answer.get(name)
    if record is None:
        return {}
    if not isinstance(record, dict):
        raise _odd(name, "an object", record)
    return record


def _odd(name: str, expected: str, value: object) -> OddAnswer:
    shown = json.dumps(value)[:40]
    return OddAnswer(f"its '{name}' must be {expected}, got {shown}")


def _text(value: object) -> str:
    """A text or a number as text, without halves of surrogate pairs; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).encode(errors="replace").decode()


def _number(value: object) -> float | None:
    """A finite number, also from a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole_number(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)
