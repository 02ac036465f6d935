"""Pictures: of a clip, with what its features are computed from; and of a whole track."""

import textwrap
import warnings
from contextlib import suppress
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoding import MIN_RATE, CannotDecode, Clip, Decoder, PathLike, with_decoder
from harmonium.audio.extractors import (
    DEFAULTS,
    band_envelopes,
    decibels,
    hann_window,
    hz_to_mel,
    mel_energies,
    modulation_spectra,
)
from harmonium.errors import DataError
from harmonium.files import write_atomically

if TYPE_CHECKING:  # matplotlib is slow to import
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#E69F00")
MARKS_HZ = (100, 400, 800, 1600, 3200, 6400)
MIN_DEPTH = 0.05  # that the scale of modulations reaches
SIZE = (11.0, 8.5)  # inches of a clip's picture

WIDTH, HEIGHT = 1200, 128  # pixels of a track's picture: moments and mel bands
LOOKS = 4  # frames that a column of it is the mean of
FRAME = 2048
LOWEST_HZ, HIGHEST_HZ = 30.0, 11_025.0
RANGE = 70.0  # decibels from the darkest to the brightest
MAX_SECONDS = 4 * 3600.0  # what a track has beyond this length is cut off
FOLDER, VERSION = "spectra", 1  # in the cache; the version must rise when pictures change
BLOCK = 2**20  # frames that are decoded at a time


def draw_clip(clip: Clip, *, title: str = "") -> "Figure":
    """The mel spectrum above; below, how deeply the energy of each broad band swings."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mel = mel_energies(clip.samples, clip.rate, DEFAULTS)
    figure = Figure(SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    printable = title.encode("utf-8", "replace").decode()  # a name need not be valid text
    short = textwrap.shorten(printable, 100, placeholder="…")
    figure.suptitle(short, parse_math=False, x=0.01, ha="left", fontsize=13)
    above, below = figure.subplots(2, 1)
    # Silence is as dark as the weakest sound of a clip that has some.
    levels = decibels(mel)
    silence = 10 * np.log10(DEFAULTS.silence)
    levels -= max(float(levels.max()), silence + DEFAULTS.dynamic_range)
    # Equal steps up the picture are equal steps in mel, as the bands are.
    low, high = hz_to_mel([DEFAULTS.lowest_hz, DEFAULTS.highest_hz])
    picture = above.imshow(
        levels.T,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        vmin=-DEFAULTS.dynamic_range,
        vmax=0,
        extent=(clip.start, clip.start + len(mel) / DEFAULTS.frame_rate, low, high),
    )
    figure.colorbar(picture, label="dB, 0 is the strongest", pad=0.01)
    above.set_yticks(hz_to_mel(MARKS_HZ), [str(hz) for hz in MARKS_HZ])
    above.set(title="Mel spectrum", xlabel="seconds into the file", ylabel="Hz")
    hertz = np.arange(DEFAULTS.n_modulations) * DEFAULTS.frame_rate / DEFAULTS.modulation_fft
    spectra = modulation_spectra(band_envelopes(mel, DEFAULTS), DEFAULTS)
    edges = pairwise((DEFAULTS.lowest_hz, *DEFAULTS.band_edges, DEFAULTS.highest_hz))
    bands = zip(DEFAULTS.band_names, edges, spectra, COLOURS, strict=False)
    for name, (least, most), spectrum, colour in bands:
        label = f"{name}, {least:g} to {most:g} Hz"
        below.plot(hertz, spectrum, color=colour, linewidth=1.8, label=label)
    below.set(title="How deeply the energy of each band swings, by how often", ylabel="depth")
    below.set(xlabel="times per second (Hz)", xlim=(0, DEFAULTS.highest_modulation_hz))
    below.set_ylim(0, 1.1 * max(float(spectra.max()), MIN_DEPTH))
    below.grid(axis="x", alpha=0.3)
    below.legend(fontsize=9)
    return figure


def save_picture(figure: "Figure", path: PathLike) -> None:
    """Write a PNG, SVG or PDF file, by the name's ending."""
    with warnings.catch_warnings():
        # A title may hold signs that the font has not; they become boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise DataError(
                f"The picture cannot be written: {error}. Choose a name that ends in .png, .svg "
                "or .pdf, in an existing folder."
            ) from None


def overview_png(path: PathLike, *, cache: PathLike, key: str) -> bytes:
    """A PNG of `WIDTH` × `HEIGHT`; time runs evenly from left to right, high tones are on top.

    It is kept in the folder ``cache``, by the ``key`` of the sound. AudioError as `decode`.
    """
    kept = Path(cache) / FOLDER / f"{key}-{VERSION}.png"
    if key.isalnum() and kept.is_file():
        return kept.read_bytes()
    picture = spectrum_png(with_decoder(path, _mel))
    if key.isalnum():  # or else the sound of the file is not known
        with suppress(OSError):  # the disk is full, say; then it is drawn again
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, picture)
    return picture


def _mel(source: Decoder) -> Floats:
    """Mel energies, (WIDTH, HEIGHT), from frames spread evenly over the file."""
    if source.rate < MIN_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    total = source.n_frames or _count(source)
    total = min(total, int(MAX_SECONDS * source.rate))
    starts = np.linspace(0, max(0, total - FRAME), WIDTH * LOOKS).astype(np.int64)
    energies = np.zeros((len(starts), HEIGHT), np.float32)
    window, bank = hann_window(FRAME), _bands(source.rate)
    first = 0
    while first < len(starts):
        begin = int(starts[first])
        last = int(np.searchsorted(starts, begin + BLOCK))
        samples = source.read(begin, int(starts[last - 1]) - begin + FRAME)
        samples = np.nan_to_num(np.pad(samples, (0, FRAME)))
        here = np.minimum(starts[first:last] - begin, len(samples) - FRAME)
        frames = np.stack([samples[at : at + FRAME] for at in here])
        energies[first:last] = np.square(np.abs(np.fft.rfft(frames * window))) @ bank
        first = last
    return energies.reshape(WIDTH, LOOKS, HEIGHT).mean(axis=1)


def _bands(rate: int) -> Floats:
    """What each bin of a spectrum adds to each mel band, (n_bins, HEIGHT)."""
    # Triangles, at least as wide as a bin: unlike those of `spectrum`, they are there at any rate.
    hz = np.fft.rfftfreq(FRAME, 1 / rate)[:, None]
    low, high = hz_to_mel([LOWEST_HZ, min(rate / 2, HIGHEST_HZ)])
    mels = np.linspace(low, high, HEIGHT)
    step = mels[1] - mels[0]
    lowest, highest = np.maximum(hz - rate / FRAME, 0), hz + rate / FRAME
    width = np.maximum(step, (hz_to_mel(highest) - hz_to_mel(lowest)) / 2)
    return np.maximum(0, 1 - np.abs(hz_to_mel(hz) - mels) / width).astype(np.float32)


def _count(source: Decoder) -> int:
    n = 0
    while n < MAX_SECONDS * source.rate and (found := len(source.read(n, BLOCK))):
        n += found
    return max(n, 1)


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
