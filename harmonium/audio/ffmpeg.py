"""FFmpeg, by PyAV: what libsndfile cannot read. M4A and AAC, some Opus, WMA, the sound of films."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import BinaryIO

import av
import numpy as np
from av.audio import AudioStream
from av.audio.frame import AudioFrame
from av.container import InputContainer

from harmonium.arrays import Floats
from harmonium.audio.decoder import CannotDecode, mean_of_channels
from harmonium.audio.windows import Window, cut

# Containers for music and films. Others that FFmpeg knows are not sound (pictures, text), or make
# it open more files and addresses (playlists).
CONTAINERS = (
    "mov,matroska,ogg,mp3,aac,flac,wav,w64,aiff,au,caf,asf,ape,wv,tta,mpc,mpc8,tak,dsf,iff,ac3,"
    "eac3,dts,amr,loas,avi,flv,mpeg,mpegts,rm,voc,nut,shn,oma,aa,xwma"
)

LEAD_IN = (0.5, 3.0, 15.0)
"""Seconds decoded ahead of the window until the decoder has settled; the later ones are tried where
a container lands behind the window's start."""
MAX_PLANES = 7
"""Channels of a frame that PyAV counts rightly where each has a plane of its own. Of more, it reads
on past the last one, into memory that is not the frame's."""
MAX_DAMAGED = 50  # a file with this many damaged packets in a row is unreadable
NOT_MADE_OUT = "its sound cannot be made out"

Piece = tuple[int, Floats]  # the place of its first sample, the samples


class FFmpeg:
    """A file open in FFmpeg: its main sound stream."""

    name = "ffmpeg"

    def __init__(self, file: BinaryIO) -> None:
        self._file = _SilentSeeks(file)
        with _calling():
            self._open()
            try:
                self._stream = self._main_stream()
                self.rate: int = self._stream.rate
                self.n_frames = self._length()
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        self._file.seek(0)
        self._container: InputContainer = av.open(
            self._file,
            mode="r",
            options={"format_whitelist": CONTAINERS},
            metadata_errors="replace",
        )
        self._at_beginning = True

    def _main_stream(self) -> AudioStream:
        if not self._container.streams.audio:
            raise CannotDecode("there is no sound in it")
        stream = self._container.streams.best("audio")
        if not isinstance(stream, AudioStream) or not stream.rate or stream.time_base is None:
            raise CannotDecode(NOT_MADE_OUT)
        stream.codec_context.thread_count = 1  # as many processes run as there are cores
        return stream

    def _length(self) -> int | None:
        """The number of frames from the first audible one to the end."""
        stream = self._stream
        if stream.duration is not None and stream.time_base is not None:
            return round(stream.duration * stream.time_base * self.rate)
        if self._container.duration is not None:
            return round(Fraction(self._container.duration, av.time_base) * self.rate)
        return None

    def read(self, start: int, count: int) -> Floats:
        """The mean of the channels from frame ``start`` on, (≤ count,)."""
        with _calling():
            for lead_in in LEAD_IN:
                pieces = self._pieces(start, count, round(lead_in * self.rate))
                if (pieces and pieces[0][0] <= start) or start == 0:
                    break
            if not pieces:
                return np.zeros(0, np.float32)
            first_place, _ = pieces[0]
            end = max(place + len(samples) for place, samples in pieces)
            return cut(pieces, Window(max(start, first_place), min(start + count, end)))

    def _pieces(self, start: int, count: int, lead_in: int) -> list[Piece]:
        """Decoded frames with their places, from ``lead_in`` before ``start`` to past the end."""
        self._seek(max(0, start - lead_in))
        pieces: list[Piece] = []
        end = None
        for frame in self._frames():
            place = self._place(frame, end)
            end = place + frame.samples
            if end > start:
                pieces.append((place, _mono(frame)))
            if end >= start + count:
                break
        return pieces

    def _seek(self, frame: int) -> None:
        if frame == 0:
            # Open again rather than seek: Matroska and bare AAC would skip the first packet.
            if not self._at_beginning:
                self.close()
                self._open()
                self._stream = self._main_stream()
            return
        stream = self._stream
        assert stream.time_base is not None
        offset = int(Fraction(frame, self.rate) / stream.time_base)
        self._container.seek(offset + (stream.start_time or 0), stream=stream)

    def _frames(self) -> Iterator[AudioFrame]:
        """Frames from here on; damaged packets are skipped, up to `MAX_DAMAGED` in a row."""
        n_damaged = 0
        self._at_beginning = False
        for packet in self._container.demux(self._stream):
            try:
                yield from packet.decode()
            except av.FFmpegError:
                n_damaged += 1
                if n_damaged > MAX_DAMAGED:
                    raise
            else:
                n_damaged = 0

    def _place(self, frame: AudioFrame, end: int | None) -> int:
        """The number of the frame's first sample within the sound."""
        # If time stamps are coarse (Matroska), the end of the previous frame is more exact.
        if frame.sample_rate != self.rate:
            raise CannotDecode(f"its rate changes from {self.rate} to {frame.sample_rate} Hz")
        base = frame.time_base
        if frame.pts is None or base is None:
            return end or 0
        # With integers: arithmetic with fractions takes longer than decoding.
        ticks = (frame.pts - (self._stream.start_time or 0)) * base.numerator * self.rate
        stamp = round(ticks / base.denominator)
        slack = 1 + base.numerator * self.rate / base.denominator
        if end is not None and abs(stamp - end) <= slack:
            return end
        return stamp

    def close(self) -> None:
        """Free the decoder; the file stays open."""
        self._container.close()


def _mono(frame: AudioFrame) -> Floats:
    """The mean of the channels with full scale 1, (n,)."""
    if frame.format.is_planar and frame.layout.nb_channels > MAX_PLANES:
        (frame,) = av.AudioResampler(frame.format.packed, frame.layout).resample(frame)
    values = frame.to_ndarray()  # (n_channels, n), or (1, n · n_channels) where they alternate
    channels = values.T if frame.format.is_planar else values.reshape(frame.samples, -1)
    mono = mean_of_channels(channels.astype(np.float32, copy=False))
    if values.dtype.kind == "f":
        return mono
    full_scale = np.float32(2 ** (8 * values.itemsize - 1))
    if values.dtype.kind == "u":  # silence is in the middle
        mono -= full_scale
    return mono / full_scale


class _SilentSeeks:
    """A file whose failed seeks return −1: PyAV prints exceptions, and damage causes many."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.tell = file.tell
        self._seek = file.seek

    def seek(self, offset: int, whence: int = 0) -> int:
        """The new position, or −1."""
        try:
            return self._seek(offset, whence)
        except OSError:
            return -1


@contextmanager
def _calling() -> Iterator[None]:
    """Errors in FFmpeg's own words; for a damaged file, PyAV may raise any other."""
    try:
        yield
    except (av.FFmpegError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotDecode(reason.strip().rstrip(".").lower()) from None
    except (CannotDecode, MemoryError):
        raise
    except Exception as error:
        raise CannotDecode(NOT_MADE_OUT) from error
