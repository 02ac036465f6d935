"""The same sound in other files, as musicnn hears it."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.audio import extract_files
from harmonium.files import user_cache_folder

Floats = NDArray[np.float32]
Writer = Callable[[Path, Floats, int], None]
"""Writes samples (n,) of a rate to a path."""


def hear(files: Sequence[Path]) -> Floats:
    """musicnn's features, (n, 400)."""
    return extract_files(
        files, extractor="musicnn", engine="serial", cache=user_cache_folder()
    ).features


def hear_louder(files: Sequence[Path], gain: float) -> Floats:
    """The features of the same sound, louder by some decibels, without clipping."""
    return hear_written(files, pcm(gain, "FLOAT"), ".au")  # WAV would hold the time


def hear_written(files: Sequence[Path], write: Writer, ending: str) -> Floats:
    """The features of files with the same sound, as ``write`` writes it."""
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        written = [Path(folder) / f"{number}{ending}" for number in range(len(files))]
        for path, file in zip(written, files, strict=True):
            samples, rate = soundfile.read(file, dtype="float32")
            write(path, samples, rate)
        return hear(written)


def pcm(gain: float = 0.0, subtype: str = "PCM_16") -> Writer:
    """WAV or AU, by the path's ending; louder by some decibels."""
    import soundfile

    factor = np.float32(10 ** (gain / 20))
    return lambda path, samples, rate: soundfile.write(path, samples * factor, rate, subtype)


def mp3(bit_rate: int = 128_000) -> Writer:
    """MP3, mono."""
    import av

    def write(path: Path, samples: Floats, rate: int) -> None:
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libmp3lame", rate=rate, layout="mono")
            stream.bit_rate = bit_rate
            frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
            frame.sample_rate = rate
            for packet in [*stream.encode(frame), *stream.encode(None)]:
                container.mux(packet)

    return write
