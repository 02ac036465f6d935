"""What is done to the sound of one instrument, or to the whole mix."""

from functools import lru_cache

import numpy as np
from scipy import fft

from harmonium.synthetic.tones import (
    RATE,
    Samples,
    band_pass,
    high_pass,
    low_pass,
    noise,
    times,
)


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
