"""A music file → the samples of a window of it.

Only the window is decoded: a seek finds it, however long the file is. `DECODERS` are asked in turn:
libsndfile is the faster where it knows the format, and FFmpeg reads the rest.
"""

import os
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from math import ceil, gcd, isfinite
from typing import BinaryIO, ClassVar, TypeVar

import numpy as np
import soxr
from numpy.typing import NDArray

from harmonium.audio.decoder import CannotDecode, Decoder
from harmonium.errors import AudioError, DataError

Found = TypeVar("Found")

DECODING_VERSION = 1
"""To be raised whenever the same file gives other samples than before."""

# Hz that a file may claim; music has 8,000 to 192,000, and more is a damaged header.
LOWEST_RATE, HIGHEST_RATE = 1_000, 1_000_000

# Seconds of sound on either side of the window that its first and last samples are made from.
MARGIN = 0.02


@dataclass(frozen=True)
class Clip:
    """A window of a file's sound."""

    samples: NDArray[np.float32]
    """(n,), one channel, full scale 1; fewer than asked for where the file ends."""
    rate: int
    """Samples per second."""
    start: float
    """Seconds into the file."""
    duration: float | None
    """Seconds that the whole file lasts; None where only decoding all of it would tell."""
    decoder: str
    """``"libsndfile"`` or ``"ffmpeg"``; ``"none"`` where there was no file."""


def decode(
    path: str | os.PathLike[str],
    *,
    rate: int = 22_050,
    seconds: float = 10.0,
    start: float | None = None,
) -> Clip:
    """A window of a file, as the mean of its channels, resampled.

    Parameters
    ----------
    path : WAV, FLAC, MP3, Ogg Vorbis, Opus, M4A/AAC, AIFF, AU, or nearly any other sound or film
    rate : samples per second wanted
    seconds : length of the window; a shorter file gives what it has
    start : seconds into the file; the middle window by default

    Raises
    ------
    AudioError
        for a file that is not there, may not be read, is no sound, or is damaged
    """
    check_window(rate, seconds, start)
    return with_decoder(path, lambda source: _clip(source, rate, seconds, start))


def with_decoder(path: str | os.PathLike[str], use: Callable[[Decoder], Found]) -> Found:
    """What ``use`` finds in the sound of a file, by the first decoder that can; or AudioError."""
    refusals: dict[str, str] = {}
    with _open(path) as file:
        for name, decoder in DECODERS.items():
            try:
                with closing(decoder(file)) as source:
                    return use(source)
            except CannotDecode as refusal:
                refusals[name] = str(refusal)
            except OSError as error:
                raise AudioError(f"{quoted(path)} cannot be read: {error.strerror}.") from None
    raise AudioError(f"{quoted(path)} cannot be decoded: {_reasons(refusals)}.")


def _reasons(refusals: dict[str, str]) -> str:
    """What the decoders say; once, if they agree."""
    if len(set(refusals.values())) == 1:
        return next(iter(refusals.values()))
    return "; ".join(f"{reason} ({name})" for name, reason in refusals.items())


def clip_of_samples(
    samples: NDArray[np.float32],
    samples_rate: int,
    *,
    rate: int = 22_050,
    seconds: float = 10.0,
    start: float | None = None,
) -> Clip:
    """The window that `decode` would give of a file with these samples, (n,) of one channel."""
    check_window(rate, seconds, start)
    try:
        return _clip(SamplesInMemory(samples, samples_rate), rate, seconds, start)
    except CannotDecode as refusal:
        raise DataError(f"The samples have no such window: {refusal}.") from None


class SamplesInMemory:
    """Samples that are at hand already, one channel: a source like a file."""

    name: ClassVar[str] = "none"

    def __init__(self, samples: NDArray[np.float32], rate: int) -> None:
        self._samples = samples
        self.rate = rate
        self.n_frames: int | None = len(samples)

    def read(self, start: int, count: int) -> NDArray[np.float32]:
        """(≤ count,) from sample ``start`` on."""
        return self._samples[start : start + count]

    def close(self) -> None:
        """Nothing is open."""


def quoted(path: str | os.PathLike[str]) -> str:
    """The name as it can stand in a message: on one line, whatever is in it."""
    return repr(os.fsdecode(path))


def _libsndfile(file: BinaryIO) -> Decoder:
    from harmonium.audio.libsndfile import Sndfile

    return Sndfile(file)


def _ffmpeg(file: BinaryIO) -> Decoder:
    from harmonium.audio.ffmpeg import FFmpeg  # a tenth of a second, and seldom needed

    return FFmpeg(file)


DECODERS: dict[str, Callable[[BinaryIO], Decoder]] = {"libsndfile": _libsndfile, "ffmpeg": _ffmpeg}
"""In the order in which they are tried."""


def check_window(rate: int, seconds: float, start: float | None) -> None:
    """Refuse a window that no sound could have."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE or rate != int(rate):
        raise DataError(
            f"'rate' must be a whole number from {LOWEST_RATE} to {HIGHEST_RATE}, got {rate!r}."
        )
    if not isfinite(seconds) or seconds <= 0:
        raise DataError(f"'seconds' must be a positive number, got {seconds!r}.")
    if start is not None and not (isfinite(start) and start >= 0):
        raise DataError(
            f"'start' must be a number of seconds, at least 0, or None for the middle of the "
            f"file, got {start!r}."
        )


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open; AudioError where that is not a file of bytes that may be read."""
    # Not blocking: opening a FIFO otherwise waits for a writer, for ever if there is none.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise AudioError(f"{quoted(path)} cannot be opened: {reason}.") from None
    problem = _problem(os.fstat(descriptor))
    if problem:
        os.close(descriptor)
        raise AudioError(f"{quoted(path)} {problem}.")
    return os.fdopen(descriptor, "rb", buffering=0)


def _problem(status: os.stat_result) -> str | None:
    """Why that is no music file, if the file system can tell."""
    if stat.S_ISDIR(status.st_mode):
        return "is a folder, not a music file"
    if not stat.S_ISREG(status.st_mode):
        return "is a device or a pipe, not a music file"
    return "is empty" if status.st_size == 0 else None


def _clip(source: Decoder, rate: int, seconds: float, start: float | None) -> Clip:
    """The window from frame `first` on, read with a margin so that its ends are not cut into.

    The margin is a whole number of samples at both rates: the window begins on a sample.
    """
    n_samples = round(seconds * rate)
    n_frames = ceil(n_samples * source.rate / rate)
    unit, unit_out, units = resampling_units(source, rate)
    first = _first_frame(source, n_frames, start)
    frames = read_frames(source, first, n_frames, units * unit)
    while frames is None and start is None and first > 0:
        # The file is truncated, or its length is an estimate: try nearer to the beginning.
        first //= 2
        frames = read_frames(source, first, n_frames, units * unit)
    if frames is None:
        said = "" if source.n_frames is None else f" of {source.n_frames / source.rate:.1f} s"
        raise CannotDecode(f"there is no sound from {first / source.rate:.1f} s on{said}")
    if units:
        frames = soxr.resample(frames, source.rate, rate)
    samples = np.ascontiguousarray(frames[units * unit_out :][:n_samples])
    duration = None if source.n_frames is None else source.n_frames / source.rate
    return Clip(samples, rate, first / source.rate, duration, source.name)


def resampling_units(source: Decoder, rate: int) -> tuple[int, int, int]:
    """So many frames are so many samples, both whole; and how many such units make a margin."""
    if not LOWEST_RATE <= source.rate <= HIGHEST_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    common = gcd(source.rate, rate)
    unit, unit_out = source.rate // common, rate // common
    return unit, unit_out, 0 if unit == unit_out else ceil(MARGIN * source.rate / unit)


def _first_frame(source: Decoder, n_frames: int, start: float | None) -> int:
    if start is None:
        return max(0, ((source.n_frames or 0) - n_frames) // 2)
    first = round(start * source.rate)
    if source.n_frames is not None and first >= source.n_frames:
        raise CannotDecode(
            f"it lasts {source.n_frames / source.rate:.3f} s, and the window should begin at "
            f"{start:g} s"
        )
    return first


def read_frames(source: Decoder, first: int, count: int, margin: int) -> NDArray[np.float32] | None:
    """``count`` frames and a margin on either side, silent where it would lie before the file.

    (margin + at most count + margin,), or None where the file has ended before.
    """
    begin = max(0, first - margin)
    frames = source.read(begin, first + count + margin - begin)
    if len(frames) <= first - begin:
        return None
    wrong = np.flatnonzero(~np.isfinite(frames))
    if len(wrong):
        at = (begin + int(wrong[0])) / source.rate
        raise CannotDecode(f"its sample at {at:.3f} s is {frames[wrong[0]]}")
    return np.pad(frames, (margin - first, 0)) if begin == 0 and margin > first else frames
