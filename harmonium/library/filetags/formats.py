"""The supported formats: recognising a file's format, and reading its tags, sound and cover."""

from contextlib import suppress
from functools import cache
from typing import BinaryIO

from harmonium.library.filetags.binary import DAMAGE, FileProblem, PathLike, opened
from harmonium.library.filetags.contents import FileTags, Id3Options, PlainLayout, TagLayout
from harmonium.library.filetags.format import FRONT_COVER, MAX_COVER, Format

_IMAGES = {  # start of a picture that browsers show → its media type
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
}


@cache
def supported_formats() -> tuple[Format, ...]:
    """All formats, in the order in which they are tried; MP3 is the hardest to recognise."""
    from harmonium.library.filetags.aiff import AIFF
    from harmonium.library.filetags.flac import FLAC
    from harmonium.library.filetags.mp3 import MP3
    from harmonium.library.filetags.mp4 import MP4
    from harmonium.library.filetags.ogg import OGG_FLAC, OPUS, SPEEX, VORBIS
    from harmonium.library.filetags.wav import WAV

    return (WAV, AIFF, FLAC, VORBIS, OPUS, OGG_FLAC, SPEEX, MP4, MP3)


def format_of(file: BinaryIO) -> Format:
    """A file's format; raises `FileProblem` if it is not supported."""
    problem = None
    for form in supported_formats():
        try:
            if form.detect(file):
                return form
        except FileProblem as error:  # then it may still have another format
            problem = error
    if problem is not None:
        raise problem
    *names, last = (form.name for form in supported_formats())
    raise FileProblem(f"its format is not supported; supported are {', '.join(names)} and {last}")


def layout_of(name: str | None) -> TagLayout:
    """The layout of the tags of a format with this name, as `FileTags.format` has it."""
    for form in supported_formats():
        if form.name == name:
            return form
    return PlainLayout()


def read_tags(
    path: PathLike, *, separator: str = "; ", options: Id3Options | None = None
) -> FileTags:
    """What a music file says about itself.

    ``separator`` separates values in ID3 tags before version 2.4; ``options`` has this and more. A
    damaged tag is reported in the notes; raises a FileTagError if the file is missing or has
    another format.
    """
    with opened(path) as file:
        return format_of(file).read(file, options or Id3Options(separator=separator))


def check_format(path: PathLike) -> None:
    """Raise a FileTagError if the tags of a file's format are not supported."""
    with opened(path) as file:
        format_of(file)


def audio_digest(path: PathLike) -> str:
    """The SHA-256 digest of a file's sound, in hexadecimal digits: no change of tags changes it.

    Nothing is decoded: it covers the MPEG frames, the FLAC frames and their parameters, the Ogg
    packets other than comments, MP4's media data, or the sound chunks of WAV and AIFF.
    """
    with opened(path) as file:
        return format_of(file).sound_digest(file)


def read_cover(file: BinaryIO) -> tuple[bytes, str] | None:
    """The picture in an open file and its media type, a front cover first; None if it has none."""
    pictures = []
    with suppress(*DAMAGE, FileProblem, OSError):
        pictures = format_of(file).pictures(file)
    for picture in sorted(pictures, key=lambda picture: picture.kind != FRONT_COVER):
        for begin, media_type in _IMAGES.items():
            if picture.data.startswith(begin) and len(picture.data) <= MAX_COVER:
                return picture.data, media_type
    return None
