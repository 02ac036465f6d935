"""What turns one file back into another: the parts they share by place, the others in full.

Changing a tag leaves nearly all of a file as it is, but moves it, and some formats then renumber
all that follows (the pages of Ogg, the chunk offsets of MP4). Comparing the bytes of both files
handles all of these alike, and needs to know nothing of any format.
"""

from typing import BinaryIO, NamedTuple

from harmonium.library.filetags.music_file import copy, read_at, size_of

WORD = 32
"""Bytes in a row that must agree for two places to be taken as the same."""
WINDOW = 1 << 18
"""Bytes before and after the present place in which a part that has moved is looked for."""
NEAR = 64
"""Bytes within which two files that differ are first expected to agree again."""
STRIDE = 1 << 16
"""Bytes that are compared at a time."""

LITERAL = -1


class Delta(NamedTuple):
    """How to write the old file from the new one."""

    steps: tuple[tuple[int, int], ...]
    """(start, length): bytes of the new file; (LITERAL, length): the next bytes of `literal`."""
    literal: bytes


def difference(old: BinaryIO, new: BinaryIO) -> Delta:
    """The delta with which `patch` writes ``old``, given ``new``."""
    n_old, n_new = size_of(old), size_of(new)
    tail = _common_tail(old, n_old, new, n_new)
    middle = _Comparison(old, n_old - tail, new, n_new - tail)
    middle.run()
    if tail:
        middle.copy(n_new - tail, tail)
    return Delta(tuple(middle.steps), bytes(middle.literal))


def patch(delta: Delta, new: BinaryIO, old: BinaryIO) -> None:
    """Write the old file; ``new`` must be what the delta was made with."""
    used = 0
    for start, length in delta.steps:
        if start == LITERAL:
            old.write(delta.literal[used : used + length])
            used += length
        else:
            copy(new, old, start, start + length)


class _Comparison:
    """A walk along the old file that finds each part of it in the new one, if it is there."""

    def __init__(self, old: BinaryIO, old_end: int, new: BinaryIO, new_end: int) -> None:
        self.old, self.old_end = old, old_end
        self.new, self.new_end = new, new_end
        self.steps: list[tuple[int, int]] = []
        self.literal = bytearray()
        self._words: dict[bytes, int] = {}
        self._centre: int | None = None

    def run(self) -> None:
        """Walk up to the ends."""
        here, there = 0, 0
        while here < self.old_end:
            same = self._common_run(here, there)
            self.copy(there, same)
            here, there = here + same, there + same
            if here < self.old_end:
                skipped, there = self._meet_again(here, there)
                self._keep(read_at(self.old, here, skipped))
                here += skipped

    def copy(self, start: int, length: int) -> None:
        """Add a step that copies from the new file."""
        if length:
            self.steps.append((start, length))

    def _keep(self, data: bytes) -> None:
        self.literal += data
        if self.steps and self.steps[-1][0] == LITERAL:
            self.steps[-1] = (LITERAL, self.steps[-1][1] + len(data))
        else:
            self.steps.append((LITERAL, len(data)))

    def _common_run(self, here: int, there: int) -> int:
        """How many bytes agree from these two places on."""
        start = here
        while True:
            a = read_at(self.old, here, min(STRIDE, self.old_end - here))
            b = read_at(self.new, there, min(STRIDE, self.new_end - there))
            same = _common_head(a, b)
            here, there = here + same, there + same
            if same < STRIDE:
                return here - start

    def _meet_again(self, here: int, there: int) -> tuple[int, int]:
        """(bytes of the old file that the new one lacks, the place in the new one after them)."""
        ahead = read_at(self.old, here, min(NEAR + WORD, self.old_end - here))
        beside = read_at(self.new, there, min(NEAR + WORD, self.new_end - there))
        for k in range(1, min(len(ahead), len(beside)) - WORD + 1):
            if ahead[k : k + WORD] == beside[k : k + WORD]:
                return k, there + k
        ahead = read_at(self.old, here, min(WINDOW, self.old_end - here))
        words = self._words_around(there)
        for k in range(len(ahead) - WORD + 1):
            found = words.get(ahead[k : k + WORD])
            if found is not None:
                return k, found
        return len(ahead), there

    def _words_around(self, there: int) -> dict[bytes, int]:
        """Where each word in the neighbourhood of a place is; read anew only far from there."""
        if self._centre is None or abs(there - self._centre) > WINDOW // 2:
            first = max(0, there - WINDOW)
            around = read_at(self.new, first, min(there + WINDOW, self.new_end) - first)
            self._words, self._centre = _words(around, first), there
        return self._words


def _words(data: bytes, first: int) -> dict[bytes, int]:
    """Each word at a multiple of its length → where it is in the file; data begin at first."""
    words: dict[bytes, int] = {}
    for start in range(0, len(data) - WORD + 1, WORD):
        word = data[start : start + WORD]
        # Padding is everywhere and tells no place; it costs nothing once compressed.
        if word.count(word[0]) < WORD:
            words.setdefault(word, first + start)
    return words


def _common_head(a: bytes, b: bytes) -> int:
    """How many bytes agree at the beginning, by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_tail(old: BinaryIO, n_old: int, new: BinaryIO, n_new: int) -> int:
    """How many bytes agree at the end."""
    most = min(n_old, n_new)
    same = 0
    while same < most:
        step = min(STRIDE, most - same)
        a = read_at(old, n_old - same - step, step)
        b = read_at(new, n_new - same - step, step)
        common = _common_head(a[::-1], b[::-1])
        same += common
        if common < step:
            break
    return same
