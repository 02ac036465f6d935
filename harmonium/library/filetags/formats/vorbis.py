"""Vorbis comments, a list of KEY=value; and the formats that have them: FLAC and Ogg.

Comments are kept as bytes, so that those of others stay as they are, valid UTF-8 or not; Mutagen
would change those that it cannot decode. FLAC has them in one of the blocks before the sound. In
Ogg, the second packet of a stream of Vorbis, Opus, Speex or FLAC holds them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple

from mutagen import MutagenError
from mutagen.ogg import OggPage
from mutagen.oggflac import OggFLAC
from mutagen.oggopus import OggOpus
from mutagen.oggspeex import OggSpeex
from mutagen.oggvorbis import OggVorbis

from harmonium.library.filetags.formats import (
    COMMENT,
    FIELDS,
    SCORE_FIELDS,
    Edits,
    Format,
    Id3Options,
    TagContents,
    Values,
    decoded,
    duration_of,
    with_new_items,
)
from harmonium.library.filetags.formats.id3 import end_before_id3v1, leading_tags
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

VERSION = "Vorbis comment"
_PLACES: dict[str, tuple[str, ...]] = {name: (name.upper(),) for name in (*FIELDS, *SCORE_FIELDS)}
_PLACES |= {name: (name.upper(),) for name in ("title", "artist", "album")}
_PLACES[COMMENT] = ("COMMENT", "DESCRIPTION")


@dataclass(frozen=True)
class Comments:
    """A comment block taken apart."""

    vendor: bytes = b"Harmonium"
    entries: tuple[bytes, ...] = ()
    rest: bytes = b""
    """What comes after the last comment."""

    def values(self) -> dict[str, Values]:
        """Key in capitals → values."""
        values: dict[str, Values] = {}
        for entry in self.entries:
            key, value = _key(entry), decoded(entry.partition(b"=")[2])
            if value.strip():
                values[key] = (*values.get(key, ()), value)
        return values

    def with_values(self, edits: Edits) -> "Comments":
        """With new comments for these keys, where the first old one was or at the end."""
        new = {key: [f"{key}={v}".encode() for v in values] for key, values in edits.items()}
        return replace(self, entries=with_new_items(self.entries, _key, new))

    def render(self) -> bytes:
        """As bytes, without the rest."""
        entries = (_sized(entry) for entry in self.entries)
        return _sized(self.vendor) + _number(len(self.entries)) + b"".join(entries)


def take_apart(data: bytes) -> Comments:
    """The comments in a block, which begins with the name of the program that wrote it."""
    vendor, at = _part(data, 0)
    count = int.from_bytes(data[at : at + 4], "little")
    at += 4
    entries = []
    for _ in range(count):
        entry, at = _part(data, at)
        entries.append(entry)
    return Comments(vendor, tuple(entries), data[at:])


def vorbis_places(version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
    """Field → keys."""
    return _PLACES


def _part(data: bytes, at: int) -> tuple[bytes, int]:
    """(a text with its size before it, the place after it)"""
    end = at + 4 + int.from_bytes(data[at : at + 4], "little")
    if at + 4 > len(data) or end > len(data):
        raise FileProblem("its Vorbis comments are damaged: they end too early")
    return data[at + 4 : end], end


def _key(entry: bytes) -> str:
    return entry.partition(b"=")[0].decode("latin-1").upper()


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


def _number(number: int) -> bytes:
    return number.to_bytes(4, "little")


# FLAC. ----------------------------------------------------------------------------------------

PADDING = 4096
"""Bytes left free in a file that had to grow."""
_STREAMINFO, _PADDING, _COMMENT = 0, 1, 4
_HEADER = 4
_LAST = 0x80
_MAX_BLOCK = 1 << 24


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
    places = staticmethod(vorbis_places)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the first block of comments says."""
        head = _head(file)
        notes = ("it has an ID3 tag, which is left alone",) if leading_tags(file) else ()
        duration = _duration(head.blocks[0].data)
        data = next((block.data for block in head.blocks if block.kind == _COMMENT), None)
        if data is None:
            return TagContents(version=None, duration=duration, notes=notes)
        try:
            values = take_apart(data).values()
        except FileProblem as error:
            return TagContents.damaged(str(error), duration=duration, notes=notes)
        return TagContents(version=VERSION, values=values, duration=duration, notes=notes)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the comments; padding shrinks or grows, so that the sound stays in its place."""
        head = _head(source)
        copy(source, target, 0, head.start)
        target.write(_render(_edited(head.blocks, edits), head.end - head.start))
        copy(source, target, head.end, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The block with the sound's parameters and MD5 sum, and all frames."""
        head = _head(file)
        yield head.blocks[0].data
        yield from blocks(file, head.end, end_before_id3v1(file, head.end))


def _head(file: BinaryIO) -> _Head:
    start = leading_tags(file) + 4
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
    if found[0].kind != _STREAMINFO or len(found[0].data) < 34:
        raise FileProblem("it does not begin with the parameters of its sound")
    return _Head(start, found, at)


def _duration(info: bytes) -> float | None:
    """Seconds; the rate has 20 bits, the number of samples 36."""
    rate = int.from_bytes(info[10:13]) >> 4
    samples = int.from_bytes(info[13:18]) & (1 << 36) - 1
    return samples / rate if rate and samples else None


def _edited(old: list[_Block], edits: Edits) -> list[_Block]:
    """The blocks with new comments and without padding."""
    kept = [block for block in old if block.kind != _PADDING]
    at = next((i for i, block in enumerate(kept) if block.kind == _COMMENT), None)
    comments = Comments() if at is None else take_apart(kept[at].data)
    new = _Block(_COMMENT, comments.with_values(edits).render())
    start, end = (1, 1) if at is None else (at, at + 1)
    return [*kept[:start], new, *kept[end:]]


def _render(kept: list[_Block], room: int) -> bytes:
    """The blocks with padding that fills the room, or with new padding where that is too small."""
    left = room - sum(_HEADER + len(block.data) for block in kept)
    if left >= _HEADER:
        kept = [*kept, _Block(_PADDING, bytes(left - _HEADER))]
    elif left:
        kept = [*kept, _Block(_PADDING, bytes(PADDING))]
    parts = []
    for i, (kind, data) in enumerate(kept):
        if len(data) >= _MAX_BLOCK:
            raise FileProblem(f"one of its blocks would have {len(data)} bytes, more than 16 MiB")
        last = _LAST if i == len(kept) - 1 else 0
        parts.append(bytes((kind | last,)) + len(data).to_bytes(3) + data)
    return b"".join(parts)


# Ogg. -----------------------------------------------------------------------------------------

PAGE = 120 * 255
"""Size that new pages are filled up to: half of the largest, since packets may then be added."""


@dataclass(frozen=True)
class Ogg(Format):
    """A codec in Ogg."""

    name: str
    first: bytes
    """How the first packet of a stream begins."""
    mark: bytes
    """How the packet of comments begins."""
    end: Callable[[bytes], bytes]
    """What follows the comments, given what followed them before."""
    kind: Callable[[BinaryIO], Any]
    """Mutagen's class for it."""
    places = staticmethod(vorbis_places)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the comments of the first stream of this codec say."""
        pages = _comment_pages(file, self.first)
        packet = OggPage.to_packets(pages)[0]
        duration = duration_of(lambda opened: self.kind(opened).info, file)
        try:
            values = self._comments(packet).values()
        except FileProblem as error:
            return TagContents.damaged(str(error), duration=duration)
        return TagContents(version=VERSION, values=values, duration=duration)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the packet; Mutagen renumbers the pages after it where their number grows."""
        copy(source, target, 0, size_of(source))
        pages = _comment_pages(target, self.first)
        packets = OggPage.to_packets(pages)
        comments = self._comments(packets[0]).with_values(edits)
        packets[0] = self._packet(packets[0], comments)
        OggPage.replace(
            target, pages, OggPage.from_packets(packets, pages[0].sequence, default_size=PAGE)
        )

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All packets but the second of each stream, whatever pages they are on.

        They come in pieces; the last piece of one is followed by its stream and number.
        """
        seen: dict[bytes, int] = {}
        start, size = 0, size_of(file)
        while start < size:
            head = read_at(file, start, 27)
            if len(head) < 27 or not head.startswith(b"OggS"):
                yield from blocks(file, start, size)  # whatever it is, it is not pages
                return
            lacing = read_at(file, start + 27, head[26])
            body = read_at(file, start + 27 + len(lacing), sum(lacing))
            serial, position = head[14:18], head[6:14]
            if head[5] & 2:  # the stream's first page
                seen[serial] = 0
            if position not in (bytes(8), b"\xff" * 8):  # pages of sound, which nobody divides anew
                yield position
            yield from _pieces(lacing, body, serial, seen)
            start += 27 + len(lacing) + len(body)

    def _comments(self, packet: bytes) -> Comments:
        is_block = self.mark == _FLAC_MARK and packet[:1] in (b"\x04", b"\x84")
        if not is_block and not packet.startswith(self.mark):
            raise FileProblem("its second packet holds no comments")
        return take_apart(packet[len(self.mark) :])

    def _packet(self, old: bytes, comments: Comments) -> bytes:
        data = comments.render() + self.end(comments.rest)
        if self.mark != _FLAC_MARK:
            return self.mark + data
        return old[:1] + len(data).to_bytes(3) + data


def _kept_if_marked(rest: bytes) -> bytes:
    """Opus: what follows is to be kept where its first bit says so, and is padding otherwise."""
    return rest if rest and rest[0] & 1 else b""


_FLAC_MARK = bytes(4)  # stands for a header that has the size in it

CODECS = (
    Ogg("Ogg Vorbis", b"\x01vorbis", b"\x03vorbis", lambda rest: b"\1", OggVorbis),
    Ogg("Opus", b"OpusHead", b"OpusTags", _kept_if_marked, OggOpus),
    Ogg("Ogg FLAC", b"\x7fFLAC", _FLAC_MARK, lambda rest: b"", OggFLAC),
    Ogg("Speex", b"Speex   ", b"", lambda rest: b"", OggSpeex),
)


def codec_of(file: BinaryIO) -> Ogg | None:
    """The codec of the first stream that has one of these."""
    for page in _pages(file):
        if not page.first:
            return None
        for codec in CODECS:
            if page.packets and page.packets[0].startswith(codec.first):
                return codec
    return None


def _pages(file: BinaryIO) -> Iterator[OggPage]:
    file.seek(0)
    while True:
        try:
            yield OggPage(file)
        except EOFError:
            return
        except MutagenError as error:
            raise FileProblem(f"its Ogg pages are damaged ({error})") from None


def _comment_pages(file: BinaryIO, first: bytes) -> list[OggPage]:
    """The pages of the second packet of the first stream of a codec."""
    serial = None
    found: list[OggPage] = []
    for page in _pages(file):
        if serial is None and page.first and page.packets and page.packets[0].startswith(first):
            serial = page.serial
        elif page.serial == serial:
            found.append(page)
            if page.complete or len(page.packets) > 1:
                return found
    raise FileProblem("it ends before its comments do")


def _pieces(lacing: bytes, body: bytes, serial: bytes, seen: dict[bytes, int]) -> Iterator[bytes]:
    """The pieces on one page, without those of the second packet of a stream."""
    number, at, length = seen.get(serial, 0), 0, 0
    for i, part in enumerate(lacing):
        length += part
        ends = part < 255
        if ends or i == len(lacing) - 1:
            if number != 1:
                yield body[at : at + length]
            if ends:
                number += 1
                yield b"%s%d;" % (serial, number)
            at, length = at + length, 0
    seen[serial] = number
