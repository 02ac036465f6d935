"""Several windows of a sound, each decoded by seeking; those that touch are decoded together.

A plan says where the windows lie. It is asked with the length of the sound that the file claims,
and again with the true one where the file ends before: it is truncated, or its length an estimate.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from harmonium.audio.clip import (
    SamplesInMemory,
    check_window,
    read_frames,
    resampling_units,
    with_decoder,
)
from harmonium.audio.decoder import CannotDecode, Decoder
from harmonium.errors import DataError

Samples = NDArray[np.float32]

ROUNDING = 2
"""Samples by which the resampler may give fewer than the length of the file lets expect."""


class Window(NamedTuple):
    """Samples ``first`` to before ``end`` of a sound; what lies outside of the sound is silent."""

    first: int
    end: int


Plan = Callable[[int | None, int | None], Sequence[Window]]
"""(samples of the sound, or None where nobody knows; sample to begin at, or None for the plan's own
choice) → windows, at least one. Sent to other processes: a function of a module, or a dataclass."""


@dataclass(frozen=True)
class SpreadWindows:
    """So many windows of one length, their middles in the middles of as many equal parts.

    In a sound that is too short for that they overlap; one that is shorter than a window is heard
    once, as a whole.
    """

    count: int
    n_samples: int
    whole: bool = False
    """Whether a shorter sound is filled up with silence to a whole window."""

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """The plan. From a given start there is one; of an unknown length, the first ones."""
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
        return Window(first, end if length is None or self.whole else min(end, length))


def decode_windows(
    path: str | os.PathLike[str], plan: Plan, *, rate: int, start: float | None = None
) -> list[Samples]:
    """The windows of a file that a plan chooses, (n,) each, as the mean of its channels.

    Raises
    ------
    AudioError
        as `harmonium.audio.decode` does
    """
    check_window(rate, 1.0, start)
    return with_decoder(path, lambda source: _windows(source, plan, rate, start))


def windows_of_samples(
    samples: Samples, samples_rate: int, plan: Plan, *, rate: int, start: float | None = None
) -> list[Samples]:
    """The windows that `decode_windows` would give of a file with these samples."""
    check_window(rate, 1.0, start)
    try:
        return _windows(SamplesInMemory(samples, samples_rate), plan, rate, start)
    except CannotDecode as refusal:
        raise DataError(f"The samples have no such window: {refusal}.") from None


def _windows(source: Decoder, plan: Plan, rate: int, start: float | None) -> list[Samples]:
    begin = None if start is None else round(start * rate)
    n_frames = source.n_frames
    length = None if n_frames is None else ceil(n_frames * rate / source.rate)
    while True:
        if length is not None and length <= (begin or 0):
            raise CannotDecode(f"there is no sound from {(begin or 0) / rate:.1f} s on")
        windows = plan(length, begin)
        found: dict[Window, Samples] = {}
        for span in _spans(windows, length):
            found[span] = _read(source, span, rate)
            missing = span.end - span.first - len(found[span])
            if missing > ROUNDING:
                length = span.end - missing
                break
        else:
            return [_cut(window, found) for window in windows]


def _spans(windows: Iterable[Window], length: int | None) -> list[Window]:
    """What is to be decoded, in order: windows within the sound, joined where they touch."""
    spans: list[Window] = []
    for window in sorted(windows):
        first, end = max(0, window.first), min(window.end, length or window.end)
        if spans and first <= spans[-1].end:
            spans[-1] = Window(spans[-1].first, max(end, spans[-1].end))
        elif first < end:
            spans.append(Window(first, end))
    return spans


def _read(source: Decoder, span: Window, rate: int) -> Samples:
    """The samples of a span, fewer where the sound ends before."""
    unit, unit_out, units = resampling_units(source, rate)
    whole = span.first // unit_out  # a frame and a sample begin together there
    count = ceil((span.end - whole * unit_out) * source.rate / rate)
    frames = read_frames(source, whole * unit, count, units * unit)
    if frames is None:
        return np.zeros(0, np.float32)
    if units:
        frames = soxr.resample(frames, source.rate, rate)
    skipped = units * unit_out + span.first - whole * unit_out
    return frames[skipped:][: span.end - span.first]


def _cut(window: Window, found: dict[Window, Samples]) -> Samples:
    """A window out of the span that it is in, with silence where there is no sound."""
    cut = np.zeros(window.end - window.first, np.float32)
    for span, samples in found.items():
        first, end = max(span.first, window.first), min(span.first + len(samples), window.end)
        if first < end:
            cut[first - window.first : end - window.first] = samples[
                first - span.first : end - span.first
            ]
    return cut
