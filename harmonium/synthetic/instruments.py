"""The instruments: how a note of each begins, sounds and ends.

An instrument is a function from a pitch to a tone long enough for its longest note, an attack, a
release and, for some, a treatment of everything it plays (an amplifier, a chorus).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.synthetic.effects import amplifier, chorus, tremolo
from harmonium.synthetic.tones import (
    Samples,
    band_pass,
    harmonic_tone,
    low_pass,
    n_harmonics,
    noise,
    phase_of,
    plucked_string,
    struck_bar,
    times,
)


@dataclass(frozen=True)
class Patch:
    """One particular instrument: its brightness around 1, its drive, its seed."""

    brightness: float = 1.0
    drive: float = 3.0
    seed: int = 0


Tone = Callable[[float, int, Patch], Samples]
Treatment = Callable[[Samples, Patch], Samples]


@dataclass(frozen=True)
class Instrument:
    """How notes are played on an instrument.

    Attributes
    ----------
    tone : (frequency in hertz, number of samples, patch) → samples.
    attack : seconds in which a note comes in.
    release : seconds in which it dies away when it is let go.
    treatment : a name in ``TREATMENTS``, applied to all that the instrument plays.
    wet : how much of it goes to the reverberation.
    electronic : whether it is a synthesiser.
    acoustic : whether it needs no electricity.
    """

    tone: Tone
    attack: float = 0.004
    release: float = 0.08
    treatment: str | None = None
    wet: float = 0.25
    electronic: bool = False
    acoustic: bool = False


def _series(frequency: float, slope: float, *, most: int = 32) -> NDArray[np.float64]:
    """Amplitudes 1/k^slope of the harmonics that fit."""
    k = np.arange(1, n_harmonics(frequency, most=most) + 1)
    return np.asarray(k**-slope, np.float64)


def _piano(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    body = 3.2 * (262 / frequency) ** 0.6
    envelope = 0.55 * np.exp(-t / 0.22) + 0.45 * np.exp(-t / body)
    bright = (0.45 + 0.45 * np.exp(-t / 0.35)) * min(1.0, 0.9 * patch.brightness**0.3)
    series = _series(frequency, 0.55, most=20)
    series *= 1 + 0.5 * np.cos(np.arange(1, len(series) + 1))  # no two harmonics alike
    tone = harmonic_tone(phase_of(frequency, n), series, bright)
    hammer = np.exp(-t / 0.008) * low_pass(noise(n, patch.seed), 1_200)
    return (tone * envelope + 0.25 * hammer).astype(np.float32)


def _electric_piano(frequency: float, n: int, patch: Patch) -> Samples:
    """A tine: nearly a sine that barks when struck, with a bell far above."""
    t = times(n)
    bark = 0.25 + 0.45 * patch.brightness * np.exp(-t / 0.4)
    tone = harmonic_tone(
        phase_of(frequency, n), _series(frequency, 0.3, most=6), np.minimum(bark, 0.9)
    )
    bell = struck_bar(frequency, n, ratios=[7.0], levels=[0.12], decays=[0.15])
    return (np.exp(-t / 1.6) * tone + bell).astype(np.float32)


def _organ(frequency: float, n: int, patch: Patch) -> Samples:
    drawbars = np.array([0.8, 0.7, 0.6, 0.5, 0.0, 0.35, 0.0, 0.3]) * patch.brightness ** np.arange(
        8
    )
    tone = harmonic_tone(phase_of(frequency / 2, n), drawbars)
    click = np.exp(-times(n) / 0.004) * noise(n, patch.seed)
    return (tone + 0.2 * click).astype(np.float32)


def _string(
    *, decay: float, damping: float, softness: float, position: float = 0.18, steel: bool = True
) -> Tone:
    """A plucked string; steel is damped less where the instrument is brighter."""

    def tone(frequency: float, n: int, patch: Patch) -> Samples:
        return plucked_string(
            frequency,
            n,
            decay=decay,
            damping=damping / patch.brightness if steel else damping,
            softness=softness,
            position=position,
            seed=patch.seed,
        )

    return tone


_steel_string = _string(decay=3.5, damping=0.45, softness=0.12)
_nylon_string = _string(decay=2.2, damping=1.0, softness=0.9, steel=False)
_harp = _string(decay=4.0, damping=0.8, softness=0.6, position=0.45, steel=False)
_electric_string = _string(decay=4.5, damping=0.6, softness=0.4)
_electric_bass = _string(decay=3.0, damping=1.6, softness=1.6)


def _lead_string(frequency: float, n: int, patch: Patch) -> Samples:
    """A string held by feedback, with the vibrato of the left hand."""
    t = times(n)
    phase = phase_of(frequency, n, vibrato=0.35, scoop=-0.6)
    bright = 0.82 + 0.1 * np.exp(-t / 0.1)
    return harmonic_tone(phase, _series(frequency, 0.6, most=20), bright)


def _upright_bass(frequency: float, n: int, patch: Patch) -> Samples:
    tone = plucked_string(frequency, n, decay=1.3, damping=4.0, softness=4.0, seed=patch.seed)
    thump = np.exp(-times(n) / 0.02) * low_pass(noise(n, patch.seed), 300)
    return (tone + 0.3 * thump).astype(np.float32)


def _filtered_saw(slope: float, *, shut: float, sweep: float, seconds: float) -> Tone:
    """A saw-tooth through a filter that shuts."""

    def tone(frequency: float, n: int, patch: Patch) -> Samples:
        bright = shut + sweep * np.exp(-times(n) / (seconds * patch.brightness))
        return harmonic_tone(phase_of(frequency, n), _series(frequency, slope, most=24), bright)

    return tone


_synth_bass = _filtered_saw(0.8, shut=0.55, sweep=0.38, seconds=0.18)
_synth_stab = _filtered_saw(0.7, shut=0.6, sweep=0.35, seconds=0.12)
_saw_pluck = _filtered_saw(0.6, shut=0.4, sweep=0.55, seconds=0.09)


def _bowed(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    series = _series(frequency, 0.75, most=24)
    k = np.arange(1, len(series) + 1) * frequency
    series *= 0.5 + np.exp(-(((k - 500) / 300) ** 2)) + 0.8 * np.exp(-(((k - 2_500) / 900) ** 2))
    phase = phase_of(frequency, n, vibrato=0.25, vibrato_rate=5.8)
    bow = 1 + 0.15 * np.minimum(1, t / 0.4)
    return (bow * harmonic_tone(phase, series, min(0.97 * patch.brightness**0.1, 0.99))).astype(
        np.float32
    )


def _flute(frequency: float, n: int, patch: Patch) -> Samples:
    t = times(n)
    phase = phase_of(frequency, n, vibrato=0.2, vibrato_rate=5.0)
    series = np.array([1.0, 0.35, 0.12, 0.04])[: n_harmonics(frequency, most=4)]
    breath = band_pass(noise(n, patch.seed), frequency, min(4 * frequency, 9_000))
    chiff = 0.12 + 0.5 * np.exp(-t / 0.05)
    return (harmonic_tone(phase, series, 0.9) + 0.35 * chiff * breath).astype(np.float32)


def _trumpet(frequency: float, n: int, patch: Patch) -> Samples:
    """Brass grows brighter as it grows louder."""
    t = times(n)
    bright = 0.9 - 0.35 * np.exp(-t / 0.06) - 0.06 * np.minimum(1, t)
    phase = phase_of(frequency, n, vibrato=0.15, scoop=-0.5)
    return harmonic_tone(phase, _series(frequency, 0.25, most=16), bright * patch.brightness**0.1)


def _saxophone(frequency: float, n: int, patch: Patch) -> Samples:
    series = _series(frequency, 0.6, most=24)
    k = np.arange(1, len(series) + 1) * frequency
    series *= 0.3 + np.exp(-(((k - 900) / 500) ** 2)) + 0.5 * np.exp(-(((k - 2_300) / 700) ** 2))
    phase = phase_of(frequency, n, vibrato=0.3, vibrato_rate=4.8, scoop=-0.9)
    reed = band_pass(noise(n, patch.seed), 1_000, 5_000)
    return (harmonic_tone(phase, series, 0.96) + 0.06 * reed).astype(np.float32)


def _bells(frequency: float, n: int, patch: Patch) -> Samples:
    return struck_bar(
        frequency,
        n,
        ratios=[0.5, 1.0, 2.0, 2.76, 4.1, 5.43],
        levels=[0.3, 0.7, 0.4, 0.45 * patch.brightness, 0.25, 0.2],
        decays=[2.5, 2.0, 1.0, 0.8, 0.4, 0.25],
    )


def _vibraphone(frequency: float, n: int, patch: Patch) -> Samples:
    return struck_bar(
        frequency, n, ratios=[1.0, 4.0, 10.0], levels=[1.0, 0.25, 0.06], decays=[1.8, 0.5, 0.08]
    )


def _synth_lead(frequency: float, n: int, patch: Patch) -> Samples:
    """A square wave: odd harmonics only."""
    series = _series(frequency, 1.0, most=20)
    series[1::2] *= 0.15
    bright = np.minimum(0.99, 0.9 + 0.09 * np.exp(-times(n) / 0.2)) * min(1, patch.brightness**0.05)
    return harmonic_tone(phase_of(frequency, n, vibrato=0.15), series, bright)


def _synth_pluck(frequency: float, n: int, patch: Patch) -> Samples:
    return (np.exp(-times(n) / 0.35) * _saw_pluck(frequency, n, patch)).astype(np.float32)


def _synth_pad(frequency: float, n: int, patch: Patch) -> Samples:
    """Two saw-tooths a little apart, through a filter that breathes."""
    t = times(n)
    series = _series(frequency, 1.0, most=16)
    bright = (0.72 + 0.16 * np.sin(2 * np.pi * 0.15 * t)) * min(1.05, patch.brightness**0.2)
    lower, upper = (phase_of(frequency * ratio, n) for ratio in (0.9975, 1.0025))
    return harmonic_tone(lower, series, bright) + harmonic_tone(upper, series, bright)


TREATMENTS: dict[str, Treatment] = {
    "amplified": lambda x, patch: amplifier(x, drive=patch.drive),
    "warm": lambda x, patch: amplifier(x, drive=0.6),
    "ensemble": lambda x, patch: chorus(x, seed=patch.seed),
    "rotary": lambda x, patch: tremolo(x, rate=6.2, depth=0.25),
    "soft tremolo": lambda x, patch: tremolo(x, rate=4.5, depth=0.2),
}

INSTRUMENTS: dict[str, Instrument] = {
    "piano": Instrument(_piano, release=0.12, acoustic=True),
    "electric piano": Instrument(_electric_piano, release=0.12, treatment="soft tremolo"),
    "organ": Instrument(_organ, 0.01, 0.05, "rotary"),
    "acoustic guitar": Instrument(_steel_string, release=0.15, acoustic=True),
    "harp": Instrument(_harp, release=0.6, wet=0.5, acoustic=True),
    "electric guitar": Instrument(_electric_string, release=0.1, treatment="warm"),
    "jazz guitar": Instrument(_nylon_string, release=0.1),
    "distorted guitar": Instrument(_electric_string, release=0.05, treatment="amplified", wet=0.12),
    "lead guitar": Instrument(_lead_string, 0.008, 0.08, "amplified", wet=0.35),
    "electric bass": Instrument(_electric_bass, release=0.06, wet=0.03),
    "upright bass": Instrument(_upright_bass, release=0.08, wet=0.1, acoustic=True),
    "synth bass": Instrument(_synth_bass, release=0.04, wet=0.03, electronic=True),
    "cello": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "violin": Instrument(_bowed, 0.07, 0.15, wet=0.5, acoustic=True),
    "fiddle": Instrument(_bowed, 0.03, 0.08, acoustic=True),
    "strings": Instrument(_bowed, 0.18, 0.35, "ensemble", wet=0.5, acoustic=True),
    "flute": Instrument(_flute, 0.04, 0.09, wet=0.4, acoustic=True),
    "trumpet": Instrument(_trumpet, 0.025, 0.07, wet=0.35, acoustic=True),
    "saxophone": Instrument(_saxophone, 0.03, 0.07, wet=0.35, acoustic=True),
    "bells": Instrument(_bells, release=0.9, wet=0.6),
    "vibraphone": Instrument(_vibraphone, release=0.4, treatment="soft tremolo", acoustic=True),
    "synth lead": Instrument(_synth_lead, 0.006, 0.06, wet=0.35, electronic=True),
    "synth pluck": Instrument(_synth_pluck, 0.002, 0.06, wet=0.4, electronic=True),
    "synth stab": Instrument(_synth_stab, 0.004, 0.07, "ensemble", wet=0.3, electronic=True),
    "synth pad": Instrument(_synth_pad, 0.35, 0.7, "ensemble", wet=0.6, electronic=True),
}
