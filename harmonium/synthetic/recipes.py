"""The recipes of genres: what tracks are drawn from. genres.toml says what each entry means."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ERAS = ("60s", "70s", "80s", "90s", "today")

Range = tuple[float, float]  # from, to
Weights = Mapping[str, float]  # what can be chosen -> its weight


@cache
def read_tables(name: str) -> dict[str, Any]:
    """The tables of a TOML file of this package; not to be changed."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Player:
    """How a genre fills a role."""

    chance: float  # that there is a part with this role
    choices: Weights  # of "instrument/pattern"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the tracks of a genre are drawn from."""

    weight: float
    tempo: Range
    modes: Weights
    progressions: list[str]
    parts: dict[str, Player]  # role -> who plays it
    loudness: Range
    room: Range
    neighbours: list[str]
    swing: float
    swing_steps: int
    drive: Range
    sevenths: bool
    lofi: float
    eras: Weights
    male: float
    energy: float
    valence: float


def _recipes() -> dict[str, Recipe]:
    """The recipes of genres.toml."""
    tables = read_tables("genres.toml")
    recipes = {}
    for genre, table in tables.items():
        if genre == "usual":
            continue
        entries = {**tables["usual"], **table}
        entries["parts"] = dict(_player(text) for text in entries["parts"])
        entries["eras"] = dict(zip(ERAS, entries["eras"], strict=True))
        recipes[genre] = Recipe(**entries)
    return recipes


def _player(text: str) -> tuple[str, Player]:
    """A role and who plays it, from ``role chance: instrument/pattern weight, …``."""
    head, _, listed = text.partition(": ")
    role, chance = head.split()
    choices = {}
    for choice in listed.split(", "):
        part, _, weight = choice.rpartition(" ")
        choices[part] = float(weight)
    return role, Player(chance=float(chance), choices=choices)


RECIPES = _recipes()


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role that a part may have."""

    gain: float  # its level in the mix, in dB
    prominence: float  # how much a part stands out by its role


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a track that clips are cut from."""

    gain: float  # how much louder it is, in dB
    presence: Mapping[str, float]  # the chance that a part plays in it, by role; 1 if not named


_PATTERNS = read_tables("patterns.toml")
MODES: dict[str, list[int]] = _PATTERNS["modes"]
PROGRESSIONS: dict[str, list[int]] = _PATTERNS["progressions"]
ROLES = {name: Role(**table) for name, table in _PATTERNS["roles"].items()}
SECTIONS = {name: Section(**table) for name, table in _PATTERNS["sections"].items()}
