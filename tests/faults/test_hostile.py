"""Names, tags and sound that somebody made to do harm."""

import io
import json
import os
from pathlib import Path

import av
import numpy as np
import polars as pl
import pytest
import soundfile
from command_line import run_main
from mutagen.flac import FLAC
from noise_files import write
from some_tracks import add_tracks, in_force
from tagged_files import untagged
from web_server import serving

from harmonium.audio.decoding import decode
from harmonium.errors import AudioError
from harmonium.library import Library
from harmonium.library.edits import rename_tag
from harmonium.library.filetags import read_tags
from harmonium.library.imports import import_table
from harmonium.library.teaching.say import keep_said

NAMES = [
    b"two\nlines\r.flac",
    b"\xff\xfe not utf-8.flac",
    "\u202ecalf.exe\u202c.flac".encode(),  # shown from right to left
    b"a" * 250 + b".flac",  # 255 bytes
    b"-rf --help.flac",
    b"\x1b[2J\x1b]0;owned\x07.flac",
    b"[red]markup[bold] [link=file]x.flac",
    b"=cmd|' C calc'!A0<script>.flac",
    b"a'b\"c`$(touch owned)`;&|.flac",
    b"\xe2\x80\x8b\xcc\x81.flac",  # a space of no width, an accent on nothing
]

TAGS = [
    "\x1b[31mred\x07",
    "two\nlines\ttab",
    *("[bold]markup[/bold]", "<script>alert(1)</script>", "=HYPERLINK(1)"),
    "\u202egnol\u202c",
    "x" * 20_000,
    *("a;b,c/d|e", "'; DROP TABLE tag; --"),
    "🎵\u0301" * 50,
]
JSON = {"Content-Type": "application/json"}
NUL = "nul\0byte"
LONE = "half \ud83d of a pair"


def shown(done):
    """What a command printed has nothing that acts on a terminal."""
    text = done.stdout + done.stderr
    assert all(c.isprintable() or c in "\n\t" for c in text), repr(text[:500])
    assert "Traceback" not in text
    return done


def test_hostile_names_are_names(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "cache"))
    music = tmp_path / "music"
    music.mkdir()
    for number, name in enumerate(NAMES):
        sound = write(tmp_path / "x.flac", number, seconds=1.2)
        os.rename(sound, os.path.join(os.fsencode(music), name))  # noqa: PTH104, PTH118
    done = shown(run_main("index", music, "-L", place, "--engine", "serial", "-e", "timbre"))
    assert done.exit_code == 0, done.stderr
    with Library.open(place) as library:
        paths = {track.id: track.path for track in library.tracks.all()}
        assert sorted(os.fsencode(Path(path).name) for path in paths.values()) == sorted(NAMES)
        for number in paths:
            keep_said(library, number, accepted=["odd"])
    for number in (1, 2):
        assert shown(run_main("say", "-L", place, "--", paths[number], "more")).exit_code == 0
    for command in (["search", "odd"], ["search", "odd", "--json"], ["doctor"], ["undo", "--list"]):
        assert shown(run_main(*command, "-L", place)).exit_code in (0, 1), command
    for name in ("a.m3u8", "a.xml", "a.csv"):
        option = "--playlist" if name == "a.m3u8" else "--export"
        done = shown(run_main("search", "odd", "-L", place, option, tmp_path / name))
        assert done.exit_code == 0
    written = shown(run_main("write", "-L", place, "--yes", "--precision", "0"))
    assert written.exit_code == 0, written.stderr
    for path in paths.values():
        assert "odd" in read_tags(path).grouping
    assert shown(run_main("undo", "-L", place)).exit_code == 0
    for path in paths.values():
        assert read_tags(path).grouping == ()
    assert not Path("owned").exists()
    failures = tmp_path / "failed.csv"
    for name in NAMES:
        Path(os.fsdecode(os.path.join(os.fsencode(music), name))).write_bytes(b"no sound")  # noqa: PTH118
    arguments = ["-o", tmp_path / "f.csv", "--failures", failures, "--engine", "serial"]
    shown(run_main("features", music, *arguments))


def test_hostile_tags_are_tags(place, tmp_path):
    song = tmp_path / "music" / "song.flac"
    song.parent.mkdir()
    song.write_bytes(untagged("flac"))
    file = FLAC(song)
    file["genre"], file["title"], file["artist"] = TAGS, "\x1b[31m[red]", "=1+1"
    file.save()
    with Library.open(place) as library:
        (track,) = add_tracks(library, 1)
        keep_said(library, track, accepted=TAGS)
        kept = {tag for _, _, tag in in_force(library)}
        assert len(kept) == len(TAGS)
    for command in (
        ["index", song.parent, "--engine", "serial", "-e", "timbre"],
        ["import", "--from-files"],
        ["tag", song],
        ["tag", "/music/000.mp3"],
        ["doctor"],
        ["undo", "--list"],
        ["search", '"=hyperlink(1)"'],
        ["search", "[bold]markup[/bold]"],
        ["say", "/music/000.mp3", "--", "-[bold]markup[/bold]"],
        ["rename", "<script>alert(1)</script>", "[red]x[/red]"],
        ["hide", "a;b,c/d|e"],
        ["search", "nothing [red]like[/red] \x1b[31mthis"],
    ):
        shown(run_main(*command, "-L", place))
    for ending, option in ((".xml", "--export"), (".csv", "--export"), (".m3u8", "--playlist")):
        query = '"=hyperlink(1)"'
        done = shown(run_main("search", query, "-L", place, option, tmp_path / f"x{ending}"))
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("tag", [NUL, LONE], ids=["NUL", "half a pair"])
def test_what_no_database_can_hold_is_replaced(place, tag, tmp_path):
    """The same on SQLite and PostgreSQL."""
    kept = "nul byte" if tag == NUL else "half ? of a pair"
    with Library.open(place) as library:
        (track,) = add_tracks(library, 1)
        keep_said(library, track, accepted=["rock", tag])
        assert in_force(library) == {("me", track, kept): 1, ("me", track, "rock"): 1}
        rename_tag(library, "rock", f"{tag} 2")
        assert in_force(library) == {("me", track, kept): 1, ("me", track, f"{kept} 2"): 1}
        if tag == NUL:
            table = tmp_path / "tags.parquet"
            columns = {"user": ["ann", "ann"], "path": ["/music/000.mp3"] * 2, "tag": [tag, "jazz"]}
            pl.DataFrame(columns).write_parquet(table)
            import_table(library, table)
            said = {tag for who, _, tag in in_force(library) if who == "ann"}
            assert said == {"jazz", "nul", "byte"}  # in file tags, NUL stands between tags
    with serving(place) as client:
        for body in ({"yes": [tag]}, {"no": [tag]}, {"yes": ["\ud800", "a\0b"]}):
            answer = client.post(f"tracks/{track}/say", content=json.dumps(body), headers=JSON)
            assert answer.status_code in (200, 400), answer.text
        assert client.get("health").status_code == 200


# Sound. ---------------------------------------------------------------------------------------


KINDS = ("wav", "flac", "ogg", "mp3", "aiff")


def answer(path):
    """The samples, or why there are none."""
    try:
        samples = decode(path).samples
    except AudioError as error:
        return str(error)
    assert np.isfinite(samples).all()
    return samples


def lying_wav(said):
    """A second of silence whose header says another number of bytes."""
    out = io.BytesIO()
    soundfile.write(out, np.zeros(22_050), 22_050, format="WAV", subtype="PCM_16")
    data = bytearray(out.getvalue())
    data[40:44] = said.to_bytes(4, "little")
    return bytes(data)


def noise(n, ending, rate=22_050, channels=1):
    out = io.BytesIO()
    samples = np.random.default_rng(0).normal(0, 0.1, (n, channels))
    soundfile.write(out, samples, rate, format={"ogg": "OGG"}.get(ending, ending.upper()))
    return out.getvalue()


@pytest.mark.parametrize(
    ("make", "cases", "longest"),
    [
        (noise, [(n, kind) for n in range(3) for kind in KINDS], 22_050),
        (lying_wav, [(0,), (1,), (2**31 - 1,), (2**32 - 1,)], 22_050),
        (
            lambda rate, channels: noise(rate // 2, "wav", rate, channels),
            [(384_000, 2), (768_000, 1), (48_000, 32), (1_000, 1), (22_050, 255)],
            11_027,
        ),
    ],
    ids=["hardly any samples", "a header that lies", "odd rates and channels"],
)
def test_odd_sound_gives_samples_or_one_clear_error(tmp_path, make, cases, longest):
    for case in cases:
        path = tmp_path / "a.bin"
        path.write_bytes(make(*case))
        found = answer(path)
        assert str(path) in found if isinstance(found, str) else 0 < len(found) <= longest, case


@pytest.mark.parametrize(
    ("container", "codec", "layout"),
    [("ipod", "aac", "5.1"), ("ipod", "aac", "7.1(wide)"), ("wv", "wavpack", "hexadecagonal")],
)
def test_channels_with_a_plane_each(tmp_path, container, codec, layout):
    """Of eight and more, PyAV reads into other memory, which ended the process."""
    rate, path = 22_050, tmp_path / "song"
    n = av.AudioLayout(layout).nb_channels
    noise = np.random.default_rng(0).normal(0, 0.1, (rate, n)).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(noise.reshape(1, -1), format="flt", layout=layout)
    frame.sample_rate = rate
    with av.open(path, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate, layout=layout)
        context = stream.codec_context
        context.format = "fltp"
        parts = av.AudioResampler(
            context.format, layout, rate, frame_size=context.frame_size or 1024
        )
        for part in (*parts.resample(frame), *parts.resample(None)):
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    found = answer(path)
    assert abs(len(found) - rate) <= 2048
    if codec == "wavpack":  # which loses nothing
        np.testing.assert_allclose(found, noise.mean(axis=1), atol=1e-6)
