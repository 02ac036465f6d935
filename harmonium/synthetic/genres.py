"""What the genres are made of: one recipe each, from which tracks are drawn.

The recipes are in genres.toml. The instruments of their parts are those of ``instruments.py``,
``voice.py`` and ``drums.py``, the patterns those of ``patterns.toml``.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PartChoices = tuple[tuple[str, str, float], ...]  # instrument, pattern, weight

ERAS = ("60s", "70s", "80s", "90s", "today")

MODES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "minor": (0, 2, 3, 5, 7, 8, 10),
}

# Scale degrees counted from 0, one chord a bar.
PROGRESSIONS = {
    "axis": (0, 4, 5, 3),
    "fifties": (0, 5, 3, 4),
    "three": (0, 3, 4, 0),
    "plagal": (0, 3, 0, 4),
    "sway": (0, 3),
    "step": (0, 6),
    "drone": (0,),
    "epic": (0, 5, 2, 6),
    "descent": (0, 6, 5, 6),
    "turnaround": (1, 4, 0, 5),
    "cadence": (0, 3, 6, 2, 5, 1, 4, 0),
    "blues": (0, 0, 0, 0, 3, 3, 0, 0, 4, 3, 0, 4),
}


@dataclass(frozen=True)
class GenreRecipe:
    """The ranges and chances that a track of one genre is drawn from.

    Attributes
    ----------
    weight : how common the genre is.
    tempo : range in beats per minute.
    modes : chances of the modes.
    progressions : names in ``PROGRESSIONS``.
    parts : for each role, the chance that a track has it, and its options.
    loudness : range of the clip's RMS level in dB below full scale.
    room : range of the reverberation time in seconds.
    swing : how late the off-beats are, 0 (straight) to 1 (triplets), and the steps it acts on.
    drive : range of the distortion of guitars marked as such.
    sevenths : whether chords have four notes.
    lofi : chance of a narrow, hissing, crackling recording.
    eras : chances of the decades.
    neighbours : genres to borrow from.
    male : chance that a singer is a man.
    energy, valence : what it adds to how energetic and how happy a track seems.
    """

    weight: float
    tempo: tuple[float, float]
    modes: dict[str, float]
    progressions: tuple[str, ...]
    parts: dict[str, tuple[float, PartChoices]]
    loudness: tuple[float, float]
    room: tuple[float, float]
    neighbours: tuple[str, ...]
    swing: float = 0.0
    swing_steps: int = 2
    drive: tuple[float, float] = (2.0, 4.0)
    sevenths: bool = False
    lofi: float = 0.08
    eras: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ERAS, 1.0))
    male: float = 0.55
    energy: float = 0.0
    valence: float = 0.0


def _recipe(table: dict[str, Any]) -> GenreRecipe:
    """A recipe from its table in genres.toml: lists become tuples."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    values["parts"] = dict(map(_part, table["parts"]))
    if "eras" in table:
        values["eras"] = dict(zip(ERAS, table["eras"], strict=True))
    return GenreRecipe(**values)


def _part(text: str) -> tuple[str, tuple[float, PartChoices]]:
    """(role, (chance, choices)) from ``role chance: choice, choice, …``."""
    head, _, listed = text.partition(": ")
    role, chance = head.split()
    return role, (float(chance), tuple(_choice(choice) for choice in listed.split(", ")))


def _choice(text: str) -> tuple[str, str, float]:
    """An instrument, a pattern and a weight from ``instrument/pattern weight``."""
    what, _, weight = text.rpartition(" ")
    instrument, pattern = what.split("/")
    return instrument, pattern, float(weight)


_TABLES = tomllib.loads(Path(__file__).with_name("genres.toml").read_text(encoding="utf-8"))

RECIPES = {name: _recipe(table) for name, table in _TABLES.items()}
