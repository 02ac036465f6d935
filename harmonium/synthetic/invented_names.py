"""Invented names of artists, albums and tracks: a different one for every number."""

import tomllib
from math import gcd
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("invented_names.toml").read_text(encoding="utf-8"))
_WORDS = {kind: words.split() for kind, words in _TABLES.items()}


def artist_name(number: int) -> str:
    """The name of an artist; every third is a person. Different for different numbers."""
    if number % 3 == 1:
        return _pair(number // 3, "first_names", "last_names")
    name = _pair(number, "adjectives", "nouns")
    return f"The {name}" if number % 3 == 0 else name


def album_name(artist: int, album: int) -> str:
    """The name of an artist's album."""
    return _pair(artist * 7 + album, "adjectives", "things")


def track_title(number: int) -> str:
    """The title of a track. Different for different numbers."""
    return _pair(number, "verbs", "things")


def _pair(number: int, first_kind: str, second_kind: str) -> str:
    """The number-th of all pairs of words in a mixed order; a numeral follows when all are used."""
    first, second = _WORDS[first_kind], _WORDS[second_kind]
    size = len(first) * len(second)
    # A step that shares no factor with the size visits every pair once.
    step = next(s for s in range(size * 5 // 8 + 13, size) if gcd(s, size) == 1)
    pair = (number * step + 17) % size
    name = f"{first[pair // len(second)]} {second[pair % len(second)]}"
    return name if number < size else f"{name} {number // size + 1}"
