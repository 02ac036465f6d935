"""What a decoder is: a sound file that is open, and can be read from any frame on."""

from typing import BinaryIO, Protocol

import numpy as np

from harmonium.arrays import Floats


class CannotDecode(Exception):
    """A decoder does not know the format, or finds damage that it cannot skip."""


class Decoder(Protocol):
    """A sound that can be read from any frame on."""

    name: str
    rate: int  # frames per second
    n_frames: int | None  # None if only decoding all of it would tell

    def __init__(self, file: BinaryIO) -> None: ...

    def read(self, start: int, count: int) -> Floats:
        """The mean of the channels from frame ``start`` on, (≤ count,); fewer at the end."""

    def close(self) -> None:
        """Free the decoder; the file stays open."""


def mean_of_channels(frames: Floats) -> Floats:
    """(n, n_channels) → (n,)"""
    # By columns: over such a short axis, NumPy's mean takes ten times as long.
    total = frames[:, 0].copy()
    with np.errstate(all="ignore"):  # infinite samples are reported later, with their place
        for channel in range(1, frames.shape[1]):
            total += frames[:, channel]
        if frames.shape[1] > 1:
            total *= np.float32(1 / frames.shape[1])
    return total
