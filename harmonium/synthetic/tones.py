"""Single tones: harmonic oscillators, plucked strings, struck bars and noise.

Every function gives float32 samples at ``RATE`` with a peak or RMS near one; loudness is decided in
the mix.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfilt

RATE = 22_050

Samples = NDArray[np.float32]

_TABLE = 1 << 19  # samples that are computed once: of time, and of noise


def times(n: int) -> NDArray[np.float64]:
    """The time of each of n samples, in seconds."""
    return np.arange(n) / RATE if n > _TABLE else _time_table()[:n]


@lru_cache(maxsize=1)
def _time_table() -> NDArray[np.float64]:
    return _read_only(np.arange(_TABLE) / RATE)


def _read_only(table: NDArray[Any]) -> NDArray[Any]:
    table.flags.writeable = False
    return table


def pitch_to_hertz(pitch: float) -> float:
    """440 · 2^((p - 69) / 12), p a MIDI note number."""
    return float(440.0 * 2.0 ** ((pitch - 69.0) / 12.0))


def phase_of(
    frequency: float,
    n: int,
    *,
    vibrato: float = 0.0,
    vibrato_rate: float = 5.5,
    delay: float = 0.25,
    scoop: float = 0.0,
) -> NDArray[np.float64]:
    """Cycles completed at each sample, φ(t) = ∫ f(t) dt.

    Parameters
    ----------
    frequency : in hertz.
    n : number of samples.
    vibrato : depth in semitones, reached after about ``delay`` seconds.
    vibrato_rate : in hertz.
    delay : seconds before the vibrato is at its full depth.
    scoop : semitones from which the pitch slides to its place in the first tenth of a second.
    """
    if not vibrato and not scoop:
        return frequency * times(n)
    t = times(n).astype(np.float32)
    bend = vibrato * np.minimum(1.0, t / delay) ** 2 * np.sin(2 * np.pi * vibrato_rate * t)
    bend += scoop * np.exp(-t / 0.04)
    return np.cumsum(frequency / RATE * np.exp2(bend / 12.0), dtype=np.float64)


def harmonic_tone(
    phase: NDArray[np.float64],
    amplitudes: NDArray[np.float64],
    brightness: NDArray[np.float64] | float = 1.0,
) -> Samples:
    """Σ_k a_k r(t)^k sin(2πk φ(t)), by Horner's rule on z = r e^{2πiφ}.

    The brightness r(t) < 1 takes harmonic k down by r^k, as a closing low-pass filter would: it
    decays for struck and plucked sounds, and rises in the attack of blown ones.

    Parameters
    ----------
    phase : (n,) cycles.
    amplitudes : (K,) of the harmonics 1 … K; the caller keeps K below the Nyquist frequency.
    brightness : r(t), (n,) or one number, in [0, 1].
    """
    angle = (2 * np.pi * (phase % 1.0)).astype(np.float32)
    z = np.empty(len(angle), np.complex64)
    z.real, z.imag = np.cos(angle), np.sin(angle)
    z *= np.asarray(brightness, np.float32)
    total = np.full(len(z), amplitudes[-1], np.complex64)
    for amplitude in amplitudes[-2::-1].tolist():
        total *= z
        total += amplitude
    total *= z
    return total.imag.copy()


def n_harmonics(frequency: float, *, ceiling: float = 9_000.0, most: int = 32) -> int:
    """How many harmonics of a frequency lie below the ceiling; at least one, at most ``most``."""
    return int(np.clip(ceiling / frequency, 1, most))


def plucked_string(
    frequency: float,
    n: int,
    *,
    decay: float = 1.5,
    damping: float = 1.0,
    softness: float = 0.0,
    position: float = 0.18,
    seed: int = 0,
) -> Samples:
    """A plucked string after Karplus and Strong, all periods at once.

    Their loop averages two neighbouring samples of each period of N samples, which multiplies
    harmonic k by cos(πk/N) per period. So period p is the inverse transform of X_k · g_k^p, with X
    the spectrum of the noise burst that plucks the string (every harmonic equally strong, with a
    random phase, so that none is missing) and g the gain of the loop.

    Parameters
    ----------
    frequency : in hertz.
    n : number of samples.
    decay : seconds in which the fundamental falls by 60 dB.
    damping : how often the averaging acts in one period; more is duller.
    softness : 0 for a plectrum, 1 and more for a soft thumb.
    position : where the string is plucked, as a share of its length.
    seed : of the noise burst.
    """
    period = max(int(RATE / frequency), 4)
    n_periods = int(np.ceil(n * frequency / RATE)) + 2
    k = np.arange(period // 2 + 1)
    burst = np.exp(2j * np.pi * np.random.default_rng(seed).random(len(k)))
    burst *= np.abs(np.sin(np.pi * k * position)) * np.exp(-softness * k * frequency / 1_500)
    burst[0] = 0
    log_gain = damping * np.log(np.maximum(np.cos(np.pi * k / period), 1e-6))
    log_gain -= np.log(1_000.0) / (decay * frequency)
    spectrum = burst * np.exp(np.arange(n_periods)[:, None] * log_gain)  # (n_periods, N/2 + 1)
    wave = np.fft.irfft(spectrum, period).ravel()
    return _stretch(wave, period * frequency / RATE, n) / np.float32(np.abs(wave).max() + 1e-9)


def _stretch(wave: NDArray[np.float64], step: float, n: int) -> Samples:
    """Read ``wave`` at 0, step, 2·step, … with linear interpolation."""
    position = step * np.arange(n)
    left = position.astype(np.int64)
    share = position - left
    return (wave[left] * (1 - share) + wave[left + 1] * share).astype(np.float32)


def struck_bar(
    frequency: float, n: int, *, ratios: list[float], levels: list[float], decays: list[float]
) -> Samples:
    """Partials at ratios of a frequency that need not be whole numbers, each with its decay."""
    t = times(n)
    t32 = t.astype(np.float32)
    total = np.zeros(n, np.float32)
    for ratio, level, decay in zip(ratios, levels, decays, strict=True):
        if ratio * frequency < 0.45 * RATE:
            angle = (2 * np.pi * ((ratio * frequency * t) % 1.0)).astype(np.float32)
            total += level * np.exp(-t32 / decay) * np.sin(angle)
    return total


@lru_cache(maxsize=1)
def _noise_table() -> Samples:
    return _read_only(np.random.default_rng(1971).standard_normal(_TABLE, dtype=np.float32))


def noise(n: int, seed: int) -> Samples:
    """White noise of unit variance: the stretch of one long table that the seed names."""
    table = _noise_table()
    if n > len(table):
        return np.resize(table, n)
    start = seed * 7_919 % (len(table) - n + 1)
    return table[start : start + n]


@lru_cache(maxsize=256)
def _sections(order: int, hertz: float | tuple[float, float], kind: str) -> NDArray[np.float32]:
    """Second-order sections of a Butterworth filter; designing one costs more than applying it."""
    return butter(order, hertz, kind, fs=RATE, output="sos").astype(np.float32)


def low_pass(x: Samples, hertz: float, *, order: int = 2) -> Samples:
    """Butterworth low-pass filter."""
    return sosfilt(_sections(order, round(hertz), "lowpass"), x)


def high_pass(x: Samples, hertz: float, *, order: int = 2) -> Samples:
    """Butterworth high-pass filter."""
    return sosfilt(_sections(order, round(hertz), "highpass"), x)


def band_pass(x: Samples, low: float, high: float) -> Samples:
    """Butterworth band-pass filter."""
    return sosfilt(_sections(1, (round(low), round(high)), "bandpass"), x)
