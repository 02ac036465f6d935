"""ID3 tags, and the formats that have them: MP3, WAV and AIFF.

Mutagen reads the values. It would rewrite every frame, which drops frames that it cannot read and
converts others to newer ones. So the frames are separated here, only ours are replaced, and all
others stay to the byte.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO, Literal, TypeAlias

from mutagen import MutagenError
from mutagen.aiff import AIFFInfo
from mutagen.id3 import ID3, TCON, BitPaddedInt, Frames, Frames_2_2, ID3NoHeaderError
from mutagen.mp3 import HeaderNotFoundError, MPEGInfo
from mutagen.wave import WaveStreamInfo

from harmonium.library.filetags.formats import (
    COMMENT,
    GROUPING_FRAMES,
    LIST_FIELDS,
    MAX_COVER,
    OWN_FIELDS,
    Edits,
    FileProblem,
    FileTags,
    Format,
    Id3Options,
    Values,
    blocks,
    copy,
    decoded,
    duration_of,
    read_at,
    size_of,
    with_new_items,
)

HEADER = 10
PADDING = 1024  # free bytes left in a tag that had to grow
_MAX_TAG = 1 << 28
MAX_TEXT = 1 << 16  # bytes of a text; no person writes more
_PACKED = 0x88  # the flag of a packed frame, of version 2.4 or before
_UNSYNCHRONISED, _EXTENDED, _EXPERIMENTAL, _FOOTER = 0x80, 0x40, 0x20, 0x10
_IDENTITY = {2: re.compile(rb"[A-Z][A-Z0-9]{2}")}
_IDENTITY |= dict.fromkeys((3, 4), re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]"))
_NAMES_OF_2_2 = {"TCO": "TCON", "TT1": "TIT1", "GP1": "GRP1", "TXX": "TXXX", "COM": "COMM"}
_NAMES_IN_2_2 = {new: old for old, new in _NAMES_OF_2_2.items()}

_MOOD = "TXXX:Mood"  # the place of mood before version 2.4, which has a frame for it
_OTHER_COMMENTS = "COMM:other"  # comments with a description in `_COMMENTS`
_COMMENTS = {"comment", "description", "id3v1 comment"}
"""Descriptions of comments that people write; others, such as iTunNORM, are programs' notes."""
_NAMED = {name: (f"TXXX:{name.upper()}",) for name in OWN_FIELDS}
_TEXTS = {"title": ("TIT2",), "artist": ("TPE1",), "album": ("TALB",)}
_OWN = {place.casefold(): place for (place,) in ((_MOOD,), *_NAMED.values())}
_NUMBERED = re.compile(r"\((\d+|RX|CR)\)")


def _limited(name: str, most: int, problem: type[Exception]) -> type:
    """Mutagen's class for a frame; it raises if the frame is longer, unpacked or not."""
    kind: Any = Frames.get(name) or Frames_2_2[name].__base__

    def check(data: bytes, most: int = most) -> None:  # Mutagen takes hours for a long text
        if len(data) > most:
            raise problem(f"a text in its ID3 tag has more than {most:,} bytes")

    class Limited(kind):
        @classmethod
        def _fromData(cls, header: Any, flags: int, data: bytes) -> Any:
            check(data, MAX_TEXT if flags & _PACKED else most)  # otherwise it may fill the memory
            return super()._fromData(header, flags, data)

        def _readData(self, header: Any, data: bytes) -> None:
            check(data)
            super()._readData(header, data)

    Limited.__name__ = name
    return Limited


_FRAMES = {  # Others are not read: chapters hold frames, so more chapters, without end.
    name: _limited(name, MAX_TEXT, FileProblem)
    for name in (
        *("TCON", "TMOO", "TIT1", "GRP1", "TXXX", "COMM", "TIT2", "TPE1", "TALB"),
        *("TCO", "TT1", "GP1", "TXX", "COM", "TT2", "TP1", "TAL"),
    )
}
# Mutagen skips a frame that raises NotImplementedError, so other pictures are still found.
_PICTURES = {name: _limited(name, MAX_COVER, NotImplementedError) for name in ("APIC", "PIC")}


class Id3Format(Format):
    """A format with an ID3 tag."""

    def tag_file(self, file: BinaryIO) -> BinaryIO:
        """A file that begins with the tag, if there is one."""
        return file

    def pictures(self, file: BinaryIO) -> list[tuple[int, bytes]]:
        """(kind, data) of each picture in the tag; no other frames are read."""
        start = self.tag_file(file)
        start.seek(0)
        tag = ID3(start, _PICTURES, load_v1=False)
        return [(one.type, one.data) for one in tag.values()]

    def refusal(self, place: str, value: str, version: str | None, options: Id3Options) -> str:
        """Why a value cannot be kept in a frame, or ""."""
        separator = options.separator.strip() or options.separator
        if _version_number(version, options) < 4 and separator in value:
            return f"{separator!r} separates values in an ID3 tag before version 2.4"
        if place == "TCON" and TCON(encoding=3, text=[value]).genres != [value]:
            return "an ID3 tag would take it for the number of a genre"
        return ""


def genre_names(value: str) -> list[str]:
    """The genres of a value that begins with numbers in brackets, such as "(17)"; else itself."""
    return TCON(encoding=3, text=[value]).genres if _NUMBERED.match(value) else [value]


def leading_tags(file: BinaryIO) -> int:
    """Bytes of the ID3v2 tags at the beginning; some files have several."""
    start = 0
    while length := tag_length(read_at(file, start, HEADER)):
        start += length
    return start


def tag_length(head: bytes) -> int:
    """The size of the tag that begins like this, 0 if none does; 10 bytes are enough to tell."""
    if len(head) < HEADER or not head.startswith(b"ID3"):
        return 0
    if max(head[6:10]) > 0x7F or max(head[3:5]) == 0xFF:
        return 0
    footer = HEADER if head[3] == 4 and head[5] & _FOOTER else 0
    return HEADER + BitPaddedInt(head[6:10]) + footer


def end_before_id3v1(file: BinaryIO, start: int = 0) -> int:
    """Where an ID3v1 tag begins after ``start``; the end of the file if there is none."""
    end = size_of(file)
    has = end - 128 >= start and read_at(file, end - 128, 3) == b"TAG"
    return end - 128 if has else end


def read_tag(
    format: str, tag: ID3 | None, options: Id3Options, texts: Edits | None = None, **about: Any
) -> FileTags:
    """What a tag says, as Mutagen read it; ``texts`` fill empty fields."""
    version = "RIFF INFO" if texts else None
    values: dict[str, Values] = dict(texts or {})
    if tag is not None:
        version = "ID3v1" if tag.version[0] == 1 else f"ID3v2.{tag.version[1]}"
        values |= {place: found for place, found in _values(tag, options).items() if found}
    moods = ("TMOO", _MOOD) if _version_number(version, options) == 4 else (_MOOD, "TMOO")
    grouping = (options.grouping,) if options.grouping else GROUPING_FRAMES
    places = dict(zip(LIST_FIELDS, (("TCON",), moods, grouping), strict=True))
    places |= _NAMED | _TEXTS | {COMMENT: ("COMM", _OTHER_COMMENTS)}
    return FileTags.of(format, version, values, places, **about)


def load_tag(file: BinaryIO, *, required: bool = False) -> tuple[ID3 | None, str | None]:
    """(the tag as Mutagen reads it, None), or (None, what is wrong with it)."""
    # If an ID3v2 tag is not ``required``, there may be an ID3v1 tag instead, or none.
    file.seek(0)
    try:
        return ID3(file, _FRAMES, translate=False, load_v1=not required), None
    except FileProblem as error:
        return None, str(error)
    except MutagenError as error:
        if isinstance(error, ID3NoHeaderError) and not required:
            return None, None
        return None, f"its ID3 tag is damaged ({str(error) or 'it ends too early'})"


def _values(tag: ID3, options: Id3Options) -> dict[str, Values]:
    values: dict[str, Values] = {}
    separator = None if tag.version >= (2, 4) or tag.version[0] == 1 else options.separator

    def add(place: str, texts: list[Any], separator: str | None = None) -> None:
        values[place] = values.get(place, ()) + _split(texts, separator)

    for name in ("TMOO", *GROUPING_FRAMES):
        if name in tag:
            add(name, tag[name].text, separator)
    for (name,) in _TEXTS.values():
        if name in tag:
            add(name, tag[name].text)
    if "TCON" in tag:
        add("TCON", TCON(encoding=3, text=list(_split(tag["TCON"].text, separator))).genres)
    for frame in tag.getall("TXXX"):
        if place := _OWN.get(f"TXXX:{frame.desc}".casefold()):
            add(place, frame.text, separator)
    for frame in tag.getall("COMM"):
        if not frame.desc or frame.desc.casefold() in _COMMENTS:
            add(_OTHER_COMMENTS if frame.desc else "COMM", frame.text)
    return values


def _version_number(version: str | None, options: Id3Options) -> int:
    """2, 3 or 4: the tag's version, or the one for new tags."""
    return int(version[-1]) if version and version.startswith("ID3v2.") else options.version


def _split(texts: list[Any], separator: str | None) -> Values:
    """The texts without empty ones, split at the separator if there is one."""
    if separator is not None:
        mark = separator.strip() or separator
        texts = [part.strip() for text in texts for part in str(text).split(mark)]
    return tuple(text for text in map(str, texts) if text.strip())


def edited_tag(data: bytes, edits: Edits, options: Id3Options, *, room: int) -> bytes:
    """An old tag, or none, with new values in some places, padded to ``room`` if it fits."""
    tag = take_apart(data) if data else Id3Tag(options.version)
    return tag.with_values(edits, options.separator).render(room)


@dataclass(frozen=True)
class Id3Tag:
    """A tag taken apart."""

    version: int  # 2, 3 or 4
    revision: int = 0
    flags: int = 0
    frames: tuple[bytes, ...] = ()  # each with its header
    rest: bytes = b""  # what comes after the last frame: padding, or anything that is not a frame
    plain_sizes: bool = False  # version 4 with sizes of 8 bits a byte, as iTunes used to write

    def with_values(self, edits: Edits, separator: str) -> "Id3Tag":
        """The tag with new frames for these places, each where the old one was or at the end."""
        new = {_key(p): self._frames_for(p, values, separator) for p, values in edits.items()}
        return replace(self, frames=tuple(with_new_items(self.frames, self._key_of, new)))

    def render(self, room: int) -> bytes:
        """The tag as bytes, padded to ``room`` if it fits."""
        body = b"".join(self.frames)
        if self.rest.strip(b"\0"):
            body += self.rest
        elif HEADER + len(body) <= room:
            body = body.ljust(room - HEADER, b"\0")
        else:
            body += bytes(PADDING)
        if len(body) >= _MAX_TAG:
            raise FileProblem(f"its ID3 tag would have {len(body)} bytes, more than 256 MiB")
        head = b"ID3" + bytes((self.version, self.revision, self.flags))
        return head + BitPaddedInt.to_str(len(body), width=4) + body

    def _key_of(self, frame: bytes) -> str:
        name = frame[: 3 if self.version == 2 else 4].decode("latin-1").rstrip("\0 ")
        name = _NAMES_OF_2_2.get(name, name)
        if name not in ("TXXX", "COMM"):
            return name
        read = self._read(frame)
        description = "?" if read is None else read.desc
        return _key(f"{name}:{description}") if name == "TXXX" or description else name

    def _read(self, frame: bytes) -> Any:
        """A frame as Mutagen reads it; None if it cannot."""
        alone = replace(self, frames=(frame,), rest=b"").render(HEADER + len(frame))
        tag, _ = load_tag(BytesIO(alone), required=True)
        return None if tag is None else next(iter(tag.values()), None)

    def _frames_for(self, place: str, values: Values, separator: str) -> list[bytes]:
        if not values:
            return []
        name, _, description = place.partition(":")
        joined = ("\0" if self.version == 4 else separator).join(values)
        data = _text([description, joined] if name in ("TXXX", "COMM") else [joined], self.version)
        if name == "COMM":  # in the language of the old one, or in English
            old = (self._read(frame) for frame in self.frames if self._key_of(frame) == "COMM")
            language = next((one.lang for one in old if len(one.lang) == 3), "eng")
            data = data[:1] + language.encode("latin-1") + data[1:]
        if self.version == 2:
            return [_NAMES_IN_2_2[name].encode() + len(data).to_bytes(3) + data]
        safe = self.version == 4 and not self.plain_sizes
        size = BitPaddedInt.to_str(len(data), width=4) if safe else len(data).to_bytes(4)
        return [name.encode() + size + b"\0\0" + data]


def take_apart(data: bytes) -> Id3Tag:
    """The frames of a whole tag."""
    version, revision, flags = data[3:6]
    if version not in _IDENTITY:
        raise FileProblem(f"its tag is ID3v2.{version}, which is not supported")
    if version == 2 and flags & _EXTENDED:
        raise FileProblem("its ID3v2.2 tag is compressed, in a way that was never defined")
    body = data[HEADER : HEADER + BitPaddedInt(data[6:10])]
    # Some programs announce an extended header and write none.
    if version > 2 and flags & _EXTENDED and not _IDENTITY[version].match(body):
        size = BitPaddedInt(body[:4]) if version == 4 else 4 + int.from_bytes(body[:4])
        body = body[size:]
    # Zeros keep decoders from taking a tag for sound; if such bytes remain, the flag is wrong.
    if version < 4 and flags & _UNSYNCHRONISED and not re.search(rb"\xff[\xe0-\xff]", body):
        body = body.replace(b"\xff\0", b"\xff")
    kept = flags & (_EXPERIMENTAL | (_UNSYNCHRONISED if version == 4 else 0))
    frames, rest = _walk(body, version, BitPaddedInt if version == 4 else int.from_bytes)
    plain_sizes = False
    if version == 4 and rest.strip(b"\0"):
        others, other_rest = _walk(body, version, int.from_bytes)
        if len(others) > len(frames):
            frames, rest, plain_sizes = others, other_rest, True
    return Id3Tag(version, revision, kept, tuple(frames), rest, plain_sizes)


def _walk(body: bytes, version: int, number: Callable[[bytes], int]) -> tuple[list[bytes], bytes]:
    """(frames, what is left after them)"""
    head, width = (6, 3) if version == 2 else (10, 4)
    frames: list[bytes] = []
    start = 0
    while _IDENTITY[version].match(body, start) and start + head <= len(body):
        end = start + head + number(body[start + width : start + 2 * width])
        if end > len(body):
            break
        frames.append(body[start:end])
        start = end
    return frames, body[start:]


def _text(parts: list[str], version: int) -> bytes:
    """The encoding's number, and the parts separated by the encoding's zero."""
    if version == 4:
        return b"\3" + b"\0".join(part.encode() for part in parts)
    try:
        return b"\0" + b"\0".join(part.encode("latin-1") for part in parts)
    except UnicodeEncodeError:
        return b"\1" + b"\0\0".join(b"\xff\xfe" + part.encode("utf-16-le") for part in parts)


def _key(place: str) -> str:
    """A place without the differences that readers ignore."""
    return place.casefold() if place.startswith("TXXX:") else place


MAX_FRAME_SIZE = 2048  # the longest MPEG frame, in bytes
_CONTAINERS = (b"RIFF", b"FORM", b"PK\3\4", b"\x1aE\xdf\xa3")  # AVI, IFF, ZIP, Matroska


class Mp3(Id3Format):
    """MPEG audio of layers 1 to 3."""

    name = "MP3"

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the first ID3v2 tag says; an ID3v1 tag fills empty fields."""
        notes, first = [], tag_length(read_at(file, 0, HEADER))
        if first and leading_tags(file) > first:
            notes.append("it has a second ID3v2 tag after the first, which is left alone")
        if _ape_length(file, end_before_id3v1(file)):
            notes.append("it has an APEv2 tag, which is left alone")
        about: dict[str, Any] = {"notes": tuple(notes)}
        tag, damage = load_tag(file)
        try:
            about["duration"] = float(MPEGInfo(file).length)
        except HeaderNotFoundError:
            about["obstacle"] = "no MPEG sound was found in it"
        except (MutagenError, ArithmeticError, ValueError) as error:
            about["obstacle"] = f"its sound cannot be read ({error})"
        return read_tag(self.name, tag, options, damage=damage, **about)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the first ID3v2 tag; everything after it stays."""
        head = read_at(source, 0, HEADER)
        room = tag_length(head)
        if head.startswith(b"ID3") and not room:
            raise FileProblem("its ID3 tag is damaged: its size is not valid")
        data = read_at(source, 0, room) if room else _from_id3v1(source, options.version)
        target.write(edited_tag(data, edits, options, room=room))
        copy(source, target, room, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """Everything between the tags at the beginning and those at the end."""
        end = end_before_id3v1(file)
        yield from blocks(file, leading_tags(file), end - _ape_length(file, end))


def begins_with_mpeg_frames(file: BinaryIO) -> bool:
    """Whether a row of MPEG frames begins at once, or after the rest of a truncated frame.

    Single frames can be found in anything, and rows of them in films, archives and disk images: an
    ID3 tag before those would make them useless.
    """
    if read_at(file, 0, 4).startswith(_CONTAINERS):
        return False
    try:
        info: Any = MPEGInfo(file)
        return not info.sketchy and info.frame_offset <= MAX_FRAME_SIZE
    except (MutagenError, ArithmeticError, ValueError):
        return False


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


def _ape_length(file: BinaryIO, end: int) -> int:
    """The size of the APEv2 tag that ends there, 0 if none does."""
    footer = read_at(file, max(0, end - 32), 32)
    if not re.match(rb"APETAGEX[\xd0\xe8]", footer):
        return 0
    header = 32 if footer[23] & 0x80 else 0
    return min(end, int.from_bytes(footer[12:16], "little") + header)


_TAGS = (b"ID3 ", b"id3 ")
_INFO = {b"IGNR": "TCON", b"INAM": "TIT2", b"IART": "TPE1", b"IPRD": "TALB", b"ICMT": "COMM"}
_MAX_CONTAINER = 1 << 32
_CUT_SHORT = "its last chunk is cut short, or its sizes were never filled in"

Chunk: TypeAlias = tuple[bytes, int, int, int]  # (name, start and end of the data, next chunk)
_NO_CHUNK = (b"", 0, 0, 0)


@dataclass(frozen=True)
class Iff(Id3Format):
    """A container of chunks."""

    name: str
    order: Literal["little", "big"]
    tag: bytes  # the name of a new chunk for a tag
    audio: tuple[bytes, ...]  # the chunks of the sound
    info: Callable[[BinaryIO], Any]  # Mutagen's class for the sound's parameters

    def tag_file(self, file: BinaryIO) -> BinaryIO:
        """What is in the ID3 chunk."""
        chunks = self._chunks(file)
        _, start, end, _ = next((chunk for chunk in chunks if chunk[0] in _TAGS), _NO_CHUNK)
        return BytesIO(read_at(file, start, end - start))

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the ID3 chunk says; RIFF's own list of texts fills empty fields."""
        chunks, start = self._chunks(file), self.tag_file(file)
        tag, damage = load_tag(start, required=True) if size_of(start) else (None, None)
        # A chunk that is longer than the file has no end to add another after.
        obstacle = _CUT_SHORT if chunks and chunks[-1][2] > size_of(file) else None
        duration = duration_of(self.info, file)
        about = {"damage": damage, "duration": duration, "obstacle": obstacle}
        return read_tag(self.name, tag, options, self._texts(file, chunks), **about)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the ID3 chunk in its place, or add one at the end."""
        chunks = self._chunks(source)
        end = chunks[-1][3] if chunks else 12
        new = (self.tag, end + 8, end + 8, end)
        name, start, data_end, after = next((one for one in chunks if one[0] in _TAGS), new)
        data = read_at(source, start, data_end - start)
        room = tag_length(data)
        tag = edited_tag(data[:room], edits, options, room=room)
        chunk = name + len(tag).to_bytes(4, self.order) + tag + b"\0" * (len(tag) % 2)
        start -= 8
        total = 4 + start - 12 + len(chunk) + end - after
        if total >= _MAX_CONTAINER:
            raise FileProblem(f"it would have {total} bytes, more than its format allows (4 GiB)")
        form = read_at(source, 0, 12)
        target.write(form[:4] + total.to_bytes(4, self.order) + form[8:])
        copy(source, target, 12, start)
        fill = b"\0" * (start - min(start, size_of(source)))  # padding that the last chunk lacks
        target.write(fill + chunk)
        copy(source, target, after, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The chunks with the sound and its parameters."""
        for name, start, end, _ in self._chunks(file):
            if name in self.audio:
                yield name
                yield from blocks(file, start, end)

    def _chunks(self, file: BinaryIO) -> list[Chunk]:
        declared = int.from_bytes(read_at(file, 4, 4), self.order)
        return list(self._walk(file, 12, min(8 + declared, size_of(file))))

    def _walk(self, file: BinaryIO, start: int, end: int) -> Iterator[Chunk]:
        while start + 8 <= end:
            header = read_at(file, start, 8)
            size = int.from_bytes(header[4:], self.order)
            data, start = start + 8, start + 8 + size + size % 2
            yield header[:4], data, data + size, start

    def _texts(self, file: BinaryIO, chunks: list[Chunk]) -> dict[str, Values]:
        """Place → what RIFF's list of texts says for it."""
        texts: dict[str, Values] = {}
        for name, start, end, _ in chunks:
            data = read_at(file, start, end - start) if name == b"LIST" else b""
            inside = self._walk(BytesIO(data), 4, len(data)) if data[:4] == b"INFO" else ()
            for key, first, last, _ in inside:
                text = decoded(data[first:last].split(b"\0")[0]).strip()
                if (place := _INFO.get(key)) and text:
                    texts.setdefault(place, (text,))
        return texts


WAV = Iff("WAV", "little", b"id3 ", (b"fmt ", b"data"), WaveStreamInfo)
AIFF = Iff("AIFF", "big", b"ID3 ", (b"COMM", b"SSND"), AIFFInfo)
