"""The mel spectrum of a sound.

A spectrum's frames lie completely inside the sound: none is padded, and up to ``hop_length`` − 1
samples at the end belong to no frame.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Floats
from harmonium.errors import DataError

BLOCK = 32
"""Frames transformed at a time: few enough to stay in the processor's cache from step to step."""

# Slaney's mel scale: linear below 1000 Hz, 15 mels; above it a factor of 6.4 is 27 mels.
MELS_PER_HZ = 3 / 200
BREAK_HZ = 1000.0
BREAK_MEL = 15.0
MELS_PER_LOG = 27 / np.log(6.4)


@dataclass(frozen=True, kw_only=True)
class MelParameters:
    """The rates, frames and bands of a mel spectrum."""

    rate: int  # samples per second
    frame_length: int  # samples in a frame
    hop_length: int  # samples from one frame to the next
    n_mels: int  # mel bands
    lowest_hz: float  # where the first mel band begins
    highest_hz: float  # where the last mel band ends

    def __post_init__(self) -> None:
        for name in ("rate", "frame_length", "hop_length", "n_mels"):
            check_whole(self, name, least=1)
        half = self.rate / 2
        check(self, "highest_hz", self.highest_hz <= half, f"at most {half:g}, half of 'rate'")
        is_below = 0 <= self.lowest_hz < self.highest_hz
        check(self, "lowest_hz", is_below, "at least 0, below 'highest_hz'")


def check(parameters: object, name: str, holds: bool, rule: str) -> None:
    """Raise a DataError for a parameter that does not keep to its rule."""
    if not holds:
        raise DataError(f"'{name}' must be {rule}, got {getattr(parameters, name)!r}.")


def check_whole(parameters: object, name: str, *, least: int) -> None:
    """Raise a DataError for a parameter that is not a whole number, or too small."""
    value = getattr(parameters, name)
    holds = isinstance(value, int) and value >= least
    check(parameters, name, holds, f"a whole number of at least {least}")


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


def mel_corners(parameters: MelParameters) -> Doubles:
    """(n_mels + 2,) Hz, evenly in mel: band k rises from corner k to k + 1 and falls to k + 2."""
    low, high = hz_to_mel([parameters.lowest_hz, parameters.highest_hz])
    return mel_to_hz(np.linspace(low, high, parameters.n_mels + 2))


@lru_cache(maxsize=16)
def mel_filterbank(parameters: MelParameters) -> Floats:
    """Triangles over the bins of the spectrum, each of area 1 over Hz: (n_bins, n_mels)."""
    hz = scipy.fft.rfftfreq(parameters.frame_length, 1 / parameters.rate)[:, None]
    corners = mel_corners(parameters)
    left = corners[:-2]
    centre = corners[1:-1]
    right = corners[2:]
    rising = (hz - left) / (centre - left)
    falling = (right - hz) / (right - centre)
    triangles = np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)
    is_filled = triangles.any(axis=0)
    if not is_filled.all():
        raise DataError(
            f"'n_mels' = {parameters.n_mels} mel bands are too narrow for 'frame_length' = "
            f"{parameters.frame_length}: band {int(np.argmin(is_filled))} holds no frequency of "
            "the spectrum. Choose fewer bands, or longer frames."
        )
    return constant(triangles)


@lru_cache(maxsize=16)
def hann_window(length: int) -> Floats:
    """½ − ½ cos(2πt / length), t = 0 … length − 1."""
    return constant(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length))


def mel_spectrogram(samples: Floats, parameters: MelParameters) -> Floats:
    """Σ_f |FFT of the windowed frame|²(f) · filterbank(f, k) of every frame.

    (n,) float32, n ≥ frame_length → (1 + ⌊(n − frame_length) / hop_length⌋, n_mels) float32
    """
    frames = sliding_window_view(samples, parameters.frame_length)[:: parameters.hop_length]
    window = hann_window(parameters.frame_length)
    filterbank = mel_filterbank(parameters)
    mel = np.empty((len(frames), parameters.n_mels), np.float32)
    for start in range(0, len(frames), BLOCK):
        spectrum = scipy.fft.rfft(frames[start : start + BLOCK] * window, workers=1)
        power = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        np.matmul(power, filterbank, out=mel[start : start + BLOCK])
    return mel


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[None]:
    """Small matrix products on one thread inside.

    On a busy machine, two would wait for each other. And the last bits depend on the number of
    threads, of which worker processes have one.
    """
    limit: AbstractContextManager[None] = _thread_pools().limit(limits=1)
    return limit


def decibels(mel: Floats) -> Floats:
    """10 log₁₀ of positive energies, of the same shape."""
    return 10 * np.log10(mel)


def constant(array: Doubles) -> Floats:
    """float32, and read-only since every caller of a cached function gets the same array."""
    array32 = array.astype(np.float32)
    array32.flags.writeable = False
    return array32
