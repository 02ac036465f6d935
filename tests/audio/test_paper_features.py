"""The features of a clip as a whole: sizes, names, gain, odd sounds, refused ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from signals import RATE, clicks, music, sine

from harmonium.audio import FeatureParameters, clip_features, feature_names
from harmonium.errors import DataError

NAMES = feature_names()
MFCC_0 = NAMES.index("timbre: mean of MFCC 0")


def differences(found, expected):
    """Differences relative to the largest of the kind: means, covariances, rhythm."""
    parts = (slice(0, 18), slice(18, 189), slice(189, 389))
    return np.concatenate(
        [np.abs(found[p] - expected[p]) / np.abs(expected[p]).max() for p in parts]
    )


def test_the_paper_has_189_and_200_features():
    assert len(NAMES) == len(set(NAMES)) == 389
    assert sum(name.startswith("timbre: ") for name in NAMES[:189]) == 189
    assert sum(name.startswith("rhythm: ") for name in NAMES[189:]) == 200
    assert NAMES[17] == "timbre: mean of MFCC 17"
    assert NAMES[18] == "timbre: variance of MFCC 0"
    assert NAMES[188] == "timbre: variance of MFCC 17"
    assert NAMES[189] == "rhythm: low band, coefficient 0"
    assert NAMES[388] == "rhythm: high band, coefficient 49"


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
    assert features.dtype == np.float32
    assert len(feature_names(parameters)) == parameters.n_features


@settings(max_examples=30, deadline=None)
@given(decibels=st.floats(-60, 60), seed=st.integers(0, 5))
def test_a_gain_moves_the_mean_of_mfcc_0_and_nothing_else(decibels, seed):
    samples = music(3, seed=seed)
    before = clip_features(samples, RATE)
    after = clip_features(samples * np.float32(10 ** (decibels / 20)), RATE)
    # A constant in all 40 mel bands is √40 times as large in MFCC 0 of the orthonormal DCT.
    moved = after[MFCC_0] - before[MFCC_0]
    assert moved == pytest.approx(decibels * np.sqrt(40), rel=1e-4, abs=1e-2)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


def test_an_offset_moves_nothing():
    samples = music()
    found, expected = clip_features(samples + np.float32(0.25), RATE), clip_features(samples, RATE)
    assert differences(found, expected).max() < 1e-4


def test_a_gain_keeps_what_is_at_the_floor_there():
    samples = clicks(120)  # most frames are silent
    before, after = clip_features(samples, RATE), clip_features(samples / 64, RATE)
    after[MFCC_0] = before[MFCC_0]
    assert differences(after, before).max() < 1e-4


@pytest.mark.parametrize("value", [0.0, 0.3, -1.0])
def test_silence_and_an_offset_have_no_covariance_and_no_rhythm(value):
    features = clip_features(np.full(10 * RATE, value, np.float32), RATE)
    assert features[MFCC_0] == pytest.approx(-140 * np.sqrt(40), rel=1e-5)
    np.testing.assert_allclose(np.delete(features, MFCC_0), 0, atol=1e-4)


@pytest.mark.parametrize(
    "samples",
    [
        np.eye(1, 5 * RATE, 2 * RATE, dtype=np.float32)[0],
        sine(440),
        np.sign(sine(440)),
        music(level=1e12),
        music(level=1e-12),
        music(level=1e-30),
        music(1),
        music(40),
        music().astype(np.float64),
        music().astype(np.float16),
        music()[::-1],
        music(8)[::2],
        music().tolist(),
    ],
    ids=[
        *("impulse", "sine", "square", "loud", "quiet", "vanishing", "second", "long"),
        *("float64", "float16", "reversed", "strided", "list"),
    ],
)
def test_any_sound_has_finite_features(samples):
    features = clip_features(samples, RATE)
    assert np.isfinite(features).all()
    assert len(features) == 389


def test_the_same_samples_give_the_same_bits_and_stay_as_they_are():
    samples = music()
    copy = samples.copy()
    first, second = clip_features(samples, RATE), clip_features(samples, RATE)
    assert first.tobytes() == second.tobytes()
    assert (samples == copy).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e13, -1e300])
def test_samples_that_are_not_finite_are_refused_with_their_place(bad):
    samples = music().astype(np.float64)
    samples[11_025] = bad
    with pytest.raises(DataError, match=r"'samples' must be finite .* at 11025 \(0\.500 s\)"):
        clip_features(samples, RATE)


@pytest.mark.parametrize("seconds", [0, 0.01, 0.3, 0.99])
def test_a_short_clip_is_refused_with_the_length_it_needs(seconds):
    with pytest.raises(DataError, match=r"at least 1\.00 s \(22050 samples\), got .* longer clip"):
        clip_features(music(2)[: int(seconds * RATE)], RATE)


@pytest.mark.parametrize("shape", [(), (22_050, 2), (2, 22_050), (22_050, 1)])
def test_more_than_one_channel_is_refused(shape):
    with pytest.raises(DataError, match=r"one channel, an array of shape \(n,\), got shape"):
        clip_features(np.zeros(shape, np.float32), RATE)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.complex64, bool, object])
def test_samples_that_are_not_floats_are_refused(dtype):
    with pytest.raises(DataError, match="must be floating-point numbers with full scale 1"):
        clip_features(np.zeros(RATE, dtype), RATE)


@pytest.mark.parametrize("rate", [44_100, 8000, 0])
def test_another_rate_is_refused(rate):
    with pytest.raises(DataError, match=f"'rate' must be 22050, got {rate}. Resample the clip"):
        clip_features(music(), rate)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 0}, "'rate' must be a whole number of at least 1, got 0"),
        ({"hop_length": 512.0}, r"'hop_length' must be a whole number of at least 1, got 512\.0"),
        ({"modulation_frame": 2}, "'modulation_frame' must be a whole number of at least 3"),
        ({"silence": 0.0}, "'silence' must be a positive number"),
        ({"dynamic_range": float("nan")}, "'dynamic_range' must be a positive number, got nan"),
        ({"rate": 16_000}, r"highest_hz ≤ rate / 2 = 8000, got 30\.0 and 11025\.0"),
        ({"lowest_hz": -1.0}, "0 ≤ lowest_hz"),
        ({"n_mfcc": 41}, "'n_mfcc' must be at most 'n_mels', got 41 and 40"),
        ({"modulation_fft": 400}, "'modulation_fft' must be at least 'modulation_frame'"),
        ({"highest_modulation_hz": 30.0}, r"at most half the frame rate \(21\.53 Hz\), got 30"),
        ({"n_rhythm": 120}, r"number of modulation frequencies \(119\), got 120"),
        ({"band_names": ("low", "high")}, "'band_names' must be distinct and one more than"),
        ({"band_names": ("a", "a", "b", "c")}, "'band_names' must be distinct"),
        ({"band_edges": (800.0, 200.0, 3200.0)}, "'band_edges' must rise between"),
        ({"band_edges": (10.0, 200.0, 3200.0)}, "'band_edges' must rise between"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        FeatureParameters(**settings)
