"""The mel spectrum: against librosa, against the definition, and its edges."""

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from signals import RATE, music, sine

from harmonium.audio import FeatureParameters
from harmonium.audio.extractors import (
    BLOCK,
    decibels,
    hz_to_mel,
    mel_corners,
    mel_filterbank,
    mel_spectrogram,
    mel_to_hz,
    raise_to_floor,
)
from harmonium.errors import DataError

PARAMETERS = FeatureParameters()
SETTINGS = [
    PARAMETERS,
    FeatureParameters(frame_length=2048, hop_length=256, n_mels=128, lowest_hz=0),
    FeatureParameters(frame_length=1000, hop_length=333, n_mels=20, highest_hz=8000),
]


def librosa_mel(samples, parameters):
    return librosa.feature.melspectrogram(
        y=samples,
        sr=parameters.rate,
        n_fft=parameters.frame_length,
        hop_length=parameters.hop_length,
        n_mels=parameters.n_mels,
        fmin=parameters.lowest_hz,
        fmax=parameters.highest_hz,
        center=False,
    ).T


def test_the_mel_scale_is_librosas():
    hz = np.array([0, 30, 999.9, 1000, 1000.1, 11_025])
    np.testing.assert_allclose(hz_to_mel(hz), librosa.hz_to_mel(hz), rtol=1e-12)
    np.testing.assert_allclose(mel_to_hz(hz_to_mel(hz)), hz, rtol=1e-12)


@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_filterbank_is_librosas(parameters):
    expected = librosa.filters.mel(
        sr=parameters.rate,
        n_fft=parameters.frame_length,
        n_mels=parameters.n_mels,
        fmin=parameters.lowest_hz,
        fmax=parameters.highest_hz,
    ).T
    np.testing.assert_allclose(mel_filterbank(parameters), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_mel_spectrum_is_librosas(parameters):
    samples = music(3)
    mel = mel_spectrogram(samples, parameters)
    np.testing.assert_allclose(mel, librosa_mel(samples, parameters), rtol=1e-4)
    assert mel.dtype == np.float32


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_decibels_above_the_floor_are_librosas():
    samples = np.concatenate([music(1), np.zeros(RATE, np.float32), music(1, level=1e-6)])
    mel = mel_spectrogram(samples, PARAMETERS)
    expected = librosa.power_to_db(librosa_mel(samples, PARAMETERS), top_db=80, amin=1e-14)
    found = decibels(raise_to_floor(mel, PARAMETERS))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert found.min() == pytest.approx(found.max() - 80, abs=1e-4)  # silence is at the floor


@settings(max_examples=25, deadline=None)
@given(st.integers(1024, 1024 + 512 * (2 * BLOCK + 1)))
def test_every_frame_is_the_definition(n):
    samples = music(4)[:n]
    mel = mel_spectrogram(samples, PARAMETERS)
    assert mel.shape == (1 + (n - 1024) // 512, 40)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    for frame in {0, len(mel) // 2, len(mel) - 1}:
        windowed = samples[512 * frame : 512 * frame + 1024] * window
        power = np.abs(np.fft.rfft(windowed)) ** 2
        np.testing.assert_allclose(mel[frame], power @ mel_filterbank(PARAMETERS), rtol=1e-4)


@pytest.mark.parametrize("band", [0, 7, 20, 39])
def test_a_tone_is_strongest_in_the_band_of_its_frequency(band):
    mel = mel_spectrogram(sine(mel_corners(PARAMETERS)[1 + band], 1), PARAMETERS)
    assert set(mel.argmax(axis=1)) == {band}


def test_the_floor_is_never_zero():
    silent = raise_to_floor(np.zeros((3, 40), np.float32), PARAMETERS)
    assert (silent == np.float32(1e-14)).all()


def test_bands_that_hold_no_frequency_are_refused():
    with pytest.raises(DataError, match="'n_mels' = 300 mel bands are too narrow for 'frame_len"):
        mel_filterbank(FeatureParameters(n_mels=300, frame_length=256))


def test_what_is_cached_cannot_be_changed():
    assert mel_filterbank(PARAMETERS) is mel_filterbank(FeatureParameters())
    with pytest.raises(ValueError, match="read-only"):
        mel_filterbank(PARAMETERS)[0, 0] = 1
