"""Samples → mel spectrogram, and every number that the features depend on.

Frames lie wholly inside the clip: none is padded, and up to ``hop_length`` − 1 samples at the end
belong to no frame.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, isfinite

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Floats
from harmonium.errors import DataError

# Frames transformed at a time: few enough to stay in the processor's cache from step to step, and
# so few that the product with the filterbank does not start a second thread.
BLOCK = 32

# Slaney's mel scale: linear below 1000 Hz, 15 mels; above it a factor of 6.4 is 27 mels.
MELS_PER_HZ = 3 / 200
BREAK_HZ, BREAK_MEL = 1000.0, 15.0
MELS_PER_LOG = 27 / np.log(6.4)


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

    rate: int = 22_050
    """Samples per second that the clip must have."""
    shortest_clip: float = 1.0
    """Seconds that a clip must last; less says nothing about rhythm."""

    frame_length: int = 1024
    """Samples in a frame of the spectrum (46 ms at the default rate)."""
    hop_length: int = 512
    """Samples from one frame to the next (43 frames a second at the default rate)."""
    n_mels: int = 40
    """Mel bands."""
    lowest_hz: float = 30.0
    """Where the first mel band begins."""
    highest_hz: float = 11_025.0
    """Where the last mel band ends."""
    silence: float = 1e-14
    """The smallest mel energy; it is below the rounding noise of 24-bit samples."""
    dynamic_range: float = 80.0
    """dB from the clip's strongest mel energy to the weakest that counts."""

    n_mfcc: int = 18
    """Cepstral coefficients, MFCC 0 included."""

    band_names: tuple[str, ...] = ("low", "low-mid", "high-mid", "high")
    """The broad bands of the rhythm features."""
    band_edges: tuple[float, ...] = (200.0, 800.0, 3200.0)
    """Hz between them. A mel band belongs to the broad band that its centre lies in."""
    modulation_frame: int = 430
    """Spectrum frames in a frame of the modulation spectrum (10 s at the default rate)."""
    modulation_fft: int = 512
    """Length of its Fourier transform, zeros included."""
    highest_modulation_hz: float = 10.0
    """Where the modulation spectrum ends."""
    n_rhythm: int = 50
    """DCT coefficients of each broad band's modulation spectrum."""

    def __post_init__(self) -> None:
        for name in ("rate", "frame_length", "hop_length", "n_mels", "n_mfcc", "n_rhythm"):
            self._check_whole(name, 1)
        for name in ("modulation_frame", "modulation_fft"):
            self._check_whole(name, 3)  # a window of fewer frames is all zeros
        for name in ("shortest_clip", "silence", "dynamic_range", "highest_modulation_hz"):
            value = getattr(self, name)
            if not isfinite(value) or value <= 0:
                raise DataError(f"'{name}' must be a positive number, got {value!r}.")
        if not 0 <= self.lowest_hz < self.highest_hz <= self.rate / 2:
            raise DataError(
                "'lowest_hz' and 'highest_hz' must satisfy 0 ≤ lowest_hz < highest_hz ≤ rate / 2 = "
                f"{self.rate / 2:g}, got {self.lowest_hz!r} and {self.highest_hz!r}."
            )
        self._check_at_most("n_mfcc", self.n_mels, "'n_mels'")
        self._check_at_most("modulation_frame", self.modulation_fft, "'modulation_fft'")
        half = "half the frame rate; a smaller 'hop_length' gives more"
        self._check_at_most("highest_modulation_hz", self.frame_rate / 2, half)
        number = "the number of modulation frequencies; a longer 'modulation_fft' gives more"
        self._check_at_most("n_rhythm", self.n_modulations, number)
        self._check_bands()

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

    def _check_whole(self, name: str, minimum: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or value < minimum:
            raise DataError(
                f"'{name}' must be a whole number of at least {minimum}, got {value!r}."
            )

    def _check_at_most(self, name: str, maximum: float, what: str) -> None:
        value = getattr(self, name)
        if value > maximum:
            raise DataError(f"'{name}' must be at most {maximum:g} ({what}), got {value!r}.")

    def _check_bands(self) -> None:
        names, edges = self.band_names, self.band_edges
        if len(set(names)) != len(names) or len(names) != len(edges) + 1:
            raise DataError(
                "'band_names' must be distinct and one more than 'band_edges', got "
                f"{names!r} and {edges!r}."
            )
        if any(not a < b for a, b in pairwise((self.lowest_hz, *edges, self.highest_hz))):
            raise DataError(
                "'band_edges' must rise between 'lowest_hz' and 'highest_hz' "
                f"({self.lowest_hz:g} and {self.highest_hz:g} Hz), got {edges!r}."
            )


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
    """Hz, equally spaced in mel: band k rises from corner k to k + 1 and falls to k + 2.

    (n_mels + 2,)
    """
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

    Parameters
    ----------
    samples : (n,) float32, at least ``frame_length`` of them

    Returns
    -------
    (n_frames, n_mels) float32, n_frames = 1 + ⌊(n − frame_length) / hop_length⌋
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
