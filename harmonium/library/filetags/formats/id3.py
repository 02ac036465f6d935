"""ID3 tags, and the formats that have them: MP3, WAV and AIFF.

Mutagen reads the values. It would rewrite every frame, which drops the frames that it cannot
read and turns others into their successors. So the frames are cut apart here, only those of ours
are replaced, and all others stay to the byte.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO, Literal, NamedTuple

from mutagen import MutagenError
from mutagen.aiff import AIFFInfo
from mutagen.id3 import ID3, TCON, ID3NoHeaderError
from mutagen.mp3 import HeaderNotFoundError, MPEGInfo
from mutagen.wave import WaveStreamInfo

from harmonium.library.filetags.formats import (
    COMMENT,
    LIST_FIELDS,
    SCORE_FIELDS,
    Edits,
    Format,
    Id3Options,
    TagContents,
    Values,
    decoded,
    duration_of,
    with_new_items,
)
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

HEADER = 10
PADDING = 1024
"""Bytes left free in a tag that had to grow."""
_MAX_TAG = 1 << 28
_ID3V1, _APE = 128, 32

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


def edited_tag(data: bytes, edits: Edits, options: Id3Options, *, room: int) -> bytes:
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

    def with_values(self, edits: Edits, separator: str) -> "Id3Tag":
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
        if len(body) >= _MAX_TAG:
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
            values[name] = _split(tag[name].text, separator if name in _LISTS else None)
    if "TCON" in tag:
        genres = TCON(encoding=3, text=list(_split(tag["TCON"].text, separator))).genres
        values["TCON"] = _split(genres, None)
    for frame in tag.getall("TXXX"):
        if place := _OWN.get(f"TXXX:{frame.desc}".casefold()):
            values[place] = (*values.get(place, ()), *_split(frame.text, separator))
    for frame in tag.getall("COMM"):
        if not frame.desc or frame.desc.casefold() in _COMMENTS:
            place = OTHER_COMMENTS if frame.desc else "COMM"
            values[place] = (*values.get(place, ()), *_split(frame.text, None))
    return values


def genre_names(value: str) -> list[str]:
    """The genres of a value that begins with numbers in brackets, such as "(17)"; else itself."""
    return TCON(encoding=3, text=[value]).genres if _NUMBERED.match(value) else [value]


def _version_number(version: str | None, options: Id3Options) -> int:
    """2, 3 or 4: that of the tag, or the one for new tags."""
    return int(version[-1]) if version and version.startswith("ID3v2.") else options.version


def _split(texts: list[str], separator: str | None) -> Values:
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


# MP3. -----------------------------------------------------------------------------------------


class Mp3(Format):
    """MPEG audio of layers 1 to 3."""

    name = "MP3"
    places = staticmethod(places)
    refusal = staticmethod(refusal)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the first ID3v2 tag says, and an ID3v1 tag where that is silent."""
        contents = read_tag(file, options)
        duration, obstacle = _mpeg_duration(file)
        return replace(
            contents,
            duration=duration,
            notes=(*_other_tags(file), *contents.notes),
            obstacle=contents.obstacle or obstacle,
        )

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the first ID3v2 tag; all that follows stays."""
        head = read_at(source, 0, HEADER)
        room = tag_length(head)
        if head.startswith(b"ID3") and not room:
            raise FileProblem("its ID3 tag is damaged: its size is not valid")
        data = read_at(source, 0, room) if room else _from_id3v1(source, options.version)
        target.write(edited_tag(data, edits, options, room=room))
        copy(source, target, room, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All between the tags at the beginning and those at the end."""
        end = end_before_id3v1(file)
        yield from blocks(file, leading_tags(file), end - _ape_length(file, end))


def _mpeg_duration(file: BinaryIO) -> tuple[float | None, str | None]:
    """(seconds, None), or (None, why it is not known)"""
    try:
        return float(MPEGInfo(file).length), None
    except HeaderNotFoundError:
        return None, "no MPEG sound was found in it"
    except (MutagenError, ArithmeticError, ValueError) as error:
        return None, f"its sound cannot be made out ({error})"


def _from_id3v1(file: BinaryIO, version: int) -> bytes:
    """A new tag with what the ID3v1 tag says: a player that finds an ID3v2 tag reads no other."""
    file.seek(0)
    try:
        tag = ID3(file, translate=False)
    except ID3NoHeaderError:
        return b""
    if version == 3:
        tag.update_to_v23()
    else:
        tag.update_to_v24()
    whole = BytesIO()
    tag.save(whole, v2_version=version, v1=0, padding=lambda info: 0)
    return whole.getvalue()


def _other_tags(file: BinaryIO) -> tuple[str, ...]:
    """Tags that are left alone."""
    notes = []
    first = tag_length(read_at(file, 0, HEADER))
    if first and leading_tags(file) > first:
        notes.append("it has a second ID3v2 tag after the first, which is left alone")
    if _ape_length(file, end_before_id3v1(file)):
        notes.append("it has an APEv2 tag, which is left alone")
    return tuple(notes)


def _ape_length(file: BinaryIO, end: int) -> int:
    """Bytes of the APEv2 tag that ends there, 0 where none does."""
    footer = read_at(file, max(0, end - _APE), _APE)
    if not re.match(rb"APETAGEX[\xd0\xe8]", footer):
        return 0
    length = int.from_bytes(footer[12:16], "little")
    header = _APE if footer[23] & 0x80 else 0
    return min(end, length + header)


# WAV and AIFF. --------------------------------------------------------------------------------

_TAGS = (b"ID3 ", b"id3 ")
_INFO = {b"IGNR": "TCON", b"INAM": "TIT2", b"IART": "TPE1", b"IPRD": "TALB", b"ICMT": "COMM"}
_MAX_CONTAINER = 1 << 32
_CUT_SHORT = "its last chunk is cut short, or its sizes were never filled in"


class _Chunk(NamedTuple):
    name: bytes
    start: int
    """Where its header starts, 8 bytes before its data."""
    size: int
    end: int
    """Where the next begins."""

    def data(self, file: BinaryIO) -> bytes:
        return read_at(file, self.start + 8, self.size)


@dataclass(frozen=True)
class Iff(Format):
    """A container of chunks."""

    name: str
    order: Literal["little", "big"]
    tag: bytes
    """What a new chunk with a tag is called."""
    audio: tuple[bytes, ...]
    """The chunks that make the sound."""
    info: Callable[[BinaryIO], Any]
    """Mutagen's class for the sound's parameters."""
    places = staticmethod(places)
    refusal = staticmethod(refusal)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the ID3 chunk says, and RIFF's own list of texts where that is silent."""
        chunks = self._chunks(file)
        contents = TagContents(version=None)
        if (chunk := self._tag_chunk(chunks)) and chunk.size:
            contents = read_tag(BytesIO(chunk.data(file)), options, required=True)
        texts = self._texts(file, chunks)
        cut_short = bool(chunks) and chunks[-1].start + 8 + chunks[-1].size > size_of(file)
        values = {place: value for place, value in contents.values.items() if value}
        return replace(
            contents,
            version=contents.version or ("RIFF INFO" if texts else None),
            values=texts | values,
            duration=duration_of(self.info, file),
            # A chunk that is longer than the file has no end to add another after.
            obstacle=contents.obstacle or (_CUT_SHORT if cut_short else None),
        )

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the ID3 chunk in its place, or add one at the end."""
        chunks = self._chunks(source)
        end = chunks[-1].end if chunks else 12
        old = self._tag_chunk(chunks) or _Chunk(self.tag, end, 0, end)
        start, after = old.start, old.end
        data = old.data(source)
        room = tag_length(data)
        new = edited_tag(data[:room], edits, options, room=room)
        chunk = old.name + len(new).to_bytes(4, self.order) + new + b"\0" * (len(new) % 2)
        fill = b"\0" * (start - min(start, size_of(source)))  # padding that the last one lacks
        total = 4 + start - 12 + len(chunk) + end - after
        if total >= _MAX_CONTAINER:
            raise FileProblem(f"it would have {total} bytes, more than its format allows (4 GiB)")
        form = read_at(source, 0, 12)
        target.write(form[:4] + total.to_bytes(4, self.order) + form[8:])
        copy(source, target, 12, start)
        target.write(fill + chunk)
        copy(source, target, after, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The chunks with the sound and its parameters."""
        for chunk in self._chunks(file):
            if chunk.name in self.audio:
                yield chunk.name
                yield from blocks(file, chunk.start + 8, chunk.start + 8 + chunk.size)

    def _chunks(self, file: BinaryIO) -> list[_Chunk]:
        declared = int.from_bytes(read_at(file, 4, 4), self.order)
        return list(self._walk(file, 12, min(8 + declared, size_of(file))))

    def _walk(self, file: BinaryIO, start: int, end: int) -> Iterator[_Chunk]:
        while start + 8 <= end:
            header = read_at(file, start, 8)
            size = int.from_bytes(header[4:], self.order)
            chunk = _Chunk(header[:4], start, size, start + 8 + size + size % 2)
            yield chunk
            start = chunk.end

    def _tag_chunk(self, chunks: list[_Chunk]) -> _Chunk | None:
        return next((chunk for chunk in chunks if chunk.name in _TAGS), None)

    def _texts(self, file: BinaryIO, chunks: list[_Chunk]) -> dict[str, Values]:
        """Place → what RIFF's list of texts says for it."""
        texts: dict[str, Values] = {}
        for chunk in chunks:
            data = chunk.data(file) if chunk.name == b"LIST" else b""
            if not data.startswith(b"INFO"):
                continue
            inside = BytesIO(data)
            for one in self._walk(inside, 4, len(data)):
                text = decoded(one.data(inside).split(b"\0")[0]).strip()
                if (place := _INFO.get(one.name)) and text:
                    texts.setdefault(place, (text,))
        return texts


WAV = Iff("WAV", "little", b"id3 ", (b"fmt ", b"data"), WaveStreamInfo)
AIFF = Iff("AIFF", "big", b"ID3 ", (b"COMM", b"SSND"), AIFFInfo)
