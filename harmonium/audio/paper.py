"""The paper's features: 189 numbers about timbre and 200 about rhythm. See docs/features.md."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, floor, isfinite

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Floats, Places
from harmonium.audio.spectrum import (
    MelParameters,
    check,
    check_whole,
    constant,
    decibels,
    hann_window,
    mel_corners,
    mel_spectrogram,
    one_thread,
)
from harmonium.errors import DataError

GROUPS = ("timbre", "rhythm")  # the paper's features, in their order; see `FEATURE_GROUPS`
DEFINITIONS = 1  # increase it whenever the paper's features of the same samples change
MAX_SAMPLE = 1e12  # Full scale is 1. Far beyond this, the squares in float32 overflow.


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
        _ = self.mel  # which checks its own
        for name in ("n_mfcc", "n_rhythm"):
            check_whole(self, name, least=1)
        for name in ("modulation_frame", "modulation_fft"):
            check_whole(self, name, least=3)  # a window of fewer is all zeros
        for name in ("shortest_clip", "silence", "dynamic_range", "highest_modulation_hz"):
            value = getattr(self, name)
            check(self, name, isfinite(value) and value > 0, "a positive number")
        check(self, "n_mfcc", self.n_mfcc <= self.n_mels, f"at most {self.n_mels} ('n_mels')")
        self._check_modulation()
        self._check_bands()

    def _check_modulation(self) -> None:
        check(
            self,
            "modulation_frame",
            self.modulation_frame <= self.modulation_fft,
            f"at most {self.modulation_fft} ('modulation_fft')",
        )
        half = self.frame_rate / 2
        check(
            self,
            "highest_modulation_hz",
            self.highest_modulation_hz <= half,
            f"at most {half:g}, half the frame rate; a smaller 'hop_length' gives more",
        )
        check(
            self,
            "n_rhythm",
            self.n_rhythm <= self.n_modulations,
            f"at most {self.n_modulations}; a longer 'modulation_fft' gives more",
        )

    def _check_bands(self) -> None:
        n_bands = len(self.band_edges) + 1
        check(
            self,
            "band_names",
            len(self.band_names) == len(set(self.band_names)) == n_bands,
            "distinct, and one more than 'band_edges'",
        )
        edges = (self.lowest_hz, *self.band_edges, self.highest_hz)
        check(
            self,
            "band_edges",
            all(below < above for below, above in pairwise(edges)),
            f"rising between 'lowest_hz' and 'highest_hz', {edges[0]:g} and {edges[-1]:g} Hz",
        )

    @cached_property
    def mel(self) -> MelParameters:
        """The parameters of the mel spectrum."""
        return MelParameters(
            rate=self.rate,
            frame_length=self.frame_length,
            hop_length=self.hop_length,
            n_mels=self.n_mels,
            lowest_hz=self.lowest_hz,
            highest_hz=self.highest_hz,
        )

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
    groups : some of `FEATURE_GROUPS`, by default the paper's ``"timbre"`` and ``"rhythm"``

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
    with one_thread():
        mel = raise_to_floor(mel_spectrogram(centred, parameters.mel), parameters)
        vectors = [FEATURE_GROUPS[group].compute(mel, parameters) for group in groups]
    return np.concatenate(vectors).astype(np.float32)


def feature_names(
    parameters: FeatureParameters = DEFAULTS, *, groups: Sequence[str] = GROUPS
) -> list[str]:
    """The name of each number in `clip_features`.

    >>> feature_names()[212]
    'rhythm: low band, coefficient 23'
    """
    _check_groups(groups)
    names = []
    for group in groups:
        names += [f"{group}: {name}" for name in FEATURE_GROUPS[group].names(parameters)]
    return names


def _timbre_names(parameters: FeatureParameters) -> list[str]:
    names = [f"mean of MFCC {k}" for k in range(parameters.n_mfcc)]
    for i in range(parameters.n_mfcc):
        names.append(f"variance of MFCC {i}")
        for j in range(i + 1, parameters.n_mfcc):
            names.append(f"covariance of MFCC {i} and {j}")
    return names


def _rhythm_names(parameters: FeatureParameters) -> list[str]:
    names = []
    for band in parameters.band_names:
        names += [f"{band} band, coefficient {k}" for k in range(parameters.n_rhythm)]
    return names


def _check_groups(groups: Sequence[str]) -> None:
    known = not isinstance(groups, str) and set(groups) <= set(FEATURE_GROUPS)
    if not known or not groups or len(set(groups)) != len(groups):
        raise DataError(
            f"'groups' must be some of {tuple(FEATURE_GROUPS)}, each once, got {groups!r}."
        )


def _check_samples(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """The samples as contiguous float32, (n,), or a DataError that says what is wrong."""
    array = np.asarray(samples)
    shortest = parameters.shortest_length
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


def raise_to_floor(mel: Floats, parameters: FeatureParameters) -> Floats:
    """max(mel, peak of the clip − dynamic_range dB, silence): nothing is zero from here on.

    The floor follows the clip's own peak, so a gain moves it along and changes no ratio.
    (n_frames, n_mels) in and out.
    """
    relative = float(mel.max()) * 10 ** (-parameters.dynamic_range / 10)
    return np.maximum(mel, np.float32(max(relative, parameters.silence)))


@lru_cache(maxsize=16)
def dct_basis(length: int, n_coefficients: int) -> Floats:
    """Column k is the k-th cosine of the orthonormal DCT-II: (length, n_coefficients)."""
    basis = scipy.fft.dct(np.eye(length), axis=1, norm="ortho")[:, :n_coefficients]
    return constant(np.ascontiguousarray(basis))


# Timbre


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


# Rhythm


@lru_cache(maxsize=16)
def band_of_mel(parameters: FeatureParameters) -> Places:
    """The broad band that the centre of each mel band lies in, (n_mels,)."""
    centres = mel_corners(parameters.mel)[1:-1]
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


# The groups by name


@dataclass(frozen=True, kw_only=True)
class FeatureGroup:
    """Features of one kind, computed from the mel spectrum of a clip."""

    summary: str  # what they describe
    names: Callable[[FeatureParameters], list[str]]  # of the features, in order
    compute: Callable[[Floats, FeatureParameters], Doubles]  # (n_frames, n_mels) → the features


FEATURE_GROUPS: dict[str, FeatureGroup] = {
    "timbre": FeatureGroup(
        summary="the paper's timbre: what the sound is like",
        names=_timbre_names,
        compute=timbre_features,
    ),
    "rhythm": FeatureGroup(
        summary="the paper's rhythm: how loudness changes over time",
        names=_rhythm_names,
        compute=rhythm_features,
    ),
}
"""All groups; each is an extractor by its name, too."""
