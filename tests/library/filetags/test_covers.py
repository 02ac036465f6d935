"""The picture in a file: which one, and what is none."""

import base64
import zlib

import pytest
from mutagen.flac import FLAC, Picture
from mutagen.id3 import APIC, ID3
from mutagen.mp4 import MP4, MP4Cover
from mutagen.oggvorbis import OggVorbis
from tagged_files import frame_of_24, id3_tag, untagged, with_chunk

from harmonium.library.filetags import formats, read_cover

PNG, JPEG = b"\x89PNG\r\n\x1a\n" + b"x" * 40, b"\xff\xd8\xff" + b"y" * 40
PAGE = b"<html><script>alert(1)</script>"


def picture(kind, data):
    found = Picture()
    found.type, found.mime, found.data = kind, "image/png", data
    return found


def put(path, pictures):
    """Put pictures, (kind, data), into a file."""
    if path.suffix == ".mp3":
        tags = ID3()
        for i, (kind, data) in enumerate(pictures):
            tags.add(APIC(3, "image/png", kind, str(i), data))
        tags.save(path)
    elif path.suffix == ".flac":
        file = FLAC(path)
        for one in pictures:
            file.add_picture(picture(*one))
        file.save()
    elif path.suffix == ".ogg":
        file = OggVorbis(path)
        texts = [base64.b64encode(picture(*one).write()).decode() for one in pictures]
        file["metadata_block_picture"] = texts
        file.save()
    else:
        file = MP4(path)
        file["covr"] = [MP4Cover(data) for _, data in pictures]
        file.save()


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "m4a"])
def test_the_front_cover_of_a_file(tmp_path, kind):
    path = tmp_path / f"song.{kind}"
    path.write_bytes(untagged(kind))
    with path.open("rb") as file:
        assert read_cover(file) is None
    put(path, [(4, PNG), (3, JPEG)] if kind != "m4a" else [(3, JPEG)])
    with path.open("rb") as file:
        assert read_cover(file) == (JPEG, "image/jpeg")


@pytest.mark.parametrize("kind", ["mp3", "wav"])
def test_only_pictures_are_read_and_none_that_is_endless(tmp_path, kind):
    about = b"\0image/png\0\3\0"
    bomb = frame_of_24(b"APIC", zlib.compress(about + PNG + bytes(2 * formats.MAX_COVER)), 8)
    endless = frame_of_24(b"TCON", b"\3" + bytes(5_000_000))
    tag = id3_tag(4, endless + bomb + frame_of_24(b"APIC", about + JPEG))
    chunk = b"id3 " + len(tag).to_bytes(4, "little") + tag + bytes(len(tag) % 2)
    path = tmp_path / "song"
    path.write_bytes(with_chunk(untagged("wav"), chunk) if kind == "wav" else tag + untagged("mp3"))
    with path.open("rb") as file:
        assert read_cover(file) == (JPEG, "image/jpeg")


def test_what_is_no_picture_or_too_large_is_none(tmp_path, monkeypatch):
    path = tmp_path / "song.flac"
    path.write_bytes(untagged("flac"))
    put(path, [(3, PAGE), (4, PNG)])  # it says that it is a PNG
    with path.open("rb") as file:
        assert read_cover(file) == (PNG, "image/png")
        monkeypatch.setattr(formats, "MAX_COVER", len(PNG) - 1)
        file.seek(0)
        assert read_cover(file) is None
    path.write_bytes(b"fLaC" + b"\xff" * 100)
    with path.open("rb") as file:
        assert read_cover(file) is None
