"""Single tones, and what is done to the sound of one instrument or to the whole mix.

Tones are harmonic oscillators, plucked strings, struck bars and noise: float32 samples at ``RATE``
with a peak or RMS near one. Loudness is decided in the mix.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.signal import butter, sosfilt

from harmonium.arrays import Doubles
from harmonium.arrays import Floats as Samples

RATE = 22_050

_TABLE = 1 << 19  # samples that are computed once: of time, and of noise


def times(n: int) -> Doubles:
    """The time of each of n samples, in seconds."""
    return np.arange(n) / RATE if n > _TABLE else _time_table()[:n]


@lru_cache(maxsize=1)
def _time_table() -> Doubles:
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
) -> Doubles:
    """Cycles completed at each of n samples, φ(t) = ∫ f(t) dt.

    The vibrato, in semitones, reaches its full depth after about ``delay`` seconds. The pitch
    slides to its place from ``scoop`` semitones away in the first tenth of a second.
    """
    if not vibrato and not scoop:
        return frequency * times(n)
    t = times(n).astype(np.float32)
    bend = vibrato * np.minimum(1.0, t / delay) ** 2 * np.sin(2 * np.pi * vibrato_rate * t)
    bend += scoop * np.exp(-t / 0.04)
    return np.cumsum(frequency / RATE * np.exp2(bend / 12.0), dtype=np.float64)


def harmonic_tone(
    phase: Doubles,
    amplitudes: Doubles,
    brightness: Doubles | float = 1.0,
) -> Samples:
    """Σ_k a_k r(t)^k sin(2πk φ(t)), by Horner's rule on z = r e^{2πiφ}.

    The brightness r(t) ≤ 1, (n,) or one number, takes harmonic k down by r^k, as a closing low-pass
    filter would: it decays for struck and plucked sounds, and rises in the attack of blown ones.
    The caller keeps the amplitudes, (K,), below the Nyquist frequency.
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
    decay : seconds in which the fundamental falls by 60 dB
    damping : how often the averaging acts in one period; more is duller
    softness : 0 for a plectrum, 1 and more for a soft thumb
    position : where the string is plucked, as a share of its length
    seed : of the noise burst
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


def _stretch(wave: Doubles, step: float, n: int) -> Samples:
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


def rms(x: Samples) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)) + 1e-20))


def active_rms(x: Samples) -> float:
    """The RMS over the samples at which anything sounds: rests do not make a part quieter."""
    square = np.square(x[: len(x) // 64 * 64].reshape(-1, 64)).mean(axis=1)
    sounding = square > 1e-3 * square.max() if len(square) else square > 0
    return float(np.sqrt(square[sounding].mean())) if sounding.any() else rms(x)


def amplifier(x: Samples, *, drive: float) -> Samples:
    """tanh(drive · x / rms) of a sound freed of its bass, then a loudspeaker.

    The loudspeaker emphasises 1.5 to 4 kHz, and passes neither deep bass nor high treble.
    """
    tight = x - np.float32(0.6) * low_pass(x, 250)
    shaped = np.tanh(tight * np.float32(drive / (active_rms(tight) + 1e-9)))
    return low_pass(high_pass(shaped, 80) + band_pass(shaped, 1_500, 4_000), 5_200)


def chorus(x: Samples, *, seed: int, depth: float = 0.0025) -> Samples:
    """The sound and two delayed copies whose delays sway: many players instead of one."""
    total = x.copy()
    start = np.random.default_rng(seed).uniform(0, 1, 2)
    for rate, phase in zip((0.7, 1.1), start, strict=True):
        total += _delayed(x, np.float32(0.012) + np.float32(depth) * _sway(len(x), rate, phase))
    return total


def _sway(n: int, rate: float, phase: float = 0.0) -> Samples:
    """sin(2π (rate · t + phase))."""
    return np.sin((2 * np.pi * (rate * times(n) + phase)).astype(np.float32))


def _delayed(x: Samples, seconds: Samples) -> Samples:
    """x(t - seconds(t)), interpolated linearly, with silence before the beginning."""
    delay = seconds * np.float32(RATE)
    whole = np.ceil(delay).astype(np.int64)
    share = (whole - delay).astype(np.float32)
    before = int(whole.max())
    padded = np.concatenate([np.zeros(before, np.float32), x, np.zeros(1, np.float32)])
    left = np.arange(before, before + len(x)) - whole
    return padded[left] * (1 - share) + padded[left + 1] * share


def tremolo(x: Samples, *, rate: float, depth: float) -> Samples:
    """A level that sways ``rate`` times a second."""
    return x * (1 - np.float32(depth) * (0.5 + 0.5 * _sway(len(x), rate)))


@lru_cache(maxsize=8)
def room_response(seconds: float, seed: int) -> Samples:
    """The impulse response of a room: noise that falls by 60 dB in so many seconds, highs first."""
    n = int(RATE * min(seconds, 3.0))
    t = times(n)
    tail = noise(n, seed) * np.exp(-np.log(1_000.0) * t / seconds).astype(np.float32)
    dull = low_pass(tail, 2_500)
    mix = np.exp(-t / (0.3 * seconds)).astype(np.float32)
    response = (tail * mix + dull * (1 - mix)) * np.minimum(1, t / 0.015).astype(np.float32)
    return response / np.float32(np.sqrt(np.sum(response**2)) + 1e-9)


def reverberate(x: Samples, seconds: float, *, seed: int) -> Samples:
    """The sound that comes back from the walls, without the direct one."""
    response = room_response(round(seconds, 2), seed)
    n = fft.next_fast_len(len(x) + len(response) - 1, real=True)
    return fft.irfft(fft.rfft(x, n) * fft.rfft(response, n), n)[: len(x)]


def old_recording(x: Samples, *, seed: int, cutoff: float = 3_600.0) -> Samples:
    """A narrow band, hiss, and the crackle of a worn record, about 26 dB below the music."""
    rng = np.random.default_rng(seed)
    level = np.float32(rms(x))
    narrow = high_pass(low_pass(x, cutoff, order=4), 130)
    hiss = noise(len(x), seed) * level * np.float32(0.045)
    crackle = np.zeros(len(x), np.float32)
    hits = rng.integers(len(x), size=int(14 * len(x) / RATE))
    crackle[hits] = rng.laplace(0, 1.2, len(hits)) * level
    return narrow + hiss + high_pass(crackle, 900)


def limit(x: Samples, *, knee: float = 0.6, ceiling: float = 0.98) -> Samples:
    """Leave what is below the knee, and bend what is above so that nothing passes the ceiling."""
    over = np.abs(x) - knee
    bent = knee + (ceiling - knee) * np.tanh(np.maximum(over, 0) / (ceiling - knee))
    return np.where(over > 0, np.copysign(bent, x), x).astype(np.float32)


def fade(x: Samples, *, seconds: float = 0.01) -> Samples:
    """Bring in and let out the ends, so that a cut is not a click."""
    n = min(int(seconds * RATE), len(x) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
    x[:n] *= ramp
    x[len(x) - n :] *= ramp[::-1]
    return x
