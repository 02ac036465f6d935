"""WAV: RIFF with an ID3 chunk; RIFF's own list of texts is read and left alone."""

from io import BytesIO
from typing import BinaryIO

from mutagen.wave import WaveStreamInfo

from harmonium.library.filetags.binary import decoded, read_at
from harmonium.library.filetags.chunks import Chunk, ChunkFormat
from harmonium.library.filetags.contents import Values

_TEXTS = {b"IGNR": "TCON", b"INAM": "TIT2", b"IART": "TPE1", b"IPRD": "TALB", b"ICMT": "COMM"}
"""A text of RIFF's list → the place of ID3 with the same meaning."""


class Wav(ChunkFormat):
    """Sound in RIFF."""

    name = "WAV"
    order = "little"
    container = b"RIFF"
    contents = (b"WAVE",)
    tag_chunk = b"id3 "
    sound_chunks = (b"fmt ", b"data")
    info = WaveStreamInfo

    def texts(self, file: BinaryIO, chunks: list[Chunk]) -> dict[str, Values]:
        """Place → what RIFF's list of texts says for it."""
        texts: dict[str, Values] = {}
        for chunk in chunks:
            if chunk.name != b"LIST":
                continue
            data = read_at(file, chunk.start, chunk.end - chunk.start)
            if not data.startswith(b"INFO"):
                continue
            for inner in self.chunks_between(BytesIO(data), 4, len(data)):
                text = decoded(data[inner.start : inner.end].split(b"\0")[0]).strip()
                place = _TEXTS.get(inner.name)
                if place and text:
                    texts.setdefault(place, (text,))
        return texts


WAV = Wav()
