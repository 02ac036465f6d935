"""MP3 and its elder brothers: an ID3v2 tag, the sound, and perhaps other tags after it."""

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import BinaryIO

from mutagen import MutagenError
from mutagen.id3 import ID3, ID3NoHeaderError
from mutagen.mp3 import HeaderNotFoundError, MPEGInfo

from harmonium.collection.filetags.formats import id3_values
from harmonium.collection.filetags.formats.base import Contents, Damaged, Id3Options, Values
from harmonium.collection.filetags.formats.id3_tag import HEADER, RawTag, tag_length, take_apart
from harmonium.collection.filetags.streams import blocks, copy, read_at, size_of

_ID3V1 = 128
_APE = 32


class Mp3:
    """MPEG audio of layers 1 to 3."""

    name = "MP3"
    places = staticmethod(id3_values.places)
    refusal = staticmethod(id3_values.refusal)

    def read(self, file: BinaryIO, options: Id3Options) -> Contents:
        """What the first ID3v2 tag says, and an ID3v1 tag where that is silent."""
        length, obstacle = _length(file)
        notes = _others(file)
        try:
            tag = _load(file)
        except MutagenError as error:
            obstacle = f"its ID3 tag is damaged ({str(error) or 'it ends too early'})"
            return Contents(
                version=None, duration=length, notes=(*notes, obstacle), obstacle=obstacle
            )
        if tag is None:
            return Contents(version=None, duration=length, notes=notes, obstacle=obstacle)
        return Contents(
            version=id3_values.version_name(tag),
            values=id3_values.values_of(tag, options),
            duration=length,
            notes=notes,
            obstacle=obstacle,
        )

    def write(
        self, source: BinaryIO, target: BinaryIO, edits: Mapping[str, Values], options: Id3Options
    ) -> None:
        """Replace the first ID3v2 tag; all that follows stays."""
        head = read_at(source, 0, HEADER)
        room = tag_length(head)
        if room:
            raw = take_apart(read_at(source, 0, room))
        elif head.startswith(b"ID3"):
            raise Damaged("its ID3 tag is damaged: its size is not valid")
        else:
            raw = _from_id3v1(source, options.version)
        target.write(raw.with_values(edits, options.separator).render(room))
        copy(source, target, room, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All between the tags at the beginning and those at the end."""
        yield from blocks(file, leading_tags(file), _trailing_tags(file))


def leading_tags(file: BinaryIO) -> int:
    """Bytes of the ID3v2 tags at the beginning; some files have several."""
    start = 0
    while length := tag_length(read_at(file, start, HEADER)):
        start += length
    return start


def _load(file: BinaryIO) -> ID3 | None:
    file.seek(0)
    try:
        return ID3(file, translate=False)
    except ID3NoHeaderError:
        return None


def _length(file: BinaryIO) -> tuple[float | None, str | None]:
    """(seconds, None), or (None, why there is no telling)"""
    try:
        return float(MPEGInfo(file).length), None
    except HeaderNotFoundError:
        return None, "no MPEG sound was found in it"
    except (MutagenError, ArithmeticError, ValueError) as error:
        return None, f"its sound cannot be made out ({error})"


def _from_id3v1(file: BinaryIO, version: int) -> RawTag:
    """A new tag with what the ID3v1 tag says: a player that finds an ID3v2 tag reads no other."""
    tag = _load(file)
    if tag is None:
        return RawTag(version)
    if version == 3:
        tag.update_to_v23()
    else:
        tag.update_to_v24()
    whole = BytesIO()
    tag.save(whole, v2_version=version, v1=0, padding=lambda info: 0)
    return take_apart(whole.getvalue())


def _others(file: BinaryIO) -> tuple[str, ...]:
    """Tags that are left alone."""
    notes = []
    first = tag_length(read_at(file, 0, HEADER))
    if first and leading_tags(file) > first:
        notes.append("it has a second ID3v2 tag after the first, which is left alone")
    if _ape_length(file, _before_id3v1(file)):
        notes.append("it has an APEv2 tag, which is left alone")
    return tuple(notes)


def _before_id3v1(file: BinaryIO) -> int:
    end = size_of(file)
    has = end >= _ID3V1 and read_at(file, end - _ID3V1, 3) == b"TAG"
    return end - _ID3V1 if has else end


def _ape_length(file: BinaryIO, end: int) -> int:
    """Bytes of the APEv2 tag that ends there, 0 where none does."""
    footer = read_at(file, max(0, end - _APE), _APE)
    if not re.match(rb"APETAGEX[\xd0\xe8]", footer):
        return 0
    length = int.from_bytes(footer[12:16], "little")
    header = _APE if footer[23] & 0x80 else 0
    return min(end, length + header)


def _trailing_tags(file: BinaryIO) -> int:
    """Where the tags at the end begin."""
    end = _before_id3v1(file)
    return end - _ape_length(file, end)
