"""Native FLAC, with Vorbis comments in one of the blocks before the sound."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from mutagen import flac

from harmonium.library.filetags.binary import FileProblem, blocks, copy, read_at, size_of
from harmonium.library.filetags.contents import Edits, FileTags, Id3Options
from harmonium.library.filetags.format import Picture
from harmonium.library.filetags.id3 import leading_tags
from harmonium.library.filetags.mp3 import end_before_id3v1
from harmonium.library.filetags.vorbis import NO_COMMENTS, VorbisFormat, parse_comments

PADDING = 4096  # free bytes left in a file that had to grow
_MARK = b"fLaC"
_STREAMINFO = 0
_PADDING = 1
_COMMENT = 4
_PICTURE = 6
_LAST = 0x80  # the flag of the last block
_HEADER = 4
_MAX_BLOCK = 1 << 24


class Block(NamedTuple):
    """A block of metadata."""

    kind: int
    data: bytes


class Head(NamedTuple):
    """What comes before the sound."""

    start: int  # where the blocks begin
    blocks: list[Block]
    end: int  # where the sound begins


class Flac(VorbisFormat):
    """Native FLAC, perhaps with an ID3 tag before it, which is left alone."""

    name = "FLAC"

    def detect(self, file: BinaryIO) -> bool:
        """Whether FLAC begins the file, or follows after ID3 tags."""
        return read_at(file, leading_tags(file), 4) == _MARK

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the first block of comments says."""
        head = _head_of(file)
        info = head.blocks[0].data  # 20 bits of the rate, 36 of the number of samples
        rate = int.from_bytes(info[10:13]) >> 4
        n_samples = int.from_bytes(info[13:18]) % (1 << 36)
        duration = n_samples / rate if rate and n_samples else None
        notes = ("it has an ID3 tag, which is left alone",) if leading_tags(file) else ()
        comments = next((block.data for block in head.blocks if block.kind == _COMMENT), None)
        return self.tags_of(comments, duration=duration, notes=notes)

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the comments; padding shrinks or grows, so that the sound stays in its place."""
        head = _head_of(source)
        kept = [block for block in head.blocks if block.kind != _PADDING]
        comments = NO_COMMENTS
        place = 1
        for i, block in enumerate(kept):
            if block.kind == _COMMENT:
                comments = parse_comments(kept.pop(i).data)
                place = i
                break
        kept.insert(place, Block(kind=_COMMENT, data=comments.with_values(edits).render()))
        copy(source, target, 0, head.start)
        target.write(_render(kept, head.end - head.start))
        copy(source, target, head.end, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The block with the sound's parameters and MD5 sum, and all frames."""
        head = _head_of(file)
        yield head.blocks[0].data
        yield from blocks(file, head.end, end_before_id3v1(file, head.end))

    def pictures(self, file: BinaryIO) -> list[Picture]:
        """The blocks with pictures."""
        pictures = []
        for block in _head_of(file).blocks:
            if block.kind == _PICTURE:
                picture = flac.Picture(block.data)
                pictures.append(Picture(kind=picture.type, data=picture.data))
        return pictures


FLAC = Flac()


def _head_of(file: BinaryIO) -> Head:
    start = leading_tags(file) + len(_MARK)
    end = start
    blocks: list[Block] = []
    is_last = False
    while not is_last:
        header = read_at(file, end, _HEADER)
        length = int.from_bytes(header[1:4])
        data = read_at(file, end + _HEADER, length)
        if len(header) < _HEADER or len(data) < length:
            raise FileProblem("its header is cut short")
        is_last = bool(header[0] & _LAST)
        blocks.append(Block(kind=header[0] & ~_LAST, data=data))
        end += _HEADER + length
    if blocks[0].kind != _STREAMINFO or len(blocks[0].data) < 34:
        raise FileProblem("its first block is not a valid STREAMINFO")
    return Head(start=start, blocks=blocks, end=end)


def _render(kept: list[Block], room: int) -> bytes:
    """The blocks with padding that fills the room, or with new padding if there is too little."""
    left = room - sum(_HEADER + len(block.data) for block in kept)
    if left:
        padding = left - _HEADER if left >= _HEADER else PADDING
        kept = [*kept, Block(kind=_PADDING, data=bytes(padding))]
    parts = []
    for block in kept:
        size = len(block.data)
        if size >= _MAX_BLOCK:
            raise FileProblem(f"one of its blocks would have {size} bytes, more than 16 MiB")
        last = _LAST if block is kept[-1] else 0
        parts.append(bytes((block.kind | last,)) + size.to_bytes(3) + block.data)
    return b"".join(parts)
