"""Tags that may be one tag in two spellings."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

SHORTEST = 5
"""Shorter words are too often another word with one letter changed."""


class Spellings(NamedTuple):
    """A tag and another one that may be the same."""

    tag: str
    n_tracks: int
    other: str
    """The more used one."""
    n_other: int


def near_spellings(counts: Mapping[str, int]) -> list[Spellings]:
    """Pairs of tags that differ in spaces, signs or a plural s only, or in one letter.

    ``counts`` has the number of tracks of each tag. The pair whose rarer tag is used most is first.
    """
    keys: dict[str, set[str]] = {}
    for tag in counts:
        for key in _keys(tag):
            keys.setdefault(key, set()).add(tag)
    pairs = {
        pair for same in keys.values() for pair in combinations(sorted(same), 2) if _is_near(*pair)
    }
    found = [_ordered(pair, counts) for pair in pairs]
    return sorted(found, key=lambda pair: (-pair.n_tracks, pair.tag, pair.other))


def _ordered(pair: tuple[str, str], counts: Mapping[str, int]) -> Spellings:
    rare, common = sorted(pair, key=lambda tag: (counts[tag], tag))
    return Spellings(rare, counts[rare], common, counts[common])


def _plain(tag: str) -> str:
    """Letters and digits alone, without a plural s."""
    letters = "".join(c for c in tag if c.isalnum())
    return letters[:-1] if len(letters) >= SHORTEST and letters.endswith("s") else letters


def _keys(tag: str) -> Iterator[str]:
    """What a tag has in common with those that are near: itself, and itself less one letter."""
    plain = _plain(tag)
    yield plain or tag
    if len(plain) >= SHORTEST:
        yield from (plain[:i] + plain[i + 1 :] for i in range(len(plain)))


def _is_near(one: str, other: str) -> bool:
    a, b = _plain(one), _plain(other)
    if a == b:
        return bool(a)
    if min(len(a), len(b)) < SHORTEST:
        return False
    return _one_letter_apart(a, b) or _swapped(a, b)


def _one_letter_apart(a: str, b: str) -> bool:
    """Whether one letter, not a digit, is added, missing or another: 1980s is not 1990s."""
    a, b = sorted((a, b), key=len)
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest_a, rest_b = a[start:], b[start:]
    if len(a) == len(b):
        return rest_a[1:] == rest_b[1:] and not (rest_a[:1] + rest_b[:1]).isdigit()
    return len(b) == len(a) + 1 and rest_a == rest_b[1:] and not rest_b[0].isdigit()


def _swapped(a: str, b: str) -> bool:
    """Whether two letters next to one another have changed places."""
    differ = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b) or len(differ) != 2 or differ[1] != differ[0] + 1:
        return False
    i, j = differ
    return a[i] == b[j] and a[j] == b[i]
