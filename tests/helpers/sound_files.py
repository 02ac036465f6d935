"""Music files in every format, written by libsndfile's and FFmpeg's encoders; known sounds."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import soundfile
from scipy.signal import butter, sosfilt

# Samples handed over at a time: libsndfile's Vorbis encoder crashes on long arrays.
BLOCK = 4096

RATE = 22_050  # of the sounds whose features are known
LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


def timed_noise(seconds: float, rate: int, channels: int = 1, *, seed: int = 0) -> np.ndarray:
    """Noise below 3 kHz, no two moments of which are alike: any part of it tells its time.

    (n, channels) float32, with a level that no encoder clips
    """
    noise = np.random.default_rng(seed).normal(size=(round(seconds * rate), channels))
    band = butter(4, (200, 3000), "band", fs=rate, output="sos")
    noise = sosfilt(band, noise, axis=0)
    return (0.15 * noise / noise.std()).clip(-0.9, 0.9).astype(np.float32)


def lag(window: np.ndarray, whole: np.ndarray, start: int, *, most: int = 3000) -> int:
    """By how many samples the window lies later in the whole than at ``start``."""
    before = min(most, start)
    around = whole[start - before : start + len(window) + most]
    spectrum = np.fft.rfft(around, 2 * len(around)) * np.fft.rfft(window, 2 * len(around)).conj()
    match = np.fft.irfft(spectrum)[: before + most + 1]
    return int(match.argmax()) - before


def write_sndfile(path: Path, sound: np.ndarray, rate: int, **options: object) -> Path:
    """By libsndfile; ``options`` are soundfile's."""
    with soundfile.SoundFile(path, "w", rate, sound.shape[1], **options) as file:
        for start in range(0, len(sound), BLOCK):
            file.write(sound[start : start + BLOCK])
    return path


def write_ffmpeg(
    path: Path, sound: np.ndarray, rate: int, codec: str, *, container: str | None = None, **options
) -> Path:
    """By FFmpeg's encoder ``codec``; ``options`` are the encoder's."""
    with av.open(str(path), "w", format=container) as output:
        _encode(output, _sound_stream(output, sound, rate, codec, options), sound)
    return path


def write_film(path: Path, sound: np.ndarray | None, rate: int) -> Path:
    """Moving pictures, with sound or without."""
    with av.open(str(path), "w") as output:
        pictures = output.add_stream("mpeg4", rate=10)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        stream = None if sound is None else _sound_stream(output, sound, rate, "aac", {})
        for frame in (*(av.VideoFrame(64, 48, "yuv420p") for _ in range(20)), None):
            output.mux(pictures.encode(frame))
        if stream is not None:
            _encode(output, stream, sound)
    return path


def _sound_stream(output, sound: np.ndarray, rate: int, codec: str, options: dict[str, str]):
    layout = LAYOUTS[sound.shape[1]]
    stream = output.add_stream(codec, rate=rate, layout=layout, options=options)
    stream.codec_context.format = av.Codec(codec, "w").audio_formats[0].name
    stream.codec_context.open(strict=False)
    return stream


def _encode(output, stream, sound: np.ndarray) -> None:
    context = stream.codec_context
    size = context.frame_size or 1024
    resampler = av.AudioResampler(context.format.name, context.layout, context.rate, size)
    planes = np.ascontiguousarray(sound.T)
    whole = av.AudioFrame.from_ndarray(planes, "fltp", LAYOUTS[sound.shape[1]])
    # Time stamps make the encoder note how many samples of its own come first.
    whole.sample_rate, whole.pts, whole.time_base = context.rate, 0, Fraction(1, context.rate)
    for frame in (*resampler.resample(whole), *resampler.resample(None), None):
        output.mux(stream.encode(frame))


def music(seconds: float = 4.0, *, seed: int = 0, level: float = 0.1) -> np.ndarray:
    """Noise of many colours whose loudness and colour wander, at least 60 dB above silence."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    t = np.arange(n) / RATE
    sound = rng.normal(size=n) * (1.2 + np.sin(2 * np.pi * 2.3 * t))
    for hz in (60, 180, 440, 1500, 5000):
        swing = 1 + 0.8 * np.sin(2 * np.pi * rng.uniform(0.5, 6) * t + rng.uniform(0, 6))
        sound += 3 * swing * np.sin(2 * np.pi * hz * t)
    return (level * sound / np.abs(sound).max()).astype(np.float32)


def sine(hz: float, seconds: float = 4.0) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE)) / RATE).astype(np.float32)


def clicks(bpm: float, seconds: float = 10.0, *, hz: float | None = None) -> np.ndarray:
    """A short burst on every beat, of noise, or of a tone of ``hz`` that sounds in one band."""
    t = np.arange(int(seconds * RATE)) / RATE
    after = t % (60 / bpm)  # seconds since the last beat
    carrier = np.random.default_rng(0).normal(size=len(t)) if hz is None else sine(hz, seconds)
    # Rises and falls softly, so that the tone does not splash into the other bands.
    burst = np.where(after < 0.05, np.sin(np.pi * after / 0.05) ** 2, 0)
    return (0.3 * carrier[: len(t)] * burst).astype(np.float32)
