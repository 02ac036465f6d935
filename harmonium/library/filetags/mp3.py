"""MP3: MPEG audio, with an ID3v2 tag before it and perhaps ID3v1 and APEv2 tags after it."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.id3 import ID3, ID3NoHeaderError
from mutagen.mp3 import HeaderNotFoundError, MPEGInfo

from harmonium.library.filetags.binary import FileProblem, blocks, copy, read_at, size_of
from harmonium.library.filetags.contents import Edits, FileTags, Id3Options
from harmonium.library.filetags.id3 import (
    HEADER,
    Id3Format,
    edited_tag,
    leading_tags,
    load_tag,
    tag_length,
)

MAX_FRAME_SIZE = 2048  # the longest MPEG frame, in bytes
_CONTAINERS = (b"RIFF", b"FORM", b"OggS", b"PK\3\4", b"\x1aE\xdf\xa3")
"""How AVI, IFF, Ogg, ZIP and Matroska begin; each may have MPEG sound in it."""


class Mp3(Id3Format):
    """MPEG audio of layers 1 to 3."""

    name = "MP3"

    def detect(self, file: BinaryIO) -> bool:
        """Whether an ID3v2 tag begins the file, or a row of MPEG frames."""
        return read_at(file, 0, 3) == b"ID3" or _begins_with_frames(file)

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the first ID3v2 tag says; an ID3v1 tag fills empty fields."""
        notes = []
        first = tag_length(read_at(file, 0, HEADER))
        if first and leading_tags(file) > first:
            notes.append("it has a second ID3v2 tag after the first, which is left alone")
        if _ape_length(file, end_before_id3v1(file)):
            notes.append("it has an APEv2 tag, which is left alone")
        tag, damage = load_tag(file)
        duration = obstacle = None
        try:
            duration = float(MPEGInfo(file).length)
        except HeaderNotFoundError:
            obstacle = "no MPEG sound was found in it"
        except (MutagenError, ArithmeticError, ValueError) as error:
            obstacle = f"its sound cannot be read ({error})"
        return self.tags_of(
            tag,
            options,
            duration=duration,
            notes=tuple(notes),
            obstacle=obstacle,
            damage=damage,
        )

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


MP3 = Mp3()


def end_before_id3v1(file: BinaryIO, start: int = 0) -> int:
    """Where an ID3v1 tag begins after ``start``; the end of the file if there is none."""
    end = size_of(file)
    if end - 128 >= start and read_at(file, end - 128, 3) == b"TAG":
        return end - 128
    return end


def _begins_with_frames(file: BinaryIO) -> bool:
    """Whether a row of MPEG frames begins at once, or after the rest of a truncated frame.

    Single frames can be found in anything, and rows of them in films, archives and disk images: an
    ID3 tag before those would make them useless.
    """
    if read_at(file, 0, 4).startswith(_CONTAINERS):
        return False
    file.seek(0)
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
