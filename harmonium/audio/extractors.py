"""From samples to features: the mel spectrum, the paper's features, and extractors by name.

A spectrum's frames lie completely inside the clip: none is padded, and up to ``hop_length`` − 1
samples at the end belong to no frame. docs/features.md defines the paper's features.

An `Extractor` carries everything needed to use it and to tell its results from another's. It is
sent to other processes as it is, so they need not know its registered name.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise
from math import ceil, floor, isfinite
from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Floats, Places
from harmonium.audio.decoding import DECODING_VERSION, Plan, SpreadWindows, decode_windows, quoted
from harmonium.errors import AudioError, DataError, HarmoniumError
from harmonium.files import PathLike

GROUPS = ("timbre", "rhythm")  # the groups of the paper's features, in their order
DEFINITIONS = 1  # increase it whenever the paper's features of the same samples change
MAX_SAMPLE = 1e12  # Full scale is 1. Far beyond this, the squares in float32 overflow.
BLOCK = 32
"""Frames transformed at a time: few enough to stay in the processor's cache from step to step, and
so few that the product with the filterbank does not start a second thread."""

# Slaney's mel scale: linear below 1000 Hz, 15 mels; above it a factor of 6.4 is 27 mels.
MELS_PER_HZ = 3 / 200
BREAK_HZ, BREAK_MEL = 1000.0, 15.0
MELS_PER_LOG = 27 / np.log(6.4)

DEFAULT = "musicnn"  # the extractor of a new library
ENTRY_POINTS = "harmonium.extractors"  # entry points by which other packages name extractors
ONNX = "onnx:"  # prefix of the name of a model in ONNX's format; the path of its file follows

Function = Callable[[Floats, int], ArrayLike]


@dataclass(frozen=True)
class FeatureParameters:
    """The rates, frames, bands and coefficient numbers of the features of a clip.

    Two equal objects give the same features of the same samples. The defaults give the paper's
    189 timbre and 200 rhythm features.

    >>> FeatureParameters().n_features
    389
    >>> FeatureParameters(n_mfcc=13, n_rhythm=20).n_features
    184
    """

    rate: int = 22_050  # samples per second that the clip must have
    shortest_clip: float = 1.0  # seconds that a clip must last; less says nothing about rhythm

    frame_length: int = 1024  # samples in a frame of the spectrum (46 ms at the default rate)
    hop_length: int = 512  # samples from one frame to the next (23 ms at the default rate)
    n_mels: int = 40  # mel bands
    lowest_hz: float = 30.0  # where the first mel band begins
    highest_hz: float = 11_025.0  # where the last mel band ends
    silence: float = 1e-14  # the smallest mel energy, below the rounding noise of 24-bit samples
    dynamic_range: float = 80.0  # dB from a clip's strongest mel energy to the weakest that counts

    n_mfcc: int = 18  # cepstral coefficients, MFCC 0 included

    band_names: tuple[str, ...] = ("low", "low-mid", "high-mid", "high")
    """The broad bands of the rhythm features."""
    band_edges: tuple[float, ...] = (200.0, 800.0, 3200.0)
    """Hz between them. A mel band belongs to the broad band that its centre lies in."""
    modulation_frame: int = 430  # spectrum frames in one of the modulation spectrum: 10 s
    modulation_fft: int = 512  # length of its Fourier transform, zeros included
    highest_modulation_hz: float = 10.0  # where the modulation spectrum ends
    n_rhythm: int = 50  # DCT coefficients of each broad band's modulation spectrum

    def __post_init__(self) -> None:
        for name, holds, rule in self._rules():
            if not holds:
                raise DataError(f"'{name}' must be {rule}, got {getattr(self, name)!r}.")

    def _rules(self) -> Iterator[tuple[str, bool, str]]:
        """Parameters, whether they keep to their rules, and the rules; the later need the first."""
        whole = ("rate", "frame_length", "hop_length", "n_mels", "n_mfcc", "n_rhythm")
        windows = ("modulation_frame", "modulation_fft")  # a window of fewer than 3 is all zeros
        for name, least in (dict.fromkeys(whole, 1) | dict.fromkeys(windows, 3)).items():
            good = isinstance(value := getattr(self, name), int) and value >= least
            yield name, good, f"a whole number of at least {least}"
        for name in ("shortest_clip", "silence", "dynamic_range", "highest_modulation_hz"):
            value = getattr(self, name)
            yield name, isfinite(value) and value > 0, "a positive number"
        half, highest = self.rate / 2, self.frame_rate / 2
        yield "highest_hz", self.highest_hz <= half, f"at most {half:g}, half of 'rate'"
        yield "lowest_hz", 0 <= self.lowest_hz < self.highest_hz, "at least 0, below 'highest_hz'"
        yield "n_mfcc", self.n_mfcc <= self.n_mels, f"at most {self.n_mels} ('n_mels')"
        rule = f"at most {self.modulation_fft} ('modulation_fft')"
        yield "modulation_frame", self.modulation_frame <= self.modulation_fft, rule
        rule = f"at most {highest:g}, half the frame rate; a smaller 'hop_length' gives more"
        yield "highest_modulation_hz", self.highest_modulation_hz <= highest, rule
        rule = f"at most {self.n_modulations}; a longer 'modulation_fft' gives more"
        yield "n_rhythm", self.n_rhythm <= self.n_modulations, rule
        n = len(self.band_edges) + 1
        rule = "distinct, and one more than 'band_edges'"
        yield "band_names", len(self.band_names) == len(set(self.band_names)) == n, rule
        edges = (self.lowest_hz, *self.band_edges, self.highest_hz)
        rule = f"rising between 'lowest_hz' and 'highest_hz', {edges[0]:g} and {edges[-1]:g} Hz"
        yield "band_edges", all(a < b for a, b in pairwise(edges)), rule

    @property
    def frame_rate(self) -> float:
        """Spectrum frames per second."""
        return self.rate / self.hop_length

    @property
    def shortest_length(self) -> int:
        """Samples that a clip must have; at least two frames, so that there is a covariance."""
        return max(ceil(self.shortest_clip * self.rate), self.frame_length + self.hop_length)

    @property
    def n_modulations(self) -> int:
        """Frequencies of the modulation spectrum, 0 Hz included."""
        return 1 + floor(self.highest_modulation_hz / self.frame_rate * self.modulation_fft)

    @property
    def n_timbre(self) -> int:
        """Timbre features: the means, and the distinct entries of the covariance."""
        return self.n_mfcc + self.n_mfcc * (self.n_mfcc + 1) // 2

    @property
    def n_features(self) -> int:
        """All features."""
        return self.n_timbre + len(self.band_names) * self.n_rhythm


DEFAULTS = FeatureParameters()


def hz_to_mel(hz: ArrayLike) -> Doubles:
    """Frequencies on Slaney's mel scale, the shape of ``hz``."""
    hz = np.asarray(hz, float)
    above = BREAK_MEL + np.log(np.maximum(hz, BREAK_HZ) / BREAK_HZ) * MELS_PER_LOG
    return np.where(hz < BREAK_HZ, hz * MELS_PER_HZ, above)


def mel_to_hz(mel: ArrayLike) -> Doubles:
    """The inverse of `hz_to_mel`."""
    mel = np.asarray(mel, float)
    above = BREAK_HZ * np.exp((np.maximum(mel, BREAK_MEL) - BREAK_MEL) / MELS_PER_LOG)
    return np.where(mel < BREAK_MEL, mel / MELS_PER_HZ, above)


def mel_corners(parameters: FeatureParameters) -> Doubles:
    """(n_mels + 2,) Hz, evenly in mel: band k rises from corner k to k + 1 and falls to k + 2."""
    low, high = hz_to_mel([parameters.lowest_hz, parameters.highest_hz])
    return mel_to_hz(np.linspace(low, high, parameters.n_mels + 2))


@lru_cache(maxsize=16)
def mel_filterbank(parameters: FeatureParameters) -> Floats:
    """Triangles over the bins of the spectrum, each of area 1 over Hz: (n_bins, n_mels)."""
    hz = scipy.fft.rfftfreq(parameters.frame_length, 1 / parameters.rate)[:, None]
    corners = mel_corners(parameters)
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    rising, falling = (hz - left) / (centre - left), (right - hz) / (right - centre)
    triangles = np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)
    if not triangles.any(axis=0).all():
        band = int(np.argmin(triangles.any(axis=0)))
        raise DataError(
            f"'n_mels' = {parameters.n_mels} mel bands are too narrow for 'frame_length' = "
            f"{parameters.frame_length}: band {band} holds no frequency of the spectrum. Choose "
            "fewer bands, or longer frames."
        )
    return constant(triangles)


@lru_cache(maxsize=16)
def hann_window(length: int) -> Floats:
    """½ − ½ cos(2πt / length), t = 0 … length − 1."""
    return constant(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length))


def mel_spectrogram(samples: Floats, parameters: FeatureParameters) -> Floats:
    """Σ_f |FFT of the windowed frame|²(f) · filterbank(f, k) of every frame.

    (n,) float32, n ≥ frame_length → (1 + ⌊(n − frame_length) / hop_length⌋, n_mels) float32
    """
    frames = sliding_window_view(samples, parameters.frame_length)[:: parameters.hop_length]
    window, filterbank = hann_window(parameters.frame_length), mel_filterbank(parameters)
    mel = np.empty((len(frames), parameters.n_mels), np.float32)
    for start in range(0, len(frames), BLOCK):
        spectrum = scipy.fft.rfft(frames[start : start + BLOCK] * window, workers=1)
        power = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        np.matmul(power, filterbank, out=mel[start : start + BLOCK])
    return mel


def raise_to_floor(mel: Floats, parameters: FeatureParameters) -> Floats:
    """max(mel, peak of the clip − dynamic_range dB, silence): nothing is zero from here on.

    The floor follows the clip's own peak, so a gain moves it along and changes no ratio.
    (n_frames, n_mels) in and out.
    """
    relative = float(mel.max()) * 10 ** (-parameters.dynamic_range / 10)
    return np.maximum(mel, np.float32(max(relative, parameters.silence)))


def decibels(mel: Floats) -> Floats:
    """10 log₁₀ of positive energies, of the same shape."""
    return 10 * np.log10(mel)


def constant(array: Doubles) -> Floats:
    """float32, and read-only since every caller of a cached function gets the same array."""
    array32 = array.astype(np.float32)
    array32.flags.writeable = False
    return array32


def clip_features(
    samples: ArrayLike,
    rate: int,
    *,
    parameters: FeatureParameters = DEFAULTS,
    groups: Sequence[str] = GROUPS,
) -> Floats:
    """The features of one clip.

    Parameters
    ----------
    samples : (n,) floats, one channel, full scale 1; at least ``parameters.shortest_length``
    rate : samples per second; must be ``parameters.rate``
    parameters : the definitions' numbers; `feature_names` says what the features then are
    groups : ``"timbre"``, ``"rhythm"``, or both

    Returns
    -------
    (n_features,) float32, finite; a DataError says which samples cannot be used

    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=10 * 22_050)
    >>> clip_features(noise, 22_050).shape
    (389,)
    """
    checked = _check_samples(samples, rate, parameters)
    _check_groups(groups)
    centred = checked - checked.mean()  # an offset is inaudible
    mel = raise_to_floor(mel_spectrogram(centred, parameters), parameters)
    features = {"timbre": timbre_features, "rhythm": rhythm_features}
    return np.concatenate([features[group](mel, parameters) for group in groups]).astype(np.float32)


def feature_names(
    parameters: FeatureParameters = DEFAULTS, *, groups: Sequence[str] = GROUPS
) -> list[str]:
    """The name of each number in `clip_features`.

    >>> feature_names()[212]
    'rhythm: low band, coefficient 23'
    """
    _check_groups(groups)
    pairs = np.column_stack(np.triu_indices(parameters.n_mfcc)).tolist()
    timbre = [f"mean of MFCC {k}" for k in range(parameters.n_mfcc)] + [
        f"variance of MFCC {i}" if i == j else f"covariance of MFCC {i} and {j}" for i, j in pairs
    ]
    bands, coefficients = parameters.band_names, range(parameters.n_rhythm)
    rhythm = [f"{band} band, coefficient {k}" for band in bands for k in coefficients]
    names = {"timbre": timbre, "rhythm": rhythm}
    return [f"{group}: {name}" for group in groups for name in names[group]]


@lru_cache(maxsize=16)
def dct_basis(length: int, n_coefficients: int) -> Floats:
    """Column k is the k-th cosine of the orthonormal DCT-II: (length, n_coefficients)."""
    basis = scipy.fft.dct(np.eye(length), axis=1, norm="ortho")[:, :n_coefficients]
    return constant(np.ascontiguousarray(basis))


def mfccs(mel: Floats, parameters: FeatureParameters) -> Floats:
    """The DCT of the mel energies in dB: (n_frames, n_mels) → (n_frames, n_mfcc)."""
    return decibels(mel) @ dct_basis(parameters.n_mels, parameters.n_mfcc)


def timbre_features(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """(n_timbre,): mean of the MFCCs, then the upper triangle of their covariance row by row."""
    # In float64: sums of many similar values in float32 lose their differences.
    coefficients = mfccs(mel, parameters).astype(np.float64)
    mean = coefficients.mean(axis=0)
    centred = coefficients - mean
    covariance = centred.T @ centred / (len(centred) - 1)
    return np.concatenate([mean, covariance[np.triu_indices(parameters.n_mfcc)]])


@lru_cache(maxsize=16)
def band_of_mel(parameters: FeatureParameters) -> Places:
    """The broad band that the centre of each mel band lies in, (n_mels,)."""
    centres = mel_corners(parameters)[1:-1]
    bands = np.searchsorted(parameters.band_edges, centres, side="right")
    empty = set(range(len(parameters.band_names))) - set(bands.tolist())
    if empty:
        raise DataError(
            f"'band_edges' {parameters.band_edges} leave the band "
            f"'{parameters.band_names[min(empty)]}' without a mel band. Choose other edges, or "
            f"more mel bands than 'n_mels' = {parameters.n_mels}."
        )
    bands.flags.writeable = False
    return bands


def band_envelopes(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """(n_frames, n_bands): the energy of each broad band over time, divided by its mean."""
    starts = np.searchsorted(band_of_mel(parameters), np.arange(len(parameters.band_names)))
    energies = np.add.reduceat(mel.astype(np.float64), starts, axis=1)
    return energies / energies.mean(axis=0)


def modulation_spectra(envelopes: Doubles, parameters: FeatureParameters) -> Doubles:
    """√ of the mean over frames of |FFT of the windowed envelope − 1|², scaled to depth.

    An envelope 1 + a cos(2πft) gives a peak of height a at f. A clip shorter than a frame is one
    frame of its own length; the frames of a longer one are spread evenly, and overlap by at least
    half. (n_frames, n_bands) → (n_bands, n_modulations), the k-th at k · frame_rate / fft Hz
    """
    length = min(parameters.modulation_frame, len(envelopes))
    n_starts = 1 + ceil((len(envelopes) - length) / (length / 2))
    starts = np.linspace(0, len(envelopes) - length, n_starts).round().astype(int)
    window = hann_window(length).astype(np.float64)
    window = window * (2 / window.sum())
    power = np.zeros((envelopes.shape[1], parameters.n_modulations))
    for start in starts:
        swings = (envelopes[start : start + length] - 1).T * window
        spectrum = scipy.fft.rfft(swings, parameters.modulation_fft, workers=1)
        power += np.abs(spectrum[:, : parameters.n_modulations]) ** 2
    return np.sqrt(power / n_starts)


def rhythm_features(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """(n_bands · n_rhythm,): the first DCT coefficients of each band's modulation spectrum."""
    spectra = modulation_spectra(band_envelopes(mel, parameters), parameters)
    return (spectra @ dct_basis(parameters.n_modulations, parameters.n_rhythm)).ravel()


def _check_groups(groups: Sequence[str]) -> None:
    known = not isinstance(groups, str) and set(groups) <= set(GROUPS)
    if not known or not groups or len(set(groups)) != len(groups):
        raise DataError(f"'groups' must be some of {GROUPS}, each once, got {groups!r}.")


def _check_samples(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """The samples as contiguous float32, (n,), or a DataError that says what is wrong."""
    array, shortest = np.asarray(samples), parameters.shortest_length
    if rate != parameters.rate:
        raise DataError(
            f"'rate' must be {parameters.rate}, got {rate!r}. Resample the clip first, for "
            "instance with scipy.signal.resample_poly."
        )
    if array.ndim != 1:
        raise DataError(
            f"'samples' must be one channel, an array of shape (n,), got shape {array.shape}. "
            "Take the mean over the channels first: samples.mean(axis=1) if they are columns."
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise DataError(
            f"'samples' must be floating-point numbers with full scale 1, got {array.dtype}. "
            "Divide 16-bit samples by 32768."
        )
    if len(array) < shortest:
        raise DataError(
            f"'samples' must last at least {shortest / rate:.2f} s ({shortest} samples), got "
            f"{len(array) / rate:.2f} s ({len(array)} samples). Take a longer clip."
        )
    with np.errstate(over="ignore"):  # a float64 too large for float32 becomes an infinity
        array = np.ascontiguousarray(array, np.float32)
    # A NaN makes the comparison false as well.
    if not (array.min() >= -MAX_SAMPLE and array.max() <= MAX_SAMPLE):
        place = int(np.argmax(~(np.abs(array) <= MAX_SAMPLE)))
        raise DataError(
            f"'samples' must be finite and at most {MAX_SAMPLE:g} in size (full scale is 1), "
            f"got {array[place]} at {place} ({place / rate:.3f} s). Repair or leave out the clip."
        )
    return array


@dataclass(frozen=True)
class Extractor:
    """A function from a clip to a vector, with what it needs and what it gives.

    Calling it checks the function's result.
    """

    name: str  # its name in options and calls
    function: Function = field(repr=False, compare=False)
    """(samples of shape (n,) float32, rate) → n_features numbers, then n_heads probabilities."""
    feature_names: tuple[str, ...] = field(repr=False)  # what each number is
    revision: str = "1"  # change it whenever the function's numbers for the same samples change
    rate: int = 22_050  # samples per second of the clips
    seconds: float = 10.0  # length of the clips; shorter files give shorter ones
    head_names: tuple[str, ...] = field(default=(), repr=False)
    """The tags whose probabilities it gives after the features, if it is a tagger itself."""
    windows: Plan | None = None  # the windows to average features over; None: the middle one
    summary: str = field(default="", repr=False)  # what its features describe, in a few words
    auc: float | None = field(default=None, repr=False)
    """Mean AUC over tags of Emotify's 400 clips of 15 s, by logistic regression in five folds, as
    ``python benchmarks/extractors.py`` measures it."""
    milliseconds: float | None = field(default=None, repr=False)
    """For such a clip on one core, decoding included."""

    @property
    def n_numbers(self) -> int:
        """How many numbers the function returns: features and heads."""
        return len(self.feature_names) + len(self.head_names)

    @property
    def version(self) -> str:
        """Everything the numbers depend on, except the file: equal versions give equal numbers."""
        windows = "" if self.windows is None else f", {self.windows}"
        return (
            f"{self.name} {self.revision}; {self.rate} Hz, {self.seconds:g} s{windows}; "
            f"decoding {DECODING_VERSION}"
        )

    def __call__(self, samples: Floats, rate: int) -> Floats:
        """The features of a clip, (n_features,) float32."""
        return self._numbers(samples, rate)[: len(self.feature_names)]

    def extract(self, sound: PathLike | tuple[Floats, int], start: float | None = None) -> Floats:
        """The features and heads, (n_numbers,), of a file or of samples with their rate.

        Raises an AudioError if a file has none, a DataError if samples have none.
        """
        options: dict[str, Any] = {"rate": self.rate, "seconds": self.seconds, "start": start}
        clips = decode_windows(sound, self.windows, **options)
        try:
            numbers = np.mean([self._numbers(clip, self.rate) for clip in clips], axis=0)
        except DataError as error:
            if isinstance(sound, tuple):
                raise
            raise AudioError(f"{quoted(sound)} has no features: {error}") from error.__cause__
        return numbers.astype(np.float32)

    def _numbers(self, samples: Floats, rate: int) -> Floats:
        """The function's whole result for a clip, (n_numbers,), checked."""
        try:
            vector = np.asarray(self.function(samples, rate), np.float32)
        except HarmoniumError:
            raise
        except Exception as error:  # any failure of the function affects only this clip
            raise DataError(
                f"The extractor '{self.name}' failed: {type(error).__name__}: {error}"
            ) from error
        if vector.shape != (self.n_numbers,):
            raise DataError(
                f"The extractor '{self.name}' must give a vector of {self.n_numbers} "
                f"numbers, as registered; it gave the shape {vector.shape}."
            )
        wrong = np.flatnonzero(~np.isfinite(vector))
        if len(wrong):
            name = (*self.feature_names, *self.head_names)[wrong[0]]
            raise DataError(
                f"The extractor '{self.name}' gave {vector[wrong[0]]} for '{name}'; features must "
                "be finite."
            )
        return vector


def features_of_file(
    path: PathLike,
    extractor: str | Extractor = "paper",
    *,
    start: float | None = None,
) -> Floats:
    """The features of a file, (n_features,), of the windows that the extractor uses.

    Raises an AudioError if the file cannot be decoded or the extractor refuses its sound.
    """
    extractor = get_extractor(extractor)
    return extractor.extract(path, start)[: len(extractor.feature_names)]


def paper_extractor(
    parameters: FeatureParameters = DEFAULTS,
    *,
    groups: tuple[str, ...] = GROUPS,
    seconds: float = 10.0,
    name: str = "paper",
    **facts: Any,
) -> Extractor:
    """An extractor for the paper's features with other parameters, or for one group of them."""
    return Extractor(
        name,
        partial(clip_features, parameters=parameters, groups=groups),
        tuple(feature_names(parameters, groups=groups)),
        revision=f"{DEFINITIONS} {asdict(parameters)} {groups}",
        rate=parameters.rate,
        seconds=seconds,
        **facts,
    )


_registered: dict[str, Extractor] = {
    "paper": paper_extractor(summary="the paper's timbre and rhythm", auc=0.709, milliseconds=9),
    "timbre": paper_extractor(
        groups=("timbre",), name="timbre", summary="the first part of these: how it sounds"
    ),
    "rhythm": paper_extractor(
        groups=("rhythm",), name="rhythm", summary="the second part: how it moves"
    ),
}


def register(
    name: str,
    function: Function,
    features: int | Sequence[str],
    *,
    revision: str = "1",
    rate: int = 22_050,
    seconds: float = 10.0,
    replace: bool = False,
) -> Extractor:
    """Register a function from a clip to a vector under a name; returns the extractor.

    Parameters
    ----------
    name : its name in ``AudioFeatures`` and on the command line
    function : (samples of shape (n,) float32, rate) → numbers. For other processes it must be
        importable there: a function of a module, not one defined in another.
    features : their names, or how many they are
    revision : change it with the function; cached results from an older one are then not used
    rate, seconds : of the clips that the function needs
    replace : whether to replace an extractor of that name

    >>> def loudness(samples, rate):
    ...     return [np.abs(samples).mean(), np.abs(samples).max()]
    >>> extractor = register("loudness", loudness, ["mean", "peak"], replace=True)
    >>> extractor(np.full(22_050, 0.5, np.float32), 22_050)
    array([0.5, 0.5], dtype=float32)
    """
    if isinstance(features, int):
        features = [f"{name} {k}" for k in range(features)]
    names = tuple(features)
    if not callable(function):
        raise DataError(f"'function' must be callable, got {function!r}.")
    if not names or len(set(names)) != len(names):
        raise DataError(f"'features' must be at least one, and their names distinct, got {names}.")
    if not replace and name in available_extractors():
        raise DataError(
            f"There is already an extractor '{name}'. Choose another name, or pass replace=True."
        )
    _registered[name] = Extractor(name, function, names, revision, rate, seconds)
    return _registered[name]


def with_windows(name: str, count: int) -> str:
    """The name of an extractor that averages over ``count`` windows: "paper*3".

    >>> with_windows("paper*3", 1)
    'paper'
    """
    base = name.rpartition("*")[0] or name
    return base if count == 1 else f"{base}*{count}"


def get_extractor(extractor: str | Extractor) -> Extractor:
    """The extractor with this name; an extractor is returned as it is.

    A number after a star is how many windows it uses, spread over the sound: "paper*3" gives the
    mean of the paper's features of three windows. "onnx:FILE" is a model in ONNX's format.
    """
    if isinstance(extractor, Extractor):
        return extractor
    if extractor in _registered:
        return _registered[extractor]
    if extractor in _installed():
        return _registered.setdefault(extractor, _loaded(_installed()[extractor]))
    if extractor.startswith(ONNX):
        from harmonium.audio.onnx_model import onnx_extractor

        return onnx_extractor(extractor.removeprefix(ONNX))
    if extractor.startswith("imported:"):
        raise DataError(
            f"The features {extractor!r} were imported, and cannot be computed for files. Import "
            "them again with `harmonium import --features` after new files were indexed with "
            "`harmonium index --extractor NAME`."
        )
    base, _, count = extractor.rpartition("*")
    if base and count.isdecimal() and int(count) >= 1:
        one = get_extractor(base)
        if one.windows is not None:
            raise DataError(f"'{one.name}' chooses its windows itself; ask for '{one.name}'.")
        windows = SpreadWindows(int(count), round(one.seconds * one.rate))
        return replace(one, name=extractor, windows=windows, auc=None, milliseconds=None)
    raise DataError(
        f"There is no extractor {extractor!r}. Known are {', '.join(available_extractors())}; "
        "onnx:FILE is a network in ONNX's format, and harmonium.audio.register adds one."
    )


def available_extractors() -> tuple[str, ...]:
    """The names that `get_extractor` knows: built in, registered, and from other packages."""
    return tuple(dict.fromkeys((*_registered, DEFAULT, *sorted(_installed()))))


@lru_cache(maxsize=1)
def _installed() -> dict[str, EntryPoint]:
    """Extractors that are not loaded yet: other packages', and musicnn."""
    own = EntryPoint(DEFAULT, "harmonium.audio.musicnn:EXTRACTOR", ENTRY_POINTS)
    return {entry.name: entry for entry in (*entry_points(group=ENTRY_POINTS), own)}


def _loaded(entry: EntryPoint) -> Extractor:
    try:
        extractor = entry.load()
        if not isinstance(extractor, Extractor):
            raise TypeError(f"it must be a harmonium.audio.Extractor, got {extractor!r}")
    except Exception as error:
        raise DataError(
            f"The extractor '{entry.name}' of the installed package cannot be loaded from "
            f"{entry.value}: {type(error).__name__}: {error}"
        ) from error
    return extractor


def extractor_key(extractor: str | Extractor) -> str:
    """The key of an extractor's features: its name, and a digest of everything that matters."""
    found = get_extractor(extractor)
    return f"{found.name}@{hashlib.sha256(found.version.encode()).hexdigest()[:12]}"
