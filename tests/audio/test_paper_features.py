"""The paper's features: spectrum and MFCCs as librosa has them, and rhythm as it is defined."""

from dataclasses import replace

import librosa
import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import RATE, clicks, music, sine

from harmonium.audio import FeatureParameters, clip_features, feature_names
from harmonium.audio import extractors as paper
from harmonium.audio.extractors import DEFAULTS
from harmonium.errors import DataError

NAMES = feature_names()
MFCC_0 = NAMES.index("timbre: mean of MFCC 0")
FREQUENCIES = np.arange(DEFAULTS.n_modulations) * DEFAULTS.frame_rate / DEFAULTS.modulation_fft
SPACING = FREQUENCIES[1]
SETTINGS = [
    DEFAULTS,
    FeatureParameters(frame_length=2048, hop_length=256, n_mels=128, lowest_hz=0),
    FeatureParameters(frame_length=1000, hop_length=333, n_mels=20, highest_hz=8000),
]


def librosas(parameters, **more):
    sizes = {"sr": parameters.rate, "n_fft": parameters.frame_length, "n_mels": parameters.n_mels}
    return {**sizes, "fmin": parameters.lowest_hz, "fmax": parameters.highest_hz, **more}


def librosa_mel(samples, parameters):
    more = {"hop_length": parameters.hop_length, "center": False}
    return librosa.feature.melspectrogram(y=samples, **librosas(parameters, **more)).T


@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_filterbank_is_librosas_and_cannot_be_changed(parameters):
    expected = librosa.filters.mel(**librosas(parameters)).T
    found = paper.mel_filterbank(parameters)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    assert found is paper.mel_filterbank(replace(parameters))  # it is cached
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
@pytest.mark.parametrize("parameters", SETTINGS)
def test_the_mel_spectrum_is_librosas(parameters):
    samples = music(3)
    mel = paper.mel_spectrogram(samples, parameters)
    np.testing.assert_allclose(mel, librosa_mel(samples, parameters), rtol=1e-4)


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_decibels_above_the_floor_are_librosas():
    samples = np.concatenate([music(1), np.zeros(RATE, np.float32), music(1, level=1e-6)])
    mel = paper.mel_spectrogram(samples, DEFAULTS)
    expected = librosa.power_to_db(librosa_mel(samples, DEFAULTS), top_db=80, amin=1e-14)
    found = paper.decibels(paper.raise_to_floor(mel, DEFAULTS))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert found.min() == pytest.approx(found.max() - 80, abs=1e-4)  # silence is at the floor


@settings(max_examples=25, deadline=None)
@given(st.integers(1024, 1024 + 512 * (2 * paper.BLOCK + 1)))
def test_every_frame_is_the_definition(n):
    samples = music(4)[:n]
    mel = paper.mel_spectrogram(samples, DEFAULTS)
    assert mel.shape == (1 + (n - 1024) // 512, 40)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    for frame in {0, len(mel) // 2, len(mel) - 1}:
        windowed = samples[512 * frame : 512 * frame + 1024] * window
        power = np.abs(np.fft.rfft(windowed)) ** 2
        np.testing.assert_allclose(mel[frame], power @ paper.mel_filterbank(DEFAULTS), rtol=1e-4)


def mel_of(samples):
    return paper.raise_to_floor(paper.mel_spectrogram(samples, DEFAULTS), DEFAULTS)


@pytest.fixture(scope="module")
def mel():
    return mel_of(music())


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_mfccs_are_librosas(mel):
    more = {"n_mfcc": 18, "hop_length": 512, "center": False}
    expected = librosa.feature.mfcc(y=music(), **librosas(DEFAULTS, **more)).T
    # A coefficient near zero is a difference of large ones: relative to the frame's largest.
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(paper.mfccs(mel, DEFAULTS) / scale, expected / scale, atol=1e-5)
    norms = np.linalg.norm(paper.mfccs(mel, DEFAULTS) - expected, axis=0)
    assert (norms <= 1e-4 * np.linalg.norm(expected, axis=0)).all()


def test_all_mfccs_are_an_orthonormal_view_of_the_decibels(mel):
    everything = paper.mfccs(mel, FeatureParameters(n_mfcc=40))
    norms = (np.linalg.norm(array, axis=1) for array in (everything, paper.decibels(mel)))
    np.testing.assert_allclose(*norms, rtol=1e-5)


def test_mean_and_covariance_are_numpys(mel):
    coefficients = paper.mfccs(mel, DEFAULTS).astype(float)
    names, values = feature_names(groups=["timbre"]), paper.timbre_features(mel, DEFAULTS)
    features = dict(zip(names, values, strict=True))
    covariance = np.cov(coefficients.T)
    for i in range(18):
        assert features[f"timbre: mean of MFCC {i}"] == pytest.approx(coefficients[:, i].mean())
        assert features[f"timbre: variance of MFCC {i}"] == pytest.approx(covariance[i, i])
        for j in range(i + 1, 18):
            name = f"timbre: covariance of MFCC {i} and {j}"
            assert features[name] == pytest.approx(covariance[i, j], abs=1e-10)


def spectra_of(samples):
    return paper.modulation_spectra(paper.band_envelopes(mel_of(samples), DEFAULTS), DEFAULTS)


def test_mel_bands_belong_to_the_band_of_their_centre_and_envelopes_are_over_their_mean(mel):
    centres, bands = paper.mel_corners(DEFAULTS)[1:-1], paper.band_of_mel(DEFAULTS)
    for band, (low, high) in enumerate([(0, 200), (200, 800), (800, 3200), (3200, 11_025)]):
        inside = centres[bands == band]
        assert len(inside)
        assert ((low <= inside) & (inside < high)).all()
        energy = mel[:, bands == band].astype(float).sum(axis=1)
        found = paper.band_envelopes(mel, DEFAULTS)[:, band]
        np.testing.assert_allclose(found, energy / energy.mean(), rtol=1e-9)


@pytest.mark.parametrize(("band", "hz"), [(0, 100), (1, 450), (2, 1700), (3, 6000)])
def test_a_beating_tone_has_its_peak_in_its_band_only(band, hz):
    steady = sum(0.1 * sine(other, 10) for other in (100, 450, 1700, 6000) if other != hz)
    spectra = spectra_of(clicks(150, hz=hz) + steady)
    heights = spectra.max(axis=1)
    assert FREQUENCIES[spectra[band].argmax()] == pytest.approx(150 / 60, abs=SPACING)
    assert (np.delete(heights, band) < 0.02 * heights[band]).all()


def test_one_frame_is_the_definition():
    assert FREQUENCIES[0] == 0
    assert 10 - SPACING < FREQUENCIES[-1] <= 10
    rng = np.random.default_rng(0)
    envelopes = rng.uniform(0.5, 1.5, (300, 4))
    found = paper.modulation_spectra(envelopes, DEFAULTS)
    t = np.arange(300)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * t / 300)
    for k in (0, 1, 57, 118):
        wave = np.exp(-2j * np.pi * FREQUENCIES[k] * t / DEFAULTS.frame_rate)
        expected = np.abs((window * wave) @ (envelopes - 1)) * 2 / window.sum()
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6)


@pytest.mark.parametrize("n_frames", [430, 431, 645, 646, 2000])
def test_every_moment_of_a_long_clip_counts(n_frames):
    quiet = np.ones((n_frames, 1))
    for place in (20, n_frames // 2, n_frames - 20):
        envelope = quiet.copy()
        envelope[place] += 1
        assert paper.modulation_spectra(envelope, DEFAULTS).max() > 1e-5


def test_the_rhythm_features_are_the_dct_of_the_modulation_spectra():
    samples = music(10)
    expected = scipy.fft.dct(spectra_of(samples), norm="ortho")[:, :50].ravel()
    found = paper.rhythm_features(mel_of(samples), DEFAULTS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def differences(found, expected):
    """Differences relative to the largest of the kind: means, covariances, rhythm."""
    parts = (slice(0, 18), slice(18, 189), slice(189, 389))
    apart = [np.abs(found[p] - expected[p]) / np.abs(expected[p]).max() for p in parts]
    return np.concatenate(apart)


@pytest.mark.parametrize(
    "parameters",
    [
        FeatureParameters(),
        FeatureParameters(n_mfcc=13, n_rhythm=20, n_mels=64),
        FeatureParameters(rate=16_000, highest_hz=8000, hop_length=400, frame_length=800),
        FeatureParameters(band_names=("bass", "rest"), band_edges=(250.0,)),
    ],
)
def test_there_is_a_name_for_every_number(parameters):
    features = clip_features(music(), parameters.rate, parameters=parameters)
    assert features.shape == (parameters.n_features,)
    assert len(feature_names(parameters)) == parameters.n_features


@settings(max_examples=30, deadline=None)
@given(gain=st.floats(-60, 60), seed=st.integers(0, 5))
def test_a_gain_moves_the_mean_of_mfcc_0_and_nothing_else(gain, seed):
    samples = music(3, seed=seed)
    before = clip_features(samples, RATE)
    after = clip_features(samples * np.float32(10 ** (gain / 20)), RATE)
    # A constant in all 40 mel bands is √40 times as large in MFCC 0 of the orthonormal DCT.
    moved = after[MFCC_0] - before[MFCC_0]
    assert moved == pytest.approx(gain * np.sqrt(40), rel=1e-4, abs=1e-2)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


def test_neither_an_offset_nor_a_gain_of_silence_moves_anything_and_samples_stay():
    samples = music() + np.float32(0.25)
    found, expected = clip_features(samples, RATE), clip_features(music(), RATE)
    assert differences(found, expected).max() < 1e-4
    assert (samples == music() + np.float32(0.25)).all()
    samples = clicks(120)  # most frames are silent, and a gain keeps them at the floor
    before, after = clip_features(samples, RATE), clip_features(samples / 64, RATE)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


@pytest.mark.parametrize("value", [0.0, 0.3, -1.0])
def test_silence_and_an_offset_have_no_covariance_and_no_rhythm(value):
    features = clip_features(np.full(10 * RATE, value, np.float32), RATE)
    assert features[MFCC_0] == pytest.approx(-140 * np.sqrt(40), rel=1e-5)
    np.testing.assert_allclose(np.delete(features, MFCC_0), 0, atol=1e-4)


SOUNDS = {
    "impulse": np.eye(1, 5 * RATE, 2 * RATE, dtype=np.float32)[0],
    "sine": sine(440),
    "loud": music(level=1e12),
    "vanishing": music(level=1e-30),
    "second": music(1),
    "long": music(40),
    "float64": music().astype(np.float64),
    "float16": music().astype(np.float16),
    "strided": music(8)[::-2],
    "list": music().tolist(),
}


@pytest.mark.parametrize("sound", SOUNDS)
def test_any_sound_has_finite_features(sound):
    features = clip_features(SOUNDS[sound], RATE)
    assert np.isfinite(features).all()
    assert len(features) == 389


def music_with(value):
    samples = music().astype(np.float64)
    samples[11_025] = value
    return samples


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        *((music_with(bad), RATE, r"at 11025 \(0\.500 s\)") for bad in (np.nan, -np.inf, 1e13)),
        *((music(2)[:n], RATE, r"1\.00 s \(22050 samples\), got") for n in (0, 220, RATE - 1)),
        *((np.zeros(shape, "f4"), RATE, "one channel") for shape in ((), (RATE, 2), (2, RATE))),
        *((np.zeros(RATE, kind), RATE, "floating-point") for kind in (np.int16, complex, object)),
        *((music(), rate, f"'rate' must be 22050, got {rate}") for rate in (44_100, 0)),
    ],
)
def test_samples_that_cannot_be_used_are_refused(samples, rate, message):
    with pytest.raises(DataError, match=message):
        clip_features(samples, rate)


@pytest.mark.parametrize("groups", ["timbre", (), ("timbre", "timbre"), ("melody",)])
def test_groups_that_do_not_exist_are_refused(groups):
    with pytest.raises(DataError, match="'groups' must be some of"):
        feature_names(groups=groups)


@pytest.mark.parametrize(
    ("settings", "keyword"),
    [
        ({"rate": 0}, "'rate'"),
        ({"modulation_frame": 2}, "'modulation_frame' .* at least 3"),
        ({"silence": 0.0}, "'silence'"),
        ({"rate": 16_000}, "'highest_hz' must be at most 8000"),
        ({"lowest_hz": -1.0}, "'lowest_hz' must be at least 0"),
        ({"n_mfcc": 41}, "'n_mfcc' must be at most 40"),
        ({"modulation_fft": 400}, "'modulation_frame' must be at most 400"),
        ({"highest_modulation_hz": 30.0}, r"at most 21\.5332"),
        ({"n_rhythm": 120}, "at most 119"),
        ({"band_names": ("low", "high")}, "'band_names'"),
        ({"band_names": ("a", "a", "b", "c")}, "'band_names'"),
        ({"band_edges": (800.0, 200.0, 3200.0)}, "'band_edges'"),
        ({"band_edges": (10.0, 200.0, 3200.0)}, "'band_edges'"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(settings, keyword):
    with pytest.raises(DataError, match=keyword):
        FeatureParameters(**settings)


def test_bands_that_hold_nothing_are_refused():
    with pytest.raises(DataError, match="'n_mels' = 300 mel bands are too narrow for 'frame_len"):
        paper.mel_filterbank(FeatureParameters(n_mels=300, frame_length=256))
    with pytest.raises(DataError, match="leave the band 'low' without a mel band"):
        paper.band_of_mel(FeatureParameters(band_edges=(50.0, 800.0, 3200.0)))


def test_the_paper_has_189_and_200_features():
    assert len(NAMES) == len(set(NAMES)) == 389
    assert NAMES[17:19] == ["timbre: mean of MFCC 17", "timbre: variance of MFCC 0"]
    assert NAMES[188:190] == ["timbre: variance of MFCC 17", "rhythm: low band, coefficient 0"]
    assert NAMES[388] == "rhythm: high band, coefficient 49"
