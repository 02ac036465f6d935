"""Sounds whose features are known."""

import numpy as np

RATE = 22_050


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
