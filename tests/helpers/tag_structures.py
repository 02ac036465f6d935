"""Hypothesis strategies of music files whose tags are well formed, and odd in their structure.

Frames in frames, packed ones, counts and sizes that lie, very many of one thing: what a random
change of bytes hardly ever makes.
"""

import struct
import zlib
from io import BytesIO

from hypothesis import strategies as st
from mutagen.id3 import BitPaddedInt
from mutagen.ogg import OggPage
from tagged_files import id3_tag, untagged, with_chunk

TEXTS = st.sampled_from([b"Rock", b"a", b"", b"\xff\xfeR\0", "Élan".encode(), b"(17)(RX)", b"\0"])
TIMES = st.sampled_from([1, 2, 300, 20_000])
LYING = st.sampled_from([None, 0, 1, 4, 2**16, 2**31 - 1, 2**32 - 1])


def sized(data, lie, pattern):
    """The number of bytes, or what is said instead."""
    return struct.pack(pattern, len(data) if lie is None else lie)


# ID3. -------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [b"TCON", b"TMOO", b"TIT1", b"GRP1", b"TIT2", b"TDRC", b"TXXX", b"COMM", b"APIC", b"XYZ1"]
)


@st.composite
def text_frames(draw):
    name, encoding = draw(NAMES), bytes([draw(st.integers(0, 4))])
    parts = [draw(TEXTS) for _ in range(draw(st.integers(0, 3)))]
    before = {b"TXXX": b"MOOD\0", b"COMM": b"eng\0", b"APIC": b"image/png\0\3\0"}.get(name, b"")
    return name, encoding + before + b"\0".join(parts) * draw(TIMES)


def chapters(inner):
    """One or many chapters or tables of contents, each in the other, around some frames."""

    @st.composite
    def wrapped(draw):
        kind, data = draw(st.sampled_from([b"CHAP", b"CTOC"])), b"".join(draw(inner))
        for _ in range(draw(st.sampled_from([1, 2, 50, 400]))):
            about = bytes(16) if kind == b"CHAP" else bytes([3, draw(st.integers(0, 255))]) + b"x\0"
            frame = b"a\0" + about + data
            data = kind + BitPaddedInt.to_str(len(frame), width=4) + bytes(2) + frame
        return data

    return wrapped()


@st.composite
def frames(draw, version):
    name, data = draw(text_frames())
    flags, size = 0, struct.pack(">I", len(data))
    if version == 4:
        flags = draw(st.sampled_from([0, 0, 0x08, 0x09, 0x02, 0x0B, 0x04, 0x40]))
        data = zlib.compress(data) if flags & 0x08 else data
        data = BitPaddedInt.to_str(len(data), width=4) + data if flags & 0x01 else data
    elif draw(st.booleans()):
        flags, data = 0x80, size + zlib.compress(data)
    lie = draw(st.none() | LYING)
    size = sized(data, lie, ">I")
    if version == 4 and lie is None:
        size = BitPaddedInt.to_str(len(data), width=4)
    return name + size + flags.to_bytes(2) + data


@st.composite
def id3(draw):
    """An ID3 tag, before the sound of an MP3 or in a chunk of WAV or AIFF."""
    version = draw(st.sampled_from([3, 4]))
    leaves = st.lists(frames(version), max_size=4)
    parts = draw(st.lists(st.one_of(frames(version), chapters(leaves)), max_size=5))
    tag = id3_tag(version, b"".join(parts), flags=draw(st.sampled_from([0, 0, 0x80, 0x40, 0x10])))
    kind = draw(st.sampled_from(["mp3", "wav", "aiff"]))
    if kind == "mp3":
        return tag * draw(st.sampled_from([1, 1, 2])) + untagged("mp3")
    if kind == "wav":
        return with_chunk(untagged("wav"), b"id3 " + sized(tag, draw(LYING), "<I") + tag)
    whole = untagged("aiff") + b"ID3 " + sized(tag, draw(LYING), ">I") + tag
    return whole[:4] + struct.pack(">I", len(whole) - 8) + whole[8:]


# Vorbis comments. -------------------------------------------------------------------------------


@st.composite
def comments(draw):
    keys = st.sampled_from(
        [b"GENRE=", b"MOOD=", b"COMMENT=", b"=", b"", b"METADATA_BLOCK_PICTURE="]
    )
    entries = [draw(keys) + draw(TEXTS) for _ in range(draw(st.integers(0, 3)))] * draw(TIMES)
    lie = draw(LYING)
    packed = [sized(one, lie if k == 0 else None, "<I") + one for k, one in enumerate(entries)]
    count = struct.pack("<I", len(entries) if draw(st.booleans()) else draw(LYING) or 0)
    return sized(b"odd", draw(LYING), "<I") + b"odd" + count + b"".join(packed)


@st.composite
def pictures(draw):
    data = b"\x89PNG" + bytes(draw(TIMES))
    mime = b"image/png"
    head = struct.pack(">I", draw(st.integers(0, 30))) + sized(mime, draw(LYING), ">I") + mime
    return head + bytes(20) + sized(data, draw(LYING), ">I") + data


@st.composite
def flac(draw):
    """Blocks in any order and number, behind the first."""
    whole = untagged("flac")
    blocks = st.one_of(
        comments().map(lambda data: (4, data)),
        pictures().map(lambda data: (6, data)),
        st.tuples(st.integers(1, 126), st.binary(max_size=40)),
    )
    made = b""
    for kind, data in draw(st.lists(blocks, max_size=4)):
        size = draw(LYING)
        length = min(len(data) if size is None else size, 2**24 - 1)
        made += (bytes([kind]) + length.to_bytes(3) + data) * draw(st.sampled_from([1, 1, 20]))
    return whole[:4] + bytes([whole[4] & 0x7F]) + whole[5:42] + made + whole[42:]


@st.composite
def ogg(draw):
    """Odd comments in the second packet, on as many pages as they need."""
    kind, begin, n = draw(st.sampled_from([("ogg", b"\3vorbis", 3), ("opus", b"OpusTags", 2)]))
    whole = untagged(kind)
    at = whole.index(b"OggS", 4)
    first = OggPage(BytesIO(whole))
    pages, reader = [], BytesIO(whole[at:])
    while reader.tell() < len(whole) - at:
        pages.append(OggPage(reader))
    packets = OggPage.to_packets(pages[: n - 1] if kind == "opus" else pages[:1])
    packets[0] = begin + draw(comments()) + b"\1"
    rest = pages[1:]
    found = OggPage.from_packets(packets, 1, draw(st.sampled_from([4096, 60_000])))
    for page in found:
        page.serial = first.serial
    for k, page in enumerate(rest, found[-1].sequence + 1):
        page.sequence = k
    return b"".join(page.write() for page in [first, *found, *rest])


# MP4. -------------------------------------------------------------------------------------------

ATOMS = st.sampled_from([b"moov", b"udta", b"meta", b"ilst", b"\xa9gen", b"data", b"----", b"covr"])


@st.composite
def atoms(draw, inner):
    data = b"".join(draw(inner)) if draw(st.booleans()) else draw(st.binary(max_size=20))
    for _ in range(draw(st.sampled_from([1, 1, 3, 300]))):
        size = draw(LYING)
        length = 8 + len(data) if size is None else size
        data = struct.pack(">I", length) + draw(ATOMS) + data
    return data


@st.composite
def mp4(draw):
    """Atoms in atoms, in place of those of the tags or behind all others."""
    tree = st.recursive(atoms(st.just([])), lambda inner: atoms(st.lists(inner, max_size=3)))
    whole, made = untagged("m4a"), draw(tree)
    at = whole.find(b"udta") - 4
    if at < 0 or draw(st.booleans()):
        return whole + made
    made = made[: max(8, len(whole) - at)]
    return whole[:at] + made + whole[at + len(made) :]


FILES = st.one_of(id3(), flac(), ogg(), mp4())
