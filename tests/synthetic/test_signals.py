"""Tones and instruments of the generated collection."""

import numpy as np
import pytest

from harmonium.synthetic.instruments import INSTRUMENTS
from harmonium.synthetic.music import Part
from harmonium.synthetic.signals import (
    RATE,
    harmonic_tone,
    phase_of,
    pitch_to_hertz,
    plucked_string,
)


def peak_frequency(x):
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 8 * len(x)))
    return np.argmax(spectrum) * RATE / (8 * len(x))


@pytest.mark.parametrize("pitch", [45, 57.3, 69, 76])
def test_a_plucked_string_is_in_tune(pitch):
    frequency = pitch_to_hertz(pitch)
    ratio = peak_frequency(plucked_string(frequency, RATE)) / frequency
    assert abs(1200 * np.log2(ratio / round(ratio))) < 2  # cents from the nearest harmonic


def test_harmonic_tone_is_the_sum_of_its_harmonics():
    phase = phase_of(200.0, 1000)
    amplitudes, r = np.array([1.0, 0.5, 0.25]), 0.8
    numbered = enumerate(amplitudes, start=1)
    expected = sum(a * r**k * np.sin(2 * np.pi * k * phase) for k, a in numbered)
    np.testing.assert_allclose(harmonic_tone(phase, amplitudes, r), expected, atol=2e-6)


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_an_instrument_plays_any_pitch(name):
    part = Part(role="lead", instrument=name, pattern="slow", gain=0.0, brightness=1.0, seed=0)
    play = INSTRUMENTS[name].tone
    tones = [play(pitch_to_hertz(p), RATE // 2, part) for p in (33, 60, 88)]
    for tone in tones:
        assert tone.shape == (RATE // 2,)
        assert np.isfinite(tone).all()
        assert tone.std() > 0.01
    assert peak_frequency(tones[0]) < peak_frequency(tones[2])
