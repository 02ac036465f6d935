"""A clip as a picture: what its features are computed from."""

import warnings
from collections.abc import Sequence
from os import PathLike

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from harmonium.audio.clip import Clip
from harmonium.audio.paper_features import DEFAULTS, mel_energies
from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.rhythm import band_envelopes, modulation_frequencies, modulation_spectra
from harmonium.audio.spectrum import Floats, decibels, hz_to_mel, mel_corners
from harmonium.errors import DataError

# Okabe and Ito's, which people with any colour vision tell apart; each band also has its own panel.
COLOURS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#E69F00")
MARKS_HZ = (100, 400, 800, 1600, 3200, 6400, 12_800)
WEAKEST_PEAK = 0.05
"""Modulations below this depth are no beat, and get no mark."""
SLOWEST_BEAT = 0.5
"""Hz; slower modulations are no beat either."""

SIZE, TAGS_WIDTH = (11.0, 8.5), 3.2  # inches


def draw_clip(
    clip: Clip,
    *,
    title: str = "",
    parameters: FeatureParameters = DEFAULTS,
    tags: Sequence[tuple[str, float]] = (),
) -> Figure:
    """Mel spectrum, band envelopes and modulation spectra of a clip; and tags, if there are.

    Parameters
    ----------
    clip : at the parameters' rate
    title : above it all
    tags : names and probabilities, the first at the top
    """
    mel = mel_energies(clip.samples, clip.rate, parameters)
    width, height = SIZE
    figure = Figure((width + TAGS_WIDTH * bool(tags), height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_one_line(title), parse_math=False, x=0.01, ha="left", fontsize=13)
    ratios = [width, TAGS_WIDTH] if tags else [width]
    sound, *rest = figure.subfigures(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
    _draw_sound(sound, mel, clip.start, parameters)
    for panel in rest:
        _draw_tags(panel, tags)
    return figure


def save_picture(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a PNG, SVG or PDF file, by the name's ending."""
    with warnings.catch_warnings():
        # A title may hold signs that the font has not; they become boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise DataError(
                f"The picture cannot be written: {error}. Choose a name that ends in .png, .svg "
                "or .pdf, in a folder that is there."
            ) from None


def _draw_sound(
    figure: SubFigure, mel: Floats, start: float, parameters: FeatureParameters
) -> None:
    """On the left all that goes with time; on the right what it comes to over the clip."""
    n_bands = len(parameters.band_names)
    edges = (parameters.lowest_hz, *parameters.band_edges, parameters.highest_hz)
    grid = figure.subplots(
        1 + n_bands,
        2,
        squeeze=False,
        gridspec_kw={"width_ratios": [1.8, 1], "height_ratios": [3] + [1] * n_bands},
    )
    end = start + len(mel) / parameters.frame_rate
    _draw_spectrum(grid[0, 0], grid[0, 1], decibels(mel), (start, end), parameters)
    envelopes = band_envelopes(mel, parameters)
    spectra = modulation_spectra(envelopes, parameters)
    highest = 1.4 * max(float(spectra.max()), WEAKEST_PEAK)
    for row, band in enumerate(reversed(range(n_bands)), 1):  # the high one on top, as above
        left, right = grid[row]
        colour = COLOURS[band % len(COLOURS)]
        seconds = np.linspace(start, end, len(envelopes), endpoint=False)
        left.fill_between(seconds, envelopes[:, band], color=colour, linewidth=0)
        left.set(xlim=(start, end), ylim=(0, 1.35 * envelopes[:, band].max()))
        name, low, high = parameters.band_names[band], edges[band], edges[band + 1]
        _write(left, f"{name}, {low:g} to {high:g} Hz", "left")
        _draw_modulation(right, spectra[band], parameters, colour)
        right.set_ylim(0, highest)
    for axes in (*grid[1:-1, 0], *grid[1:-1, 1], grid[0, 0]):
        axes.tick_params(labelbottom=False)
    grid[1, 0].set_title("Energy of each band, divided by its mean")
    grid[1, 1].set_title("How deeply it swings, by how often")
    grid[-1, 0].set_xlabel("seconds into the file")
    grid[-1, 1].set_xlabel("times per second (Hz)")


def _draw_spectrum(
    left: Axes,
    right: Axes,
    levels: Floats,
    seconds: tuple[float, float],
    parameters: FeatureParameters,
) -> None:
    """Levels over time, and their mean; the colours are those of the levels in both."""
    # Silence is as dark as the weakest sound of a clip that has some.
    silence = 10 * np.log10(parameters.silence)
    levels = levels - max(float(levels.max()), silence + parameters.dynamic_range)
    # Equal steps up the picture are equal steps in mel, as the bands are.
    corners = hz_to_mel(mel_corners(parameters))
    scale = Normalize(-parameters.dynamic_range, 0)
    left.imshow(
        levels.T,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap="viridis",
        norm=scale,
        extent=(*seconds, corners[0], corners[-1]),
    )
    mean = levels.mean(axis=0)
    colours = colormaps["viridis"](scale(mean))
    floor = -parameters.dynamic_range
    right.barh(corners[1:-1], mean - floor, np.diff(corners[1:]), left=floor, color=colours)
    marks = [hz for hz in MARKS_HZ if parameters.lowest_hz <= hz <= parameters.highest_hz]
    for axes, colour in ((left, "white"), (right, "black")):
        axes.set_yticks(hz_to_mel(marks), [str(hz) for hz in marks])
        axes.set_ylim(corners[0], corners[-1])
        for edge in hz_to_mel(parameters.band_edges):
            axes.axhline(edge, color=colour, linewidth=0.8, linestyle=":")
    left.set(title="Mel spectrum", ylabel="Hz")
    right.set(title="Its mean, and the scale of its colours", xlabel="dB, 0 is the strongest")
    right.set_xlim(floor, 0)


def _draw_modulation(
    axes: Axes, spectrum: NDArray[np.float64], parameters: FeatureParameters, colour: str
) -> None:
    hertz = modulation_frequencies(parameters)
    axes.plot(hertz, spectrum, color=colour, linewidth=1.8)
    axes.set_xlim(0, parameters.highest_modulation_hz)
    axes.grid(axis="x", alpha=0.3)
    _mark_peak(axes, hertz, spectrum)


def _write(axes: Axes, text: str, side: str) -> None:
    """A line of text in an upper corner."""
    place = 0.01 if side == "left" else 0.99
    axes.annotate(text, (place, 0.93), xycoords="axes fraction", ha=side, va="top", fontsize=9)


def _mark_peak(axes: Axes, hertz: NDArray[np.float64], spectrum: NDArray[np.float64]) -> None:
    """Name the strongest swing that is a beat and no slow wandering, in beats per minute."""
    inner = spectrum[1:-1]
    peaks = 1 + np.flatnonzero((inner >= spectrum[:-2]) & (inner > spectrum[2:]))
    peaks = peaks[(hertz[peaks] >= SLOWEST_BEAT) & (spectrum[peaks] >= WEAKEST_PEAK)]
    if not len(peaks):
        return
    peak = int(peaks[np.argmax(spectrum[peaks])])
    # The parabola through the peak and its neighbours tells where between the steps it is.
    before, here, after = spectrum[peak - 1 : peak + 2]
    beat = hertz[peak] + (before - after) / (2 * (before - 2 * here + after)) * hertz[1]
    axes.plot(hertz[peak], spectrum[peak], "o", color="black", markersize=4)
    _write(axes, f"{beat:.2f} Hz = {60 * beat:.0f} per minute", "right")


def _draw_tags(figure: SubFigure, tags: Sequence[tuple[str, float]]) -> None:
    axes = figure.subplots()
    names = [_one_line(name, 24) for name, _ in tags]
    values = [value for _, value in tags]
    places = np.arange(len(tags))
    axes.barh(places, values, color=COLOURS[0], height=0.7)
    axes.set_yticks(places, names, parse_math=False)
    for place, value in zip(places, values, strict=True):
        inside = value > 0.8
        axes.annotate(
            f"{100 * value:.0f} %",
            (value, place),
            xytext=(-3 if inside else 3, 0),
            textcoords="offset points",
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
            fontsize=9,
        )
    axes.set(title="Tags", xlim=(0, 1), xlabel="probability", ylim=(len(tags) - 0.5, -0.5))


def _one_line(text: str, longest: int = 100) -> str:
    """Text that fits in a line."""
    printable = text.encode("utf-8", "replace").decode()  # a name need not be valid text
    line = " ".join(printable.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
