"""Rhythms, one bar of sixteen steps each, written in patterns.toml so that they can be read."""

import tomllib
from pathlib import Path
from typing import NamedTuple

STEPS = 16
STEPS_PER_BEAT = 4


class Event(NamedTuple):
    """One sound of a pattern: when it begins, how long it lasts (in steps), and what it is."""

    step: int
    length: int
    symbol: str


_TABLES = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))

CHORDS: dict[str, str] = _TABLES["chords"]
BASS: dict[str, str] = _TABLES["bass"]
MELODY: dict[str, list[str]] = _TABLES["melody"]
DRUMS: dict[str, dict[str, str]] = _TABLES["drums"]


def events(pattern: str) -> list[Event]:
    """The sounds of one bar, in time.

    >>> events("n---..n-n-------")
    [Event(step=0, length=4, symbol='n'), Event(step=6, length=2, symbol='n'), \
Event(step=8, length=8, symbol='n')]
    """
    found = []
    for step, symbol in enumerate(pattern):
        if symbol in ".-":
            continue
        rest = pattern[step + 1 :]
        held = len(rest) - len(rest.lstrip("-"))
        found.append(Event(step, 1 + held, symbol))
    return found
