"""What files say of themselves, whoever wrote it and however badly; and their pictures."""

import base64
import io
import os
import struct
import zlib

import mutagen
import pytest
from mutagen.flac import FLAC, Picture
from mutagen.id3 import APIC, ID3
from mutagen.mp4 import MP4, MP4Cover
from mutagen.oggvorbis import OggVorbis
from tagged_files import (
    FORMATS,
    PEOPLES,
    ape,
    frame,
    frame_of_24,
    id3_tag,
    id3v1,
    riff_info,
    tagged,
    untagged,
    with_chunk,
)

from harmonium.errors import FileTagError
from harmonium.library.filetags import (
    FileTags,
    apply_change,
    audio_digest,
    plan_write,
    read_cover,
    read_tags,
)
from harmonium.library.filetags.format import MAX_COVER

SOUND = untagged("mp3")
NAMES = {"mp3": "MP3", "mp3v23": "MP3", "flac": "FLAC", "ogg": "Ogg Vorbis", "opus": "Opus"}
NAMES |= {"m4a": "MP4", "m4a-faststart": "MP4", "wav": "WAV", "aiff": "AIFF"}


def tags_of(folder, data: bytes, name: str = "song") -> FileTags:
    path = folder / name
    path.write_bytes(data)
    return read_tags(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_read(tmp_path, kind):
    tags = tags_of(tmp_path, tagged(kind))
    assert tags.format == NAMES[kind]
    assert tags.genre == tuple(PEOPLES["genre"])
    assert (tags.title, tags.artist, tags.album) == ("A song", "Somebody", None)
    assert tags.duration == pytest.approx(0.5, abs=0.03)
    assert tags.version == {"mp3v23": "ID3v2.3", "mp3": "ID3v2.4"}.get(kind, tags.version)
    assert tags.notes == ()
    bare = tags_of(tmp_path, untagged(kind))
    assert (bare.format, bare.genre, bare.title) == (NAMES[kind], (), None)


@pytest.mark.parametrize(
    ("version", "encoding", "text", "genres"),
    [
        (4, 3, "17\0Jazz\0RX", ("Rock", "Jazz", "Remix")),
        (4, 3, "Rock\0", ("Rock",)),
        (4, 0, "Café\0\0Rock", ("Café", "Rock")),
        (4, 1, "Élan\0Ярость", ("Élan", "Ярость")),
        (4, 2, "Ярость", ("Ярость",)),
        (4, 3, "Hip-Hop/Rap", ("Hip-Hop/Rap",)),
        (4, 3, "Rock; Pop", ("Rock; Pop",)),
        (3, 0, "(17)Rock", ("Rock",)),
        (3, 0, "(17)Heavy", ("Rock", "Heavy")),
        (3, 0, "(17)(39)", ("Rock", "Noise")),
        (3, 1, "(17); Élan;Pop", ("Rock", "Élan", "Pop")),
        (3, 0, "Hip-Hop/Rap", ("Hip-Hop/Rap",)),
        (3, 0, "Rock\0Pop", ("Rock", "Pop")),
    ],
)
def test_genres_are_read_however_they_are_written(tmp_path, version, encoding, text, genres):
    codec = ("latin-1", "utf-16", "utf-16-be", "utf-8")[encoding]
    data = bytes([encoding]) + text.encode(codec)
    tags = tags_of(tmp_path, id3_tag(version, frame("TCON", data), padding=50) + SOUND)
    assert tags.genre == genres


V22 = b"TCO\0\0\5\0(17)" + b"TT1\0\0\6\0night" + b"TT2\0\0\6\0title"
MOODS = frame("TMOO", b"\0a") + frame("TXXX", b"\0MOOD\0b") + frame("TXXX", b"\0Other\0c")
GROUPINGS = frame("GRP1", b"\0b") + frame("TIT1", b"\0a")
COMMENTS = frame("COMM", b"\0eng\0nice") + frame("COMM", b"\0engiTunNORM\0 00000")
BROKEN = frame("XYZW", b"??") + frame("APIC", b"\xff") + frame("TPE1", b"\7bad encoding")
GOOD = frame("TCON", b"\0Rock") + frame("TALB", b"\1\xff\xfea\0l\0")
FIRST, SECOND = (id3_tag(3, frame("TCON", b"\0" + name)) for name in (b"First", b"Second"))
TEXTS = riff_info({b"IGNR": b"Rock\0", b"INAM": b"Caf\xe9", b"ISFT": b"Lavf"})
TITLE = id3_tag(3, frame("TIT2", b"\0Long title"))
ROCK, BOTH, APE = ("Rock",), tuple(PEOPLES["genre"]), ape("Genre", "Rock")
LATIN_1 = tagged("flac").replace("Élan vital".encode(), b"\xc9lan vital!")


def read_as(data, version, **values):
    return pytest.param(data, {"version": version, **values})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        read_as(id3_tag(2, V22) + SOUND, "ID3v2.2", genre=ROCK, grouping=("night",), title="title"),
        read_as(id3_tag(4, MOODS) + SOUND, "ID3v2.4", mood=("a", "b")),
        read_as(id3_tag(3, MOODS) + SOUND, "ID3v2.3", mood=("b", "a")),
        read_as(id3_tag(4, GROUPINGS) + SOUND, "ID3v2.4", grouping=("a", "b")),
        read_as(id3_tag(4, COMMENTS) + SOUND, "ID3v2.4", comment=("nice",)),
        read_as(id3_tag(4, BROKEN + GOOD) + SOUND, "ID3v2.4", genre=ROCK, album="al", artist=None),
        read_as(
            SOUND + id3v1("T", "A", 17), "ID3v1", genre=ROCK, title="T", comment=("a comment",)
        ),
        read_as(TITLE + SOUND + id3v1("Lo", "A", 17), "ID3v2.3", genre=ROCK, title="Long title"),
        read_as(FIRST + SECOND + SOUND, "ID3v2.3", genre=("First",), n_notes=1),
        read_as(SOUND + APE, None, genre=(), n_notes=1),
        read_as(SOUND + APE + id3v1("T", "A", 255), "ID3v1", genre=(), n_notes=1),
        read_as(LATIN_1, "Vorbis comment", genre=("Rock", "Élan vital!")),
        read_as(tagged("flac").replace(b"genre=", b"gEnRe="), "Vorbis comment", genre=BOTH),
        read_as(FIRST + tagged("flac"), "Vorbis comment", genre=BOTH, format="FLAC", n_notes=1),
        read_as(with_chunk(untagged("wav"), TEXTS), "RIFF INFO", genre=ROCK, title="Café"),
        read_as(with_chunk(tagged("wav"), TEXTS), "ID3v2.4", genre=BOTH),
        # an MP3 file may begin amid a frame
        *(read_as(part + SOUND, None, format="MP3") for part in (b"\xaa" * 700, bytes(2000))),
    ],
)
def test_tags_are_read_wherever_they_are(tmp_path, data, expected):
    tags = tags_of(tmp_path, data)
    assert len(tags.notes) == expected.pop("n_notes", 0)
    assert {name: getattr(tags, name) for name in expected} == expected
    if tags.notes:
        assert "left alone" in tags.notes[0]


def damaged_comments():
    """Vorbis comments that announce more than there are."""
    data = bytearray(tagged("ogg"))
    at = data.index(b"\x03vorbis") + 7
    at += 4 + struct.unpack_from("<I", data, at)[0]
    data[at : at + 4] = struct.pack("<I", 99_999)
    return bytes(data)


DAMAGED = [
    b"ID3\4\0\0\0\0\x7f\x7f" + frame("TCON", b"\0Rock"),  # longer than the file
    b"ID3\4\0\0\xff\xff\xff\xff" + SOUND,  # a size that none can have
    b"ID3\5\0\0\0\0\0\5" + bytes(5) + SOUND,  # a version to come
    damaged_comments(),
]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_tag_is_noted(tmp_path, data):
    tags = tags_of(tmp_path, data)
    assert tags.genre == ()
    assert tags.notes


@pytest.mark.parametrize("data", DAMAGED)
def test_nothing_is_written_to_a_damaged_tag(tmp_path, data):
    (tmp_path / "song").write_bytes(data)
    with pytest.raises(FileTagError, match="song: "):
        apply_change(plan_write(tmp_path / "song", ["rock"]))


ENDLESS = {
    "many values": frame_of_24(b"TCON", b"\3" + bytes(5_000_000)),
    "in UTF-16": frame_of_24(b"TCON", b"\1\xff\xfe" + bytes(5_000_000)),
    "in another frame": frame_of_24(b"TMOO", b"\3" + bytes(5_000_000)),
    "packed": frame_of_24(b"TCON", zlib.compress(b"\3" + bytes(5_000_000)), 0x08),
    "packed after its size": frame_of_24(
        b"TCON", bytes(4) + zlib.compress(b"\3" + bytes(10**7)), 0x09
    ),
}


@pytest.mark.parametrize("kind", ["mp3", "wav"])
@pytest.mark.parametrize("data", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_text_is_noted_instead_of_read(tmp_path, kind, data):
    tag = id3_tag(4, frame_of_24(b"TIT2", b"\3A song") + data)
    chunk = b"id3 " + struct.pack("<I", len(tag)) + tag + bytes(len(tag) % 2)
    whole = with_chunk(untagged("wav"), chunk) if kind == "wav" else tag + SOUND
    tags = tags_of(tmp_path, whole)
    assert "more than 65,536 bytes" in tags.obstacle
    assert tags.genre == ()


def test_chapters_in_chapters_are_passed_over(tmp_path):
    nested = b""
    for _ in range(400):
        nested = frame_of_24(b"CHAP", b"a\0" + bytes(16) + nested)
    tag = id3_tag(4, nested + frame_of_24(b"TCON", b"\3Jazz"))
    assert tags_of(tmp_path, tag + untagged("mp3")).genre == ("Jazz",)


def ogg_with(**comments):
    file, whole = mutagen.File(io.BytesIO(untagged("ogg"))), io.BytesIO(untagged("ogg"))
    file.update(comments)
    file.save(whole)
    return whole.getvalue()


def test_very_many_comments_are_noted_instead_of_kept(tmp_path):
    for values, problem in (
        (["ab"] * 700_000, "more than 100,000 Vorbis comments"),
        (["a" * 1100] * 1000, "more than 1,048,576 characters"),
    ):
        tags = tags_of(tmp_path, ogg_with(comment=values, genre=["rock"]))
        assert problem in tags.obstacle
        assert tags.comment == tags.genre == ()


def test_a_large_picture_among_the_comments_does_not_count(tmp_path):
    tags = tags_of(tmp_path, ogg_with(metadata_block_picture=["QUJD" * 10**6], genre=["rock"]))
    assert tags.genre == ("rock",)
    assert tags.obstacle is None


def test_the_genre_numbers_of_mp4_are_read(tmp_path):
    path = tmp_path / "song"
    path.write_bytes(untagged("m4a"))
    file = MP4(path)
    file["©gen"] = ["Ro"]
    file.save()
    old = b"\xa9gen\0\0\0\x12data\0\0\0\1\0\0\0\0Ro"
    new = b"gnre\0\0\0\x12data\0\0\0\0\0\0\0\0\0\x12"
    assert tags_of(tmp_path, path.read_bytes().replace(old, new)).genre == ("Rock",)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"x", b"not music\n" * 100, b"RIFF\0\0\0\0AVI ", b"OggS" + bytes(40), bytes(5000)),
        # MPEG frames amid something else do not make an MP3 file.
        *(one + SOUND for one in (b"RIFF\0\0\0\0AVI ", b"PK\3\4" + bytes(30), b"?" * 5000)),
    ],
)
@pytest.mark.parametrize(
    "function", [read_tags, audio_digest, lambda path: plan_write(path, ["a"])]
)
def test_what_is_no_music_is_refused(tmp_path, data, function):
    path = tmp_path / "song.mp3"
    path.write_bytes(data)
    with pytest.raises(FileTagError, match=r"song\.mp3"):
        function(path)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("nothing.mp3", r"nothing\.mp3 cannot be read .*: No such file"),
        ("", "it is not a file"),
        ("pipe", "pipe cannot be read or written: it is not a file"),
        (os.fsdecode(b"caf\xe9.mp3"), r"caf\\xe9.mp3 cannot be read"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path, name, word):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileTagError, match=word):
        read_tags(tmp_path / name)


# Covers: which picture, and what is none.

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
def test_a_picture_is_read_past_endless_frames(tmp_path, kind):
    about = b"\0image/png\0\3\0"
    bomb = frame_of_24(b"APIC", zlib.compress(about + PNG + bytes(2 * MAX_COVER)), 8)
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
        monkeypatch.setattr("harmonium.library.filetags.formats.MAX_COVER", len(PNG) - 1)
        file.seek(0)
        assert read_cover(file) is None
    path.write_bytes(b"fLaC" + b"\xff" * 100)
    with path.open("rb") as file:
        assert read_cover(file) is None
