"""Samples → mel spectrogram.

Frames lie wholly inside the clip: none is padded, and up to ``hop_length`` − 1 samples at the end
belong to no frame.
"""

from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from harmonium.audio.parameters import FeatureParameters
from harmonium.errors import DataError

Floats = NDArray[np.float32]

# Frames transformed at a time: few enough to stay in the processor's cache from step to step, and
# so few that the product with the filterbank does not start a second thread.
BLOCK = 32

# Slaney's mel scale: linear below 1000 Hz, 15 mels; above it a factor of 6.4 is 27 mels.
MELS_PER_HZ = 3 / 200
BREAK_HZ, BREAK_MEL = 1000.0, 15.0
MELS_PER_LOG = 27 / np.log(6.4)


def hz_to_mel(hz: ArrayLike) -> NDArray[np.float64]:
    """Frequencies on Slaney's mel scale, the shape of ``hz``."""
    hz = np.asarray(hz, float)
    above = BREAK_MEL + np.log(np.maximum(hz, BREAK_HZ) / BREAK_HZ) * MELS_PER_LOG
    return np.where(hz < BREAK_HZ, hz * MELS_PER_HZ, above)


def mel_to_hz(mel: ArrayLike) -> NDArray[np.float64]:
    """The inverse of `hz_to_mel`."""
    mel = np.asarray(mel, float)
    above = BREAK_HZ * np.exp((np.maximum(mel, BREAK_MEL) - BREAK_MEL) / MELS_PER_LOG)
    return np.where(mel < BREAK_MEL, mel / MELS_PER_HZ, above)


def mel_corners(parameters: FeatureParameters) -> NDArray[np.float64]:
    """Hz, equally spaced in mel: band k rises from corner k to k + 1 and falls to k + 2.

    (n_mels + 2,)
    """
    low, high = hz_to_mel([parameters.lowest_hz, parameters.highest_hz])
    return mel_to_hz(np.linspace(low, high, parameters.n_mels + 2))


def mel_centres(parameters: FeatureParameters) -> NDArray[np.float64]:
    """Hz where each mel band is strongest, (n_mels,)."""
    return mel_corners(parameters)[1:-1]


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


def constant(array: NDArray[np.float64]) -> Floats:
    """float32, and read-only since every caller of a cached function gets the same array."""
    array32 = array.astype(np.float32)
    array32.flags.writeable = False
    return array32
