"""FLAC: blocks about the sound, one of them Vorbis comments, then the sound."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from harmonium.library.filetags.formats import id3, vorbis
from harmonium.library.filetags.formats.base import Format, Id3Options, TagContents, Values
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

PADDING = 4096
"""Bytes left free in a file that had to grow."""
STREAMINFO, PADDING_KIND, COMMENT = 0, 1, 4
_HEADER = 4
_LAST = 0x80
_LARGEST = 1 << 24


class _Block(NamedTuple):
    kind: int
    data: bytes


class _Head(NamedTuple):
    start: int
    """Where the blocks begin."""
    blocks: list[_Block]
    end: int
    """Where the sound begins."""


class Flac(Format):
    """Native FLAC, perhaps with an ID3 tag before it, which is left alone."""

    name = "FLAC"
    places = staticmethod(vorbis.places)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the first block of comments says."""
        head = _head(file)
        notes = ("it has an ID3 tag, which is left alone",) if id3.leading_tags(file) else ()
        duration = _duration(head.blocks[0].data)
        data = next((block.data for block in head.blocks if block.kind == COMMENT), None)
        if data is None:
            return TagContents(version=None, duration=duration, notes=notes)
        try:
            values = vorbis.take_apart(data).values()
        except FileProblem as error:
            return TagContents.damaged(str(error), duration=duration, notes=notes)
        return TagContents(version=vorbis.VERSION, values=values, duration=duration, notes=notes)

    def write(
        self, source: BinaryIO, target: BinaryIO, edits: Mapping[str, Values], options: Id3Options
    ) -> None:
        """Replace the comments; padding shrinks or grows, so that the sound stays in its place."""
        head = _head(source)
        copy(source, target, 0, head.start)
        target.write(_render(_edited(head.blocks, edits), head.end - head.start))
        copy(source, target, head.end, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The block with the sound's parameters and MD5 sum, and all frames."""
        head = _head(file)
        yield head.blocks[0].data
        yield from blocks(file, head.end, id3.end_before_id3v1(file, head.end))


def _head(file: BinaryIO) -> _Head:
    start = id3.leading_tags(file) + 4
    at = start
    found: list[_Block] = []
    last = False
    while not last:
        header = read_at(file, at, _HEADER)
        length = int.from_bytes(header[1:4])
        data = read_at(file, at + _HEADER, length)
        if len(header) < _HEADER or len(data) < length:
            raise FileProblem("its header is cut short")
        last = bool(header[0] & _LAST)
        found.append(_Block(header[0] & ~_LAST, data))
        at += _HEADER + length
    if found[0].kind != STREAMINFO or len(found[0].data) < 34:
        raise FileProblem("it does not begin with the parameters of its sound")
    return _Head(start, found, at)


def _duration(info: bytes) -> float | None:
    """Seconds; the rate has 20 bits, the number of samples 36."""
    rate = int.from_bytes(info[10:13]) >> 4
    samples = int.from_bytes(info[13:18]) & (1 << 36) - 1
    return samples / rate if rate and samples else None


def _edited(old: list[_Block], edits: Mapping[str, Values]) -> list[_Block]:
    """The blocks with new comments and without padding."""
    kept = [block for block in old if block.kind != PADDING_KIND]
    at = next((i for i, block in enumerate(kept) if block.kind == COMMENT), None)
    comments = vorbis.Comments() if at is None else vorbis.take_apart(kept[at].data)
    new = _Block(COMMENT, comments.with_values(edits).render())
    start, end = (1, 1) if at is None else (at, at + 1)
    return [*kept[:start], new, *kept[end:]]


def _render(kept: list[_Block], room: int) -> bytes:
    """The blocks with padding that fills the room, or with new padding where that is too small."""
    left = room - sum(_HEADER + len(block.data) for block in kept)
    if left >= _HEADER:
        kept = [*kept, _Block(PADDING_KIND, bytes(left - _HEADER))]
    elif left:
        kept = [*kept, _Block(PADDING_KIND, bytes(PADDING))]
    parts = []
    for i, (kind, data) in enumerate(kept):
        if len(data) >= _LARGEST:
            raise FileProblem(f"one of its blocks would have {len(data)} bytes, more than 16 MiB")
        last = _LAST if i == len(kept) - 1 else 0
        parts.append(bytes((kind | last,)) + len(data).to_bytes(3) + data)
    return b"".join(parts)
