"""How far the model's answers move if the same sound comes in another file.

They should not. Emotify's clips are rewritten as WAV, as MP3 and 10 dB softer, and heard again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from builtin_model.other_files import Floats, hear, hear_written, mp3, pcm
from harmonium.data.datasets import load

STEP = 10
"""One clip in this many; none that the volume was learnt from."""


def measure_robustness(
    probabilities: Callable[[Floats], Floats],
    thresholds: Floats,
    folder: str | Path | None = None,
) -> list[dict[str, Any]]:
    """For each kind of file, how far the probabilities are from the original clips'.

    Parameters
    ----------
    probabilities : features (n, 400) → (n, C)
    thresholds : (C,) from which on a clip is said to have a tag
    """
    files = [Path(path) for path in load("emotify", folder).audio or []]
    return compare(files[::STEP], probabilities, thresholds)


def compare(
    files: Sequence[Path], probabilities: Callable[[Floats], Floats], thresholds: Floats
) -> list[dict[str, Any]]:
    """As `measure_robustness`, of these clips."""
    before, found = probabilities(hear(files)), []
    said = before >= thresholds
    for name, ending, write in (
        ("WAV, 16 bit", ".wav", pcm()),
        ("MP3, 128 kbit/s", ".mp3", mp3()),
        ("10 dB softer", ".wav", pcm(-10.0)),
    ):
        after = probabilities(hear_written(files, write, ending))
        moved = np.abs(after - before)
        found.append(
            {
                "file": name,
                "median": float(np.median(moved)),
                "most": float(np.quantile(moved, 0.99)),
                "kept": float((said & (after >= thresholds)).sum() / max(1, said.sum())),
            }
        )
    return found
