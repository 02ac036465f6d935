"""Which format a file has, by its content."""

from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.mp3 import MPEGInfo

from harmonium.library.filetags.formats.base import Format
from harmonium.library.filetags.formats.flac import Flac
from harmonium.library.filetags.formats.id3 import leading_tags
from harmonium.library.filetags.formats.iff import AIFF, WAV
from harmonium.library.filetags.formats.mp3 import Mp3
from harmonium.library.filetags.formats.mp4 import Mp4
from harmonium.library.filetags.formats.ogg import codec_of
from harmonium.library.filetags.music_file import FileProblem, read_at

LONGEST_FRAME = 2048
"""Bytes that no MPEG frame exceeds."""
_CONTAINERS = (b"RIFF", b"FORM", b"PK\3\4", b"\x1aE\xdf\xa3")  # AVI, IFF, ZIP, Matroska

KNOWN = "MP3, FLAC, Ogg Vorbis, Opus, Speex, Ogg FLAC, MP4 (M4A), WAV and AIFF"


def format_of(file: BinaryIO) -> Format:
    """The format of a file; raises `FileProblem` where its tags are not known."""
    head = read_at(file, 0, 12)
    if head[:4] == b"RIFF" and head[8:] == b"WAVE":
        return WAV
    if head[:4] == b"FORM" and head[8:] in (b"AIFF", b"AIFC"):
        return AIFF
    if head[4:8] == b"ftyp":
        return Mp4()
    if head[:4] == b"OggS":
        if codec := codec_of(file):
            return codec
    elif read_at(file, leading_tags(file), 4) == b"fLaC":
        return Flac()
    elif head[:3] == b"ID3" or _begins_with_mpeg_frames(file):
        return Mp3()
    raise FileProblem(f"its format is not one whose tags are known: {KNOWN}")


def _begins_with_mpeg_frames(file: BinaryIO) -> bool:
    """Whether MPEG frames in a row begin at once, or after the end of a frame that was cut off.

    Single ones can be found in anything, and rows of them in films, archives and disk images: an
    ID3 tag before those would make them useless.
    """
    if read_at(file, 0, 4).startswith(_CONTAINERS):
        return False
    try:
        info: Any = MPEGInfo(file)
        return not info.sketchy and info.frame_offset <= LONGEST_FRAME
    except (MutagenError, ArithmeticError, ValueError):
        return False
