"""Vorbis comments, which FLAC and the formats in Ogg share: a list of KEY=value.

They are kept as bytes, so that comments of others stay as they are, valid UTF-8 or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harmonium.library.filetags.formats.base import (
    COMMENT,
    FIELDS,
    SCORE_FIELDS,
    Id3Options,
    Values,
    decoded,
    with_new_items,
)
from harmonium.library.filetags.music_file import FileProblem

VERSION = "Vorbis comment"
_PLACES: dict[str, tuple[str, ...]] = {name: (name.upper(),) for name in (*FIELDS, *SCORE_FIELDS)}
_PLACES |= {name: (name.upper(),) for name in ("title", "artist", "album")}
_PLACES[COMMENT] = ("COMMENT", "DESCRIPTION")


@dataclass(frozen=True)
class Comments:
    """A comment block taken apart."""

    vendor: bytes = b"Harmonium"
    entries: tuple[bytes, ...] = ()
    rest: bytes = b""
    """What comes after the last comment."""

    def values(self) -> dict[str, Values]:
        """Key in capitals → values."""
        values: dict[str, Values] = {}
        for entry in self.entries:
            key, value = _key(entry), decoded(entry.partition(b"=")[2])
            if value.strip():
                values[key] = (*values.get(key, ()), value)
        return values

    def with_values(self, edits: Mapping[str, Values]) -> "Comments":
        """With new comments for these keys, where the first old one was or at the end."""
        new = {key: [f"{key}={v}".encode() for v in values] for key, values in edits.items()}
        return replace(self, entries=with_new_items(self.entries, _key, new))

    def render(self) -> bytes:
        """As bytes, without the rest."""
        entries = (_sized(entry) for entry in self.entries)
        return _sized(self.vendor) + _number(len(self.entries)) + b"".join(entries)


def take_apart(data: bytes) -> Comments:
    """The comments in a block, which begins with the name of the program that wrote it."""
    vendor, at = _part(data, 0)
    count = int.from_bytes(data[at : at + 4], "little")
    at += 4
    entries = []
    for _ in range(count):
        entry, at = _part(data, at)
        entries.append(entry)
    return Comments(vendor, tuple(entries), data[at:])


def places(version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
    """Field → keys."""
    return _PLACES


def _part(data: bytes, at: int) -> tuple[bytes, int]:
    """(a text with its size before it, the place after it)"""
    end = at + 4 + int.from_bytes(data[at : at + 4], "little")
    if at + 4 > len(data) or end > len(data):
        raise FileProblem("its Vorbis comments are damaged: they end too early")
    return data[at + 4 : end], end


def _key(entry: bytes) -> str:
    return entry.partition(b"=")[0].decode("latin-1").upper()


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


def _number(number: int) -> bytes:
    return number.to_bytes(4, "little")
