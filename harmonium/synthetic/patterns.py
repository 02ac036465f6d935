"""Rhythms, one bar of sixteen steps each, written so that they can be read.

In every pattern ``.`` is a rest and ``-`` holds the sound before it. What else a step may say:

- chords: ``A`` the whole chord, ``a`` the same softly, a digit one note of it counted from below;
- bass: ``r`` root, ``f`` fifth, ``o`` octave, ``t`` third, ``w`` a step towards the next root;
- melody: ``n`` a note;
- drums: ``X`` an accent, ``x`` a stroke, ``o`` a ghost stroke.
"""

from typing import NamedTuple

STEPS = 16
STEPS_PER_BEAT = 4


class Event(NamedTuple):
    """One sound of a pattern: when it begins, how long it lasts (in steps), and what it is."""

    step: int
    length: int
    symbol: str


CHORDS = {
    "whole": "A---------------",
    "halves": "A-------a-------",
    "quarters": "A---a---A---a---",
    "eighths": "A-a-a-a-A-a-a-a-",
    "pop": "A-----a---a-----",
    "strum": "A---A-a---a-A-a-",
    "pick": "0-2-1-3-0-2-1-3-",
    "slow pick": "0---1---2---3---",
    "alberti": "0-2-1-2-0-2-1-2-",
    "chug": "A-a-a-A-a-a-A-a-",
    "riff": "A-----A---A-a-..",
    "downstrokes": "A-a-a-a-A-a-a-a-",
    "gallop": "A-aaa-aaA-aaa-aa",
    "offbeat": "..A...A...A...A.",
    "skank": "....A.......A.a.",
    "shuffle": "A-a-A-a-A-a-A-a-",
    "comping": "A--...a-......a-",
    "stabs": "A.....a.A..a....",
    "scratch": "A.a..a.aA..a.aa.",
    "arpeggio": "0123210332123210",
    "slow arpeggio": "0-1-2-3-4-3-2-1-",
}

BASS = {
    "whole": "r---------------",
    "halves": "r-------f-------",
    "eighths": "r-r-r-r-r-r-r-r-",
    "driving": "r-r-r-r-r-f-r-w-",
    "pop": "r-----r-r---r-f-",
    "walking": "r---w---w---w---",
    "offbeat": "..r-..r-..r-..r-",
    "house": "r..ro..r..r.o...",
    "sixteenths": "r.rrr.rrr.rror.r",
    "gallop": "r-rrr-rrr-rrr-rr",
    "funk": "r--r..o.r.f.r.o.",
    "dub": "r-----f---t---..",
    "shuffle": "r---t---f---t---",
    "hip hop": "r-------..r-..r-",
}

MELODY = {
    "sparse": ("n-----------....", "....n-----------", "n-------n-------", "........n-------"),
    "slow": ("n-------n---n---", "n-----n-n-------", "n-----------n---", "..n-----n-------"),
    "medium": ("n---n-n-n---n---", "n-n-n---n-----..", "..n-n-n-n---n---", "n-----n-n-n-n---"),
    "fast": ("n-nnn-n-n-nnn-n-", "nnn-nnn-n-n-n---", "n-n-nnnnn-n-nnnn", "nnnnnnnnn-n-n-n-"),
    "swing": ("n---n-n---n-n-n-", "..n-n-n-n---n-..", "n-n-n-n-n-n-n---", "....n-n---n-----"),
    "stabs": ("n.....n.n..n....", "....n.n.....n.n.", "n.n.........n...", "n.....n.n.n.n..."),
    "sung": ("n-n-n---n-n-n---", "..n-n-n-n---....", "n---n-n-n-------", "n-n-n-n-n-----.."),
    "shout": ("n-n-n-n-n---n---", "n---n---n-n-n-..", "..n-n-n-n-n-n---", "n-n-n---n---...."),
    "rap": ("n-nnn-n-n-nnn-..", "nnn-n-nnn-n-n-n-", "..nnn-nnn-nnn---", "n-n-nnn-n-nnnnn-"),
    "arpeggio": ("nnnnnnnnnnnnnnnn",),
}

DRUMS: dict[str, dict[str, str]] = {
    "rock": {"kick": "X.....x.x.......", "snare": "....X.......X...", "hat": "x.o.x.o.x.o.x.o."},
    "straight": {
        "kick": "X.......X.x.....",
        "snare": "....X.......X...",
        "hat": "x.x.x.x.x.x.x.x.",
    },
    "polka": {"kick": "X...x...X...x...", "snare": "..X...X...X...X.", "hat": "x.x.x.x.x.x.x.x."},
    "double kick": {
        "kick": "xxxxxxxxxxxxxxxx",
        "snare": "....X.......X...",
        "ride": "X...x...X...x...",
    },
    "shuffle": {"kick": "X.......x.......", "snare": "....X.......X...", "hat": "x.o.x.o.x.o.x.o."},
    "train": {"kick": "X.......x.......", "snare": "o.oox.oxo.oox.ox"},
    "shaker": {"shaker": "x.o.x.o.x.o.x.o.", "kick": "x.......o......."},
    "ride": {
        "ride": "x...X.x.x...X.x.",
        "pedal": "....x.......x...",
        "kick": "o.......o.......",
        "snare": "......o.......o.",
    },
    "backbeat": {
        "kick": "X..x....x.x.....",
        "snare": "....X..o....X..o",
        "hat": "x.o.x.o.x.o.x.oo",
    },
    "funk": {"kick": "X..x......x..x..", "snare": "....X..o.o..X..o", "hat": "xoxoxoxoxoxoxoxo"},
    "one drop": {
        "kick": "........X.......",
        "snare": "........x.....o.",
        "hat": "x.o.x.o.x.o.x.oo",
    },
    "boom bap": {
        "kick": "X..x......x.....",
        "snare": "....X.......X...",
        "hat": "x.x.x.xox.x.x.x.",
    },
    "trap": {"kick": "X......x..x.....", "clap": "........X.......", "hat": "x.xxx.x.x.xoxoxx"},
    "house": {
        "kick": "X...X...X...X...",
        "clap": "....X.......X...",
        "open": "..x...x...x...x.",
        "hat": "o.o.o.o.o.o.o.oo",
    },
    "techno": {
        "kick": "X...X...X...X...",
        "open": "..x...x...x...x.",
        "hat": "xoxoxoxoxoxoxoxo",
        "clap": "............x...",
    },
    "sparse": {"kick": "x...............", "shaker": "....o.......o..."},
}


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
