"""Formats whose tag is a list of items: FLAC and Ogg with Vorbis comments, and MP4.

Vorbis comments, KEY=value, are kept as bytes, so that other programs' comments do not change, valid
UTF-8 or not; Mutagen would change what it cannot decode. FLAC has them in one of the blocks before
the sound. In Ogg, the second packet of a stream of Vorbis, Opus, Speex or FLAC holds them. Mutagen
writes the atoms of MP4, and moves the offsets of the sound.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, TypeAlias

from mutagen import MutagenError
from mutagen.mp4 import MP4, MP4FreeForm
from mutagen.ogg import OggPage
from mutagen.oggflac import OggFLAC
from mutagen.oggopus import OggOpus
from mutagen.oggspeex import OggSpeex
from mutagen.oggvorbis import OggVorbis

from harmonium.library.filetags.formats import (
    COMMENT,
    FIELDS,
    LIST_FIELDS,
    OWN_FIELDS,
    TEXT_FIELDS,
    Edits,
    FileProblem,
    FileTags,
    Format,
    Id3Options,
    Values,
    blocks,
    copy,
    decoded,
    duration_of,
    read_at,
    size_of,
    with_new_items,
)
from harmonium.library.filetags.id3 import end_before_id3v1, leading_tags

_PLACES = {name: (name.upper(),) for name in (*FIELDS, *OWN_FIELDS, *TEXT_FIELDS)}
_COMMENT_PLACES: dict[str, Values] = _PLACES | {COMMENT: ("COMMENT", "DESCRIPTION")}
_KNOWN_KEYS = {place for places in _COMMENT_PLACES.values() for place in places}
MAX_COMMENTS = 100_000


def take_apart(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """(the name of the program that wrote a block of comments, the comments, what follows them)"""

    def part(at: int) -> tuple[bytes, int]:
        """(a text with its size before it, the place after it)"""
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if at + 4 > len(data) or end > len(data):
            raise FileProblem("its Vorbis comments are damaged: they end too early")
        return data[at + 4 : end], end

    vendor, start = part(0)
    entries, at = [], start + 4
    if (count := int.from_bytes(data[start:at], "little")) > MAX_COMMENTS:
        raise FileProblem(f"it has more than {MAX_COMMENTS:,} Vorbis comments")
    for _ in range(count):
        entry, at = part(at)
        entries.append(entry)
    return vendor, entries, data[at:]


def read_comments(format: str, data: bytes | None, **about: Any) -> FileTags:
    """What a block of comments says; None if there is none."""
    if data is None:
        return FileTags.of(format, None, {}, _COMMENT_PLACES, **about)
    found: dict[str, list[str]] = {}
    try:
        for entry in take_apart(data)[1]:
            key = _key(entry)  # pictures may be large
            if key in _KNOWN_KEYS and (value := decoded(entry.partition(b"=")[2])).strip():
                found.setdefault(key, []).append(value)
    except FileProblem as error:
        return FileTags.of(format, None, {}, _COMMENT_PLACES, str(error), **about)
    values = {key: tuple(some) for key, some in found.items()}
    return FileTags.of(format, "Vorbis comment", values, _COMMENT_PLACES, **about)


def edited_comments(data: bytes | None, edits: Edits) -> tuple[bytes, bytes]:
    """(a block with new comments, where the first old one was or at the end; what followed it)"""
    vendor, entries, rest = (b"Harmonium", [], b"") if data is None else take_apart(data)
    new = {key: [f"{key}={v}".encode() for v in values] for key, values in edits.items()}
    entries = with_new_items(entries, _key, new)
    parts = [_sized(vendor), len(entries).to_bytes(4, "little"), *map(_sized, entries)]
    return b"".join(parts), rest


def _key(entry: bytes) -> str:
    return entry.partition(b"=")[0].decode("latin-1").upper()


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


PADDING = 4096  # free bytes left in a file that had to grow
_STREAMINFO, _PADDING, _COMMENT, _LAST = 0, 1, 4, 0x80
_HEADER, _MAX_BLOCK = 4, 1 << 24

Blocks: TypeAlias = list[tuple[int, bytes]]  # (kind, data) of each


class Flac(Format):
    """Native FLAC, perhaps with an ID3 tag before it, which is left alone."""

    name = "FLAC"

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the first block of comments says."""
        _, found, _ = _head(file)
        notes = ("it has an ID3 tag, which is left alone",) if leading_tags(file) else ()
        info = found[0][1]  # 20 bits of the rate, 36 of the number of samples
        rate, samples = int.from_bytes(info[10:13]) >> 4, int.from_bytes(info[13:18]) % (1 << 36)
        duration = samples / rate if rate and samples else None
        data = next((data for kind, data in found if kind == _COMMENT), None)
        return read_comments(self.name, data, duration=duration, notes=notes)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the comments; padding shrinks or grows, so that the sound stays in its place."""
        start, found, end = _head(source)
        kept = [block for block in found if block[0] != _PADDING]
        at = next((i for i, (kind, _) in enumerate(kept) if kind == _COMMENT), None)
        old = None if at is None else kept.pop(at)[1]
        kept.insert(1 if at is None else at, (_COMMENT, edited_comments(old, edits)[0]))
        copy(source, target, 0, start)
        target.write(_render(kept, end - start))
        copy(source, target, end, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The block with the sound's parameters and MD5 sum, and all frames."""
        _, found, end = _head(file)
        yield found[0][1]
        yield from blocks(file, end, end_before_id3v1(file, end))


def _head(file: BinaryIO) -> tuple[int, Blocks, int]:
    """(where the blocks begin, the blocks, where the sound begins)"""
    start = at = leading_tags(file) + 4
    found: Blocks = []
    last = False
    while not last:
        header = read_at(file, at, _HEADER)
        length = int.from_bytes(header[1:4])
        data = read_at(file, at + _HEADER, length)
        if len(header) < _HEADER or len(data) < length:
            raise FileProblem("its header is cut short")
        last = bool(header[0] & _LAST)
        found.append((header[0] & ~_LAST, data))
        at += _HEADER + length
    if found[0][0] != _STREAMINFO or len(found[0][1]) < 34:
        raise FileProblem("its first block is not a valid STREAMINFO")
    return start, found, at


def _render(kept: Blocks, room: int) -> bytes:
    """The blocks with padding that fills the room, or with new padding if there is too little."""
    left = room - sum(_HEADER + len(data) for _, data in kept)
    if left:
        kept = [*kept, (_PADDING, bytes(left - _HEADER if left >= _HEADER else PADDING))]
    parts = []
    for i, (kind, data) in enumerate(kept, 1):
        if len(data) >= _MAX_BLOCK:
            raise FileProblem(f"one of its blocks would have {len(data)} bytes, more than 16 MiB")
        last = _LAST if i == len(kept) else 0
        parts.append(bytes((kind | last,)) + len(data).to_bytes(3) + data)
    return b"".join(parts)


PAGE = 120 * 255  # size of new pages: half of the largest, since packets may then be added


@dataclass(frozen=True)
class Ogg(Format):
    """A codec in Ogg."""

    name: str
    first: bytes  # start of a stream's first packet
    mark: bytes  # start of the comment packet
    end: Callable[[bytes], bytes]  # what follows the comments, given what followed them before
    kind: Callable[[BinaryIO], Any]  # Mutagen's class for it

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the comments of the first stream of this codec say."""
        packet = OggPage.to_packets(_comment_pages(file, self.first))[0]
        tags = read_comments(self.name, self._comments(packet))
        if tags.obstacle:  # Mutagen reads the comments as well, however many there are
            return tags
        return replace(tags, duration=duration_of(lambda opened: self.kind(opened).info, file))

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the packet; Mutagen renumbers the later pages if there are more."""
        copy(source, target, 0, size_of(source))
        pages = _comment_pages(target, self.first)
        packets = OggPage.to_packets(pages)
        data, rest = edited_comments(self._comments(packets[0]), edits)
        data += self.end(rest)
        is_flac = self.mark == _FLAC_MARK
        head = packets[0][:1] + len(data).to_bytes(3) if is_flac else self.mark
        packets[0] = head + data
        new = OggPage.from_packets(packets, pages[0].sequence, default_size=PAGE)
        OggPage.replace(target, pages, new)

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All packets but the second of each stream, whatever pages they are on."""
        # They come in pieces; the last piece of one is followed by its stream and number.
        seen: dict[bytes, int] = {}
        start, size = 0, size_of(file)
        while start < size:
            head = read_at(file, start, 27)
            if len(head) < 27 or not head.startswith(b"OggS"):
                yield from blocks(file, start, size)  # anything else is not pages
                return
            lacing = read_at(file, start + 27, head[26])
            body = read_at(file, start + 27 + len(lacing), sum(lacing))
            serial, position = head[14:18], head[6:14]
            if head[5] & 2:  # the stream's first page
                seen[serial] = 0
            if position not in (bytes(8), b"\xff" * 8):  # pages of sound keep their boundaries
                yield position
            yield from _pieces(lacing, body, serial, seen)
            start += 27 + len(lacing) + len(body)

    def _comments(self, packet: bytes) -> bytes:
        """The block of comments in a packet; empty for another packet."""
        is_block = self.mark == _FLAC_MARK and packet[:1] in (b"\x04", b"\x84")
        return packet[len(self.mark) :] if is_block or packet.startswith(self.mark) else b""


def _pieces(lacing: bytes, body: bytes, serial: bytes, seen: dict[bytes, int]) -> Iterator[bytes]:
    """The pieces on one page, except from a stream's second packet."""
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


_FLAC_MARK = bytes(4)  # stands for a header that has the size in it


CODECS = (
    Ogg("Ogg Vorbis", b"\x01vorbis", b"\x03vorbis", lambda rest: b"\1", OggVorbis),
    # What follows is kept if its first bit says so; otherwise it is padding.
    Ogg("Opus", b"OpusHead", b"OpusTags", lambda it: it if it[:1] and it[0] & 1 else b"", OggOpus),
    Ogg("Ogg FLAC", b"\x7fFLAC", _FLAC_MARK, lambda rest: b"", OggFLAC),
    Ogg("Speex", b"Speex   ", b"", lambda rest: b"", OggSpeex),
)


def codec_of(file: BinaryIO) -> Ogg | None:
    """The codec of the first stream with a supported codec."""
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


_OWN = "----:com.apple.iTunes:"
_ATOMS: dict[str, Values] = {
    **dict(zip(LIST_FIELDS, (("©gen",), (f"{_OWN}MOOD",), ("©grp",)), strict=True)),
    **{name: (_OWN + name.upper(),) for name in OWN_FIELDS},
    **{"title": ("©nam",), "artist": ("©ART",), "album": ("©alb",), COMMENT: ("©cmt",)},
}
_KNOWN_ATOMS = {place.casefold(): place for places in _ATOMS.values() for place in places}


class Mp4(Format):
    """Sound in an MP4 container."""

    name = "MP4"

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the list of items says."""
        loaded = _load(file)
        values: dict[str, Values] = {}
        for key, value in (loaded.tags or {}).items():
            if place := _KNOWN_ATOMS.get(key.casefold()):
                items = value if isinstance(value, list) else [value]
                texts = [decoded(bytes(x)) if isinstance(x, bytes) else str(x) for x in items]
                values[place] = (*values.get(place, ()), *(text for text in texts if text.strip()))
        fragmented = any(name == b"moof" for name, _, _ in _atoms(file))
        obstacle = "it is fragmented; join it with ffmpeg -i IN -c copy OUT" if fragmented else None
        version, duration = None if loaded.tags is None else "MP4", float(loaded.info.length)
        about: dict[str, Any] = {"duration": duration or None, "obstacle": obstacle}
        return FileTags.of(self.name, version, values, _ATOMS, **about)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace items of the list."""
        copy(source, target, 0, size_of(source))
        loaded = _load(target)
        if loaded.tags is None:
            loaded.add_tags()
        for key in [key for key in loaded.tags if _KNOWN_ATOMS.get(key.casefold()) in edits]:
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
