"""Features of a file over time."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoding import Sound, decode_windows, quoted
from harmonium.audio.extraction import FileProgress
from harmonium.audio.extractors import Extractor, extractor_key
from harmonium.audio.windows import SpreadWindows, Window
from harmonium.errors import AudioError, DataError
from harmonium.files import PathLike, atomic_file

PLACES = 30  # the most windows of a file to hear over time


class FeaturesOverTime(NamedTuple):
    """Features of n windows of a file, which do not overlap."""

    seconds: Floats  # (n, 2) where they begin and end
    features: Floats  # (n, n_features)


def features_over_time(
    path: Sound,
    extractor: Extractor,
    *,
    cache: PathLike,
    key: str = "",
    progress: FileProgress | None = None,
) -> FeaturesOverTime:
    """Features of windows in the middle of equal parts of a file, at most `PLACES`.

    They are kept in the folder ``cache``, by the ``key`` of the sound if there is one. Raises an
    AudioError if the file has none.
    """
    cached = Path(cache) / "over-time" / f"{key}-{PLACES}-{extractor_key(extractor)[-12:]}.npy"
    with suppress(OSError, ValueError, EOFError):  # missing or damaged
        table = np.load(cached)
        if table.shape[1:] == (2 + len(extractor.feature_names),):
            return FeaturesOverTime(seconds=table[:, :2], features=table[:, 2:])
    table = _heard(path, extractor, progress)
    if key.isalnum():  # without a key, the file's sound is unknown
        with suppress(OSError):  # perhaps the disk is full; then it is heard again
            cached.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(cached) as file:
                np.save(file, table)
    return FeaturesOverTime(seconds=table[:, :2], features=table[:, 2:])


def _heard(path: Sound, extractor: Extractor, progress: FileProgress | None) -> Floats:
    """(n, 2 + n_features): where each window begins and ends, and its features."""
    n_samples = round(extractor.seconds * extractor.rate)
    spread = SpreadWindows(1, n_samples)
    if isinstance(extractor.windows, SpreadWindows):
        spread = extractor.windows
    windows: list[Window] = []

    def plan(length: int | None, start: int | None) -> list[Window]:
        count = PLACES
        if length is not None:
            count = min(PLACES, max(1, length // n_samples))
        windows[:] = replace(spread, count=count)(length, start)
        return windows

    clips = decode_windows(path, plan, rate=extractor.rate)
    rows: list[list[float]] = []
    for window, clip in zip(windows, clips, strict=True):
        try:
            features = extractor(clip, extractor.rate)
        except DataError as error:
            raise AudioError(f"{quoted(path)} has no features: {error}") from error.__cause__
        rows.append([window.first / extractor.rate, window.end / extractor.rate, *features])
        if progress:
            progress(len(rows), len(clips))
    return np.array(rows, np.float32)
