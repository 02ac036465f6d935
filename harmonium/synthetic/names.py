"""Invented names of artists and titles of tracks."""

from math import gcd

from harmonium.synthetic.recipes import read_tables

_WORDS = {kind: words.split() for kind, words in read_tables("invented_names.toml").items()}


def artist_name(number: int) -> str:
    """The name of an artist; every third is a person. Different for different numbers."""
    if number % 3 == 1:
        return _pair(number // 3, "first_names", "last_names")
    name = _pair(number, "adjectives", "nouns")
    return f"The {name}" if number % 3 == 0 else name


def track_title(number: int) -> str:
    """The title of a track. Different for different numbers."""
    return _pair(number, "verbs", "things")


def album_title(number: int) -> str:
    """The title of an album. Different for different numbers."""
    return _pair(number, "adjectives", "things")


def _pair(number: int, first_kind: str, second_kind: str) -> str:
    """A pair of words by its number in a mixed order; when all are used, a numeral follows."""
    first_words = _WORDS[first_kind]
    second_words = _WORDS[second_kind]
    n_pairs = len(first_words) * len(second_words)
    place = (number * _mixing_step(n_pairs) + 17) % n_pairs
    first = first_words[place // len(second_words)]
    second = second_words[place % len(second_words)]
    if number < n_pairs:
        return f"{first} {second}"
    return f"{first} {second} {number // n_pairs + 1}"


def _mixing_step(size: int) -> int:
    """A step that shares no factor with the size, so that every place is visited once."""
    step = size * 5 // 8 + 13
    while gcd(step, size) != 1:
        step += 1
    return step
