"""Ogg: Vorbis, Opus, Speex and FLAC, with Vorbis comments in the second packet of a stream.

Mutagen renumbers the pages if there are more of them.
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, ClassVar

from mutagen import MutagenError, flac
from mutagen.ogg import OggPage
from mutagen.oggflac import OggFLAC
from mutagen.oggopus import OggOpus
from mutagen.oggspeex import OggSpeex
from mutagen.oggvorbis import OggVorbis

from harmonium.library.filetags.binary import FileProblem, blocks, copy, read_at, size_of
from harmonium.library.filetags.contents import Edits, FileTags, Id3Options
from harmonium.library.filetags.format import Picture, duration_of
from harmonium.library.filetags.vorbis import VorbisFormat, parse_comments

PAGE = 120 * 255  # size of new pages: half of the largest, since packets may then be added
_MARK = b"OggS"
_PAGE_HEADER = 27
_FIRST_PAGE = 2  # the flag of a stream's first page


class Ogg(VorbisFormat):
    """A codec in Ogg."""

    first: ClassVar[bytes]  # start of a stream's first packet
    mark: ClassVar[bytes]  # start of the comment packet
    kind: ClassVar[Any]  # Mutagen's class for it

    def detect(self, file: BinaryIO) -> bool:
        """Whether one of the streams that begin the file has this codec."""
        if read_at(file, 0, 4) != _MARK:
            return False
        for page in _pages(file):
            if not page.first:
                return False
            if page.packets and page.packets[0].startswith(self.first):
                return True
        return False

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the comments of the first stream of this codec say."""
        packet = OggPage.to_packets(self._comment_pages(file))[0]
        tags = self.tags_of(self.comments_in(packet))
        if tags.obstacle:  # Mutagen reads the comments as well, however many there are
            return tags
        return replace(tags, duration=duration_of(lambda opened: self.kind(opened).info, file))

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the packet of the comments."""
        copy(source, target, 0, size_of(source))
        pages = self._comment_pages(target)
        packets = OggPage.to_packets(pages)
        comments = parse_comments(self.comments_in(packets[0]))
        data = comments.with_values(edits).render() + self.after_comments(comments.rest)
        packets[0] = self.packet_of(data, packets[0])
        new = OggPage.from_packets(packets, pages[0].sequence, default_size=PAGE)
        OggPage.replace(target, pages, new)

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """All packets but the second of each stream, whatever pages they are on."""
        # They come in pieces; the last piece of one is followed by its stream and number.
        n_packets: dict[bytes, int] = {}  # stream → how many of its packets have ended
        start = 0
        size = size_of(file)
        while start < size:
            head = read_at(file, start, _PAGE_HEADER)
            if len(head) < _PAGE_HEADER or not head.startswith(_MARK):
                yield from blocks(file, start, size)  # anything else is not pages
                return
            lacing = read_at(file, start + _PAGE_HEADER, head[26])
            body = read_at(file, start + _PAGE_HEADER + len(lacing), sum(lacing))
            position = head[6:14]
            stream = head[14:18]
            if head[5] & _FIRST_PAGE:
                n_packets[stream] = 0
            if position not in (bytes(8), b"\xff" * 8):  # pages of sound keep their boundaries
                yield position
            yield from _pieces(lacing, body, stream, n_packets)
            start += _PAGE_HEADER + len(lacing) + len(body)

    def pictures(self, file: BinaryIO) -> list[Picture]:
        """The pictures in comments, in FLAC's form and Base64."""
        file.seek(0)
        tags = self.kind(file).tags or {}
        pictures = []
        for text in tags.get("metadata_block_picture") or []:
            picture = flac.Picture(base64.b64decode(text))
            pictures.append(Picture(kind=picture.type, data=picture.data))
        return pictures

    def comments_in(self, packet: bytes) -> bytes:
        """The block of comments in a packet; empty for another packet."""
        return packet[len(self.mark) :] if packet.startswith(self.mark) else b""

    def packet_of(self, comments: bytes, old: bytes) -> bytes:
        """The packet with a block of comments, in place of an old packet."""
        return self.mark + comments

    def after_comments(self, rest: bytes) -> bytes:
        """What follows the comments, given what followed them before."""
        return b""

    def _comment_pages(self, file: BinaryIO) -> list[OggPage]:
        """The pages of the second packet of the first stream of this codec."""
        serial = None
        pages: list[OggPage] = []
        for page in _pages(file):
            if serial is None:
                if page.first and page.packets and page.packets[0].startswith(self.first):
                    serial = page.serial
            elif page.serial == serial:
                pages.append(page)
                if page.complete or len(page.packets) > 1:
                    return pages
        raise FileProblem("it ends before its comments do")


class Vorbis(Ogg):
    """Vorbis in Ogg."""

    name = "Ogg Vorbis"
    first = b"\x01vorbis"
    mark = b"\x03vorbis"
    kind = OggVorbis

    def after_comments(self, rest: bytes) -> bytes:
        """The bit that ends the packet."""
        return b"\1"


class Opus(Ogg):
    """Opus in Ogg."""

    name = "Opus"
    first = b"OpusHead"
    mark = b"OpusTags"
    kind = OggOpus

    def after_comments(self, rest: bytes) -> bytes:
        """What was there, if its first bit says so; otherwise it is padding."""
        return rest if rest[:1] and rest[0] & 1 else b""


class FlacInOgg(Ogg):
    """FLAC in Ogg; the packet is one of FLAC's blocks, with the size in its header."""

    name = "Ogg FLAC"
    first = b"\x7fFLAC"
    mark = b""
    kind = OggFLAC

    def comments_in(self, packet: bytes) -> bytes:
        """The block of comments in a packet; empty for another packet."""
        return packet[4:] if packet[:1] in (b"\x04", b"\x84") else b""

    def packet_of(self, comments: bytes, old: bytes) -> bytes:
        """The packet with a block of comments, in place of an old packet."""
        return old[:1] + len(comments).to_bytes(3) + comments


class Speex(Ogg):
    """Speex in Ogg; the packet is nothing but the comments."""

    name = "Speex"
    first = b"Speex   "
    mark = b""
    kind = OggSpeex


VORBIS = Vorbis()
OPUS = Opus()
OGG_FLAC = FlacInOgg()
SPEEX = Speex()


def _pages(file: BinaryIO) -> Iterator[OggPage]:
    file.seek(0)
    while True:
        try:
            yield OggPage(file)
        except EOFError:
            return
        except MutagenError as error:
            raise FileProblem(f"its Ogg pages are damaged ({error})") from None


def _pieces(
    lacing: bytes, body: bytes, stream: bytes, n_packets: dict[bytes, int]
) -> Iterator[bytes]:
    """The pieces on one page, except from a stream's second packet."""
    number = n_packets.get(stream, 0)
    start = length = 0
    for i, part in enumerate(lacing):
        length += part
        ends = part < 255
        if ends or i == len(lacing) - 1:
            if number != 1:
                yield body[start : start + length]
            if ends:
                number += 1
                yield b"%s%d;" % (stream, number)
            start += length
            length = 0
    n_packets[stream] = number
