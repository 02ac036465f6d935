"""Finding music files in folders, and decoding windows of their sound.

Only the windows are decoded: a seek finds them, however long the file is. libsndfile is tried
first, as it is faster for the formats it knows: WAV, AIFF, AU, FLAC, MP3, Ogg Vorbis, most Opus.
FFmpeg reads the rest.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import ceil, gcd, isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, TypeVar

import numpy as np
import soxr

from harmonium.arrays import Floats
from harmonium.errors import AudioError, DataError
from harmonium.files import PathLike, open_file

if TYPE_CHECKING:
    from harmonium.audio.ffmpeg import FFmpeg

Decoder: TypeAlias = "Sndfile | FFmpeg"
Found = TypeVar("Found")
Sound = PathLike | BinaryIO  # a file by its path, or one that is open for reading bytes

EXTENSIONS = frozenset(  # endings of the files to take from folders, in lower case
    {
        *(".wav", ".wave", ".bwf", ".w64", ".rf64", ".aif", ".aiff", ".aifc", ".au", ".snd"),
        *(".flac", ".mp3", ".mp2", ".ogg", ".oga", ".opus", ".m4a", ".m4b", ".aac", ".caf"),
        *(".alac", ".ape", ".wv", ".wma", ".mka", ".tta", ".ac3", ".dsf"),
    }
)

MAX_LOOKED = 5000  # files to look at when counting the music in listed folders
DECODING_VERSION = 1  # raise it whenever the same file gives other samples than before

MIN_RATE, MAX_RATE = 1_000, 1_000_000  # Hz; if a file claims other rates, its header is damaged
MARGIN = 0.02  # seconds on either side of a window, which its first and last samples need
ROUNDING = 2  # how many samples fewer the resampler may give than the file's length suggests
BLOCK = 2**18
"""Numbers decoded at a time, so that many channels need no more memory than one. After each block
soundfile seeks to where it is anyway, for which MP3 decodes some frames again: not too few."""
UNKNOWN_LENGTH = 2**63 - 1  # what libsndfile gives for a length that it does not know


@dataclass(frozen=True)
class Clip:
    """A window of a file's sound."""

    samples: Floats  # (n,), one channel, full scale 1; fewer than asked for if the file ends
    rate: int  # samples per second
    start: float  # seconds into the file
    duration: float | None  # seconds of the whole file; None if only decoding all of it would tell
    decoder: str  # "libsndfile" or "ffmpeg"


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
        return Window(first, end if length is None or self.whole else min(end, length))


def find_audio(paths: Iterable[PathLike]) -> tuple[list[str], dict[str, str], list[str]]:
    """The named files, of any kind, and the music files in the named folders.

    Folders are searched with all their subfolders, in order of name, and links are followed; each
    folder and file counts once. Hidden ones are left out, such as macOS's "._" files. Returns the
    files, the folders that could not be listed with the reasons, and the hidden folders.
    """
    files: dict[str, None] = {}
    unreadable: dict[str, str] = {}
    hidden: list[str] = []
    searched: set[tuple[int, int]] = set()
    waiting = [os.fspath(path) for path in paths][::-1]  # not by recursion: folders may be deep
    while waiting:
        path = waiting.pop()
        if not os.path.isdir(path):  # noqa: PTH112
            files[path] = None
            continue
        try:
            status = os.stat(path)  # noqa: PTH116
            if (folder := (status.st_dev, status.st_ino)) in searched:
                continue
            searched.add(folder)
            with os.scandir(path) as listing:
                found = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            unreadable[path] = f"cannot be listed: {error.strerror or error}."
            continue
        hidden += [one.path for one in found if is_hidden(one.name) and one.is_dir()]
        for one in reversed([one for one in found if not is_hidden(one.name)]):
            if one.is_dir() or os.path.splitext(one.name)[1].lower() in EXTENSIONS:  # noqa: PTH122
                waiting.append(one.path)
    return [*files], unreadable, hidden


@dataclass(frozen=True)
class Folder:
    """A folder on this machine, for choosing one with music."""

    path: str
    name: str
    n_sounds: int  # music files in it and in its subfolders
    counted: bool  # whether that is all: counting stops after a while


def list_folders(path: str) -> tuple[Folder, list[Folder]]:
    """A folder, and its subfolders by name, without hidden ones; OSError if it cannot be listed."""
    with os.scandir(path) as listing:
        found = [one for one in listing if not is_hidden(one.name) and one.is_dir()]
    found.sort(key=lambda one: one.name.casefold())
    most = MAX_LOOKED // max(1, len(found))
    here = Folder(path, os.path.basename(path), *_count_sounds(path, MAX_LOOKED))  # noqa: PTH119
    return here, [Folder(one.path, one.name, *_count_sounds(one.path, most)) for one in found]


def _count_sounds(path: str, most: int) -> tuple[int, bool]:
    """How many music files a folder has, and whether looking at ``most`` files found all."""
    n = looks = 0
    for _, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not is_hidden(name)]
        ends = (os.path.splitext(name)[1].lower() for name in files if not is_hidden(name))  # noqa: PTH122
        n += sum(end in EXTENSIONS for end in ends)
        looks += 1 + len(files)
        if looks > most and folders:
            return n, False
    return n, True


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is hidden: ".git" is, "...And Oceans" is not."""
    return name.startswith(".") and not name.startswith("..")


class CannotDecode(Exception):
    """A decoder does not know the format, or finds damage that it cannot skip."""


class Sndfile:
    """A file open in libsndfile."""

    name = "libsndfile"

    def __init__(self, file: BinaryIO) -> None:
        import soundfile

        os.lseek(file.fileno(), 0, os.SEEK_SET)
        with _calling_libsndfile():
            # By descriptor: any name will do, and its ending is no hint.
            self._sound = soundfile.SoundFile(file.fileno(), closefd=False)
        self.rate: int = self._sound.samplerate  # frames per second
        frames = self._sound.frames  # None if only decoding all of it would tell
        self.n_frames: int | None = frames if 0 <= frames < UNKNOWN_LENGTH else None

    def read(self, start: int, count: int) -> Floats:
        """The mean of the channels from frame ``start`` on, (≤ count,); fewer at the end."""
        channels = self._sound.channels
        block = np.empty((min(count, max(1, BLOCK // channels)), channels), np.float32)
        parts = [np.zeros(0, np.float32)]
        with _calling_libsndfile():
            self._sound.seek(start)
            while count > 0:
                frames = self._sound.read(out=block[:count])
                parts.append(mean_of_channels(frames))
                count = count - len(frames) if len(frames) else 0
        return np.concatenate(parts)

    def close(self) -> None:
        """Free the decoder; the file stays open."""
        self._sound.close()


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
    if not isinstance(sound, tuple):
        return with_decoder(sound, lambda source: _windows(source, plan, rate, seconds, start))
    samples, own_rate = sound
    source: Any = SimpleNamespace(name="none", rate=own_rate, n_frames=len(samples))
    source.read = lambda first, count: samples[first : first + count]
    try:
        return _windows(source, plan, rate, seconds, start)
    except CannotDecode as refusal:
        raise DataError(f"The samples have no such window: {refusal}.") from None


def decoders() -> Iterator[type[Decoder]]:
    """The decoders in the order in which they are tried."""
    yield Sndfile
    from harmonium.audio.ffmpeg import FFmpeg  # takes a tenth of a second, and is rarely needed

    yield FFmpeg


def with_decoder(path: Sound, use: Callable[[Decoder], Found]) -> Found:
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
    said = [f"{reason} ({name})" for name, reason in reasons.items()]
    if len(set(reasons.values())) == 1:
        said = [*set(reasons.values())]
    raise AudioError(f"{quoted(path)} cannot be decoded: {'; '.join(said)}.")


def quoted(path: Sound) -> str:
    """A file's name for a message: on one line, whatever is in it."""
    return repr(os.fsdecode(path if isinstance(path, str | os.PathLike) else path.name))


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


def _clip(source: Decoder, rate: int, seconds: float, start: float | None) -> Clip:
    """The window of one length from ``start`` on, or in the middle."""
    n_samples = round(seconds * rate)
    n_frames = ceil(n_samples * source.rate / rate)
    first = max(0, ((source.n_frames or 0) - n_frames) // 2)
    duration = None if source.n_frames is None else source.n_frames / source.rate
    if start is not None:
        first = round(start * source.rate)
        if duration is not None and first >= (source.n_frames or 0):
            raise CannotDecode(
                f"it lasts {duration:.3f} s, and the window should begin at {start:g} s"
            )
    samples = _read(source, first, n_frames, rate)
    while samples is None and start is None and first > 0:
        # The file is truncated, or its length is an estimate: try closer to the beginning.
        first //= 2
        samples = _read(source, first, n_frames, rate)
    if samples is None:
        said = "" if duration is None else f" of {duration:.1f} s"
        raise CannotDecode(f"there is no sound from {first / source.rate:.1f} s on{said}")
    samples = np.ascontiguousarray(samples[:n_samples])
    return Clip(samples, rate, first / source.rate, duration, source.name)


def _windows(
    source: Decoder, plan: Plan | None, rate: int, seconds: float, start: float | None
) -> list[Floats]:
    """A plan's windows; those that touch are decoded together."""
    if plan is None:
        return [_clip(source, rate, seconds, start).samples]
    begin = None if start is None else round(start * rate)
    length = None if source.n_frames is None else ceil(source.n_frames * rate / source.rate)
    while True:
        if length is not None and length <= (begin or 0):
            raise CannotDecode(f"there is no sound from {(begin or 0) / rate:.1f} s on")
        windows = plan(length, begin)
        found: dict[int, Floats] = {}
        for first, end in _spans(windows, length):
            found[first] = _read_span(source, Window(first, end), rate)
            missing = end - first - len(found[first])
            if missing > ROUNDING:
                length = end - missing
                break
        else:
            return [joined(found.items(), window) for window in windows]


def _spans(windows: Iterable[Window], length: int | None) -> list[Window]:
    """What to decode, in order: windows within the sound, joined if they touch."""
    spans: list[Window] = []
    for window in sorted(windows):
        first, end = max(0, window.first), min(window.end, length or window.end)
        if spans and first <= spans[-1].end:
            spans[-1] = Window(spans[-1].first, max(end, spans[-1].end))
        elif first < end:
            spans.append(Window(first, end))
    return spans


def _read_span(source: Decoder, span: Window, rate: int) -> Floats:
    """The samples of a span, fewer if the sound ends earlier."""
    unit, unit_out = _units(source, rate)
    whole = span.first // unit_out  # a frame and a sample start together there
    count = ceil((span.end - whole * unit_out) * source.rate / rate)
    samples = _read(source, whole * unit, count, rate)
    if samples is None:
        return np.zeros(0, np.float32)
    return samples[span.first - whole * unit_out :][: span.end - span.first]


def joined(pieces: Iterable[tuple[int, Floats]], window: Window) -> Floats:
    """A window cut from pieces, each with its place; silence where there is no sound."""
    found = np.zeros(max(0, window.end - window.first), np.float32)
    for place, samples in pieces:
        skipped = max(0, window.first - place)
        part = samples[skipped : max(skipped, window.end - place)]
        found[place + skipped - window.first :][: len(part)] = part
    return found


def _units(source: Decoder, rate: int) -> tuple[int, int]:
    """The smallest whole numbers of frames and of samples with the same duration."""
    if not MIN_RATE <= source.rate <= MAX_RATE:
        raise CannotDecode(f"its rate is {source.rate} Hz")
    common = gcd(source.rate, rate)
    return source.rate // common, rate // common


def _read(source: Decoder, first: int, count: int, rate: int) -> Floats | None:
    """The samples of ``count`` frames from ``first`` on, and of a margin after them.

    Resampling needs a margin on both sides, silent if it lies before the file: a whole number of
    samples at both rates, so that the window begins on a sample. None if the file has ended.
    """
    unit, unit_out = _units(source, rate)
    units = 0 if unit == unit_out else ceil(MARGIN * source.rate / unit)
    margin = units * unit
    begin = max(0, first - margin)
    frames = source.read(begin, first + count + margin - begin)
    if len(frames) <= first - begin:
        return None
    wrong = np.flatnonzero(~np.isfinite(frames))
    if len(wrong):
        at = (begin + int(wrong[0])) / source.rate
        raise CannotDecode(f"its sample at {at:.3f} s is {frames[wrong[0]]}")
    if not units:
        return frames
    padded = np.pad(frames, (max(0, margin - first), 0))
    return soxr.resample(padded, source.rate, rate)[units * unit_out :]


@contextmanager
def _calling_libsndfile() -> Iterator[None]:
    """Silence for libsndfile, and its errors in its own words."""
    try:
        with quiet_c_libraries():
            yield
    except (RuntimeError, OSError, ValueError) as error:
        reason = (getattr(error, "error_string", None) or str(error)).strip().rstrip(".").lower()
        if reason.startswith("file does not exist"):  # as for an MP3 file without a frame
            reason = "no sound found"
        raise CannotDecode(reason) from None


# libmpg123 inside libsndfile notes every damaged byte on ``stderr``, and cannot be asked not to.
_lock = threading.Lock()
_inside = 0  # threads that are silent at the moment
_saved: int | None = None  # C's own stream while it is silenced


def _streams() -> tuple[ctypes.c_void_p, int] | None:
    """C's variable ``stderr``, and a stream that goes nowhere; None if there is none."""
    try:
        libc = ctypes.CDLL(None)
        variable = ctypes.c_void_p.in_dll(libc, "stderr")
        libc.fopen.restype = ctypes.c_void_p
        nowhere = libc.fopen(os.fsencode(os.devnull), b"w")
    except (OSError, TypeError, ValueError, AttributeError):
        return None
    return (variable, nowhere) if nowhere else None


_STREAMS = _streams()


@contextmanager
def quiet_c_libraries() -> Iterator[None]:
    """Discard what C code prints to ``stderr``; Python's output still arrives."""
    global _inside, _saved
    if _STREAMS is None:
        yield
        return
    variable, nowhere = _STREAMS
    with _lock:
        if _inside == 0:
            _saved, variable.value = variable.value, nowhere
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                variable.value = _saved
