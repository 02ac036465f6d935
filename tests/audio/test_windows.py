"""Several windows of a sound, where they lie, and what becomes of them at its ends."""

from dataclasses import dataclass

import numpy as np
import pytest
import soxr
from sound_files import timed_noise, write_ffmpeg, write_sndfile

from harmonium.audio import Extractor, decoding, features_of_file, get_extractor
from harmonium.audio.decoding import SpreadWindows, Window, decode_windows, windows_of_samples
from harmonium.audio.extraction import extract_files
from harmonium.audio.extractors import with_windows
from harmonium.errors import AudioError, DataError


def every_second(length, start):
    """Windows of 1,000 samples, 16,000 apart, each from 100 before."""
    first = start or 0
    return [Window(i - 100, i + 900) for i in range(first, length or first + 64_000, 16_000)]


def test_windows_are_cut_out_of_the_whole_resampled_sound(tmp_path):
    sound = timed_noise(3.3, 44_100)
    whole = soxr.resample(sound[:, 0], 44_100, 16_000)
    path = write_sndfile(tmp_path / "a.wav", sound, 44_100, subtype="FLOAT")
    found = decode_windows(path, every_second, rate=16_000)
    assert len(found) == 4
    padded = np.pad(whole, (100, 1000))
    for k, window in enumerate(found):
        expected = padded[16_000 * k :][:1000]
        assert np.abs(window - expected).max() < 1e-4


@pytest.mark.parametrize("start", [None, 0.5])
def test_samples_in_memory_have_the_same_windows_as_a_file(start, tmp_path):
    sound = timed_noise(2, 22_050)
    path = write_sndfile(tmp_path / "a.wav", sound, 22_050, subtype="FLOAT")
    of_file = decode_windows(path, every_second, rate=16_000, start=start)
    of_samples = windows_of_samples(sound[:, 0], 22_050, every_second, rate=16_000, start=start)
    np.testing.assert_array_equal(of_file, of_samples)


def test_windows_that_touch_are_decoded_at_once_and_others_are_sought(monkeypatch):
    spans = []
    real = decoding._read_span
    monkeypatch.setattr(
        decoding, "_read_span", lambda source, *span: spans.append(span[0]) or real(source, *span)
    )
    sound = np.arange(100, dtype=np.float32)

    def plan(length, start):
        return [Window(60, 70), Window(-5, 20), Window(20, 30), Window(65, 80), Window(95, 110)]

    found = windows_of_samples(sound, 8000, plan, rate=8000)
    assert spans == [(0, 30), (60, 80), (95, 100)]
    assert found[1].tolist() == [0] * 5 + list(range(20))
    assert found[3].tolist() == list(range(65, 80))
    assert found[4].tolist() == [95, 96, 97, 98, 99] + [0] * 10


class Shorter:
    """A sound whose length is an estimate, or not known at all."""

    name, rate = "test", 8000

    def __init__(self, claimed):
        self.n_frames = claimed

    def read(self, start, count):
        return np.ones(1000, np.float32)[start : start + count]


@pytest.mark.parametrize("claimed", [None, 1000, 1500, 100_000])
def test_a_plan_is_asked_again_with_the_true_length(claimed):
    asked = []

    def thirds(length, start):
        asked.append(length)
        length = length or 5000
        return [Window(k * (length - 200) // 2, k * (length - 200) // 2 + 200) for k in range(3)]

    found = decoding._windows(Shorter(claimed), thirds, 8000, None)
    assert asked[0] == claimed
    assert 950 <= (asked[-1] or 0) <= 1000 or asked[-1] == claimed == 1000
    np.testing.assert_array_equal(found, np.ones((3, 200)))


def test_a_truncated_file_is_heard_where_it_has_sound(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(4, 16_000), 16_000, subtype="PCM_16")
    path.write_bytes(path.read_bytes()[:70_000])  # 2.2 s
    assert len(decode_windows(path, every_second, rate=16_000)) == 3


def test_a_start_behind_the_end(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(1, 16_000), 16_000, subtype="PCM_16")
    with pytest.raises(AudioError, match=r"there is no sound from 2\.0 s on"):
        decode_windows(path, every_second, rate=16_000, start=2)
    with pytest.raises(DataError, match="The samples have no such window"):
        windows_of_samples(np.zeros(10, np.float32), 8000, every_second, rate=8000, start=1)


def test_what_ffmpeg_alone_can_read(tmp_path):
    path = write_ffmpeg(tmp_path / "a.m4a", timed_noise(3.5, 44_100), 44_100, "aac")
    assert [len(window) for window in decode_windows(path, every_second, rate=16_000)] == [1000] * 4


# An extractor of several windows that gives heads


@dataclass(frozen=True)
class Halves:
    def __call__(self, length, start):
        return [Window(0, length // 2), Window(length // 2, length)]


def peak_and_share(samples, rate):
    return [samples.max(), len(samples), (samples > 0).mean()]


EXTRACTOR = Extractor(
    "halves",
    peak_and_share,
    ("peak", "length"),
    rate=8000,
    head_names=("positive",),
    windows=Halves(),
)


def test_the_numbers_are_the_mean_of_those_of_the_windows():
    samples = np.concatenate([np.full(100, 0.5), np.full(100, -1)]).astype(np.float32)
    heard = EXTRACTOR.hear_samples(samples, 8000)
    assert heard.tolist() == [-0.25, 100, 0.5]
    assert EXTRACTOR(samples, 8000).tolist() == [0.5, 200]  # a clip is a clip
    assert "Halves()" in EXTRACTOR.version


def test_heads_come_with_the_features_and_from_the_cache(tmp_path):
    samples = np.concatenate([np.full((800, 1), 0.5), np.full((800, 1), -1)])
    files = [write_sndfile(tmp_path / f"{k}.wav", samples / k, 8000) for k in (1, 2)]
    paths = [files[0], tmp_path / "nothing.wav", files[1]]
    options = {"extractor": EXTRACTOR, "engine": "serial", "cache": tmp_path / "cache"}
    for n_cached in (0, 2):
        found = extract_files(paths, **options)
        assert found.n_cached == n_cached
        np.testing.assert_allclose(found.features, [[-0.25, 800], [-0.125, 800]], atol=1e-3)
        assert found.heads.tolist() == [[0.5], [0.5]]
    assert extract_files([], extractor="paper", engine="serial").heads.shape == (0, 0)


@pytest.mark.parametrize(
    ("length", "firsts"),
    [
        (180, [25, 85, 145]),  # the middles of three minutes
        (30, [0, 10, 20]),
        (15, [0, 2, 5]),  # they overlap
        (10, [0]),
        (4, [0]),
    ],
)
def test_spread_windows_are_the_middles_of_equal_parts(length, firsts):
    found = SpreadWindows(3, 10)(length, None)
    assert [window.first for window in found] == firsts
    assert all(window.end == min(window.first + 10, length) for window in found)


def test_spread_windows_of_what_is_not_known_or_begins_somewhere():
    assert SpreadWindows(3, 10)(None, None) == [(0, 10), (10, 20), (20, 30)]
    assert SpreadWindows(3, 10)(100, 35) == [(35, 45)]
    assert SpreadWindows(3, 10)(40, 35) == [(35, 40)]


def test_a_star_and_a_number_ask_for_the_mean_of_windows(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(15, 22_050), 22_050)
    one = [features_of_file(path, start=start) for start in (0.0, 2.5, 5.0)]
    three = features_of_file(path, "paper*3")
    np.testing.assert_allclose(three, np.mean(one, axis=0), rtol=1e-4, atol=1e-4)
    versions = {get_extractor(name).version for name in ("paper", "paper*2", "paper*3")}
    assert len(versions) == 3
    assert get_extractor("paper").windows is None  # as the paper has it
    assert with_windows("timbre", 4) == "timbre*4"
    for name in ("paper*", "paper*0", "paper*x"):
        with pytest.raises(DataError, match="There is no extractor"):
            get_extractor(name)
    with pytest.raises(DataError, match="'musicnn' chooses its windows itself"):
        get_extractor("musicnn*3")
