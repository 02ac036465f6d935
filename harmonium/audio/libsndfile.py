"""libsndfile: WAV, AIFF, AU, FLAC, MP3, Ogg Vorbis, most Opus. It seeks to the frame in all."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, ClassVar

import numpy as np
import soundfile

from harmonium.arrays import Floats
from harmonium.audio.decoding import CannotDecode, mean_of_channels

BLOCK = 2**18
"""Numbers decoded at a time, so that many channels need no more memory than one. After each block
soundfile seeks to where it is anyway, for which MP3 decodes some frames again: not too few."""
UNKNOWN_LENGTH = 2**63 - 1
"""What libsndfile gives for a length that it does not know."""


class Sndfile:
    """A file open in libsndfile."""

    name: ClassVar[str] = "libsndfile"

    def __init__(self, file: BinaryIO) -> None:
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        with _calling():
            # By descriptor: any name will do, and its ending is no hint.
            self._sound = soundfile.SoundFile(file.fileno(), closefd=False)
        self.rate: int = self._sound.samplerate
        frames = self._sound.frames
        self.n_frames: int | None = frames if 0 <= frames < UNKNOWN_LENGTH else None

    def read(self, start: int, count: int) -> Floats:
        """The mean of the channels from frame ``start`` on, (≤ count,)."""
        channels = self._sound.channels
        block = np.empty((min(count, max(1, BLOCK // channels)), channels), np.float32)
        parts = [np.zeros(0, np.float32)]
        with _calling():
            self._sound.seek(start)
            while count > 0:
                frames = self._sound.read(out=block[:count])
                parts.append(mean_of_channels(frames))
                count = count - len(frames) if len(frames) else 0
        return np.concatenate(parts)

    def close(self) -> None:
        """Free the decoder; the file stays open."""
        self._sound.close()


@contextmanager
def _calling() -> Iterator[None]:
    """Silence for libsndfile, and its errors in its own words."""
    try:
        with quiet_c_libraries():
            yield
    except (soundfile.SoundFileError, OSError, ValueError) as error:
        reason = (getattr(error, "error_string", None) or str(error)).strip().rstrip(".").lower()
        if reason.startswith("file does not exist"):  # what it says of an MP3 file without a frame
            reason = "no sound found"
        raise CannotDecode(reason) from None


# libmpg123 inside libsndfile notes every damaged byte on ``stderr``, and cannot be asked not to.
_lock = threading.Lock()
_inside = 0  # threads that are silent at the moment
_saved: int | None = None  # C's own stream meanwhile


def _streams() -> tuple[ctypes.c_void_p, int] | None:
    """C's variable ``stderr``, and a stream that goes nowhere; None where there is none."""
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
    """Let C code print to nowhere instead of ``stderr``; what Python writes there arrives."""
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
