"""AIFF and AIFF-C, with an ID3 chunk."""

from mutagen.aiff import AIFFInfo

from harmonium.library.filetags.chunks import ChunkFormat


class Aiff(ChunkFormat):
    """Sound in IFF."""

    name = "AIFF"
    order = "big"
    container = b"FORM"
    contents = (b"AIFF", b"AIFC")
    tag_chunk = b"ID3 "
    sound_chunks = (b"COMM", b"SSND")
    info = AIFFInfo


AIFF = Aiff()
