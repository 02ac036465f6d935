"""MP3 and its elder brothers: an ID3v2 tag, the sound, and perhaps other tags after it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

from mutagen import MutagenError
from mutagen.id3 import ID3, ID3NoHeaderError
from mutagen.mp3 import HeaderNotFoundError, MPEGInfo

from harmonium.library.filetags.formats import id3
from harmonium.library.filetags.formats.base import Format, Id3Options, TagContents, Values
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

_APE = 32


class Mp3(Format):
    """MPEG audio of layers 1 to 3."""

    name = "MP3"
    places = staticmethod(id3.places)
    refusal = staticmethod(id3.refusal)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the first ID3v2 tag says, and an ID3v1 tag where that is silent."""
        contents = id3.read_tag(file, options)
        duration, obstacle = _duration(file)
        return replace(
            contents,
            duration=duration,
            notes=(*_other_tags(file), *contents.notes),
            obstacle=contents.obstacle or obstacle,
        )

    def write(
        self, source: BinaryIO, target: BinaryIO, edits: Mapping[str, Values], options: Id3Options
    ) -> None:
        """Replace the first ID3v2 tag; all that follows stays."""
        head = read_at(source, 0, id3.HEADER)
        room = id3.tag_length(head)
        if head.startswith(b"ID3") and not room:
            raise FileProblem("its ID3 tag is damaged: its size is not valid")
        data = read_at(source, 0, room) if room else _from_id3v1(source, options.version)
        target.write(id3.edited_tag(data, edits, options, room=room))
        copy(source, target, room, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All between the tags at the beginning and those at the end."""
        end = id3.end_before_id3v1(file)
        yield from blocks(file, id3.leading_tags(file), end - _ape_length(file, end))


def _duration(file: BinaryIO) -> tuple[float | None, str | None]:
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
    first = id3.tag_length(read_at(file, 0, id3.HEADER))
    if first and id3.leading_tags(file) > first:
        notes.append("it has a second ID3v2 tag after the first, which is left alone")
    if _ape_length(file, id3.end_before_id3v1(file)):
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
