"""WAV and AIFF: chunks in a container, one of which may be an ID3 tag."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO, Literal, NamedTuple

from mutagen.aiff import AIFFInfo
from mutagen.wave import WaveStreamInfo

from harmonium.library.filetags.formats import id3
from harmonium.library.filetags.formats.base import (
    Format,
    Id3Options,
    TagContents,
    Values,
    decoded,
    duration_of,
)
from harmonium.library.filetags.music_file import FileProblem, blocks, copy, read_at, size_of

_TAGS = (b"ID3 ", b"id3 ")
_INFO = {b"IGNR": "TCON", b"INAM": "TIT2", b"IART": "TPE1", b"IPRD": "TALB", b"ICMT": "COMM"}
_LARGEST = 1 << 32
_CUT_SHORT = "its last chunk is cut short, or its sizes were never filled in"


class _Chunk(NamedTuple):
    name: bytes
    start: int
    """Where its header starts, 8 bytes before its data."""
    size: int
    end: int
    """Where the next begins."""

    def data(self, file: BinaryIO) -> bytes:
        return read_at(file, self.start + 8, self.size)


@dataclass(frozen=True)
class Iff(Format):
    """A container of chunks."""

    name: str
    order: Literal["little", "big"]
    tag: bytes
    """What a new chunk with a tag is called."""
    audio: tuple[bytes, ...]
    """The chunks that make the sound."""
    info: Callable[[BinaryIO], Any]
    """Mutagen's class for the sound's parameters."""
    places = staticmethod(id3.places)
    refusal = staticmethod(id3.refusal)

    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the ID3 chunk says, and RIFF's own list of texts where that is silent."""
        chunks = self._chunks(file)
        contents = TagContents(version=None)
        if (chunk := self._tag_chunk(chunks)) and chunk.size:
            contents = id3.read_tag(BytesIO(chunk.data(file)), options, required=True)
        texts = self._texts(file, chunks)
        cut_short = bool(chunks) and chunks[-1].start + 8 + chunks[-1].size > size_of(file)
        values = {place: value for place, value in contents.values.items() if value}
        return replace(
            contents,
            version=contents.version or ("RIFF INFO" if texts else None),
            values=texts | values,
            duration=duration_of(self.info, file),
            # A chunk that is longer than the file has no end to add another after.
            obstacle=contents.obstacle or (_CUT_SHORT if cut_short else None),
        )

    def write(
        self, source: BinaryIO, target: BinaryIO, edits: Mapping[str, Values], options: Id3Options
    ) -> None:
        """Replace the ID3 chunk in its place, or add one at the end."""
        chunks = self._chunks(source)
        end = chunks[-1].end if chunks else 12
        old = self._tag_chunk(chunks) or _Chunk(self.tag, end, 0, end)
        start, after = old.start, old.end
        data = old.data(source)
        room = id3.tag_length(data)
        new = id3.edited_tag(data[:room], edits, options, room=room)
        chunk = old.name + len(new).to_bytes(4, self.order) + new + b"\0" * (len(new) % 2)
        fill = b"\0" * (start - min(start, size_of(source)))  # padding that the last one lacks
        total = 4 + start - 12 + len(chunk) + end - after
        if total >= _LARGEST:
            raise FileProblem(f"it would have {total} bytes, more than its format allows (4 GiB)")
        form = read_at(source, 0, 12)
        target.write(form[:4] + total.to_bytes(4, self.order) + form[8:])
        copy(source, target, 12, start)
        target.write(fill + chunk)
        copy(source, target, after, size_of(source))

    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The chunks with the sound and its parameters."""
        for chunk in self._chunks(file):
            if chunk.name in self.audio:
                yield chunk.name
                yield from blocks(file, chunk.start + 8, chunk.start + 8 + chunk.size)

    def _chunks(self, file: BinaryIO) -> list[_Chunk]:
        declared = int.from_bytes(read_at(file, 4, 4), self.order)
        return list(self._walk(file, 12, min(8 + declared, size_of(file))))

    def _walk(self, file: BinaryIO, start: int, end: int) -> Iterator[_Chunk]:
        while start + 8 <= end:
            header = read_at(file, start, 8)
            size = int.from_bytes(header[4:], self.order)
            chunk = _Chunk(header[:4], start, size, start + 8 + size + size % 2)
            yield chunk
            start = chunk.end

    def _tag_chunk(self, chunks: list[_Chunk]) -> _Chunk | None:
        return next((chunk for chunk in chunks if chunk.name in _TAGS), None)

    def _texts(self, file: BinaryIO, chunks: list[_Chunk]) -> dict[str, Values]:
        """Place → what RIFF's list of texts says for it."""
        texts: dict[str, Values] = {}
        for chunk in chunks:
            data = chunk.data(file) if chunk.name == b"LIST" else b""
            if not data.startswith(b"INFO"):
                continue
            inside = BytesIO(data)
            for one in self._walk(inside, 4, len(data)):
                text = decoded(one.data(inside).split(b"\0")[0]).strip()
                if (place := _INFO.get(one.name)) and text:
                    texts.setdefault(place, (text,))
        return texts


WAV = Iff("WAV", "little", b"id3 ", (b"fmt ", b"data"), WaveStreamInfo)
AIFF = Iff("AIFF", "big", b"ID3 ", (b"COMM", b"SSND"), AIFFInfo)
