"""Tones, filters and effects: what instruments, drums and voices are made of.

Tones are harmonic oscillators, plucked strings and noise: float32 samples at ``RATE`` with a peak
or RMS near one. Loudness is decided in the mix.
"""

from functools import lru_cache

import numpy as np
from scipy.signal import butter, sosfilt

from harmonium.arrays import Doubles, Numbers
from harmonium.arrays import Floats as Samples

RATE = 22_050


def times(n: int) -> Doubles:
    """The time of each of n samples, in seconds."""
    return np.arange(n) / RATE


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
    phase: Doubles, amplitudes: Doubles, brightness: Doubles | float = 1.0
) -> Samples:
    """Σ_k a_k r(t)^k sin(2πk φ(t)), by Horner's rule on z = r e^{2πiφ}.

    The brightness r(t) ≤ 1, (n,) or one number, takes harmonic k down by r^k, as a closing low-pass
    filter would: it decays for struck and plucked sounds, and rises in the attack of blown ones.
    The caller keeps the amplitudes, (K,), below the Nyquist frequency.
    """
    angle = (2 * np.pi * (phase % 1.0)).astype(np.float32)
    z = np.empty(len(angle), np.complex64)
    z.real = np.cos(angle)
    z.imag = np.sin(angle)
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
    decay: float = 1.5,  # seconds in which the fundamental falls by 60 dB
    damping: float = 1.0,  # how often the averaging acts in one period; more is duller
    softness: float = 0.0,  # 0 for a plectrum, 1 and more for a soft thumb
    position: float = 0.18,  # where the string is plucked, as a share of its length
    seed: int = 0,  # of the noise burst
) -> Samples:
    """A plucked string after Karplus and Strong, all periods at once.

    Their loop averages two neighbouring samples of each period of N samples, which multiplies
    harmonic k by cos(πk/N) per period. So period p is the inverse transform of X_k · g_k^p, with X
    the spectrum of the noise burst that plucks the string (every harmonic equally strong, with a
    random phase, so that none is missing) and g the gain of the loop. The periods are stretched to
    the frequency by linear interpolation.
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

    place = period * frequency / RATE * np.arange(n)
    left = place.astype(np.int64)
    share_of_right = place - left
    stretched = wave[left] * (1 - share_of_right) + wave[left + 1] * share_of_right
    return stretched.astype(np.float32) / np.float32(np.abs(wave).max() + 1e-9)


@lru_cache(maxsize=1)
def _noise_table() -> Samples:
    noises = np.random.default_rng(1971).standard_normal(1 << 19, dtype=np.float32)
    noises.setflags(write=False)
    return noises


def noise(n: int, seed: int) -> Samples:
    """White noise of unit variance: the stretch of one long table that the seed names."""
    table = _noise_table()
    if n > len(table):
        return np.resize(table, n)
    start = seed * 7_919 % (len(table) - n + 1)
    return table[start : start + n]


@lru_cache(maxsize=256)
def _sections(kind: str, order: int, *hertz: int) -> Numbers:
    """Second-order sections of a Butterworth filter; designing one costs more than applying it."""
    ends = hertz if len(hertz) > 1 else hertz[0]
    return butter(order, ends, kind, fs=RATE, output="sos").astype(np.float32)


def low_pass(x: Samples, hertz: float, *, order: int = 2) -> Samples:
    """What lies below a frequency, by a Butterworth filter."""
    return sosfilt(_sections("lowpass", order, round(hertz)), x)


def high_pass(x: Samples, hertz: float) -> Samples:
    """What lies above a frequency, by a Butterworth filter."""
    return sosfilt(_sections("highpass", 2, round(hertz)), x)


def band_pass(x: Samples, low: float, high: float) -> Samples:
    """What lies between two frequencies, by a Butterworth filter."""
    return sosfilt(_sections("bandpass", 1, round(low), round(high)), x)


def rms(x: Samples) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)) + 1e-20))


def active_rms(x: Samples) -> float:
    """The RMS over the samples at which anything sounds: rests do not make a part quieter."""
    square = np.square(x[: len(x) // 64 * 64].reshape(-1, 64)).mean(axis=1)
    sounding = square > 1e-3 * square.max(initial=0)
    if not sounding.any():
        return rms(x)
    return float(np.sqrt(square[sounding].mean()))


def amplifier(x: Samples, *, drive: float) -> Samples:
    """tanh(drive · x / rms) of a sound freed of its bass, then a loudspeaker.

    The loudspeaker emphasises 1.5 to 4 kHz, and passes neither deep bass nor high treble.
    """
    tight = x - np.float32(0.6) * low_pass(x, 250)
    shaped = np.tanh(tight * np.float32(drive / (active_rms(tight) + 1e-9)))
    return low_pass(high_pass(shaped, 80) + band_pass(shaped, 1_500, 4_000), 5_200)


@lru_cache(maxsize=8)
def room_response(seconds: float, seed: int) -> Samples:
    """The impulse response of a room: noise that decays by 60 dB in ``seconds``, highs first."""
    n = int(RATE * min(seconds, 3.0))
    t = times(n)
    tail = noise(n, seed) * np.exp(-np.log(1_000.0) * t / seconds).astype(np.float32)
    dull_tail = low_pass(tail, 2_500)
    share_of_bright = np.exp(-t / (0.3 * seconds)).astype(np.float32)
    rise = np.minimum(1, t / 0.015).astype(np.float32)
    response = (tail * share_of_bright + dull_tail * (1 - share_of_bright)) * rise
    return response / np.float32(np.sqrt(np.sum(response**2)) + 1e-9)


def old_recording(x: Samples, *, seed: int) -> Samples:
    """A narrow band, hiss, and the crackle of a worn record, about 26 dB below the music."""
    rng = np.random.default_rng(seed)
    level = np.float32(rms(x))
    narrow = high_pass(low_pass(x, 3_600, order=4), 130)
    hiss = noise(len(x), seed) * level * np.float32(0.045)
    crackle = np.zeros(len(x), np.float32)
    hits = rng.integers(len(x), size=int(14 * len(x) / RATE))
    crackle[hits] = rng.laplace(0, 1.2, len(hits)) * level
    return narrow + hiss + high_pass(crackle, 900)


def limit(x: Samples, *, knee: float = 0.6, ceiling: float = 0.98) -> Samples:
    """Leave what is below the knee, and compress the rest so that nothing exceeds the ceiling."""
    over = np.abs(x) - knee
    compressed = knee + (ceiling - knee) * np.tanh(np.maximum(over, 0) / (ceiling - knee))
    return np.where(over > 0, np.copysign(compressed, x), x).astype(np.float32)


def fade(x: Samples) -> Samples:
    """Fade the ends in and out, so that a cut does not click."""
    n = min(int(0.01 * RATE), len(x) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
    x[:n] *= ramp
    x[len(x) - n :] *= ramp[::-1]
    return x


def falling(n: int, seconds: float) -> Doubles:
    """e^(-t / seconds) at each of n samples."""
    return np.exp(-times(n) / seconds)


def add_at(out: Samples, sound: Samples, start: int) -> None:
    """Add a sound to ``out`` starting at a sample, which may lie before the beginning."""
    first = max(-start, 0)
    last = min(len(sound), len(out) - start)
    if first < last:
        out[start + first : start + last] += sound[first:last]
