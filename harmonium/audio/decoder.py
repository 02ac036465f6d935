"""What `harmonium.audio.clip` asks of a decoder."""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray


class Decoder(Protocol):
    """An open file's sound."""

    name: ClassVar[str]
    rate: int
    """Frames per second."""
    n_frames: int | None
    """Frames of the whole file; None where only decoding all of it would tell."""

    def read(self, start: int, count: int) -> NDArray[np.float32]:
        """The mean of the channels from frame ``start`` on, (≤ count,).

        Fewer than ``count`` where the file ends.
        """

    def close(self) -> None:
        """Free the decoder; the file stays open."""


class CannotDecode(Exception):
    """A decoder does not know the format, or meets damage that it cannot pass."""


def mean_of_channels(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, n_channels) → (n,)"""
    # By columns: over an axis as short as this one, NumPy's mean takes ten times as long.
    total = frames[:, 0].copy()
    with np.errstate(all="ignore"):  # infinite samples are reported later, with their place
        for channel in range(1, frames.shape[1]):
            total += frames[:, channel]
        if frames.shape[1] > 1:
            total *= np.float32(1 / frames.shape[1])
    return total
