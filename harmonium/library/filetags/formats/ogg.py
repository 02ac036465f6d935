"""Vorbis, Opus, Speex and FLAC in Ogg: the second packet of a stream holds the comments."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from mutagen import MutagenError
from mutagen.ogg import OggPage
from mutagen.oggflac import OggFLAC
from mutagen.oggopus import OggOpus
from mutagen.oggspeex import OggSpeex
from mutagen.oggvorbis import OggVorbis

from harmonium.library.filetags.formats import vorbis
from harmonium.library.filetags.formats.base import (
    Format,
    Id3Options,
    TagContents,
    Values,
    duration_of,
)
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

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
    places = staticmethod(vorbis.places)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the comments of the first stream of this codec say."""
        pages = _comment_pages(file, self.first)
        packet = OggPage.to_packets(pages)[0]
        duration = duration_of(lambda opened: self.kind(opened).info, file)
        try:
            values = self._comments(packet).values()
        except FileProblem as error:
            return TagContents.damaged(str(error), duration=duration)
        return TagContents(version=vorbis.VERSION, values=values, duration=duration)

    def write(
        self, source: BinaryIO, target: BinaryIO, edits: Mapping[str, Values], options: Id3Options
    ) -> None:
        """Replace the packet; Mutagen numbers the pages after it anew where their number grows."""
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

    def _comments(self, packet: bytes) -> vorbis.Comments:
        is_block = self.mark == _FLAC_MARK and packet[:1] in (b"\x04", b"\x84")
        if not is_block and not packet.startswith(self.mark):
            raise FileProblem("its second packet holds no comments")
        return vorbis.take_apart(packet[len(self.mark) :])

    def _packet(self, old: bytes, comments: vorbis.Comments) -> bytes:
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
