"""Three drum kits. A drum is a skin that rings, and a rattle of noise."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harmonium.arrays import Floats as Samples
from harmonium.synthetic.music import Part
from harmonium.synthetic.notes import Note
from harmonium.synthetic.signals import RATE, add_at, band_pass, falling, noise, times


@dataclass(frozen=True, kw_only=True)
class Kit:
    """What makes the drums of a kit different from those of another."""

    pitch: float  # of the skins, times a drum's own
    ring: float  # how long the skins ring, times a drum's own
    rattle: float  # how much the wires and cymbals sound, times a drum's own


KITS = {
    "acoustic kit": Kit(pitch=1.0, ring=1.0, rattle=1.0),
    "drum machine": Kit(pitch=0.8, ring=2.0, rattle=0.8),
    "brushes": Kit(pitch=1.07, ring=0.8, rattle=0.5),
}


@dataclass(frozen=True, kw_only=True)
class Drum:
    """A skin that rings, and a rattle: noise between two frequencies."""

    level: float  # beside the other drums
    seconds: float
    skin: float = 0.0  # hertz; 0: no skin
    skin_fall: float = 0.1  # seconds
    rattle: float = 1.0  # how much noise there is
    rattle_fall: float = 0.1  # seconds
    band: tuple[float, float] = (1_400.0, 6_500.0)  # hertz


DRUMS = {
    "kick": Drum(
        level=0.85,
        seconds=0.6,
        skin=58,
        skin_fall=0.11,
        rattle=0.3,
        rattle_fall=0.004,
        band=(100, 3_500),
    ),
    "snare": Drum(level=0.85, seconds=0.4, skin=188, skin_fall=0.07, rattle=2.0, rattle_fall=0.11),
    "clap": Drum(level=0.7, seconds=0.3, rattle_fall=0.05, band=(900, 3_200)),
    "tom": Drum(level=0.7, seconds=0.5, skin=98, skin_fall=0.14, rattle=0.1, rattle_fall=0.01),
    "hat": Drum(level=0.32, seconds=0.09, rattle_fall=0.022, band=(7_000, 10_500)),
    "pedal": Drum(level=0.2, seconds=0.07, rattle_fall=0.015, band=(5_500, 10_500)),
    "open": Drum(level=0.36, seconds=0.4, rattle_fall=0.12, band=(6_500, 10_500)),
    "ride": Drum(
        level=0.25,
        seconds=0.7,
        skin=2_900,
        skin_fall=0.22,
        rattle=0.7,
        rattle_fall=0.22,
        band=(5_500, 10_500),
    ),
    "crash": Drum(level=0.45, seconds=1.6, rattle_fall=0.45, band=(3_500, 10_500)),
    "shaker": Drum(level=0.3, seconds=0.12, rattle_fall=0.035, band=(4_500, 10_500)),
}


def play_drums(notes: list[Note], part: Part, n: int) -> Samples:
    """The strokes of a part on one kit, in n samples."""
    out = np.zeros(n, np.float32)
    for note in notes:
        level = np.float32(DRUMS[note.kind].level)
        sound = level * _stroke(note.kind, part.instrument, part.brightness, part.seed)
        add_at(out, sound * np.float32(note.force**1.3), round(note.start * RATE))
    return out


@lru_cache(maxsize=64)
def _stroke(name: str, kit_name: str, brightness: float, seed: int) -> Samples:
    """One stroke on a drum of a kit, its peak near one; the pitch of a skin drops."""
    drum = DRUMS[name]
    kit = KITS[kit_name]
    n = int(drum.seconds * RATE)
    low = drum.band[0] * brightness**0.3
    high = min(max(drum.band[1] * brightness, 1.2 * low), 10_900)
    rattle = kit.rattle * drum.rattle * falling(n, drum.rattle_fall)
    sound = rattle * band_pass(noise(n, seed), low, high)
    if drum.skin:
        phase = drum.skin * kit.pitch * (times(n) + 0.05 * (1 - falling(n, 0.03)))
        sound += np.sin(2 * np.pi * phase) * falling(n, drum.skin_fall * kit.ring)
    sound *= np.minimum(1, times(n)[::-1] / 0.01)
    return (sound / (np.abs(sound).max() + 1e-9)).astype(np.float32)
