"""Band envelopes and their modulation spectra, before and after the DCT."""

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st
from signals import clicks, music, sine

from harmonium.audio import FeatureParameters
from harmonium.audio.rhythm import (
    band_envelopes,
    band_of_mel,
    modulation_frequencies,
    modulation_spectra,
    rhythm_features,
)
from harmonium.audio.spectrum import mel_centres, mel_spectrogram, raise_to_floor
from harmonium.errors import DataError

PARAMETERS = FeatureParameters()
FREQUENCIES = modulation_frequencies(PARAMETERS)
SPACING = FREQUENCIES[1]


def mel_of(samples):
    return raise_to_floor(mel_spectrogram(samples, PARAMETERS), PARAMETERS)


def spectra_of(samples):
    return modulation_spectra(band_envelopes(mel_of(samples), PARAMETERS), PARAMETERS)


def swinging(hz, depth, n_frames):
    """An envelope 1 + depth · cos(2π hz t) of mean 1, (n_frames, 1)."""
    t = np.arange(n_frames) / PARAMETERS.frame_rate
    wave = np.cos(2 * np.pi * hz * t)
    return (1 + depth * (wave - wave.mean()))[:, None]


def test_the_frequencies_go_from_0_to_10_hz():
    assert FREQUENCIES[0] == 0
    assert 10 - SPACING < FREQUENCIES[-1] <= 10


def test_mel_bands_belong_to_the_band_of_their_centre():
    centres, bands = mel_centres(PARAMETERS), band_of_mel(PARAMETERS)
    for band, (low, high) in enumerate([(0, 200), (200, 800), (800, 3200), (3200, 11_025)]):
        inside = centres[bands == band]
        assert len(inside)
        assert ((low <= inside) & (inside < high)).all()


def test_envelopes_are_band_energies_over_their_mean():
    mel = mel_of(music())
    found = band_envelopes(mel, PARAMETERS)
    for band in range(4):
        energy = mel[:, band_of_mel(PARAMETERS) == band].astype(float).sum(axis=1)
        np.testing.assert_allclose(found[:, band], energy / energy.mean(), rtol=1e-9)


@pytest.mark.parametrize("bpm", [60, 90, 120, 137, 180])
def test_clicks_have_their_peak_at_their_rate_in_every_band(bpm):
    spectra = spectra_of(clicks(bpm))
    peaks = FREQUENCIES[spectra.argmax(axis=1)]
    np.testing.assert_allclose(peaks, bpm / 60, atol=SPACING)


@pytest.mark.parametrize(("band", "hz"), [(0, 100), (1, 450), (2, 1700), (3, 6000)])
def test_a_beating_tone_has_its_peak_in_its_band_only(band, hz):
    steady = sum(0.1 * sine(other, 10) for other in (100, 450, 1700, 6000) if other != hz)
    spectra = spectra_of(clicks(150, hz=hz) + steady)
    heights = spectra.max(axis=1)
    assert FREQUENCIES[spectra[band].argmax()] == pytest.approx(150 / 60, abs=SPACING)
    assert (np.delete(heights, band) < 0.02 * heights[band]).all()


@settings(max_examples=40, deadline=None)
@given(
    hz=st.floats(0.8, 9.5),
    depth=st.floats(0.01, 1),
    n_frames=st.integers(215, 1500),
)
def test_a_swing_gives_a_peak_of_its_depth_at_its_rate(hz, depth, n_frames):
    (spectrum,) = modulation_spectra(swinging(hz, depth, n_frames), PARAMETERS)
    assert FREQUENCIES[spectrum.argmax()] == pytest.approx(hz, abs=SPACING)
    # Half a spacing beside the peak, 430 / 512 / 2 bins, the Hann window's transform is 0.891.
    assert 0.88 * depth < spectrum.max() < 1.02 * depth


def test_one_frame_is_the_definition():
    rng = np.random.default_rng(0)
    envelopes = rng.uniform(0.5, 1.5, (300, 4))
    found = modulation_spectra(envelopes, PARAMETERS)
    t = np.arange(300)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * t / 300)
    for k in (0, 1, 57, 118):
        wave = np.exp(-2j * np.pi * FREQUENCIES[k] * t / PARAMETERS.frame_rate)
        expected = np.abs((window * wave) @ (envelopes - 1)) * 2 / window.sum()
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6)


@pytest.mark.parametrize("n_frames", [430, 431, 645, 646, 2000])
def test_every_moment_of_a_long_clip_counts(n_frames):
    quiet = np.ones((n_frames, 1))
    for place in (20, n_frames // 2, n_frames - 20):
        envelope = quiet.copy()
        envelope[place] += 1
        assert modulation_spectra(envelope, PARAMETERS).max() > 1e-5


def test_the_rhythm_features_are_the_dct_of_the_modulation_spectra():
    samples = music(10)
    expected = scipy.fft.dct(spectra_of(samples), norm="ortho")[:, :50].ravel()
    np.testing.assert_allclose(
        rhythm_features(mel_of(samples), PARAMETERS), expected, rtol=1e-4, atol=1e-7
    )


def test_a_later_start_leaves_a_steady_rhythm_where_it_was():
    beats = clicks(120, 11, hz=1700)
    at_0 = spectra_of(beats[:220_500])[2]
    a_beat_later = spectra_of(beats[11_025:231_525])[2]
    np.testing.assert_allclose(a_beat_later, at_0, rtol=1e-3, atol=1e-6)
    # In between, up to one of the twenty beats more or less is inside.
    half_a_beat_later = spectra_of(beats[5512:226_012])[2]
    assert np.linalg.norm(half_a_beat_later - at_0) < np.linalg.norm(at_0) / 20


def test_a_gain_of_each_broad_band_leaves_the_rhythm():
    mel = mel_of(music(10))
    gains = np.array([0.1, 2, 0.5, 7], np.float32)[band_of_mel(PARAMETERS)]
    before, after = (rhythm_features(m, PARAMETERS) for m in (mel, mel * gains))
    np.testing.assert_allclose(after, before, atol=1e-6 * np.abs(before).max())


def test_a_band_without_sound_does_not_swing():
    spectra = spectra_of(clicks(120, hz=100))
    assert FREQUENCIES[spectra[0].argmax()] == pytest.approx(2, abs=SPACING)
    np.testing.assert_allclose(spectra[3], 0, atol=1e-9)


def test_edges_that_leave_a_band_empty_are_refused():
    with pytest.raises(DataError, match="leave the band 'low' without a mel band"):
        band_of_mel(FeatureParameters(band_edges=(50.0, 800.0, 3200.0)))
