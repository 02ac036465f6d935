"""Voices: a source rich in harmonics, the resonances of a vowel, and consonants of noise."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harmonium.synthetic.drums import add_at
from harmonium.synthetic.score import Note
from harmonium.synthetic.tones import (
    RATE,
    Samples,
    band_pass,
    harmonic_tone,
    high_pass,
    n_harmonics,
    noise,
    phase_of,
    pitch_to_hertz,
    times,
)

# Centre frequencies in hertz of a man's resonances; a woman's tract is shorter by a sixth.
VOWELS = {
    "a": (730, 1_090, 2_440, 3_400),
    "e": (530, 1_840, 2_480, 3_500),
    "i": (290, 2_250, 2_960, 3_600),
    "o": (500, 880, 2_540, 3_300),
    "u": (330, 760, 2_240, 3_200),
}
LEVELS = (1.0, 0.55, 0.25, 0.1)
BANDWIDTHS = (80.0, 100.0, 130.0, 180.0)
FEMALE_SHIFT = 1.17

SYLLABLES = tuple(
    (consonant, vowel) for consonant in ("", "s", "t", "l", "k", "", "m", "sh") for vowel in VOWELS
)


def sing(
    notes: list[Note], n: int, *, female: bool, style: str, brightness: float = 1.0, seed: int = 0
) -> Samples:
    """One syllable per note, in n samples; styles are those of the vocal patterns."""
    out = np.zeros(n, np.float32)
    spoken = style == "rap"
    effort = {"shout": 1.35, "rap": 1.15}.get(style, 1.0) * brightness**0.5
    for note in notes:
        consonant, vowel = SYLLABLES[int(note.kind) % len(SYLLABLES)]
        length = min(note.length, 0.22) if spoken else note.length
        sound = _syllable(
            pitch_to_hertz(note.pitch), round(length, 2), vowel, female, spoken, effort
        )
        add_at(out, sound * np.float32(note.force), round(note.start * RATE))
        if consonant:
            burst = _consonant(consonant, seed) * np.float32(note.force * (1.3 if spoken else 0.8))
            add_at(out, burst, round(note.start * RATE) - len(burst) // 2)
    return out


@lru_cache(maxsize=64)
def _syllable(
    frequency: float, length: float, vowel: str, female: bool, spoken: bool, effort: float
) -> Samples:
    n = int((length + 0.08) * RATE)
    t = times(n)
    if spoken:
        phase = phase_of(frequency, n, scoop=2.5)
    else:
        phase = phase_of(frequency, n, vibrato=0.45, vibrato_rate=5.6, delay=0.3, scoop=-1.2)
    amplitudes = vowel_spectrum(frequency, vowel, female=female, effort=effort)
    swell = 0.93 + 0.05 * np.minimum(1, t / 0.15)
    tone = harmonic_tone(phase, amplitudes, swell)
    breath = 0.02 * band_pass(noise(n, 5), 1_500, 6_000)
    attack = np.minimum(1, t / 0.035)
    release = np.clip((length + 0.08 - t) / 0.08, 0, 1)
    return ((tone + breath) * attack * release).astype(np.float32)


def vowel_spectrum(
    frequency: float, vowel: str, *, female: bool, effort: float = 1.0
) -> NDArray[np.float64]:
    """Amplitudes of the harmonics of a sung vowel.

    The source falls as 1/k^(1.1 / effort); the tract multiplies it with the sum of its resonances,
    L / (1 + ((f - F) / B)²) each.
    """
    k = np.arange(1, n_harmonics(frequency, ceiling=5_500, most=44) + 1)
    shift = FEMALE_SHIFT if female else 1.0
    tract = np.full(len(k), 0.02)
    for centre, level, width in zip(VOWELS[vowel], LEVELS, BANDWIDTHS, strict=True):
        tract += level / (1 + ((k * frequency - shift * centre) / width) ** 2)
    amplitudes = tract / k ** (0.6 / effort)
    return amplitudes / np.sqrt(np.sum(amplitudes**2))


@lru_cache(maxsize=32)
def _consonant(kind: str, seed: int) -> Samples:
    seconds, low, level = {
        "s": (0.09, 5_000, 0.22),
        "sh": (0.09, 2_200, 0.22),
        "t": (0.025, 3_000, 0.4),
        "k": (0.03, 1_400, 0.4),
        "l": (0.04, 400, 0.05),
        "m": (0.06, 200, 0.05),
    }[kind]
    n = int(seconds * RATE)
    shape = np.sin(np.linspace(0, np.pi, n)) if seconds > 0.035 else np.exp(-times(n) / 0.007)
    sound = high_pass(noise(n, seed % 1_000 + len(kind)), low)
    return (level * shape * sound).astype(np.float32)
