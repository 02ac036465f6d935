"""MP4: Mutagen writes the list of items, and moves the offsets of the sound."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from mutagen import MutagenError
from mutagen.mp4 import MP4 as MutagenMp4
from mutagen.mp4 import MP4FreeForm

from harmonium.library.filetags.binary import (
    FileProblem,
    blocks,
    copy,
    decoded,
    read_at,
    size_of,
)
from harmonium.library.filetags.contents import (
    COMMENT,
    OWN_FIELDS,
    Edits,
    FileTags,
    Id3Options,
    Values,
)
from harmonium.library.filetags.format import FRONT_COVER, Format, Picture

_OWN = "----:com.apple.iTunes:"
_PLACES: dict[str, Values] = {
    "genre": ("©gen",),
    "mood": (f"{_OWN}MOOD",),
    "grouping": ("©grp",),
    COMMENT: ("©cmt",),
    **{name: (_OWN + name.upper(),) for name in OWN_FIELDS},
    "title": ("©nam",),
    "artist": ("©ART",),
    "album": ("©alb",),
}
_KNOWN_PLACES = {place.casefold(): place for (place,) in _PLACES.values()}


class Atom(NamedTuple):
    """An atom at the top of the file."""

    name: bytes
    start: int  # where its data begins
    end: int


class Mp4(Format):
    """Sound in an MP4 container."""

    name = "MP4"

    def detect(self, file: BinaryIO) -> bool:
        """Whether the first atom names a file type."""
        return read_at(file, 4, 4) == b"ftyp"

    def places(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → its item."""
        return _PLACES

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the list of items says."""
        loaded = _load(file)
        values: dict[str, Values] = {}
        for key, value in (loaded.tags or {}).items():
            place = _KNOWN_PLACES.get(key.casefold())
            if place is not None:
                items = value if isinstance(value, list) else [value]
                texts = [decoded(bytes(x)) if isinstance(x, bytes) else str(x) for x in items]
                texts = [text for text in texts if text.strip()]
                values[place] = (*values.get(place, ()), *texts)
        obstacle = None
        if any(atom.name == b"moof" for atom in _atoms(file)):
            obstacle = "it is fragmented; join it with ffmpeg -i IN -c copy OUT"
        return FileTags.of(
            self,
            None if loaded.tags is None else "MP4",
            values,
            duration=float(loaded.info.length) or None,
            obstacle=obstacle,
        )

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace items of the list."""
        copy(source, target, 0, size_of(source))
        loaded = _load(target)
        if loaded.tags is None:
            loaded.add_tags()
        for key in list(loaded.tags):
            if _KNOWN_PLACES.get(key.casefold()) in edits:
                del loaded.tags[key]
        for place, values in edits.items():
            if values and place.startswith(_OWN):
                loaded.tags[place] = [MP4FreeForm(value.encode()) for value in values]
            elif values:
                loaded.tags[place] = list(values)
        target.seek(0)
        loaded.save(target)

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The contents of all atoms of media data."""
        for atom in _atoms(file):
            if atom.name == b"mdat":
                yield atom.name
                yield from blocks(file, atom.start, atom.end)

    def pictures(self, file: BinaryIO) -> list[Picture]:
        """The covers."""
        covers = (_load(file).tags or {}).get("covr") or []
        return [Picture(kind=FRONT_COVER, data=bytes(cover)) for cover in covers]


MP4 = Mp4()


def _load(file: BinaryIO) -> Any:  # Mutagen's types do not say that a file may have no tags
    file.seek(0)
    try:
        return MutagenMp4(file)
    except (MutagenError, LookupError, ValueError, struct.error, RecursionError) as error:
        raise FileProblem(f"its MP4 atoms are damaged ({error})") from None


def _atoms(file: BinaryIO) -> Iterator[Atom]:
    """The atoms at the top."""
    place = 0
    size = size_of(file)
    while place + 8 <= size:
        header = read_at(file, place, 16)
        length = int.from_bytes(header[:4])
        start = place + 8
        if length == 1:  # the size has eight bytes and follows the name
            length = int.from_bytes(header[8:16])
            start = place + 16
        elif length == 0:  # as long as the file
            length = size - place
        if length < start - place:
            return
        yield Atom(name=header[4:8], start=start, end=min(place + length, size))
        place += length
