"""Short music files in every format, with tags as other programs write them."""

import io
import struct
import tempfile
from functools import cache
from pathlib import Path

import av
import mutagen
import numpy as np
import soundfile
from mutagen import id3
from mutagen.flac import FLAC, Picture
from mutagen.mp4 import MP4, MP4Cover

RATE = 22_050
FORMATS = ("mp3", "mp3v23", "flac", "ogg", "opus", "m4a", "m4a-faststart", "wav", "aiff")
PEOPLES = {"genre": ["Rock", "Élan vital"], "title": ["A song"], "artist": ["Somebody"]}
PICTURE = np.random.default_rng(1).bytes(60_000)
"""Stands for a cover."""

_SOUNDFILE = {
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "wav": ("WAV", "PCM_16"),
    "aiff": ("AIFF", "PCM_16"),
}


@cache
def untagged(kind: str) -> bytes:
    """Half a second of noise, with no tags but those that the encoder itself writes."""
    if kind.startswith("m4a"):
        return by_ffmpeg("ipod", "aac", kind, movflags="faststart" if kind != "m4a" else "")
    name, subtype = _SOUNDFILE[kind[:3] if kind.startswith("mp3") else kind]
    rate = 24_000 if kind == "opus" else RATE
    whole = io.BytesIO()
    soundfile.write(whole, _noise(rate, kind), rate, format=name, subtype=subtype)
    return whole.getvalue()


@cache
def tagged(kind: str, *, picture: bool = False) -> bytes:
    """The same with `PEOPLES` tags, and a cover on demand, written by Mutagen."""
    whole = io.BytesIO(untagged(kind))
    if kind.startswith("mp3"):
        _id3_tag(picture).save(whole, v2_version=3 if kind == "mp3v23" else 4, v23_sep="; ", v1=0)
        return whole.getvalue()
    file = mutagen.File(whole)
    if file.tags is None:
        file.add_tags()
    if isinstance(file, MP4):
        names = {"genre": "\xa9gen", "title": "\xa9nam", "artist": "\xa9ART"}
        file.tags.update({names[key]: values for key, values in PEOPLES.items()})
        file.tags.update({"covr": [MP4Cover(PICTURE)]} if picture else {})
    elif kind in ("wav", "aiff"):
        file.tags.update(_id3_tag(picture))
    else:
        file.tags.update(PEOPLES)
        if picture and isinstance(file, FLAC):
            cover = Picture()
            cover.data, cover.type = PICTURE, 3
            file.add_picture(cover)
        elif picture:
            file.tags["METADATA_BLOCK_PICTURE"] = [PICTURE.hex()]
    whole.seek(0)
    file.save(whole)
    return whole.getvalue()


@cache
def by_ffmpeg(container: str, codec: str, kind: str = "", **options: str) -> bytes:
    """The same noise in another format; the options are the container's."""
    with tempfile.TemporaryDirectory() as folder:  # FFmpeg moves atoms in files with names only
        path = Path(folder, "song")
        options = {key: value for key, value in options.items() if value}
        with av.open(str(path), "w", format=container, options=options) as output:
            stream = output.add_stream(codec, rate=RATE, layout="mono")
            sound, kind = _noise(RATE, kind).astype(np.float32)[None], "fltp"
            if codec == "flac":
                sound, kind = (sound * 32767).astype(np.int16), "s16"
            for start in range(0, sound.shape[1] - 1024, 1024):
                block = np.ascontiguousarray(sound[:, start : start + 1024])
                samples = av.AudioFrame.from_ndarray(block, kind, "mono")
                samples.sample_rate, samples.pts = RATE, start
                output.mux(stream.encode(samples))
            output.mux(stream.encode(None))
        return path.read_bytes()


def name_of(kind: str) -> str:
    """A file name with the ending that players expect."""
    return f"song.{kind.removesuffix('v23').removesuffix('-faststart')}"


def id3_tag(version: int, frames: bytes, *, padding: int = 0, flags: int = 0) -> bytes:
    """A tag, by hand."""
    body = frames + bytes(padding)
    size = bytes(len(body) >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3" + bytes((version, 0, flags)) + size + body


def frame(name: str, data: bytes) -> bytes:
    """A frame of version 2.3, or of 2.4 if it is short."""
    return name.encode() + struct.pack(">IH", len(data), 0) + data


def frame_of_24(name: bytes, data: bytes, flags: int = 0) -> bytes:
    """A frame of version 2.4, of any length."""
    return name + id3.BitPaddedInt.to_str(len(data), width=4) + flags.to_bytes(2) + data


def id3v1(title: str, artist: str, genre: int) -> bytes:
    """128 bytes for the end of a file."""
    texts = (text.encode("latin-1") for text in (title, artist, "An album"))
    return struct.pack("3s30s30s30s4s30sB", b"TAG", *texts, b"1999", b"a comment", genre)


def ape(key: str, value: str) -> bytes:
    """An APEv2 tag without a header."""
    item = struct.pack("<II", len(value), 0) + key.encode() + b"\0" + value.encode()
    return item + b"APETAGEX" + struct.pack("<IIII8x", 2000, len(item) + 32, 1, 0)


def riff_info(texts: dict[bytes, bytes]) -> bytes:
    """A LIST chunk of texts."""
    parts = (
        name + struct.pack("<I", len(t)) + t + b"\0" * (len(t) % 2) for name, t in texts.items()
    )
    data = b"INFO" + b"".join(parts)
    return b"LIST" + struct.pack("<I", len(data)) + data


def with_chunk(wav: bytes, chunk: bytes) -> bytes:
    """A WAV file with one more chunk at the end."""
    return wav[:4] + struct.pack("<I", len(wav) - 8 + len(chunk)) + wav[8:] + chunk


def decoded(data: bytes) -> np.ndarray:
    """The samples as FFmpeg decodes them, (channels, n)."""
    with av.open(io.BytesIO(data), metadata_errors="replace") as container:
        return np.concatenate([f.to_ndarray() for f in container.decode(audio=0)], axis=1)


def metadata(data: bytes) -> dict[str, str]:
    """All tags that FFmpeg finds, with keys in lower case."""
    with av.open(io.BytesIO(data)) as container:
        found = dict(container.metadata) | dict(container.streams.audio[0].metadata)
    return {key.lower(): value for key, value in found.items()}


def _noise(rate: int, kind: str) -> np.ndarray:
    """Another one where two kinds are of one format: no two have the same sound."""
    return (0.1 * np.random.default_rng(len(kind)).normal(size=rate // 2)).clip(-0.9, 0.9)


def _id3_tag(picture: bool) -> id3.ID3:
    tag = id3.ID3()
    tag.add(id3.TCON(encoding=1, text=PEOPLES["genre"]))
    tag.add(id3.TIT2(encoding=1, text=PEOPLES["title"]))
    tag.add(id3.TPE1(encoding=0, text=PEOPLES["artist"]))
    if picture:
        tag.add(id3.APIC(encoding=0, mime="image/jpeg", type=3, desc="", data=PICTURE))
    return tag
