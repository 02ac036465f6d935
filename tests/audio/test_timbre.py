"""MFCCs against librosa, and their mean and covariance against NumPy's."""

import librosa
import numpy as np
import pytest
from signals import music

from harmonium.audio import FeatureParameters
from harmonium.audio.spectrum import decibels, mel_spectrogram, raise_to_floor
from harmonium.audio.timbre import mfccs, timbre_features, timbre_names

PARAMETERS = FeatureParameters()


@pytest.fixture(scope="module")
def mel():
    return raise_to_floor(mel_spectrogram(music(), PARAMETERS), PARAMETERS)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_mfccs_are_librosas(mel):
    expected = librosa.feature.mfcc(
        y=music(),
        sr=PARAMETERS.rate,
        n_mfcc=18,
        n_fft=1024,
        hop_length=512,
        n_mels=40,
        fmin=30,
        center=False,
    ).T
    # A coefficient near zero is a difference of large ones: relative to the frame's largest.
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(mfccs(mel, PARAMETERS) / scale, expected / scale, atol=1e-5)
    norms = np.linalg.norm(mfccs(mel, PARAMETERS) - expected, axis=0)
    assert (norms <= 1e-4 * np.linalg.norm(expected, axis=0)).all()


def test_all_mfccs_are_an_orthonormal_view_of_the_decibels(mel):
    everything = mfccs(mel, FeatureParameters(n_mfcc=40))
    np.testing.assert_allclose(
        np.linalg.norm(everything, axis=1), np.linalg.norm(decibels(mel), axis=1), rtol=1e-5
    )


def test_mean_and_covariance_are_numpys(mel):
    coefficients = mfccs(mel, PARAMETERS).astype(float)
    features = dict(zip(timbre_names(PARAMETERS), timbre_features(mel, PARAMETERS), strict=True))
    covariance = np.cov(coefficients.T)
    for i in range(18):
        assert features[f"timbre: mean of MFCC {i}"] == pytest.approx(coefficients[:, i].mean())
        assert features[f"timbre: variance of MFCC {i}"] == pytest.approx(covariance[i, i])
        for j in range(i + 1, 18):
            name = f"timbre: covariance of MFCC {i} and {j}"
            assert features[name] == pytest.approx(covariance[i, j], abs=1e-10)
    assert len(features) == 189


def test_the_order_of_the_frames_does_not_matter(mel):
    shuffled = np.random.default_rng(0).permutation(mel)
    np.testing.assert_allclose(
        timbre_features(shuffled, PARAMETERS), timbre_features(mel, PARAMETERS), rtol=1e-5
    )


def test_a_gain_of_each_mel_band_leaves_the_covariance(mel):
    gains = np.random.default_rng(0).uniform(0.1, 10, 40).astype(np.float32)
    before, after = (timbre_features(m, PARAMETERS) for m in (mel, mel * gains))
    np.testing.assert_allclose(after[18:], before[18:], atol=1e-5 * np.abs(before[18:]).max())
    assert (np.abs(after[:18] - before[:18]) > 1e-3).all()
