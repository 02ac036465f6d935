"""MP4 (M4A, M4B): Mutagen writes the atoms and moves the offsets of the sound."""

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.mp4 import MP4, MP4FreeForm

from harmonium.library.filetags.formats import (
    LIST_FIELDS,
    SCORE_FIELDS,
    Edits,
    Format,
    Id3Options,
    TagContents,
    Values,
    decoded,
)
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

_OWN = "----:com.apple.iTunes:"
_LISTS = dict(zip(LIST_FIELDS, (("©gen",), (f"{_OWN}MOOD",), ("©grp",)), strict=True))
_SCORES = {name: (_OWN + name.upper(),) for name in SCORE_FIELDS}
_TEXTS = {"title": ("©nam",), "artist": ("©ART",), "album": ("©alb",), "comment": ("©cmt",)}
_PLACES: dict[str, Values] = {**_LISTS, **_SCORES, **_TEXTS}
_KNOWN = {place.casefold(): place for places in _PLACES.values() for place in places}


class Mp4(Format):
    """Sound in an MP4 container."""

    name = "MP4"

    def places(self, version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
        """Field → atoms."""
        return _PLACES

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the list of items says."""
        loaded = _load(file)
        duration = float(loaded.info.length) or None
        fragmented = any(name == b"moof" for name, _, _ in _atoms(file))
        obstacle = "it is fragmented; join it with ffmpeg -i IN -c copy OUT" if fragmented else None
        if loaded.tags is None:
            return TagContents(version=None, duration=duration, obstacle=obstacle)
        values: dict[str, Values] = {}
        for key in loaded.tags:
            if place := _KNOWN.get(key.casefold()):
                values[place] = (*values.get(place, ()), *_texts(loaded.tags[key]))
        return TagContents(version="MP4", values=values, duration=duration, obstacle=obstacle)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace items of the list."""
        copy(source, target, 0, size_of(source))
        loaded = _load(target)
        if loaded.tags is None:
            loaded.add_tags()
        for key in [key for key in loaded.tags if _KNOWN.get(key.casefold()) in edits]:
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
        for name, start, end in _atoms(file):
            if name == b"mdat":
                yield name
                yield from blocks(file, start, end)


def _load(file: BinaryIO) -> Any:  # Mutagen's types do not say that a file may have no tags
    """Mutagen's MP4."""
    file.seek(0)
    try:
        return MP4(file)
    except (MutagenError, LookupError, ValueError, struct.error, RecursionError) as error:
        raise FileProblem(f"its MP4 atoms are damaged ({error})") from None


def _atoms(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """(name, start of the data, end) of each atom at the top."""
    at, size = 0, size_of(file)
    while at + 8 <= size:
        header = read_at(file, at, 16)
        length, start = int.from_bytes(header[:4]), at + 8
        if length == 1:
            length, start = int.from_bytes(header[8:16]), at + 16
        elif length == 0:  # as long as the file
            length = size - at
        if length < start - at:
            return
        yield header[4:8], start, min(at + length, size)
        at += length


def _texts(value: object) -> Values:
    items = value if isinstance(value, list) else [value]
    texts = (decoded(bytes(item)) if isinstance(item, bytes) else str(item) for item in items)
    return tuple(text for text in texts if text.strip())
