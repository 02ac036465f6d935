"""Features of a file over time."""

import numpy as np
import odd_extractors as odd
import pytest
import soundfile
from odd_extractors import Counting, write_level
from sound_files import RATE

from harmonium.audio.over_time import PLACES, features_over_time


@pytest.fixture
def rising(tmp_path):
    """12 s whose level rises in steps of 0.2 s."""
    levels = np.repeat(np.arange(1, 2 * PLACES + 1) / 100, round(0.2 * RATE))
    soundfile.write(tmp_path / "a.wav", levels.astype(np.float32), RATE, subtype="FLOAT")
    return tmp_path / "a.wav"


def test_places_are_the_middles_of_equal_parts(rising, tmp_path):
    extractor = odd.extractor(odd.mean_level)
    times, X = features_over_time(rising, extractor, cache=tmp_path, key="abc")
    np.testing.assert_allclose(times[:, 0], 0.1 + 0.4 * np.arange(PLACES), atol=1e-3)
    np.testing.assert_allclose(times[:, 1] - times[:, 0], 0.2, atol=1e-3)
    np.testing.assert_allclose(X[:, 0], (2 * np.arange(PLACES) + 1.5) / 100, atol=1e-3)


def test_they_are_heard_once(rising, tmp_path):
    function = Counting()
    extractor = odd.extractor(function)
    first = features_over_time(rising, extractor, cache=tmp_path, key="abc")
    again = features_over_time(rising, extractor, cache=tmp_path, key="abc")
    assert function.calls == PLACES
    np.testing.assert_array_equal(again.features, first.features)


def test_a_damaged_file_of_the_cache(rising, tmp_path):
    extractor = odd.extractor(odd.mean_level)
    first = features_over_time(rising, extractor, cache=tmp_path / "cache", key="abc")
    next((tmp_path / "cache").rglob("*.npy")).write_bytes(b"damaged")
    again = features_over_time(rising, extractor, cache=tmp_path / "cache", key="abc")
    np.testing.assert_array_equal(again.features, first.features)


def test_a_short_file_has_one_place(tmp_path):
    path = write_level(tmp_path / "b.wav", 0.5)  # 0.25 s
    heard = features_over_time(path, odd.extractor(odd.mean_level), cache=tmp_path)
    assert len(heard.seconds) == 1
