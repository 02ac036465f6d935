"""Voices: a source rich in harmonics, and the resonances of a vowel."""

from functools import lru_cache

import numpy as np

from harmonium.arrays import Doubles
from harmonium.arrays import Floats as Samples
from harmonium.synthetic.music import Part
from harmonium.synthetic.notes import Note
from harmonium.synthetic.signals import (
    RATE,
    add_at,
    band_pass,
    harmonic_tone,
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

_EFFORT = {"shout": 1.35, "rap": 1.15}  # of a vocal pattern; of all others, 1


def sing(notes: list[Note], part: Part, n: int) -> Samples:
    """One vowel per note, in n samples; styles are those of the vocal patterns."""
    out = np.zeros(n, np.float32)
    is_spoken = part.pattern == "rap"
    effort = _EFFORT.get(part.pattern, 1.0) * part.brightness**0.5
    for note in notes:
        length = min(note.length, 0.22) if is_spoken else note.length
        sound = _syllable(
            pitch_to_hertz(note.pitch),
            length=round(length, 2),
            vowel=tuple(VOWELS)[int(note.kind) % len(VOWELS)],
            is_female=part.instrument == "female voice",
            is_spoken=is_spoken,
            effort=effort,
        )
        add_at(out, sound * np.float32(note.force), round(note.start * RATE))
    return out


@lru_cache(maxsize=64)
def _syllable(
    frequency: float, *, length: float, vowel: str, is_female: bool, is_spoken: bool, effort: float
) -> Samples:
    n = int((length + 0.08) * RATE)
    t = times(n)
    if is_spoken:
        phase = phase_of(frequency, n, scoop=2.5)
    else:
        phase = phase_of(frequency, n, vibrato=0.45, vibrato_rate=5.6, delay=0.3, scoop=-1.2)
    amplitudes = vowel_spectrum(frequency, vowel, is_female=is_female, effort=effort)
    swell = 0.93 + 0.05 * np.minimum(1, t / 0.15)
    tone = harmonic_tone(phase, amplitudes, swell)
    breath = 0.02 * band_pass(noise(n, 5), 1_500, 6_000)
    attack = np.minimum(1, t / 0.035)
    release = np.clip((length + 0.08 - t) / 0.08, 0, 1)
    return ((tone + breath) * attack * release).astype(np.float32)


def vowel_spectrum(
    frequency: float, vowel: str, *, is_female: bool, effort: float = 1.0
) -> Doubles:
    """Amplitudes of the harmonics of a sung vowel.

    The source falls as 1/k^(1.1 / effort); the tract multiplies it with the sum of its resonances,
    L / (1 + ((f - F) / B)²) each.
    """
    k = np.arange(1, n_harmonics(frequency, ceiling=5_500, most=44) + 1)
    shift = FEMALE_SHIFT if is_female else 1.0
    tract = np.full(len(k), 0.02)
    for centre, level, width in zip(VOWELS[vowel], LEVELS, BANDWIDTHS, strict=True):
        tract += level / (1 + ((k * frequency - shift * centre) / width) ** 2)
    amplitudes = tract / k ** (0.6 / effort)
    return amplitudes / np.sqrt(np.sum(amplitudes**2))
