"""Which format a file has, by its content; its tags, and the digest of its sound."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.mp3 import MPEGInfo

from harmonium.library.filetags.formats import (
    FIELDS,
    SCORE_FIELDS,
    Format,
    Id3Options,
    TagContents,
    Values,
)
from harmonium.library.filetags.formats.id3 import AIFF, WAV, Mp3, leading_tags
from harmonium.library.filetags.formats.mp4 import Mp4
from harmonium.library.filetags.formats.vorbis import Flac, codec_of
from harmonium.library.filetags.music_file import FileProblem, PathLike, opened, read_at
from harmonium.library.filetags.rules import GROUPING_FRAMES

MAX_FRAME_SIZE = 2048
"""Bytes that no MPEG frame exceeds."""
_CONTAINERS = (b"RIFF", b"FORM", b"PK\3\4", b"\x1aE\xdf\xa3")  # AVI, IFF, ZIP, Matroska

KNOWN = "MP3, FLAC, Ogg Vorbis, Opus, Speex, Ogg FLAC, MP4 (M4A), WAV and AIFF"


@dataclass(frozen=True, kw_only=True)
class FileTags:
    """What a file says of itself."""

    format: str
    """"MP3", "FLAC", "Ogg Vorbis", "Opus", "Speex", "Ogg FLAC", "MP4", "WAV" or "AIFF"."""
    version: str | None
    """The kind of tag: "ID3v2.2" to "ID3v2.4", "ID3v1", "Vorbis comment", "MP4", "RIFF INFO";
    None where there is none."""
    genre: Values = ()
    mood: Values = ()
    grouping: Values = ()
    comment: Values = ()
    title: str | None = None
    artist: str | None = None
    """Several are joined with "; "."""
    album: str | None = None
    duration: float | None = None
    """Seconds; None where the file does not say."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Tag → score, where Harmonium wrote them."""
    notes: tuple[str, ...] = ()
    """What is odd about the file's tags."""

    @property
    def of_track(self) -> dict[str, Any]:
        """What a library keeps of it: title, artist, album, duration, and the tags by field."""
        about = {name: getattr(self, name) for name in ("title", "artist", "album", "duration")}
        tags = {name: [*getattr(self, name)] for name in FIELDS if getattr(self, name)}
        return about | {"file_tags": tags}


def read_tags(path: PathLike, *, separator: str = "; ") -> FileTags:
    """What a file says of itself.

    Parameters
    ----------
    path : of an MP3, FLAC, Ogg (Vorbis, Opus, Speex, FLAC), MP4, WAV or AIFF file
    separator : what separates values in ID3 tags before version 2.4

    Raises
    ------
    FileTagError
        where there is no such file, or it is none of these; a damaged tag is among the notes
    """
    with opened(path) as file:
        found = format_of(file)
        options = [Id3Options(grouping=frame, separator=separator) for frame in GROUPING_FRAMES]
        contents = found.read(file, options[0])
        places = [found.places(contents.version, each) for each in options]
    first = places[0]
    values: dict[str, Any] = {name: contents.at(first[name]) for name in FIELDS}
    # Which frame holds the grouping is the choice of whoever wrote it: both are read.
    grouping = dict.fromkeys(v for each in places for v in contents.at(each["grouping"]))
    values["grouping"] = tuple(grouping)
    for name in ("title", "artist", "album"):
        values[name] = "; ".join(contents.at(first[name])) or None
    return FileTags(
        format=found.name,
        version=contents.version,
        duration=contents.duration,
        scores=_scores(contents, first),
        notes=contents.notes,
        **values,
    )


def audio_digest(path: PathLike) -> str:
    """The SHA-256 digest of a file's sound, in hexadecimal digits: no change of tags changes it.

    Nothing is decoded: it is of the MPEG frames, the FLAC frames and their parameters, the Ogg
    packets other than comments, MP4's media data, or the chunks of sound of WAV and AIFF.

    Raises
    ------
    FileTagError
        where there is no such file, or its format is not known
    """
    with opened(path) as file:
        return sound_digest(format_of(file), file)


def sound_digest(found: Format, file: BinaryIO) -> str:
    """The SHA-256 digest of an open file's sound."""
    digest = hashlib.sha256()
    for data in found.sound(file):
        digest.update(data)
    return digest.hexdigest()


def _scores(contents: TagContents, places: dict[str, tuple[str, ...]]) -> dict[str, float]:
    scores = {}
    for name in SCORE_FIELDS:
        for value in contents.at(places[name]):
            tag, _, number = value.rpartition("=")
            try:
                scores[tag] = float(number)
            except ValueError:
                continue  # someone else's
    return scores


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
        return not info.sketchy and info.frame_offset <= MAX_FRAME_SIZE
    except (MutagenError, ArithmeticError, ValueError):
        return False
