"""ID3 tags, which MP3, WAV and AIFF files have.

Mutagen reads the values. It would rewrite every frame, which drops frames that it cannot read and
converts others to newer ones. So the frames are separated here, only ours are replaced, and all
others stay to the byte.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.id3 import ID3, TCON, BitPaddedInt, Frames, Frames_2_2, ID3NoHeaderError

from harmonium.library.filetags.binary import FileProblem, read_at
from harmonium.library.filetags.contents import (
    COMMENT,
    GROUPING_FRAMES,
    OWN_FIELDS,
    USUAL_OPTIONS,
    Edits,
    FileTags,
    Id3Options,
    Values,
)
from harmonium.library.filetags.format import MAX_COVER, Format, Picture, with_new_items

HEADER = 10
PADDING = 1024  # free bytes left in a tag that had to grow
MAX_TEXT = 1 << 16  # bytes of a text; no person writes more
_MAX_TAG = 1 << 28

# Flags of a tag, and the flag of a packed frame of version 2.4 or before.
_UNSYNCHRONISED = 0x80
_EXTENDED = 0x40
_EXPERIMENTAL = 0x20
_FOOTER = 0x10
_PACKED = 0x88

_NAME_OF_2_2 = re.compile(rb"[A-Z][A-Z0-9]{2}")
_NAME = re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]")
_FRAME_NAMES = {2: _NAME_OF_2_2, 3: _NAME, 4: _NAME}  # version → what a frame's name looks like
_NAMES_OF_2_2 = {"TCO": "TCON", "TT1": "TIT1", "GP1": "GRP1", "TXX": "TXXX", "COM": "COMM"}
_NAMES_IN_2_2 = {new: old for old, new in _NAMES_OF_2_2.items()}

_MOOD = "TXXX:Mood"  # the place of mood before version 2.4, which has a frame for it
_OTHER_COMMENTS = "COMM:other"  # comments with a description in `_COMMENTS`
_COMMENTS = {"comment", "description", "id3v1 comment"}
"""Descriptions of comments that people write; others, such as iTunNORM, are programs' notes."""
_NAMED = {name: (f"TXXX:{name.upper()}",) for name in OWN_FIELDS}
_TEXTS = {"title": ("TIT2",), "artist": ("TPE1",), "album": ("TALB",)}
_OWN = {place.casefold(): place for place in (_MOOD, *(place for (place,) in _NAMED.values()))}
_NUMBERED = re.compile(r"\((\d+|RX|CR)\)")


def _limited(name: str, most: int, problem: type[Exception]) -> type:
    """Mutagen's class for a frame; it raises if the frame is longer, unpacked or not."""
    kind: Any = Frames.get(name) or Frames_2_2[name].__base__

    def check(data: bytes, limit: int) -> None:  # Mutagen takes hours for a long text
        if len(data) > limit:
            raise problem(f"a text in its ID3 tag has more than {limit:,} bytes")

    class Limited(kind):
        @classmethod
        def _fromData(cls, header: Any, flags: int, data: bytes) -> Any:
            # A packed frame may otherwise fill the memory.
            check(data, MAX_TEXT if flags & _PACKED else most)
            return super()._fromData(header, flags, data)

        def _readData(self, header: Any, data: bytes) -> None:
            check(data, most)
            super()._readData(header, data)

    Limited.__name__ = name
    return Limited


_READ_FRAMES = (
    *("TCON", "TMOO", "TIT1", "GRP1", "TXXX", "COMM", "TIT2", "TPE1", "TALB"),
    *("TCO", "TT1", "GP1", "TXX", "COM", "TT2", "TP1", "TAL"),
)
# Others are not read: chapters hold frames, so more chapters, without end.
_FRAMES = {name: _limited(name, MAX_TEXT, FileProblem) for name in _READ_FRAMES}
# Mutagen skips a frame that raises NotImplementedError, so other pictures are still found.
_PICTURES = {name: _limited(name, MAX_COVER, NotImplementedError) for name in ("APIC", "PIC")}


class Id3Format(Format):
    """A format with an ID3 tag."""

    def tag_file(self, file: BinaryIO) -> BinaryIO:
        """A file that begins with the tag, if there is one."""
        return file

    def places(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → its frames; the frame for moods depends on the version."""
        moods: Values = (_MOOD, "TMOO")
        if _version_number(version, options) == 4:
            moods = ("TMOO", _MOOD)
        return {
            "genre": ("TCON",),
            "mood": moods,
            "grouping": GROUPING_FRAMES,
            COMMENT: ("COMM", _OTHER_COMMENTS),
            **_NAMED,
            **_TEXTS,
        }

    def targets(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """The same, but only one of the frames for the grouping, and one of those for comments."""
        return {**super().targets(version, options), "grouping": (options.grouping,)}

    def split_again(self, values: Edits, version: str | None, options: Id3Options) -> Edits:
        """Before version 2.4, the separator decides how many values a frame has."""
        usual = USUAL_OPTIONS.separator
        if _version_number(version, options) == 4 or options.separator == usual:
            return values
        again = dict(values)
        for place in values:
            if place in ("TCON", "TMOO", *GROUPING_FRAMES) or place.startswith("TXXX:"):
                again[place] = _split([usual.join(values[place])], options.separator)
        return again

    def refusal(self, place: str, value: str, version: str | None, options: Id3Options) -> str:
        """Why a value cannot be kept in a frame, or ""."""
        separator = options.separator.strip() or options.separator
        if _version_number(version, options) < 4 and separator in value:
            return f"{separator!r} separates values in an ID3 tag before version 2.4"
        if place == "TCON" and TCON(encoding=3, text=[value]).genres != [value]:
            return "an ID3 tag would take it for the number of a genre"
        return ""

    def pictures(self, file: BinaryIO) -> list[Picture]:
        """The pictures in the tag; no other frames are read."""
        start = self.tag_file(file)
        start.seek(0)
        tag = ID3(start, _PICTURES, load_v1=False)
        return [Picture(kind=int(frame.type), data=frame.data) for frame in tag.values()]

    def tags_of(
        self,
        tag: ID3 | None,
        options: Id3Options,
        *,
        texts: Edits | None = None,
        duration: float | None = None,
        notes: tuple[str, ...] = (),
        obstacle: str | None = None,
        damage: str | None = None,
    ) -> FileTags:
        """What a tag says, as Mutagen read it; ``texts`` fill empty fields."""
        version = "RIFF INFO" if texts else None
        values: dict[str, Values] = dict(texts or {})
        if tag is not None:
            version = "ID3v1" if tag.version[0] == 1 else f"ID3v2.{tag.version[1]}"
            for place, of_frames in _values(tag, options).items():
                if of_frames:
                    values[place] = of_frames
        return FileTags.of(
            self,
            version,
            values,
            options,
            duration=duration,
            notes=notes,
            obstacle=obstacle,
            damage=damage,
        )


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
    """Place → its values."""
    values: dict[str, Values] = {}
    separator: str | None = options.separator
    if tag.version >= (2, 4) or tag.version[0] == 1:
        separator = None

    def add(place: str, texts: list[Any], separator: str | None = None) -> None:
        values[place] = values.get(place, ()) + _split(texts, separator)

    for name in ("TMOO", *GROUPING_FRAMES):
        if name in tag:
            add(name, tag[name].text, separator)
    for (name,) in _TEXTS.values():
        if name in tag:
            add(name, tag[name].text)
    if "TCON" in tag:
        texts = list(_split(tag["TCON"].text, separator))
        add("TCON", TCON(encoding=3, text=texts).genres)
    for frame in tag.getall("TXXX"):
        if place := _OWN.get(f"TXXX:{frame.desc}".casefold()):
            add(place, frame.text, separator)
    for frame in tag.getall("COMM"):
        if not frame.desc:
            add("COMM", frame.text)
        elif frame.desc.casefold() in _COMMENTS:
            add(_OTHER_COMMENTS, frame.text)
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
    tag = parse_tag(data) if data else Id3Tag(version=options.version)
    return tag.with_values(edits, options.separator).render(room)


@dataclass(frozen=True, kw_only=True)
class Id3Tag:
    """A tag as its frames."""

    version: int  # 2, 3 or 4
    revision: int = 0
    flags: int = 0
    frames: tuple[bytes, ...] = ()  # each with its header
    rest: bytes = b""  # what comes after the last frame: padding, or anything that is not a frame
    plain_sizes: bool = False  # version 4 with sizes of 8 bits a byte, as iTunes used to write

    def with_values(self, edits: Edits, separator: str) -> "Id3Tag":
        """The tag with new frames for these places, each where the old one was or at the end."""
        new = {}
        for place, values in edits.items():
            new[_key(place)] = self._frames_for(place, values, separator)
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
        if name == "COMM" and not description:
            return name
        return _key(f"{name}:{description}")

    def _read(self, frame: bytes) -> Any:
        """A frame as Mutagen reads it; None if it cannot."""
        alone = replace(self, frames=(frame,), rest=b"").render(HEADER + len(frame))
        tag, _ = load_tag(BytesIO(alone), required=True)
        return None if tag is None else next(iter(tag.values()), None)

    def _frames_for(self, place: str, values: Values, separator: str) -> list[bytes]:
        """The frame for a place, or none if it has no values."""
        if not values:
            return []
        name, _, description = place.partition(":")
        joined = ("\0" if self.version == 4 else separator).join(values)
        if name == "COMM":
            data = _text([description, joined], self.version)
            data = data[:1] + self._comment_language().encode("latin-1") + data[1:]
        elif name == "TXXX":
            data = _text([description, joined], self.version)
        else:
            data = _text([joined], self.version)
        return [self._header(name, len(data)) + data]

    def _comment_language(self) -> str:
        """The language of the comment that is there, or English."""
        for frame in self.frames:
            if self._key_of(frame) == "COMM":
                language = self._read(frame).lang
                if len(language) == 3:
                    return str(language)
        return "eng"

    def _header(self, name: str, size: int) -> bytes:
        """The header of a new frame."""
        if self.version == 2:
            return _NAMES_IN_2_2[name].encode() + size.to_bytes(3)
        if self.version == 4 and not self.plain_sizes:
            encoded_size = BitPaddedInt.to_str(size, width=4)
        else:
            encoded_size = size.to_bytes(4)
        return name.encode() + encoded_size + b"\0\0"


def parse_tag(data: bytes) -> Id3Tag:
    """The frames of a whole tag."""
    version, revision, flags = data[3:6]
    if version not in _FRAME_NAMES:
        raise FileProblem(f"its tag is ID3v2.{version}, which is not supported")
    if version == 2 and flags & _EXTENDED:
        raise FileProblem("its ID3v2.2 tag is compressed, in a way that was never defined")
    body = data[HEADER : HEADER + BitPaddedInt(data[6:10])]
    # Some programs announce an extended header and write none.
    if version > 2 and flags & _EXTENDED and not _FRAME_NAMES[version].match(body):
        size = BitPaddedInt(body[:4]) if version == 4 else 4 + int.from_bytes(body[:4])
        body = body[size:]
    # Zeros keep decoders from taking a tag for sound; if such bytes remain, the flag is wrong.
    if version < 4 and flags & _UNSYNCHRONISED and not re.search(rb"\xff[\xe0-\xff]", body):
        body = body.replace(b"\xff\0", b"\xff")
    kept_flags = flags & _EXPERIMENTAL
    if version == 4:
        kept_flags = flags & (_EXPERIMENTAL | _UNSYNCHRONISED)
    frames, rest = _frames_of(body, version, BitPaddedInt if version == 4 else int.from_bytes)
    plain_sizes = False
    if version == 4 and rest.strip(b"\0"):
        plain_frames, plain_rest = _frames_of(body, version, int.from_bytes)
        if len(plain_frames) > len(frames):
            frames = plain_frames
            rest = plain_rest
            plain_sizes = True
    return Id3Tag(
        version=version,
        revision=revision,
        flags=kept_flags,
        frames=tuple(frames),
        rest=rest,
        plain_sizes=plain_sizes,
    )


def _frames_of(
    body: bytes, version: int, number: Callable[[bytes], int]
) -> tuple[list[bytes], bytes]:
    """(frames, what is left after them)"""
    header, width = (6, 3) if version == 2 else (10, 4)
    frames: list[bytes] = []
    start = 0
    while _FRAME_NAMES[version].match(body, start) and start + header <= len(body):
        end = start + header + number(body[start + width : start + 2 * width])
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
