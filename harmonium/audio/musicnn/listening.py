"""How musicnn listens: its spectrum, its patches, and what a window of sound becomes.

The samples are at 16 kHz. A frame lies about every 256th sample, from the first on, so that the
first and the last reach half a frame out of the sound, where it is silent.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.musicnn.tag_names import MSD_TAGS, MTT_TAGS
from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.spectrum import mel_spectrogram
from harmonium.audio.windows import Window
from harmonium.errors import DataError

Floats = NDArray[np.float32]

RATE, FRAME, HOP, BANDS = 16_000, 512, 256, 96
PATCH_FRAMES = 187
PATCH_SECONDS = (FRAME + (PATCH_FRAMES - 1) * HOP) / RATE
N_HIDDEN = 200
"""Length of the last hidden layer of each network."""
SPECTRUM = FeatureParameters(
    rate=RATE,
    frame_length=FRAME,
    hop_length=HOP,
    n_mels=BANDS,
    lowest_hz=0.0,
    highest_hz=RATE / 2,
)

FEATURE_NAMES = tuple(f"{name} {k}" for name in ("MSD", "MTT") for k in range(N_HIDDEN))
HEAD_NAMES = (*(f"MSD {tag}" for tag in MSD_TAGS), *(f"MTT {tag}" for tag in MTT_TAGS))


@dataclass(frozen=True)
class Patches:
    """The windows of at most so many patches: of the contiguous ones of a sound all, or as many,
    evenly spaced from the first to the last. A sound that is shorter than a patch is one window.
    """

    most: int = 10

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """A plan of `harmonium.audio.windows`. Where the length is not known, the first ones."""
        begin = start or 0
        n_frames = self.most * PATCH_FRAMES if length is None else 1 + (length - begin) // HOP
        n_patches = n_frames // PATCH_FRAMES
        if n_patches == 0:
            return [_window(begin, 0, n_frames)]
        chosen = np.linspace(0, n_patches - 1, min(n_patches, self.most)).round().astype(int)
        return [_window(begin, PATCH_FRAMES * k, PATCH_FRAMES) for k in chosen.tolist()]


def _window(begin: int, first: int, n_frames: int) -> Window:
    """The samples of frames from the ``first`` on."""
    start = begin + first * HOP - FRAME // 2
    return Window(start, start + (n_frames - 1) * HOP + FRAME)


def log_mel_patches(samples: Floats) -> Floats:
    """log₁₀(1 + 10⁴ mel) of the frames within the samples, (n_patches, PATCH_FRAMES, BANDS).

    What is shorter than a patch is repeated to fill one; what is left behind the last is left out.
    """
    if len(samples) < FRAME:
        raise DataError(f"musicnn needs at least {FRAME} samples at {RATE} Hz, got {len(samples)}.")
    frames = np.log10(1 + 10_000 * mel_spectrogram(samples, SPECTRUM))
    if len(frames) < PATCH_FRAMES:
        frames = np.resize(frames, (PATCH_FRAMES, BANDS))
    n_patches = len(frames) // PATCH_FRAMES
    return frames[: n_patches * PATCH_FRAMES].reshape(n_patches, PATCH_FRAMES, BANDS)


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Keeps the products of matrices to one thread.

    They are so small that two threads gain little on an idle machine; on a busy one, where each
    waits for the other, they take several times as long.
    """
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def listen(samples: Floats, rate: int) -> Floats:
    """The mean over patches of both networks' last hidden layers, then of their probabilities.

    (n,) → (400 + 100,)
    """
    if rate != RATE:
        raise DataError(f"musicnn needs {RATE} samples per second, got {rate}.")
    from harmonium.audio.musicnn.weights import load_networks

    patches = log_mel_patches(samples)
    with _blas().limit(limits=1):
        found = [[network(patch) for patch in patches] for network in load_networks()]
    hidden = [np.mean([one.hidden for one in of_network], axis=0) for of_network in found]
    heads = [np.mean([one.probabilities for one in of_network], axis=0) for of_network in found]
    return np.concatenate([*hidden, *heads])
