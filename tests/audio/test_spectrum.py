"""The mel spectrum, as librosa has it."""

from dataclasses import replace

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import RATE, music

from harmonium.audio.paper import DEFAULTS, raise_to_floor
from harmonium.audio.spectrum import BLOCK, decibels, mel_filterbank, mel_spectrogram
from harmonium.errors import DataError

SETTINGS = [
    DEFAULTS.mel,
    replace(DEFAULTS.mel, frame_length=2048, hop_length=256, n_mels=128, lowest_hz=0),
    replace(DEFAULTS.mel, frame_length=1000, hop_length=333, n_mels=20, highest_hz=8000),
]


def librosas(parameters, **more):
    sizes = {"sr": parameters.rate, "n_fft": parameters.frame_length, "n_mels": parameters.n_mels}
    return {**sizes, "fmin": parameters.lowest_hz, "fmax": parameters.highest_hz, **more}


def librosa_mel(samples, parameters):
    more = {"hop_length": parameters.hop_length, "center": False}
    return librosa.feature.melspectrogram(y=samples, **librosas(parameters, **more)).T


@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_filterbank_is_librosas(parameters):
    expected = librosa.filters.mel(**librosas(parameters)).T
    np.testing.assert_allclose(mel_filterbank(parameters), expected, rtol=1e-5, atol=1e-9)


def test_the_filterbank_is_made_once_for_equal_parameters():
    bank = mel_filterbank(DEFAULTS.mel)
    assert bank is mel_filterbank(replace(DEFAULTS.mel))
    with pytest.raises(ValueError, match="read-only"):
        bank[0, 0] = 1


def test_a_band_that_holds_no_frequency_is_refused():
    narrow = replace(DEFAULTS.mel, n_mels=300, frame_length=256)
    with pytest.raises(DataError, match="'n_mels' = 300 mel bands are too narrow for 'frame_len"):
        mel_filterbank(narrow)


@pytest.mark.parametrize(
    ("change", "keyword"),
    [
        ({"n_mels": 0}, "'n_mels'"),
        ({"frame_length": 2.5}, "'frame_length'"),
        ({"highest_hz": 12_000.0}, "'highest_hz' must be at most 11025"),
        ({"lowest_hz": -1.0}, "'lowest_hz' must be at least 0"),
    ],
)
def test_parameters_that_cannot_be(change, keyword):
    with pytest.raises(DataError, match=keyword):
        replace(DEFAULTS.mel, **change)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_mel_spectrum_is_librosas(parameters):
    samples = music(3)
    mel = mel_spectrogram(samples, parameters)
    np.testing.assert_allclose(mel, librosa_mel(samples, parameters), rtol=1e-4)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_decibels_above_the_floor_are_librosas():
    samples = np.concatenate([music(1), np.zeros(RATE, np.float32), music(1, level=1e-6)])
    mel = mel_spectrogram(samples, DEFAULTS.mel)
    expected = librosa.power_to_db(librosa_mel(samples, DEFAULTS.mel), top_db=80, amin=1e-14)
    found = decibels(raise_to_floor(mel, DEFAULTS))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert found.min() == pytest.approx(found.max() - 80, abs=1e-4)  # silence is at the floor


@settings(max_examples=25, deadline=None)
@given(st.integers(1024, 1024 + 512 * (2 * BLOCK + 1)))
def test_every_frame_is_the_definition(n):
    samples = music(4)[:n]
    mel = mel_spectrogram(samples, DEFAULTS.mel)
    assert mel.shape == (1 + (n - 1024) // 512, 40)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    for frame in {0, len(mel) // 2, len(mel) - 1}:
        windowed = samples[512 * frame : 512 * frame + 1024] * window
        power = np.abs(np.fft.rfft(windowed)) ** 2
        np.testing.assert_allclose(mel[frame], power @ mel_filterbank(DEFAULTS.mel), rtol=1e-4)
