"""The picture of a track: its spectrum over time."""

from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoder import CannotDecode, Decoder
from harmonium.audio.decoding import MIN_RATE, Sound, with_decoder
from harmonium.audio.spectrum import decibels, hann_window, hz_to_mel
from harmonium.files import PathLike, write_atomically

WIDTH = 1200  # pixels of a track's picture: moments
HEIGHT = 128  # and mel bands
FRAMES_PER_COLUMN = 4
FRAME = 2048
LOWEST_HZ = 30.0
HIGHEST_HZ = 11_025.0
RANGE = 70.0  # decibels from the darkest to the brightest
MAX_SECONDS = 4 * 3600.0  # longer tracks are cut off here
FOLDER = "spectra"  # in the cache
VERSION = 1  # increase it when pictures change
BLOCK = 2**20  # frames that are decoded at a time


def overview_png(path: Sound, *, cache: PathLike, key: str) -> bytes:
    """A PNG of `WIDTH` × `HEIGHT`; time runs evenly from left to right, high tones are on top.

    It is cached in the folder ``cache``, by the sound's ``key``. Raises AudioError like `decode`.
    """
    if not key.isalnum():  # the file's sound is unknown
        return spectrum_png(with_decoder(path, _mel))
    cached = Path(cache) / FOLDER / f"{key}-{VERSION}.png"
    if cached.is_file():
        return cached.read_bytes()
    picture = spectrum_png(with_decoder(path, _mel))
    with suppress(OSError):  # perhaps the disk is full; then it is drawn again
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(cached, picture)
    return picture


def _mel(source: Decoder) -> Floats:
    """Mel energies, (WIDTH, HEIGHT), from frames spread evenly over the file."""
    if source.rate < MIN_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    n_frames = source.n_frames or _count_frames(source)
    n_frames = min(n_frames, int(MAX_SECONDS * source.rate))
    n_spectra = WIDTH * FRAMES_PER_COLUMN
    starts = np.linspace(0, max(0, n_frames - FRAME), n_spectra).astype(np.int64)
    energies = np.zeros((n_spectra, HEIGHT), np.float32)
    window = hann_window(FRAME)
    bank = _bands(source.rate)
    first = 0
    while first < n_spectra:
        # One block of the file, and the spectra that begin in it.
        begin = int(starts[first])
        last = int(np.searchsorted(starts, begin + BLOCK))
        samples = source.read(begin, int(starts[last - 1]) - begin + FRAME)
        samples = np.nan_to_num(np.pad(samples, (0, FRAME)))
        places = np.minimum(starts[first:last] - begin, len(samples) - FRAME)
        frames = np.stack([samples[place : place + FRAME] for place in places])
        energies[first:last] = np.square(np.abs(np.fft.rfft(frames * window))) @ bank
        first = last
    return energies.reshape(WIDTH, FRAMES_PER_COLUMN, HEIGHT).mean(axis=1)


def _bands(rate: int) -> Floats:
    """What each bin of a spectrum adds to each mel band, (n_bins, HEIGHT)."""
    # Triangles, at least as wide as a bin: unlike those of `spectrum`, they exist at any rate.
    hz = np.fft.rfftfreq(FRAME, 1 / rate)[:, None]
    low, high = hz_to_mel([LOWEST_HZ, min(rate / 2, HIGHEST_HZ)])
    mels = np.linspace(low, high, HEIGHT)
    step = mels[1] - mels[0]
    bin_low = np.maximum(hz - rate / FRAME, 0)
    bin_high = hz + rate / FRAME
    width = np.maximum(step, (hz_to_mel(bin_high) - hz_to_mel(bin_low)) / 2)
    return np.maximum(0, 1 - np.abs(hz_to_mel(hz) - mels) / width).astype(np.float32)


def _count_frames(source: Decoder) -> int:
    """The number of frames of a file that does not tell it; at least 1."""
    n_frames = 0
    while n_frames < MAX_SECONDS * source.rate:
        n_read = len(source.read(n_frames, BLOCK))
        if not n_read:
            break
        n_frames += n_read
    return max(n_frames, 1)


def spectrum_png(mel: Floats) -> bytes:
    """A PNG of mel energies, (n_moments, n_bands): time to the right, high tones on top."""
    from matplotlib import colormaps
    from PIL import Image

    floor = max(float(mel.max()) * 10 ** (-RANGE / 10), 1e-10)
    scaled = (decibels(np.maximum(mel, floor)) - 10 * np.log10(floor)) / RANGE
    levels = (255 * np.clip(scaled, 0, 1)).astype(np.uint8).T[::-1]
    palette = (255 * colormaps["viridis"](np.arange(256))[:, :3]).round().astype(np.uint8)
    picture = Image.fromarray(levels).convert("P")
    picture.putpalette(palette.tobytes())
    file = BytesIO()
    picture.save(file, "png")
    return file.getvalue()
