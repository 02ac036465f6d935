"""Music files and their tags: opening with clear errors, recognising by content, and reading.

Each format splits a tag into parts (frames, comments, items) and replaces those that change; all
others stay to the byte. `id3` and `vorbis_mp4` hold the formats.
"""

import base64
import hashlib
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Self, TypeAlias

from mutagen import MutagenError

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import FileTagError, readable
from harmonium.files import open_file

LIST_FIELDS = ("genre", "mood", "grouping")  # the fields that hold a list of tags
COMMENT = "comment"  # the field that is a text: people's own words, perhaps with tags in it
FIELDS = (*LIST_FIELDS, COMMENT)  # the fields that tags are read from and written to
SCORE_FIELDS = tuple(f"harmonium_{name}" for name in FIELDS)  # the scores of the tags in each
GIVEN = "harmonium"  # the field with the tags that Harmonium gave to beets
OWN_FIELDS = (*SCORE_FIELDS, GIVEN, *AUDIO_FEATURES)  # with their name as place in every format
TEXT_FIELDS = ("title", "artist", "album")
GROUPING_FRAMES = ("TIT1", "GRP1")  # the frames of ID3 that players take for the grouping
KNOWN = "MP3, FLAC, Ogg Vorbis, Opus, Speex, Ogg FLAC, MP4 (M4A), WAV and AIFF"

PathLike: TypeAlias = str | os.PathLike[str]
Values: TypeAlias = tuple[str, ...]
Edits: TypeAlias = Mapping[str, Values]  # place, such as "TCON", "GENRE" or "©gen" → its values

MAX_TAGS = 1 << 20  # the most characters to read from a file's tags
BLOCK = 1 << 20  # bytes in memory at a time
MAX_COVER = 5 << 20  # bytes of a picture
_IMAGES = {  # start of a picture that browsers show → its media type
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
}
# What Mutagen and the parsing here raise if a file breaks its format.
_DAMAGE = (
    *(MutagenError, EOFError, struct.error, ValueError, LookupError, ArithmeticError),
    *(RecursionError, MemoryError),
)


class FileProblem(Exception):
    """Why a file cannot be read or written, in words that follow its name and a colon."""


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """The file, open for reading, with `explained` errors."""
    with explained(path), open_file(path) as file:
        yield file


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one clear error."""
    name = readable(path)
    try:
        yield
    except FileTagError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise FileTagError(f"{name} cannot be read or written: {reason}.") from error
    except FileProblem as error:
        raise FileTagError(f"{name}: {error}.") from None
    except _DAMAGE as error:
        raise FileTagError(f"{name} is damaged: {str(error) or type(error).__name__}.") from error


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return file.seek(0, os.SEEK_END)


def read_at(file: BinaryIO, start: int, count: int) -> bytes:
    """The bytes from ``start`` on; fewer than ``count`` at the end of the file."""
    file.seek(start)
    return file.read(count)


def blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes from ``start`` up to ``end`` or to the end of the file, in blocks."""
    while start < end and (data := read_at(file, start, min(BLOCK, end - start))):
        start += len(data)
        yield data


def copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    """Append the bytes from ``start`` up to ``end`` of one file to another."""
    for data in blocks(source, start, end):
        target.write(data)


@dataclass(frozen=True, kw_only=True)
class Id3Options:
    """Choices that ID3 leaves open, as in `Rules`."""

    version: int = 4
    grouping: str | None = None  # the frame for grouping; None: both, to read from
    separator: str = "; "


@dataclass(frozen=True, kw_only=True)
class FileTags:
    """What a file says about itself."""

    format: str  # "MP3", "FLAC", "Ogg Vorbis", "Opus", "Speex", "Ogg FLAC", "MP4", "WAV" or "AIFF"
    version: str | None
    """The kind of tag: "ID3v2.2" to "ID3v2.4", "ID3v1", "Vorbis comment", "MP4", "RIFF INFO";
    None if there is none."""
    genre: Values = ()
    mood: Values = ()
    grouping: Values = ()
    comment: Values = ()
    title: str | None = None
    artist: str | None = None  # several are joined with "; "
    album: str | None = None
    duration: float | None = None  # seconds; None if the file does not say
    scores: Mapping[str, float] = field(default_factory=dict)  # tag → score, as Harmonium wrote it
    notes: tuple[str, ...] = ()  # oddities of the file's tags
    obstacle: str | None = None  # why the file cannot be written to, although it can be read
    values: Edits = field(default_factory=dict, repr=False)
    places: Mapping[str, Values] = field(default_factory=dict, repr=False)
    """Field → the places where it may be. It is written to the first; what is in the others is then
    moved there."""

    @classmethod
    def of(
        cls,
        format: str,
        version: str | None,
        values: Edits,
        places: Mapping[str, Values],
        damage: str | None = None,
        **about: Any,
    ) -> Self:
        """From the values at a tag's places; a tag with ``damage`` cannot be written to."""
        if sum(len(value) + 1 for some in values.values() for value in some) > MAX_TAGS:
            values, damage = {}, f"its tags have more than {MAX_TAGS:,} characters"
        self = cls(format=format, version=version, values=values, places=places)
        fields: dict[str, Any] = {name: self.at(places[name]) for name in FIELDS}
        fields |= {name: "; ".join(self.at(places[name])) or None for name in TEXT_FIELDS}
        scores = {}
        for value in (v for name in SCORE_FIELDS for v in self.at(places[name])):
            tag, _, number = value.rpartition("=")
            with suppress(ValueError):  # another program's
                scores[tag] = float(number)
        if damage is not None:
            about |= {"notes": (*about.get("notes", ()), damage), "obstacle": damage}
        return replace(self, scores=scores, **fields, **about)

    def at(self, places: Iterable[str]) -> Values:
        """The values of all these places, each once."""
        return tuple(dict.fromkeys(v for place in places for v in self.values.get(place, ())))

    @property
    def of_track(self) -> dict[str, Any]:
        """What a library stores: title, artist, album, duration, and the values by field."""
        about = {name: getattr(self, name) for name in (*TEXT_FIELDS, "duration")}
        values = {name: [*self.at(self.places[name])] for name in (*FIELDS, *OWN_FIELDS)}
        return about | {"file_tags": {name: some for name, some in values.items() if some}}


class Format(ABC):
    """A format of music files. Its methods raise `FileProblem`."""

    name: str  # its usual name

    @abstractmethod
    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the tag says."""

    def refusal(self, place: str, value: str, version: str | None, options: Id3Options) -> str:
        """Why a value cannot be kept in a place, or "": most formats keep any text."""
        return ""

    @abstractmethod
    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Write the file ``source`` to the empty file ``target``, with new values in some places.

        A place without values is removed.
        """

    @abstractmethod
    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes that are the sound and not the tag."""

    def sound_digest(self, file: BinaryIO) -> str:
        """The SHA-256 digest of an open file's sound."""
        digest = hashlib.sha256()
        for data in self.sound(file):
            digest.update(data)
        return digest.hexdigest()


def format_of(file: BinaryIO) -> Format:
    """A file's format; raises `FileProblem` if it is not supported."""
    from harmonium.library.filetags import id3  # it imports this module

    head = read_at(file, 0, 12)
    if head[:4] == b"RIFF" and head[8:] == b"WAVE":
        return id3.WAV
    if head[:4] == b"FORM" and head[8:] in (b"AIFF", b"AIFC"):
        return id3.AIFF
    is_flac = read_at(file, id3.leading_tags(file), 4) == b"fLaC"
    if is_flac or head[:4] == b"OggS" or head[4:8] == b"ftyp":
        from harmonium.library.filetags.vorbis_mp4 import Flac, Mp4, codec_of  # when it is needed

        if head[4:8] == b"ftyp":
            return Mp4()
        if found := Flac() if is_flac else codec_of(file):
            return found
    elif head[:3] == b"ID3" or id3.begins_with_mpeg_frames(file):
        return id3.Mp3()
    raise FileProblem(f"its format is not supported; supported are {KNOWN}")


def read_tags(path: PathLike, *, separator: str = "; ") -> FileTags:
    """What an MP3, FLAC, Ogg, MP4, WAV or AIFF file says about itself.

    ``separator`` separates values in ID3 tags before version 2.4. A damaged tag is reported in the
    notes; raises a FileTagError if the file is missing or has another format.
    """
    with opened(path) as file:
        return format_of(file).read(file, Id3Options(separator=separator))


def audio_digest(path: PathLike) -> str:
    """The SHA-256 digest of a file's sound, in hexadecimal digits: no change of tags changes it.

    Nothing is decoded: it covers the MPEG frames, the FLAC frames and their parameters, the Ogg
    packets other than comments, MP4's media data, or the sound chunks of WAV and AIFF.
    """
    with opened(path) as file:
        return format_of(file).sound_digest(file)


def decoded(data: bytes) -> str:
    """Text that should be UTF-8; if not, it is read as Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def duration_of(info: Callable[[BinaryIO], Any], file: BinaryIO) -> float | None:
    """The duration in seconds from Mutagen's class for a format; None if unknown."""
    file.seek(0)
    try:
        return float(info(file).length)
    except (MutagenError, EOFError, ArithmeticError, ValueError, LookupError):
        return None


def with_new_items(
    items: Iterable[bytes], key: Callable[[bytes], str], new: Mapping[str, list[bytes]]
) -> list[bytes]:
    """The items with new ones for some keys, in place of the first old one or at the end."""
    pending = dict(new)
    kept: list[bytes] = []
    for item in items:
        name = key(item)
        kept += pending.pop(name, []) if name in new else [item]
    return kept + [item for some in pending.values() for item in some]


def read_cover(file: BinaryIO) -> tuple[bytes, str] | None:
    """The picture in an open file and its media type, a front cover first; None if it has none."""
    import mutagen
    from mutagen.flac import Picture

    from harmonium.library.filetags.id3 import Id3Format

    found: list[tuple[int, bytes]] = []  # (kind of picture, data); 3 is the front cover
    with suppress(*_DAMAGE, FileProblem, OSError):
        form = format_of(file)
        if isinstance(form, Id3Format):
            found = form.pictures(file)
        else:
            file.seek(0)
            whole = mutagen.File(file)
            tags = getattr(whole, "tags", None) or {}
            found += [(one.type, one.data) for one in getattr(whole, "pictures", [])]
            texts = tags.get("metadata_block_picture") or []
            pictures = (Picture(base64.b64decode(text)) for text in texts)
            found += [(one.type, one.data) for one in pictures]
            found += [(3, bytes(data)) for data in tags.get("covr") or []]
    for _, data in sorted(found, key=lambda one: one[0] != 3):
        for begin, media_type in _IMAGES.items():
            if data.startswith(begin) and len(data) <= MAX_COVER:
                return data, media_type
    return None
