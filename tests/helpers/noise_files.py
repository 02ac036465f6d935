"""Short noises as music files, and a quick extractor for them."""

import os

import numpy as np
import soundfile

from harmonium.audio.extractors import Extractor
from harmonium.library.filetags import apply_change, plan_write

RATE = 8000
LONG_AGO = 1_600_000_000


def level(samples, rate):
    return [np.abs(samples).mean(), np.abs(samples).max()]


LEVEL = Extractor("level", level, ("mean", "peak"), rate=RATE, seconds=1)


def write(path, seed, *, tags=(), seconds=0.1):
    """A short noise, different for each seed, that was written long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).normal(size=round(seconds * RATE))
    soundfile.write(path, (0.01 * (seed + 1) * noise).clip(-0.9, 0.9), RATE)
    if tags:
        apply_change(plan_write(path, tags))
    long_ago(path, seed)
    return path


def long_ago(path, seconds=0):
    os.utime(path, (LONG_AGO + seconds, LONG_AGO + seconds))
