"""Vorbis comments, which FLAC and Ogg files have: KEY=value.

They are kept as bytes, so that other programs' comments do not change, valid UTF-8 or not; Mutagen
would change what it cannot decode.
"""

from collections.abc import Mapping
from typing import NamedTuple

from harmonium.library.filetags.binary import FileProblem, decoded
from harmonium.library.filetags.contents import (
    ALL_FIELDS,
    COMMENT,
    Edits,
    FileTags,
    Id3Options,
    Values,
)
from harmonium.library.filetags.format import Format, with_new_items

MAX_COMMENTS = 100_000
_PLACES: dict[str, Values] = {name: (name.upper(),) for name in ALL_FIELDS}
_PLACES |= {COMMENT: ("COMMENT", "DESCRIPTION")}
_KNOWN_KEYS = {place for places in _PLACES.values() for place in places}


class VorbisFormat(Format):
    """A format with Vorbis comments."""

    def places(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → the keys of its comments."""
        return _PLACES

    def tags_of(
        self, data: bytes | None, *, duration: float | None = None, notes: tuple[str, ...] = ()
    ) -> FileTags:
        """What a block of comments says; None if there is none."""
        if data is None:
            return FileTags.of(self, None, {}, duration=duration, notes=notes)
        texts: dict[str, list[str]] = {}
        try:
            for entry in parse_comments(data).entries:
                key = _key(entry)
                if key in _KNOWN_KEYS:  # pictures, for one, may be large
                    text = decoded(entry.partition(b"=")[2])
                    if text.strip():
                        texts.setdefault(key, []).append(text)
        except FileProblem as error:
            return FileTags.of(self, None, {}, duration=duration, notes=notes, damage=str(error))
        values = {key: tuple(of_key) for key, of_key in texts.items()}
        return FileTags.of(self, "Vorbis comment", values, duration=duration, notes=notes)


class Comments(NamedTuple):
    """A block of comments as its parts."""

    vendor: bytes  # the name of the program that wrote it
    entries: list[bytes]  # each KEY=value
    rest: bytes  # what follows them

    def with_values(self, edits: Edits) -> "Comments":
        """The block with new comments for some keys, each where the first old one was or last."""
        new = {}
        for key, values in edits.items():
            new[key] = [f"{key}={value}".encode() for value in values]
        return self._replace(entries=with_new_items(self.entries, _key, new))

    def render(self) -> bytes:
        """The block as bytes, without what follows it."""
        count = len(self.entries).to_bytes(4, "little")
        return b"".join([_sized(self.vendor), count, *map(_sized, self.entries)])


NO_COMMENTS = Comments(vendor=b"Harmonium", entries=[], rest=b"")


def parse_comments(data: bytes) -> Comments:
    """The parts of a block of comments."""

    def text_at(start: int) -> tuple[bytes, int]:
        """(a text with its size before it, the place after it)"""
        end = start + 4 + int.from_bytes(data[start : start + 4], "little")
        if start + 4 > len(data) or end > len(data):
            raise FileProblem("its Vorbis comments are damaged: they end too early")
        return data[start + 4 : end], end

    vendor, start = text_at(0)
    count = int.from_bytes(data[start : start + 4], "little")
    if count > MAX_COMMENTS:
        raise FileProblem(f"it has more than {MAX_COMMENTS:,} Vorbis comments")
    entries = []
    start += 4
    for _ in range(count):
        entry, start = text_at(start)
        entries.append(entry)
    return Comments(vendor=vendor, entries=entries, rest=data[start:])


def _key(entry: bytes) -> str:
    return entry.partition(b"=")[0].decode("latin-1").upper()


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data
