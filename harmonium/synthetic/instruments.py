"""The instruments: a tone for each pitch, and how its notes begin and end.

A tone is a function of the frequency in hertz, the number of samples and the part that plays it.
Families of instruments (struck, held, plucked, …) share a function; its settings make the
instrument.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from harmonium.arrays import Doubles, Numbers
from harmonium.arrays import Floats as Samples
from harmonium.synthetic.music import Part
from harmonium.synthetic.signals import (
    RATE,
    band_pass,
    falling,
    harmonic_tone,
    low_pass,
    n_harmonics,
    noise,
    phase_of,
    plucked_string,
    times,
)

Tone = Callable[[float, int, Part], Numbers]
"""(frequency in hertz, number of samples, part) → samples"""


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """How notes are played on an instrument."""

    tone: Tone
    attack: float = 0.004  # seconds in which a note fades in
    release: float = 0.08  # seconds in which it fades out when released
    reverb: float = 0.25  # how much of it goes to the reverberation
    drive: float | None = None  # of its amplifier, if it has one of its own
    is_overdriven: bool = False  # whether its amplifier has the track's drive instead
    is_electronic: bool = False  # whether it is a synthesiser
    is_acoustic: bool = False


# Families of tones


def _held(
    frequency: float,
    n: int,
    part: Part,
    *,
    slope: float,
    max_harmonics: int = 24,
    floor: float = 1.0,
    peaks: Sequence[tuple[float, float, float]] = (),
    even: float = 1.0,
    bright: float = 0.95,
    attack: float = 0.0,
    breath: float = 0.0,
    vibrato: float = 0.0,
    vibrato_rate: float = 5.5,
    scoop: float = 0.0,
) -> Samples:
    """A tone that is blown, bowed or held, with harmonics 1/k^slope.

    They are times a floor with peaks of (level, centre, width), even ones times ``even``. In the
    attack the brightness is ``attack`` higher, or lower. ``breath`` is the level of noise.
    """
    k = np.arange(1, n_harmonics(frequency, most=max_harmonics) + 1)
    amplitudes = np.full(len(k), floor)
    for level, centre, width in peaks:
        amplitudes += level * np.exp(-(((k * frequency - centre) / width) ** 2))
    amplitudes *= np.where(k % 2, 1.0, even) / k**slope
    steady = np.minimum(bright * part.brightness**0.1, 0.99)
    brightness = np.minimum(steady + attack * falling(n, 0.07), 0.99)
    phase = phase_of(frequency, n, vibrato=vibrato, vibrato_rate=vibrato_rate, scoop=scoop)
    tone = harmonic_tone(phase, amplitudes, brightness)
    if not breath:
        return tone
    return tone + np.float32(breath) * band_pass(noise(n, part.seed), 1_000, 5_000)


def _struck(
    frequency: float, n: int, part: Part, *, fall: float, slope: float, bright: float, hammer: float
) -> Doubles:
    """Strings or tines under a hammer: bright at first, and higher ones fade faster."""
    k = np.arange(1, n_harmonics(frequency, most=20) + 1)
    amplitudes = (1 + 0.5 * np.cos(k)) / k**slope  # no two harmonics are alike
    closing = 0.5 + 0.5 * falling(n, 0.35)
    brightness = np.minimum(bright * closing * part.brightness**0.3, 0.95)
    envelope = 0.5 * falling(n, 0.22) + 0.5 * falling(n, fall * (262 / frequency) ** 0.6)
    knock = falling(n, 0.008) * low_pass(noise(n, part.seed), 1_200)
    tone = harmonic_tone(frequency * times(n), amplitudes, brightness)
    return tone * envelope + hammer * knock


def _bar(
    frequency: float, n: int, part: Part, *, partials: Sequence[tuple[float, float, float]]
) -> Samples:
    """Partials of (ratio to the frequency, which need not be a whole number, level, decay)."""
    t = times(n)
    t32 = t.astype(np.float32)
    total = np.zeros(n, np.float32)
    for ratio, level, decay in partials:
        if ratio * frequency < 0.45 * RATE:
            angle = (2 * np.pi * ((ratio * frequency * t) % 1.0)).astype(np.float32)
            total += level * np.exp(-t32 / decay) * np.sin(angle)
    return total


def _string(
    frequency: float, n: int, part: Part, *, decay: float, damping: float, softness: float
) -> Samples:
    """A plucked string of nylon."""
    return plucked_string(
        frequency, n, decay=decay, damping=damping, softness=softness, seed=part.seed
    )


def _steel_string(
    frequency: float, n: int, part: Part, *, decay: float, damping: float, softness: float
) -> Samples:
    """A plucked string of steel, damped less where the instrument is brighter."""
    damping /= part.brightness
    return _string(frequency, n, part, decay=decay, damping=damping, softness=softness)


def _saw(
    frequency: float,
    n: int,
    part: Part,
    *,
    closed: float,
    sweep: float,
    seconds: float,
    fall: float = 9.0,
) -> Doubles:
    """A saw-tooth through a filter that closes."""
    k = np.arange(1, n_harmonics(frequency, most=24) + 1)
    brightness = np.minimum(closed + sweep * falling(n, seconds * part.brightness), 0.99)
    return harmonic_tone(frequency * times(n), 1 / k**0.7, brightness) * falling(n, fall)


_nylon_string = partial(_string, decay=2.2, damping=1.0, softness=0.9)
_electric_string = partial(_steel_string, decay=4.5, damping=0.6, softness=0.4)
_bowed = partial(
    _held, slope=0.75, floor=0.5, peaks=[(1.0, 500, 300), (0.8, 2_500, 900)], vibrato=0.25
)

# The instruments

INSTRUMENTS: dict[str, Instrument] = {
    "piano": Instrument(
        tone=partial(_struck, fall=3.2, slope=0.55, bright=0.9, hammer=0.25),
        release=0.12,
        is_acoustic=True,
    ),
    "electric piano": Instrument(
        tone=partial(_struck, fall=1.6, slope=1.2, bright=0.7, hammer=0.05),
        release=0.12,
    ),
    "organ": Instrument(
        tone=partial(_held, slope=0.4, max_harmonics=8, bright=0.9, breath=0.02),
        attack=0.01,
        release=0.05,
    ),
    "acoustic guitar": Instrument(
        tone=partial(_steel_string, decay=3.5, damping=0.45, softness=0.12),
        release=0.15,
        is_acoustic=True,
    ),
    "harp": Instrument(tone=_nylon_string, release=0.6, reverb=0.5, is_acoustic=True),
    "electric guitar": Instrument(tone=_electric_string, release=0.1, drive=0.6),
    "jazz guitar": Instrument(tone=_nylon_string, release=0.1),
    "distorted guitar": Instrument(
        tone=_electric_string, release=0.05, reverb=0.12, is_overdriven=True
    ),
    "lead guitar": Instrument(
        tone=partial(_held, slope=0.6, bright=0.85, vibrato=0.35, scoop=-0.6),
        attack=0.008,
        reverb=0.35,
        is_overdriven=True,
    ),
    "electric bass": Instrument(
        tone=partial(_steel_string, decay=3.0, damping=1.6, softness=1.6),
        reverb=0.03,
    ),
    "upright bass": Instrument(
        tone=partial(_steel_string, decay=1.3, damping=4.0, softness=4.0),
        reverb=0.1,
        is_acoustic=True,
    ),
    "synth bass": Instrument(
        tone=partial(_saw, closed=0.55, sweep=0.38, seconds=0.18),
        reverb=0.03,
        is_electronic=True,
    ),
    "cello": Instrument(tone=_bowed, attack=0.07, release=0.15, reverb=0.5, is_acoustic=True),
    "violin": Instrument(tone=_bowed, attack=0.07, release=0.15, reverb=0.5, is_acoustic=True),
    "fiddle": Instrument(tone=_bowed, attack=0.03, is_acoustic=True),
    "strings": Instrument(tone=_bowed, attack=0.18, release=0.35, reverb=0.5, is_acoustic=True),
    "flute": Instrument(
        tone=partial(_held, slope=1.5, max_harmonics=4, breath=0.12, vibrato=0.2),
        attack=0.04,
        reverb=0.4,
        is_acoustic=True,
    ),
    "trumpet": Instrument(
        tone=partial(
            _held,
            slope=0.25,
            max_harmonics=16,
            bright=0.87,
            attack=-0.35,
            vibrato=0.15,
            scoop=-0.5,
        ),
        attack=0.025,
        reverb=0.35,
        is_acoustic=True,
    ),
    "saxophone": Instrument(
        tone=partial(
            _held,
            slope=0.6,
            floor=0.3,
            peaks=[(1, 900, 500), (0.5, 2_300, 700)],
            breath=0.06,
            scoop=-0.9,
        ),
        attack=0.03,
        reverb=0.35,
        is_acoustic=True,
    ),
    "bells": Instrument(
        tone=partial(
            _bar, partials=[(0.5, 0.3, 2.5), (1, 0.7, 2), (2.76, 0.45, 0.8), (5.4, 0.2, 0.3)]
        ),
        release=0.9,
        reverb=0.6,
    ),
    "vibraphone": Instrument(
        tone=partial(_bar, partials=[(1.0, 1.0, 1.8), (4.0, 0.25, 0.5), (10.0, 0.06, 0.08)]),
        release=0.4,
        is_acoustic=True,
    ),
    "synth lead": Instrument(
        tone=partial(_held, slope=1.0, even=0.15, attack=0.04, vibrato=0.15),
        attack=0.006,
        is_electronic=True,
    ),
    "synth pluck": Instrument(
        tone=partial(_saw, closed=0.4, sweep=0.55, seconds=0.09, fall=0.35),
        reverb=0.4,
        is_electronic=True,
    ),
    "synth stab": Instrument(
        tone=partial(_saw, closed=0.6, sweep=0.35, seconds=0.12),
        reverb=0.3,
        is_electronic=True,
    ),
    "synth pad": Instrument(
        tone=partial(_held, slope=1.0, bright=0.8, vibrato=0.1, vibrato_rate=0.7),
        attack=0.35,
        release=0.7,
        reverb=0.6,
        is_electronic=True,
    ),
}
