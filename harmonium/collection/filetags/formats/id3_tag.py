"""An ID3v2 tag as a row of frames, of which some are replaced and all others stay to the byte.

Mutagen reads every frame and writes it anew, which drops the frames that it cannot read and turns
others into their successors. So the frames are cut apart here, and only those of ours are written.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from mutagen import MutagenError
from mutagen.id3 import ID3

from harmonium.collection.filetags.formats.base import Damaged, Values

HEADER = 10
PADDING = 1024
"""Bytes left free in a tag that had to grow."""
_LARGEST = 1 << 28

_UNSYNCHRONISED, _EXTENDED, _EXPERIMENTAL, _FOOTER = 0x80, 0x40, 0x20, 0x10
_IDENTITY = {
    2: re.compile(rb"[A-Z][A-Z0-9]{2}"),
    3: re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]"),
    4: re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]"),
}
_NAMES_OF_2_2 = {"TCO": "TCON", "TT1": "TIT1", "GP1": "GRP1", "TXX": "TXXX"}
_NAMES_IN_2_2 = {new: old for old, new in _NAMES_OF_2_2.items()}


@dataclass(frozen=True)
class RawTag:
    """A tag taken apart."""

    version: int
    """2, 3 or 4."""
    revision: int = 0
    flags: int = 0
    frames: tuple[bytes, ...] = ()
    """Each with its header."""
    rest: bytes = b""
    """What comes after the last frame: padding, or what is no frame."""
    plain_sizes: bool = False
    """Frames of version 4 with sizes of 8 bits a byte, as iTunes used to write them."""

    def with_values(self, edits: Mapping[str, Values], separator: str) -> "RawTag":
        """The tag with new frames for these places, each where the old one was or at the end."""
        pending = {_key(place): (place, values) for place, values in edits.items()}
        ours = set(pending)
        frames: list[bytes] = []
        for frame in self.frames:
            key = self._key_of(frame)
            if key not in ours:
                frames.append(frame)
            elif key in pending:
                frames.extend(self._frames_for(*pending.pop(key), separator))
        for place, values in pending.values():
            frames.extend(self._frames_for(place, values, separator))
        return replace(self, frames=tuple(frames))

    def render(self, room: int) -> bytes:
        """The tag as bytes, as long as ``room`` if it fits."""
        body = b"".join(self.frames)
        if self.rest.strip(b"\0"):
            body += self.rest
        elif HEADER + len(body) <= room:
            body = body.ljust(room - HEADER, b"\0")
        else:
            body += bytes(PADDING)
        if len(body) >= _LARGEST:
            raise Damaged(f"its ID3 tag would have {len(body)} bytes, more than 256 MiB")
        return b"ID3" + bytes((self.version, self.revision, self.flags)) + _safe(len(body)) + body

    def _key_of(self, frame: bytes) -> str:
        name = frame[: 3 if self.version == 2 else 4].decode("latin-1").rstrip("\0 ")
        name = _NAMES_OF_2_2.get(name, name)
        return _key(f"TXXX:{self._description(frame)}") if name == "TXXX" else name

    def _description(self, frame: bytes) -> str:
        """What a frame of one's own naming is called, as Mutagen reads it."""
        alone = replace(self, frames=(frame,), rest=b"").render(HEADER + len(frame))
        try:
            read: Any = ID3(BytesIO(alone), translate=False, load_v1=False)
        except MutagenError:
            return ""
        return next((one.desc for one in read.getall("TXXX")), "")

    def _frames_for(self, place: str, values: Values, separator: str) -> list[bytes]:
        if not values:
            return []
        name, _, description = place.partition(":")
        joined = ("\0" if self.version == 4 else separator).join(values)
        parts = [description, joined] if name == "TXXX" else [joined]
        data = _text(parts, self.version)
        if self.version == 2:
            return [_NAMES_IN_2_2[name].encode() + len(data).to_bytes(3) + data]
        safe = self.version == 4 and not self.plain_sizes
        size = _safe(len(data)) if safe else len(data).to_bytes(4)
        return [name.encode() + size + b"\0\0" + data]


def tag_length(head: bytes) -> int:
    """Bytes of the tag that begins like this, 0 where none does; 10 bytes are enough to tell."""
    if len(head) < HEADER or not head.startswith(b"ID3"):
        return 0
    if max(head[6:10]) > 0x7F or max(head[3:5]) == 0xFF:
        return 0
    footer = HEADER if head[3] == 4 and head[5] & _FOOTER else 0
    return HEADER + _unsafe(head[6:10]) + footer


def take_apart(data: bytes) -> RawTag:
    """The frames of a whole tag."""
    version, revision, flags = data[3], data[4], data[5]
    if version not in _IDENTITY:
        raise Damaged(f"its tag is of version ID3v2.{version}, which is not known")
    if version == 2 and flags & _EXTENDED:
        raise Damaged("its ID3v2.2 tag is compressed, in a way that was never defined")
    body = data[HEADER : HEADER + _unsafe(data[6:10])]
    if version > 2 and flags & _EXTENDED:
        body = body[_extension(body, version) :]
    if version < 4 and flags & _UNSYNCHRONISED:
        body = _resynchronised(body)
    kept = flags & (_EXPERIMENTAL | (_UNSYNCHRONISED if version == 4 else 0))
    frames, rest = _walk(body, version, _unsafe if version == 4 else _plain)
    plain_sizes = False
    if version == 4 and rest.strip(b"\0"):
        others, other_rest = _walk(body, version, _plain)
        if len(others) > len(frames):
            frames, rest, plain_sizes = others, other_rest, True
    return RawTag(version, revision, kept, tuple(frames), rest, plain_sizes)


def _walk(body: bytes, version: int, number: Callable[[bytes], int]) -> tuple[list[bytes], bytes]:
    """(frames, what is left after them)"""
    head, width = (6, 3) if version == 2 else (10, 4)
    frames: list[bytes] = []
    start = 0
    while _IDENTITY[version].match(body, start) and start + head <= len(body):
        size = body[start + width : start + 2 * width]
        end = start + head + number(size)
        if end > len(body):
            break
        frames.append(body[start:end])
        start = end
    return frames, body[start:]


def _extension(body: bytes, version: int) -> int:
    """Bytes of the extended header; some programs announce one and write none."""
    if _IDENTITY[version].match(body):
        return 0
    return _unsafe(body[:4]) if version == 4 else 4 + _plain(body[:4])


def _resynchronised(body: bytes) -> bytes:
    """The bytes without the zeros that keep decoders from taking them for sound."""
    if re.search(rb"\xff[\xe0-\xff]", body):
        return body  # the flag is wrong: such bytes would have been parted
    return body.replace(b"\xff\0", b"\xff")


def _text(parts: list[str], version: int) -> bytes:
    """The encoding's number, and the parts with the encoding's zero between them."""
    if version == 4:
        return b"\3" + b"\0".join(part.encode() for part in parts)
    try:
        return b"\0" + b"\0".join(part.encode("latin-1") for part in parts)
    except UnicodeEncodeError:
        marked = (b"\xff\xfe" + part.encode("utf-16-le") for part in parts)
        return b"\1" + b"\0\0".join(marked)


def _key(place: str) -> str:
    """A place without what readers do not tell apart."""
    return place.casefold() if place.startswith("TXXX:") else place


def _plain(size: bytes) -> int:
    return int.from_bytes(size)


def _unsafe(size: bytes) -> int:
    """A number of 7 bits a byte."""
    number = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
    return number


def _safe(number: int) -> bytes:
    return bytes(number >> shift & 0x7F for shift in (21, 14, 7, 0))
