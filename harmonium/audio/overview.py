"""A whole track as a small picture: its mel spectrum from beginning to end."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.clip import LOWEST_RATE, with_decoder
from harmonium.audio.decoder import CannotDecode, Decoder
from harmonium.audio.spectrum import decibels, hann_window, hz_to_mel
from harmonium.files import write_atomically

WIDTH, HEIGHT = 1200, 128
"""Pixels: moments and mel bands."""
LOOKS = 4
"""Frames that a column of the picture is the mean of."""
FRAME = 2048
LOWEST_HZ, HIGHEST_HZ = 30.0, 11_025.0
RANGE = 70.0
"""Decibels from the darkest to the brightest."""
LONGEST = 4 * 3600.0
"""Seconds of which a picture is drawn; what is beyond is cut off."""
FOLDER = "spectra"
VERSION = 1
"""To be raised whenever the picture of the same sound is another."""
_BLOCK = 2**20  # frames that are decoded at a time


def overview_png(
    path: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    key: str | None = None,
) -> bytes:
    """A PNG of `WIDTH` × `HEIGHT`; time runs evenly from left to right, high tones are on top.

    Parameters
    ----------
    path : any file that `decode` reads
    cache, key : a folder in which the picture is kept, and what the sound is known by

    Raises
    ------
    AudioError
        for a file that is not there, is no sound, or is damaged
    """
    kept = None
    if cache is not None and key is not None and key.isalnum():
        kept = Path(cache) / FOLDER / f"{key}-{VERSION}.png"
        if kept.is_file():
            return kept.read_bytes()
    picture = _png(_levels(with_decoder(path, _mel)))
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, picture)
    return picture


def _mel(source: Decoder) -> NDArray[np.float32]:
    """Mel energies, (WIDTH, HEIGHT), from frames spread evenly over the file."""
    if source.rate < LOWEST_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    total = source.n_frames or _count(source)
    total = min(total, int(LONGEST * source.rate))
    starts = np.linspace(0, max(0, total - FRAME), WIDTH * LOOKS).astype(np.int64)
    energies = np.zeros((len(starts), HEIGHT), np.float32)
    window, bank = hann_window(FRAME), _bands(source.rate)
    first = 0
    while first < len(starts):
        begin = int(starts[first])
        last = int(np.searchsorted(starts, begin + _BLOCK))
        samples = source.read(begin, int(starts[last - 1]) - begin + FRAME)
        samples = np.nan_to_num(np.pad(samples, (0, FRAME)))
        here = np.minimum(starts[first:last] - begin, len(samples) - FRAME)
        frames = np.stack([samples[at : at + FRAME] for at in here])
        energies[first:last] = np.square(np.abs(np.fft.rfft(frames * window))) @ bank
        first = last
    return energies.reshape(WIDTH, LOOKS, HEIGHT).mean(axis=1)


def _bands(rate: int) -> NDArray[np.float32]:
    """What each bin of a spectrum adds to each mel band, (n_bins, HEIGHT).

    Triangles, at least as wide as a bin: unlike those of `spectrum`, they are there at any rate.
    """
    hz = np.fft.rfftfreq(FRAME, 1 / rate)[:, None]
    low, high = hz_to_mel([LOWEST_HZ, min(rate / 2, HIGHEST_HZ)])
    mels = np.linspace(low, high, HEIGHT)
    step = mels[1] - mels[0]
    lowest, highest = np.maximum(hz - rate / FRAME, 0), hz + rate / FRAME
    width = np.maximum(step, (hz_to_mel(highest) - hz_to_mel(lowest)) / 2)
    return np.maximum(0, 1 - np.abs(hz_to_mel(hz) - mels) / width).astype(np.float32)


def _count(source: Decoder) -> int:
    """How many frames there are, where the file does not say."""
    n = 0
    while n < LONGEST * source.rate:
        found = len(source.read(n, _BLOCK))
        n += found
        if found < _BLOCK:
            break
    return max(n, 1)


def _levels(mel: NDArray[np.float32]) -> NDArray[np.uint8]:
    """0 … 255 by loudness, (HEIGHT, WIDTH), high tones first."""
    floor = max(float(mel.max()) * 10 ** (-RANGE / 10), 1e-10)
    levels = decibels(np.maximum(mel, floor))
    scaled = (levels - 10 * np.log10(floor)) / RANGE
    return (255 * np.clip(scaled, 0, 1)).astype(np.uint8).T[::-1]


def _png(levels: NDArray[np.uint8]) -> bytes:
    """A PNG with a palette; the picture needs no more of the format than this."""
    from matplotlib import colormaps

    palette = (255 * colormaps["viridis"](np.arange(256))[:, :3]).round().astype(np.uint8)
    height, width = levels.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each begins with its filter, none
    rows[:, 1:] = levels
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", header), (b"PLTE", palette.tobytes())]
    parts += [(b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
