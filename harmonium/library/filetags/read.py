"""Reading the tags of a file, and the digest of its sound."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from harmonium.library.filetags.formats.base import (
    FIELDS,
    SCORE_FIELDS,
    Format,
    Id3Options,
    TagContents,
    Values,
)
from harmonium.library.filetags.formats.detect import format_of
from harmonium.library.filetags.music_file import PathLike, opened
from harmonium.library.filetags.rules import GROUPING_FRAMES


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
