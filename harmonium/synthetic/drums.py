"""Drums: single strokes of three kits, and the playing of a list of strokes."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from harmonium.synthetic.score import Note
from harmonium.synthetic.tones import (
    RATE,
    Samples,
    band_pass,
    high_pass,
    low_pass,
    noise,
    struck_bar,
    times,
)

KITS = ("acoustic kit", "drum machine", "brushes")


def play_drums(
    notes: list[Note], kit: str, n: int, *, brightness: float = 1.0, seed: int = 0
) -> Samples:
    """The strokes of a part on one kit, in n samples."""
    out = np.zeros(n, np.float32)
    strokes: dict[str, Samples] = {}
    for note in notes:
        if note.kind not in strokes:
            level = np.float32(DRUMS[note.kind][0])
            strokes[note.kind] = level * stroke(note.kind, kit, brightness, seed)
        add_at(out, strokes[note.kind] * np.float32(note.force**1.3), round(note.start * RATE))
    return out


def add_at(out: Samples, sound: Samples, start: int) -> None:
    """Add a sound to ``out`` from a sample on, which may lie before the beginning."""
    first = max(-start, 0)
    last = min(len(sound), len(out) - start)
    if first < last:
        out[start + first : start + last] += sound[first:last]


@lru_cache(maxsize=64)
def stroke(drum: str, kit: str, brightness: float, seed: int) -> Samples:
    """One stroke on a drum of a kit, its peak near one."""
    sound = DRUMS[drum][1](kit, brightness, seed)
    sound = sound * np.minimum(1, times(len(sound))[::-1] / 0.01).astype(np.float32)
    return (sound / (np.abs(sound).max() + 1e-9)).astype(np.float32)


def _decay(seconds: float, fall: float) -> np.ndarray:
    return np.exp(-times(int(seconds * RATE)) / fall)


def _kick(kit: str, brightness: float, seed: int) -> Samples:
    """A membrane whose pitch drops, and the click of the beater."""
    low, sweep, fall = {
        "acoustic kit": (58.0, 90.0, 0.11),
        "drum machine": (46.0, 160.0, 0.22),
        "brushes": (62.0, 40.0, 0.09),
    }[kit]
    envelope = _decay(0.6, fall * (0.8 + 0.2 * brightness))
    t = times(len(envelope))
    phase = low * t + sweep * 0.03 * (1 - np.exp(-t / 0.03))
    click = low_pass(noise(len(t), seed), 3_500) * np.exp(-t / 0.004)
    amount = 0.1 if kit == "brushes" else 0.5 * brightness
    return (np.sin(2 * np.pi * phase) * envelope + amount * click).astype(np.float32)


def _snare(kit: str, brightness: float, seed: int) -> Samples:
    """Skin and wires; a brush only sweeps the wires."""
    tone, fall, wires = {
        "acoustic kit": (0.6, 0.11, 1.0),
        "drum machine": (0.5, 0.08, 0.8),
        "brushes": (0.12, 0.07, 0.6),
    }[kit]
    envelope = _decay(0.4, fall)
    n = len(envelope)
    skin = struck_bar(188, n, ratios=[1, 1.59], levels=[1, 0.6], decays=[0.07, 0.04])
    if kit == "brushes":
        envelope = envelope * np.minimum(1, times(n) / 0.012)
    hiss = band_pass(noise(n, seed + 1), 1_400, min(6_500 * brightness, 10_000))
    return (tone * skin + 2 * wires * envelope * hiss).astype(np.float32)


def _clap(kit: str, brightness: float, seed: int) -> Samples:
    """Several hands a few milliseconds apart."""
    t = times(int(0.3 * RATE))
    envelope = np.exp(-t / 0.09) * 0.5
    for delay in (0.0, 0.011, 0.023):
        envelope += np.where(t >= delay, np.exp(-(t - delay) / 0.006), 0)
    return (envelope * band_pass(noise(len(t), seed + 2), 900, 3_200)).astype(np.float32)


def _cymbal(
    seconds: float, fall: float, low: float, metal: float
) -> Callable[[str, float, int], Samples]:
    """Noise above ``low`` hertz, with a few clashing tones."""

    def sound(kit: str, brightness: float, seed: int) -> Samples:
        envelope = _decay(seconds, fall * (0.8 + 0.2 * brightness))
        n = len(envelope)
        base = 2_300 + 700 * brightness
        ring = struck_bar(base, n, ratios=_CLANG, levels=[0.4] * 8, decays=[fall] * 8)
        hiss = high_pass(noise(n, seed + 3), min(low * brightness**0.3, 9_500), order=4)
        amount = metal * (0.4 if kit == "brushes" else 1.0)
        return (envelope * hiss + amount * ring).astype(np.float32)

    return sound


# Partials of a metal plate: no two of them in tune.
_CLANG = [1.0, 1.17, 1.34, 1.56, 1.73, 1.98, 2.21, 2.53]


def _shaker(kit: str, brightness: float, seed: int) -> Samples:
    t = times(int(0.12 * RATE))
    envelope = np.minimum(1, t / 0.02) * np.exp(-t / 0.035)
    return (envelope * high_pass(noise(len(t), seed + 4), 4_500)).astype(np.float32)


def _tom(kit: str, brightness: float, seed: int) -> Samples:
    envelope = _decay(0.5, 0.14)
    t = times(len(envelope))
    phase = 98 * t + 30 * 0.05 * (1 - np.exp(-t / 0.05))
    return (np.sin(2 * np.pi * phase) * envelope).astype(np.float32)


# Each drum's level beside the others, and one stroke on it: (kit, brightness, seed) → samples.
DRUMS: dict[str, tuple[float, Callable[[str, float, int], Samples]]] = {
    "kick": (0.85, _kick),
    "snare": (0.85, _snare),
    "clap": (0.7, _clap),
    "tom": (0.7, _tom),
    "hat": (0.32, _cymbal(0.09, 0.022, 7_000, 0.15)),
    "pedal": (0.2, _cymbal(0.07, 0.015, 5_500, 0.15)),
    "open": (0.36, _cymbal(0.4, 0.12, 6_500, 0.15)),
    "ride": (0.25, _cymbal(0.7, 0.22, 5_500, 0.35)),
    "crash": (0.45, _cymbal(1.6, 0.45, 3_500, 0.1)),
    "shaker": (0.3, _shaker),
}
