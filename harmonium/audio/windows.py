"""Windows of a sound: which samples to hear."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Floats


class Window(NamedTuple):
    """Samples ``first`` to before ``end``; those outside the sound are silent."""

    first: int
    end: int


Plan = Callable[[int | None, int | None], Sequence[Window]]
"""(samples of the sound or None if unknown, first sample or None for the plan's choice) → at
least one window. Plans are sent to other processes: use a function of a module, or a dataclass."""


@dataclass(frozen=True)
class SpreadWindows:
    """Windows of one length, centred in equal parts of the sound; in a short one they overlap."""

    count: int
    n_samples: int
    whole: bool = False  # whether a shorter sound is padded with silence to a whole window

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """The plan: one window from a given start on; the first ones of an unknown length."""
        if start is not None:
            return [self._window(start, length)]
        if length is None:
            return [self._window(k * self.n_samples, None) for k in range(self.count)]
        last = max(0, length - self.n_samples)
        middles = (np.arange(self.count) + 0.5) * length / self.count
        firsts = np.clip(np.floor(middles - self.n_samples / 2), 0, last).astype(int)
        return [self._window(first, length) for first in dict.fromkeys(firsts.tolist())]

    def _window(self, first: int, length: int | None) -> Window:
        end = first + self.n_samples
        if length is None or self.whole:
            return Window(first, end)
        return Window(first, min(end, length))


def spans(windows: Iterable[Window], length: int | None) -> list[Window]:
    """What to decode, in order: windows within the sound, joined if they touch."""
    joined: list[Window] = []
    for window in sorted(windows):
        first = max(0, window.first)
        end = min(window.end, length or window.end)
        if joined and first <= joined[-1].end:
            joined[-1] = Window(joined[-1].first, max(end, joined[-1].end))
        elif first < end:
            joined.append(Window(first, end))
    return joined


def cut(pieces: Iterable[tuple[int, Floats]], window: Window) -> Floats:
    """A window cut from pieces, each with its place; silence where there is no sound."""
    samples = np.zeros(max(0, window.end - window.first), np.float32)
    for place, piece in pieces:
        skipped = max(0, window.first - place)
        part = piece[skipped : max(skipped, window.end - place)]
        samples[place + skipped - window.first :][: len(part)] = part
    return samples
