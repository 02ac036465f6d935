"""Twelve hours: only the window is decoded, and memory stays what it is for a minute."""

import struct
import subprocess
import sys

import av
import numpy as np
import pytest
from sound_files import timed_noise, write_ffmpeg, write_sndfile

from harmonium.audio import decode, decoding

HOURS = 12
RATE = 8_000
N_FRAMES = HOURS * 3600 * RATE


@pytest.fixture(scope="module")
def minute():
    return timed_noise(60, RATE)


@pytest.fixture(scope="module")
def long_files(minute, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    files = {
        "wav": folder / "long.wav",
        "mp3": folder / "long.mp3",
        "m4a": folder / "long.m4a",
    }
    _write_sparse_wav(files["wav"])
    short = write_sndfile(
        folder / "a.mp3", minute, RATE, bitrate_mode="CONSTANT", compression_level=0.9
    )
    files["mp3"].write_bytes(_without_first_frame(short.read_bytes()) * (60 * HOURS))
    _repeat_packets(write_ffmpeg(folder / "a.m4a", minute, RATE, "aac", b="8000"), files["m4a"])
    yield files
    for file in files.values():  # pytest would keep them for a while
        file.unlink()


def _write_sparse_wav(path):
    """A header of twelve hours, and a hole in place of most of them."""
    n_bytes = 2 * N_FRAMES
    form = struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    riff = b"RIFF" + struct.pack("<I", 36 + n_bytes) + b"WAVE"
    with path.open("wb") as file:
        file.write(riff + b"fmt " + form + b"data" + struct.pack("<I", n_bytes))
        file.truncate(44 + n_bytes)
        file.seek(44 + N_FRAMES)
        file.write(np.full(10, 16_384, "<i2").tobytes())


def _without_first_frame(mp3):
    """The frames of sound only: the first one tells the length."""
    return mp3[mp3.index(mp3[:3], 3) :]


def _repeat_packets(short, path):
    """The packets of one minute, over and over."""
    with av.open(str(short)) as file, av.open(str(path), "w") as output:
        stream = file.streams.audio[0]
        packets = [(bytes(p), p.duration) for p in file.demux(stream) if p.size]
        copy = output.add_stream_from_template(stream)
        time = 0
        for _ in range(60 * HOURS):
            for content, duration in packets:
                packet = av.Packet(content)
                packet.stream, packet.time_base = copy, stream.time_base
                packet.pts = packet.dts = time
                packet.duration = duration
                time += duration
                output.mux_one(packet)


@pytest.mark.parametrize("kind", ["wav", "mp3", "m4a"])
def test_the_middle_of_twelve_hours_is_ten_seconds_of_decoding(kind, long_files, monkeypatch):
    decoded = []
    real = decoding.mean_of_channels

    def counting(frames):
        decoded.append(len(frames))
        return real(frames)

    from harmonium.audio import ffmpeg

    for module in (decoding, ffmpeg):
        monkeypatch.setattr(module, "mean_of_channels", counting)
    clip = decode(long_files[kind])
    assert clip.duration == pytest.approx(HOURS * 3600, rel=0.01)
    assert clip.start == pytest.approx(HOURS * 1800, rel=0.01)
    assert len(clip.samples) == 220_500
    assert sum(decoded) < 11 * RATE
    if kind == "wav":
        assert clip.samples[110_250] > 0.3  # the only sound is in the very middle


def test_memory_does_not_grow_with_the_length(long_files, minute, tmp_path):
    code = """
import re, sys
from pathlib import Path
from harmonium.audio import decode

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

for short in sys.argv[1:3]:
    decode(short)
before = peak()
for long in sys.argv[3:]:
    decode(long)
print(peak() - before)
"""
    short = [
        write_sndfile(tmp_path / "a.mp3", minute, RATE),
        write_ffmpeg(tmp_path / "a.m4a", minute, RATE, "aac"),
    ]
    command = [sys.executable, "-c", code, *map(str, (*short, *long_files.values()))]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    # The M4A file's table of contents is read whole: a few bytes for each of 340,000 packets.
    assert float(run.stdout) < 60
