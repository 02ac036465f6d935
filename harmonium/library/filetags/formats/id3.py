"""ID3 tags, which MP3, WAV and AIFF share: what their frames mean, and new values for some of them.

Mutagen reads the values. It would write every frame anew, which drops the frames that it cannot
read and turns others into their successors. So the frames are cut apart here, only those of ours
are replaced, and all others stay to the byte.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.id3 import ID3, TCON, ID3NoHeaderError

from harmonium.library.filetags.formats.base import (
    COMMENT,
    LIST_FIELDS,
    SCORE_FIELDS,
    Id3Options,
    TagContents,
    Values,
    with_new_items,
)
from harmonium.library.filetags.music_file import FileProblem, read_at, size_of

HEADER = 10
PADDING = 1024
"""Bytes left free in a tag that had to grow."""
_LARGEST = 1 << 28
_ID3V1 = 128

_UNSYNCHRONISED, _EXTENDED, _EXPERIMENTAL, _FOOTER = 0x80, 0x40, 0x20, 0x10
_IDENTITY = {
    2: re.compile(rb"[A-Z][A-Z0-9]{2}"),
    3: re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]"),
    4: re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]"),
}
_NAMES_OF_2_2 = {"TCO": "TCON", "TT1": "TIT1", "GP1": "GRP1", "TXX": "TXXX", "COM": "COMM"}
_NAMES_IN_2_2 = {new: old for old, new in _NAMES_OF_2_2.items()}

MOOD = "TXXX:Mood"
"""Where mood is before version 2.4, which has a frame for it."""
OTHER_COMMENTS = "COMM:other"
"""Where comments with one of these descriptions are; the comment itself has none."""
_COMMENTS = {"comment", "description", "id3v1 comment"}
"""Descriptions of comments that people write; others, such as iTunNORM, are programs' notes."""
_OWN = {place.casefold(): place for place in (MOOD, *(f"TXXX:{f.upper()}" for f in SCORE_FIELDS))}
_NUMBERED = re.compile(r"\((\d+|RX|CR)\)")
_LISTS = ("TMOO", "TIT1", "GRP1")
_TEXTS = ("TIT2", "TPE1", "TALB")


def read_tag(file: BinaryIO, options: Id3Options, *, required: bool = False) -> TagContents:
    """What the tag of a file says, without duration.

    Where an ID3v2 tag is not ``required``, there may be an ID3v1 tag instead, or none.
    """
    file.seek(0)
    try:
        tag = ID3(file, translate=False, load_v1=not required)
    except MutagenError as error:
        if isinstance(error, ID3NoHeaderError) and not required:
            return TagContents(version=None)
        return TagContents.damaged(f"its ID3 tag is damaged ({str(error) or 'it ends too early'})")
    version = "ID3v1" if tag.version[0] == 1 else f"ID3v2.{tag.version[1]}"
    return TagContents(version=version, values=_values(tag, options))


def edited_tag(
    data: bytes, edits: Mapping[str, Values], options: Id3Options, *, room: int
) -> bytes:
    """A tag with new values in some places, as long as ``room`` if it fits.

    ``data`` is the old tag; if it is empty, there was none.
    """
    tag = take_apart(data) if data else Id3Tag(options.version)
    return tag.with_values(edits, options.separator).render(room)


def places(version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
    """Field → frames; mood moves to the frame that the version has for it."""
    own = {name: (f"TXXX:{name.upper()}",) for name in SCORE_FIELDS}
    moods = ("TMOO", MOOD) if _version_number(version, options) == 4 else (MOOD, "TMOO")
    lists = dict(zip(LIST_FIELDS, (("TCON",), moods, (options.grouping,)), strict=True))
    texts = {"title": ("TIT2",), "artist": ("TPE1",), "album": ("TALB",)}
    return {**lists, **own, **texts, COMMENT: ("COMM", OTHER_COMMENTS)}


def refusal(place: str, value: str, version: str | None, options: Id3Options) -> str:
    """Why a value cannot be kept in a frame, or ""."""
    separator = options.separator.strip() or options.separator
    if _version_number(version, options) < 4 and separator in value:
        return f"{separator!r} separates values in an ID3 tag before version 2.4"
    if place == "TCON" and TCON(encoding=3, text=[value]).genres != [value]:
        return "an ID3 tag would take it for the number of a genre"
    return ""


def leading_tags(file: BinaryIO) -> int:
    """Bytes of the ID3v2 tags at the beginning; some files have several."""
    start = 0
    while length := tag_length(read_at(file, start, HEADER)):
        start += length
    return start


def end_before_id3v1(file: BinaryIO, start: int = 0) -> int:
    """Where an ID3v1 tag begins after ``start``; where there is none, the end of the file."""
    end = size_of(file)
    has = end - _ID3V1 >= start and read_at(file, end - _ID3V1, 3) == b"TAG"
    return end - _ID3V1 if has else end


def tag_length(head: bytes) -> int:
    """Bytes of the tag that begins like this, 0 where none does; 10 bytes are enough to tell."""
    if len(head) < HEADER or not head.startswith(b"ID3"):
        return 0
    if max(head[6:10]) > 0x7F or max(head[3:5]) == 0xFF:
        return 0
    footer = HEADER if head[3] == 4 and head[5] & _FOOTER else 0
    return HEADER + _from_synchsafe(head[6:10]) + footer


@dataclass(frozen=True)
class Id3Tag:
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

    def with_values(self, edits: Mapping[str, Values], separator: str) -> "Id3Tag":
        """The tag with new frames for these places, each where the old one was or at the end."""
        new = {_key(p): self._frames_for(p, values, separator) for p, values in edits.items()}
        return replace(self, frames=with_new_items(self.frames, self._key_of, new))

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
            raise FileProblem(f"its ID3 tag would have {len(body)} bytes, more than 256 MiB")
        return (
            b"ID3" + bytes((self.version, self.revision, self.flags)) + _synchsafe(len(body)) + body
        )

    def _key_of(self, frame: bytes) -> str:
        name = frame[: 3 if self.version == 2 else 4].decode("latin-1").rstrip("\0 ")
        name = _NAMES_OF_2_2.get(name, name)
        if name not in ("TXXX", "COMM"):
            return name
        read = self._read(frame)
        description = "?" if read is None else read.desc
        return _key(f"{name}:{description}") if name == "TXXX" or description else name

    def _read(self, frame: bytes) -> Any:
        """A frame as Mutagen reads it; None where it cannot."""
        alone = replace(self, frames=(frame,), rest=b"").render(HEADER + len(frame))
        try:
            return next(iter(ID3(BytesIO(alone), translate=False, load_v1=False).values()), None)
        except MutagenError:
            return None

    def _language(self) -> str:
        """That of the comment, or English."""
        found = (self._read(frame) for frame in self.frames if self._key_of(frame) == "COMM")
        return next((one.lang for one in found if len(one.lang) == 3), "eng")

    def _frames_for(self, place: str, values: Values, separator: str) -> list[bytes]:
        if not values:
            return []
        name, _, description = place.partition(":")
        joined = ("\0" if self.version == 4 else separator).join(values)
        parts = [description, joined] if name in ("TXXX", "COMM") else [joined]
        data = _text(parts, self.version)
        if name == "COMM":
            data = data[:1] + self._language().encode("latin-1") + data[1:]
        if self.version == 2:
            return [_NAMES_IN_2_2[name].encode() + len(data).to_bytes(3) + data]
        safe = self.version == 4 and not self.plain_sizes
        size = _synchsafe(len(data)) if safe else len(data).to_bytes(4)
        return [name.encode() + size + b"\0\0" + data]


def take_apart(data: bytes) -> Id3Tag:
    """The frames of a whole tag."""
    version, revision, flags = data[3], data[4], data[5]
    if version not in _IDENTITY:
        raise FileProblem(f"its tag is of version ID3v2.{version}, which is not known")
    if version == 2 and flags & _EXTENDED:
        raise FileProblem("its ID3v2.2 tag is compressed, in a way that was never defined")
    body = data[HEADER : HEADER + _from_synchsafe(data[6:10])]
    if version > 2 and flags & _EXTENDED:
        body = body[_extension(body, version) :]
    if version < 4 and flags & _UNSYNCHRONISED:
        body = _resynchronised(body)
    kept = flags & (_EXPERIMENTAL | (_UNSYNCHRONISED if version == 4 else 0))
    frames, rest = _walk(body, version, _from_synchsafe if version == 4 else int.from_bytes)
    plain_sizes = False
    if version == 4 and rest.strip(b"\0"):
        others, other_rest = _walk(body, version, int.from_bytes)
        if len(others) > len(frames):
            frames, rest, plain_sizes = others, other_rest, True
    return Id3Tag(version, revision, kept, tuple(frames), rest, plain_sizes)


def _values(tag: ID3, options: Id3Options) -> dict[str, Values]:
    """Place → values. ``tag`` is read with translate=False."""
    values: dict[str, Values] = {}
    separator = None if tag.version >= (2, 4) or tag.version[0] == 1 else options.separator
    for name in (*_LISTS, *_TEXTS):
        if name in tag:
            values[name] = _parted(tag[name].text, separator if name in _LISTS else None)
    if "TCON" in tag:
        genres = TCON(encoding=3, text=list(_parted(tag["TCON"].text, separator))).genres
        values["TCON"] = _parted(genres, None)
    for frame in tag.getall("TXXX"):
        if place := _OWN.get(f"TXXX:{frame.desc}".casefold()):
            values[place] = (*values.get(place, ()), *_parted(frame.text, separator))
    for frame in tag.getall("COMM"):
        if not frame.desc or frame.desc.casefold() in _COMMENTS:
            place = OTHER_COMMENTS if frame.desc else "COMM"
            values[place] = (*values.get(place, ()), *_parted(frame.text, None))
    return values


def genre_names(value: str) -> list[str]:
    """The genres of a value that begins with numbers in brackets, such as "(17)"; else itself."""
    return TCON(encoding=3, text=[value]).genres if _NUMBERED.match(value) else [value]


def _version_number(version: str | None, options: Id3Options) -> int:
    """2, 3 or 4: that of the tag, or the one for new tags."""
    return int(version[-1]) if version and version.startswith("ID3v2.") else options.version


def _parted(texts: list[str], separator: str | None) -> Values:
    """The texts without empty ones, split at the separator if there is one."""
    if separator is not None:
        mark = separator.strip() or separator
        texts = [part.strip() for text in texts for part in str(text).split(mark)]
    return tuple(text for text in map(str, texts) if text.strip())


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
    return _from_synchsafe(body[:4]) if version == 4 else 4 + int.from_bytes(body[:4])


def _resynchronised(body: bytes) -> bytes:
    """The bytes without the zeros that keep decoders from taking them for sound."""
    if re.search(rb"\xff[\xe0-\xff]", body):
        return body  # the flag is wrong: such bytes would have been separated
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
    """A place without the differences that readers ignore."""
    return place.casefold() if place.startswith("TXXX:") else place


def _from_synchsafe(size: bytes) -> int:
    """The number in bytes of which only 7 bits count."""
    number = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
    return number


def _synchsafe(number: int) -> bytes:
    return bytes(number >> shift & 0x7F for shift in (21, 14, 7, 0))
