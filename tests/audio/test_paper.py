"""The paper's features: MFCCs as librosa has them, and rhythm as it is defined."""

import librosa
import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import RATE, clicks, music, sine

from harmonium.audio import FeatureParameters, clip_features, feature_names, paper
from harmonium.audio.paper import DEFAULTS
from harmonium.audio.spectrum import decibels, mel_corners, mel_spectrogram
from harmonium.errors import DataError

NAMES = feature_names()
MFCC_0 = NAMES.index("timbre: mean of MFCC 0")
FREQUENCIES = np.arange(DEFAULTS.n_modulations) * DEFAULTS.frame_rate / DEFAULTS.modulation_fft
SPACING = FREQUENCIES[1]


def mel_of(samples):
    return paper.raise_to_floor(mel_spectrogram(samples, DEFAULTS.mel), DEFAULTS)


@pytest.fixture(scope="module")
def mel():
    return mel_of(music())


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_mfccs_are_librosas(mel):
    expected = librosa.feature.mfcc(
        y=music(),
        sr=DEFAULTS.rate,
        n_fft=DEFAULTS.frame_length,
        n_mels=DEFAULTS.n_mels,
        fmin=DEFAULTS.lowest_hz,
        fmax=DEFAULTS.highest_hz,
        n_mfcc=18,
        hop_length=512,
        center=False,
    ).T
    # A coefficient near zero is a difference of large ones: relative to the frame's largest.
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(paper.mfccs(mel, DEFAULTS) / scale, expected / scale, atol=1e-5)
    norms = np.linalg.norm(paper.mfccs(mel, DEFAULTS) - expected, axis=0)
    assert (norms <= 1e-4 * np.linalg.norm(expected, axis=0)).all()


def test_all_mfccs_are_an_orthonormal_view_of_the_decibels(mel):
    everything = paper.mfccs(mel, FeatureParameters(n_mfcc=40))
    norms = (np.linalg.norm(array, axis=1) for array in (everything, decibels(mel)))
    np.testing.assert_allclose(*norms, rtol=1e-5)


def timbre_by_name(mel):
    names, values = feature_names(groups=["timbre"]), paper.timbre_features(mel, DEFAULTS)
    return dict(zip(names, values, strict=True))


def test_the_mean_is_numpys(mel):
    coefficients = paper.mfccs(mel, DEFAULTS).astype(float)
    features = timbre_by_name(mel)
    for i in range(18):
        assert features[f"timbre: mean of MFCC {i}"] == pytest.approx(coefficients[:, i].mean())


def test_the_covariance_is_numpys(mel):
    covariance = np.cov(paper.mfccs(mel, DEFAULTS).astype(float).T)
    features = timbre_by_name(mel)
    for i in range(18):
        assert features[f"timbre: variance of MFCC {i}"] == pytest.approx(covariance[i, i])
        for j in range(i + 1, 18):
            name = f"timbre: covariance of MFCC {i} and {j}"
            assert features[name] == pytest.approx(covariance[i, j], abs=1e-10)


def spectra_of(samples):
    return paper.modulation_spectra(paper.band_envelopes(mel_of(samples), DEFAULTS), DEFAULTS)


@pytest.mark.parametrize(
    ("band", "low", "high"), [(0, 0, 200), (1, 200, 800), (2, 800, 3200), (3, 3200, 11_025)]
)
def test_mel_bands_belong_to_the_band_of_their_centre(band, low, high):
    centres = mel_corners(DEFAULTS.mel)[1:-1]
    inside = centres[paper.band_of_mel(DEFAULTS) == band]
    assert len(inside)
    assert ((low <= inside) & (inside < high)).all()


@pytest.mark.parametrize("band", range(4))
def test_an_envelope_is_the_energy_over_its_mean(mel, band):
    energy = mel[:, paper.band_of_mel(DEFAULTS) == band].astype(float).sum(axis=1)
    envelope = paper.band_envelopes(mel, DEFAULTS)[:, band]
    np.testing.assert_allclose(envelope, energy / energy.mean(), rtol=1e-9)


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
def test_a_gain_moves_only_the_mean_of_mfcc_0(gain, seed):
    samples = music(3, seed=seed)
    before = clip_features(samples, RATE)
    after = clip_features(samples * np.float32(10 ** (gain / 20)), RATE)
    # A constant in all 40 mel bands is √40 times as large in MFCC 0 of the orthonormal DCT.
    moved = after[MFCC_0] - before[MFCC_0]
    assert moved == pytest.approx(gain * np.sqrt(40), rel=1e-4, abs=1e-2)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


def test_an_offset_moves_nothing():
    with_offset = clip_features(music() + np.float32(0.25), RATE)
    assert differences(with_offset, clip_features(music(), RATE)).max() < 1e-4


def test_the_samples_are_not_changed():
    samples = music() + np.float32(0.25)
    clip_features(samples, RATE)
    assert (samples == music() + np.float32(0.25)).all()


def test_a_gain_keeps_silent_frames_at_the_floor():
    samples = clicks(120)  # most frames are silent
    before = clip_features(samples, RATE)
    after = clip_features(samples / 64, RATE)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


@pytest.mark.parametrize("value", [0.0, 0.3, -1.0])
def test_a_constant_sound_has_only_a_mean(value):
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


def test_a_broad_band_without_a_mel_band_is_refused():
    with pytest.raises(DataError, match="leave the band 'low' without a mel band"):
        paper.band_of_mel(FeatureParameters(band_edges=(50.0, 800.0, 3200.0)))


def test_the_names_of_the_papers_features():
    assert len(NAMES) == len(set(NAMES)) == 389
    assert NAMES[17:19] == ["timbre: mean of MFCC 17", "timbre: variance of MFCC 0"]
    assert NAMES[188:190] == ["timbre: variance of MFCC 17", "rhythm: low band, coefficient 0"]
    assert NAMES[388] == "rhythm: high band, coefficient 49"
