"""Containers of chunks with an ID3 tag in one of them: what WAV and AIFF have in common."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

from harmonium.library.filetags.binary import FileProblem, blocks, copy, read_at, size_of
from harmonium.library.filetags.contents import Edits, FileTags, Id3Options, Values
from harmonium.library.filetags.format import duration_of
from harmonium.library.filetags.id3 import Id3Format, edited_tag, load_tag, tag_length

CONTAINER_HEADER = 12  # the container's name and size, and the name of its contents
CHUNK_HEADER = 8  # a chunk's name and size
_TAG_CHUNKS = (b"ID3 ", b"id3 ")
_MAX_CONTAINER = 1 << 32
_CUT_SHORT = "its last chunk is cut short, or its sizes were never filled in"


class Chunk(NamedTuple):
    """A part of a container."""

    name: bytes
    start: int  # where its data begins
    end: int  # and where it ends
    next: int  # where the next chunk begins: sizes are even


class ChunkFormat(Id3Format):
    """A format of chunks."""

    order: ClassVar[Literal["little", "big"]]  # of the bytes of numbers
    container: ClassVar[bytes]  # the first four bytes
    contents: ClassVar[tuple[bytes, ...]]  # what may follow after the size
    tag_chunk: ClassVar[bytes]  # the name of a new chunk for a tag
    sound_chunks: ClassVar[tuple[bytes, ...]]  # the sound and its parameters
    info: ClassVar[Any]  # Mutagen's class for these

    def detect(self, file: BinaryIO) -> bool:
        """Whether the container's name and that of its contents are right."""
        head = read_at(file, 0, CONTAINER_HEADER)
        return head[:4] == self.container and head[8:] in self.contents

    def tag_file(self, file: BinaryIO) -> BinaryIO:
        """What is in the chunk of the tag; empty if there is none."""
        for chunk in self.chunks(file):
            if chunk.name in _TAG_CHUNKS:
                return BytesIO(read_at(file, chunk.start, chunk.end - chunk.start))
        return BytesIO()

    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the ID3 chunk says; the container's own texts fill empty fields."""
        chunks = self.chunks(file)
        tag_file = self.tag_file(file)
        tag = damage = None
        if size_of(tag_file):
            tag, damage = load_tag(tag_file, required=True)
        obstacle = None
        if chunks and chunks[-1].end > size_of(file):  # it has no end to add another chunk after
            obstacle = _CUT_SHORT
        return self.tags_of(
            tag,
            options,
            texts=self.texts(file, chunks),
            duration=duration_of(self.info, file),
            obstacle=obstacle,
            damage=damage,
        )

    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Replace the ID3 chunk in its place, or add one at the end."""
        chunks = self.chunks(source)
        end = chunks[-1].next if chunks else CONTAINER_HEADER
        old = Chunk(name=self.tag_chunk, start=end + CHUNK_HEADER, end=end + CHUNK_HEADER, next=end)
        for chunk in chunks:
            if chunk.name in _TAG_CHUNKS:
                old = chunk
                break
        data = read_at(source, old.start, old.end - old.start)
        room = tag_length(data)
        tag = edited_tag(data[:room], edits, options, room=room)
        new = old.name + len(tag).to_bytes(4, self.order) + tag + b"\0" * (len(tag) % 2)
        start = old.start - CHUNK_HEADER
        total = 4 + start - CONTAINER_HEADER + len(new) + end - old.next
        if total >= _MAX_CONTAINER:
            raise FileProblem(f"it would have {total} bytes, more than its format allows (4 GiB)")
        head = read_at(source, 0, CONTAINER_HEADER)
        target.write(head[:4] + total.to_bytes(4, self.order) + head[8:])
        copy(source, target, CONTAINER_HEADER, start)
        missing_padding = start - min(start, size_of(source))  # of the last chunk
        target.write(b"\0" * missing_padding + new)
        copy(source, target, old.next, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The chunks with the sound and its parameters."""
        for chunk in self.chunks(file):
            if chunk.name in self.sound_chunks:
                yield chunk.name
                yield from blocks(file, chunk.start, chunk.end)

    def chunks(self, file: BinaryIO) -> list[Chunk]:
        """The chunks of a file."""
        declared = int.from_bytes(read_at(file, 4, 4), self.order)
        end = min(CHUNK_HEADER + declared, size_of(file))
        return list(self.chunks_between(file, CONTAINER_HEADER, end))

    def chunks_between(self, file: BinaryIO, start: int, end: int) -> Iterator[Chunk]:
        """The chunks that begin between two places."""
        while start + CHUNK_HEADER <= end:
            header = read_at(file, start, CHUNK_HEADER)
            size = int.from_bytes(header[4:], self.order)
            data = start + CHUNK_HEADER
            start = data + size + size % 2
            yield Chunk(name=header[:4], start=data, end=data + size, next=start)

    def texts(self, file: BinaryIO, chunks: list[Chunk]) -> dict[str, Values]:
        """Place → what the container itself says for it."""
        return {}
