"""Decoding windows of a file's sound.

Only the windows are decoded: a seek finds them, however long the file is. libsndfile is tried
first, as it is faster for the formats it knows. FFmpeg reads the rest.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from math import ceil, gcd, isfinite
from typing import Any, BinaryIO, TypeVar

import numpy as np
import soxr

from harmonium.arrays import Floats
from harmonium.audio.decoder import CannotDecode, Decoder
from harmonium.audio.libsndfile import Sndfile
from harmonium.audio.windows import Plan, Window, cut, spans
from harmonium.errors import AudioError, DataError
from harmonium.files import PathLike, open_file

Result = TypeVar("Result")
Sound = PathLike | BinaryIO  # a file by its path, or one that is open for reading bytes

DECODING_VERSION = 1  # raise it whenever the same file gives other samples than before

MIN_RATE = 1_000  # Hz; if a file claims other rates, its header is damaged
MAX_RATE = 1_000_000
MARGIN = 0.02  # seconds on either side of a window, which its first and last samples need
ROUNDING = 2  # how many samples fewer the resampler may give than the file's length suggests


@dataclass(frozen=True, kw_only=True)
class Clip:
    """A window of a file's sound."""

    samples: Floats  # (n,), one channel, full scale 1; fewer than asked for if the file ends
    rate: int  # samples per second
    start: float  # seconds into the file
    duration: float | None  # seconds of the whole file; None if only decoding all of it would tell
    decoder: str  # "libsndfile" or "ffmpeg"


def decode(
    path: PathLike,
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

    Raises an AudioError for a file that is missing, unreadable, damaged or not sound.
    """
    _check_window(rate, seconds, start)
    return with_decoder(path, lambda source: _clip(source, rate, seconds, start))


def decode_windows(
    sound: Sound | tuple[Floats, int],
    plan: Plan | None,
    *,
    rate: int,
    seconds: float = 10.0,
    start: float | None = None,
) -> list[Floats]:
    """The windows of a file that a plan chooses, (n,) each; without a plan, as in `decode`.

    Instead of a file, samples and their rate may be given. The plan gets the length that the file
    claims, and then the true length if the file ends earlier because it is truncated or its length
    is an estimate.
    """
    _check_window(rate, seconds, start)

    def windows(source: Decoder) -> list[Floats]:
        if plan is None:
            return [_clip(source, rate, seconds, start).samples]
        return _planned_windows(source, plan, rate, start)

    if not isinstance(sound, tuple):
        return with_decoder(sound, windows)
    try:
        return windows(_Samples(*sound))
    except CannotDecode as refusal:
        raise DataError(f"The samples have no such window: {refusal}.") from None


class _Samples:
    """Samples that are decoded already."""

    name = "none"

    def __init__(self, samples: Floats, rate: int) -> None:
        self.samples = samples
        self.rate = rate
        self.n_frames: int | None = len(samples)

    def read(self, start: int, count: int) -> Floats:
        return self.samples[start : start + count]

    def close(self) -> None:
        pass


# Files


def decoders() -> Iterator[type[Decoder]]:
    """The decoders in the order in which they are tried."""
    yield Sndfile
    from harmonium.audio.ffmpeg import FFmpeg  # takes a tenth of a second, and is rarely needed

    yield FFmpeg


def with_decoder(path: Sound, use: Callable[[Decoder], Result]) -> Result:
    """The result of ``use`` on a file's sound, with the first decoder that works; or AudioError."""
    reasons: dict[str, str] = {}
    with _open(path) as file:
        for decoder in decoders():
            try:
                with closing(decoder(file)) as source:
                    return use(source)
            except CannotDecode as refusal:
                reasons[decoder.name] = str(refusal)
            except OSError as error:
                raise AudioError(f"{quoted(path)} cannot be read: {error.strerror}.") from None
    if len(set(reasons.values())) == 1:
        account = next(iter(reasons.values()))
    else:
        account = "; ".join(f"{reason} ({name})" for name, reason in reasons.items())
    raise AudioError(f"{quoted(path)} cannot be decoded: {account}.")


def _open(path: Sound) -> BinaryIO:
    """The file, opened; AudioError if it is not a readable file."""
    try:
        if isinstance(path, str | os.PathLike):
            buffered: Any = open_file(path)
        else:
            buffered = os.fdopen(os.dup(path.fileno()), "rb")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise AudioError(f"{quoted(path)} cannot be opened: {reason}.") from None
    file: BinaryIO = buffered.detach()  # libsndfile reads it, too
    if os.fstat(file.fileno()).st_size:
        return file
    file.close()
    raise AudioError(f"{quoted(path)} is empty.")


def quoted(path: Sound) -> str:
    """A file's name for a message: on one line, whatever is in it."""
    return repr(os.fsdecode(path if isinstance(path, str | os.PathLike) else path.name))


# Windows


def _check_window(rate: int, seconds: float, start: float | None) -> None:
    if not MIN_RATE <= rate <= MAX_RATE or rate != int(rate):
        raise DataError(
            f"'rate' must be a whole number from {MIN_RATE} to {MAX_RATE}, got {rate!r}."
        )
    if not isfinite(seconds) or seconds <= 0:
        raise DataError(f"'seconds' must be a positive number, got {seconds!r}.")
    if start is not None and not (isfinite(start) and start >= 0):
        raise DataError(
            f"'start' must be a number of seconds, at least 0, or None for the middle of the "
            f"file, got {start!r}."
        )


def _clip(source: Decoder, rate: int, seconds: float, start: float | None) -> Clip:
    """The window of one length from ``start`` on, or in the middle."""
    n_samples = round(seconds * rate)
    n_frames = ceil(n_samples * source.rate / rate)
    duration = None if source.n_frames is None else source.n_frames / source.rate
    if start is None:
        first = max(0, ((source.n_frames or 0) - n_frames) // 2)
    else:
        first = round(start * source.rate)
        if source.n_frames is not None and first >= source.n_frames:
            raise CannotDecode(
                f"it lasts {duration:.3f} s, and the window should begin at {start:g} s"
            )
    samples = _read(source, first, n_frames, rate)
    while samples is None and start is None and first > 0:
        # The file is truncated, or its length is an estimate: try closer to the beginning.
        first //= 2
        samples = _read(source, first, n_frames, rate)
    if samples is None:
        of_duration = "" if duration is None else f" of {duration:.1f} s"
        raise CannotDecode(f"there is no sound from {first / source.rate:.1f} s on{of_duration}")
    return Clip(
        samples=np.ascontiguousarray(samples[:n_samples]),
        rate=rate,
        start=first / source.rate,
        duration=duration,
        decoder=source.name,
    )


def _planned_windows(source: Decoder, plan: Plan, rate: int, start: float | None) -> list[Floats]:
    """A plan's windows; those that touch are decoded together."""
    first = None if start is None else round(start * rate)
    length = None if source.n_frames is None else ceil(source.n_frames * rate / source.rate)
    while True:
        if length is not None and length <= (first or 0):
            raise CannotDecode(f"there is no sound from {(first or 0) / rate:.1f} s on")
        windows = plan(length, first)
        pieces: dict[int, Floats] = {}
        true_length = None
        for span in spans(windows, length):
            samples = _read_span(source, span, rate)
            pieces[span.first] = samples
            n_missing = span.end - span.first - len(samples)
            if n_missing > ROUNDING:
                true_length = span.end - n_missing
                break
        if true_length is None:
            return [cut(pieces.items(), window) for window in windows]
        length = true_length


def _read_span(source: Decoder, span: Window, rate: int) -> Floats:
    """The samples of a span, fewer if the sound ends earlier."""
    unit = _unit(source, rate)
    n_units = span.first // unit.samples  # a frame and a sample start together there
    first_sample = n_units * unit.samples
    n_frames = ceil((span.end - first_sample) * source.rate / rate)
    samples = _read(source, n_units * unit.frames, n_frames, rate)
    if samples is None:
        return np.zeros(0, np.float32)
    return samples[span.first - first_sample :][: span.end - span.first]


@dataclass(frozen=True)
class _Unit:
    """The smallest whole numbers of frames and of samples with the same duration."""

    frames: int
    samples: int


def _unit(source: Decoder, rate: int) -> _Unit:
    if not MIN_RATE <= source.rate <= MAX_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    common = gcd(source.rate, rate)
    return _Unit(frames=source.rate // common, samples=rate // common)


def _read(source: Decoder, first: int, count: int, rate: int) -> Floats | None:
    """The samples of ``count`` frames from ``first`` on, and of a margin after them.

    Resampling needs a margin on both sides, silent if it lies before the file: a whole number of
    samples at both rates, so that the window begins on a sample. None if the file has ended.
    """
    unit = _unit(source, rate)
    is_resampled = unit.frames != unit.samples
    n_units = ceil(MARGIN * source.rate / unit.frames) if is_resampled else 0
    margin = n_units * unit.frames
    begin = max(0, first - margin)
    frames = source.read(begin, first + count + margin - begin)
    if len(frames) <= first - begin:
        return None
    not_finite = np.flatnonzero(~np.isfinite(frames))
    if len(not_finite):
        place = int(not_finite[0])
        seconds = (begin + place) / source.rate
        raise CannotDecode(f"its sample at {seconds:.3f} s is {frames[place]}")
    if not is_resampled:
        return frames
    padded = np.pad(frames, (max(0, margin - first), 0))
    return soxr.resample(padded, source.rate, rate)[n_units * unit.samples :]
