"""libsndfile, by soundfile: WAV, AIFF, AU, FLAC, MP3, Ogg Vorbis, most Opus."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoder import CannotDecode, mean_of_channels

BLOCK = 2**18
"""Numbers decoded at a time, so that many channels need no more memory than one. After each block
soundfile seeks to where it is anyway, for which MP3 decodes some frames again: not too few."""
UNKNOWN_LENGTH = 2**63 - 1  # what libsndfile gives for a length that it does not know


class Sndfile:
    """A file open in libsndfile."""

    name = "libsndfile"

    def __init__(self, file: BinaryIO) -> None:
        import soundfile

        os.lseek(file.fileno(), 0, os.SEEK_SET)
        with _calling_libsndfile():
            # By descriptor: any name will do, and its ending is no hint.
            self._sound = soundfile.SoundFile(file.fileno(), closefd=False)
        self.rate: int = self._sound.samplerate
        n_frames = self._sound.frames
        self.n_frames: int | None = n_frames if 0 <= n_frames < UNKNOWN_LENGTH else None

    def read(self, start: int, count: int) -> Floats:
        """The mean of the channels from frame ``start`` on, (≤ count,); fewer at the end."""
        channels = self._sound.channels
        block = np.empty((min(count, max(1, BLOCK // channels)), channels), np.float32)
        parts = [np.zeros(0, np.float32)]
        with _calling_libsndfile():
            self._sound.seek(start)
            while count > 0:
                frames = self._sound.read(out=block[:count])
                if not len(frames):
                    break
                parts.append(mean_of_channels(frames))
                count -= len(frames)
        return np.concatenate(parts)

    def close(self) -> None:
        """Free the decoder; the file stays open."""
        self._sound.close()


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


class _Streams(NamedTuple):
    stderr: ctypes.c_void_p  # C's variable
    nowhere: int  # a stream that goes nowhere


def _streams() -> _Streams | None:
    """C's streams; None if there are none."""
    try:
        libc = ctypes.CDLL(None)
        stderr = ctypes.c_void_p.in_dll(libc, "stderr")
        libc.fopen.restype = ctypes.c_void_p
        nowhere = libc.fopen(os.fsencode(os.devnull), b"w")
    except (OSError, TypeError, ValueError, AttributeError):
        return None
    return _Streams(stderr, nowhere) if nowhere else None


_STREAMS = _streams()
_lock = threading.Lock()
_n_silent = 0  # threads that are silent at the moment
_saved: int | None = None  # C's own stream while it is silenced


@contextmanager
def quiet_c_libraries() -> Iterator[None]:
    """Discard what C code prints to ``stderr``; Python's output still arrives."""
    global _n_silent, _saved
    if _STREAMS is None:
        yield
        return
    with _lock:
        if _n_silent == 0:
            _saved = _STREAMS.stderr.value
            _STREAMS.stderr.value = _STREAMS.nowhere
        _n_silent += 1
    try:
        yield
    finally:
        with _lock:
            _n_silent -= 1
            if _n_silent == 0:
                _STREAMS.stderr.value = _saved
