"""Where the window lies: told, to the sample, by a sound no two moments of which are alike."""

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import lag, timed_noise, write_ffmpeg, write_sndfile

from harmonium.audio import decode, decoding
from harmonium.errors import AudioError, DataError

EVERY_RATE = (8_000, 44_100, 48_000, 192_000)

WAV = {"subtype": "PCM_16"}
OPUS = {"format": "OGG", "subtype": "OPUS"}
AAC = {"codec": "aac"}
CONSTANT = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
VARIABLE = {"bitrate_mode": "VARIABLE", "compression_level": 0.2}

LOSSLESS = [
    *(("a.wav", rate, channels, WAV) for rate in EVERY_RATE for channels in (1, 2, 6)),
    *(("a.flac", rate, channels, {}) for rate, channels in ((8_000, 6), (44_100, 2), (192_000, 1))),
    ("a.aiff", 48_000, 2, WAV),
    ("a.au", 44_100, 6, WAV),
    ("alac.m4a", 44_100, 2, {"codec": "alac"}),
]
LOSSY = [
    *(("a.ogg", rate, channels, {}) for rate, channels in ((8_000, 6), (44_100, 2), (192_000, 1))),
    ("constant.mp3", 44_100, 2, CONSTANT),
    ("variable.mp3", 44_100, 2, VARIABLE),
    ("constant.mp3", 8_000, 1, CONSTANT),
    ("variable.mp3", 48_000, 1, VARIABLE),
    ("lame.mp3", 44_100, 1, {"codec": "libmp3lame", "flags": "+qscale", "global_quality": "472"}),
    ("a.opus", 48_000, 2, OPUS),
    ("ffmpeg.opus", 48_000, 1, {"codec": "libopus"}),
    ("a.m4a", 8_000, 1, AAC),
    ("a.m4a", 44_100, 2, AAC),
    ("a.m4a", 48_000, 6, AAC),
]


def write(path, sound, rate, options):
    return (write_ffmpeg if "codec" in options else write_sndfile)(path, sound, rate, **options)


def case_name(case):
    return "-".join(map(str, case[:3]))


@pytest.mark.parametrize("case", LOSSLESS, ids=case_name)
def test_a_lossless_window_holds_those_very_samples(case, tmp_path):
    name, rate, channels, options = case
    sound = timed_noise(3, rate, channels)
    path = write(tmp_path / name, sound, rate, options)
    for start in (0.0, 0.7, 1.3):
        clip = decode(path, rate=rate, seconds=1.5, start=start)
        first = round(start * rate)
        assert clip.start == first / rate
        assert clip.duration == 3
        expected = sound[first : first + round(1.5 * rate)].mean(axis=1)
        np.testing.assert_allclose(clip.samples, expected, atol=1 / 30_000)


@pytest.mark.parametrize("case", LOSSY, ids=case_name)
def test_a_lossy_window_lies_where_it_says_to_the_sample(case, tmp_path):
    name, rate, channels, options = case
    sound = timed_noise(4, rate, channels)
    path = write(tmp_path / name, sound, rate, options)
    for start in (None, 0.2, 2.9):
        clip = decode(path, rate=rate, seconds=1, start=start)
        assert len(clip.samples) == rate
        assert lag(clip.samples, sound.mean(axis=1), round(clip.start * rate)) == 0
        assert clip.start == pytest.approx(1.5 if start is None else start, abs=0.01)


BOTH_READ = [
    ("a.wav", 44_100, 2, WAV),
    ("a.flac", 48_000, 1, {}),
    ("a.ogg", 44_100, 2, {}),
    ("constant.mp3", 44_100, 2, CONSTANT),
    ("variable.mp3", 48_000, 1, VARIABLE),
    ("a.opus", 48_000, 2, OPUS),
    ("ffmpeg.opus", 48_000, 1, {"codec": "libopus"}),
]


@pytest.mark.parametrize("case", BOTH_READ, ids=case_name)
def test_ffmpeg_finds_the_same_window_where_libsndfile_refuses(case, tmp_path, monkeypatch):
    name, rate, channels, options = case
    sound = timed_noise(4, rate, channels)
    path = write(tmp_path / name, sound, rate, options)
    monkeypatch.setattr(decoding, "DECODERS", {"ffmpeg": decoding.DECODERS["ffmpeg"]})
    for start in (0.2, 1.7, 2.9):
        clip = decode(path, rate=rate, seconds=1, start=start)
        assert clip.decoder == "ffmpeg"
        assert lag(clip.samples, sound.mean(axis=1), round(start * rate)) == 0


@pytest.mark.parametrize("name", ["a.webm", "a.mkv"])
def test_where_a_container_counts_milliseconds_so_does_the_window(name, tmp_path):
    sound = timed_noise(4, 48_000, 2)
    codec = "libopus" if name == "a.webm" else "aac"
    path = write_ffmpeg(tmp_path / name, sound, 48_000, codec)
    for start in (0.3, 2.5):
        clip = decode(path, rate=48_000, seconds=1, start=start)
        assert abs(lag(clip.samples, sound.mean(axis=1), round(start * 48_000))) <= 48


@pytest.mark.parametrize("rate", EVERY_RATE)
def test_resampling_shifts_nothing_and_the_ends_are_those_of_the_whole(rate, tmp_path):
    sound = timed_noise(4, rate)
    path = write_sndfile(tmp_path / "a.wav", sound, rate, subtype="FLOAT")
    whole = soxr.resample(sound[:, 0], rate, 22_050)
    clip = decode(path, seconds=1, start=2)
    np.testing.assert_allclose(clip.samples, whole[44_100 : 44_100 + 22_050], atol=2e-4)


@settings(max_examples=40, deadline=None)
@given(
    rate=st.sampled_from([8_000, 11_025, 22_050, 44_100, 44_101, 96_000]),
    wanted=st.sampled_from([8_000, 16_000, 22_050]),
    start=st.floats(0, 3),
    seconds=st.floats(0.1, 4),
)
def test_any_window_is_a_part_of_the_whole(noise_files, rate, wanted, start, seconds):
    path, sound = noise_files[rate]
    n_frames = len(sound)
    if round(start * rate) >= n_frames:
        with pytest.raises(AudioError, match=r"it lasts 2\.500 s, and the window should begin at"):
            decode(path, rate=wanted, seconds=seconds, start=start)
        return
    clip = decode(path, rate=wanted, seconds=seconds, start=start)
    assert clip.rate == wanted
    assert abs(clip.start - start) <= 0.500001 / rate
    there = min(seconds, 2.5 - clip.start)
    assert abs(len(clip.samples) - there * wanted) <= 1 + wanted / rate
    if len(clip.samples) > 0.05 * wanted:
        # at the very ends of the file resampling has nothing to go by
        times = clip.start + np.arange(len(clip.samples)) / wanted
        inner = slice(0, np.searchsorted(times, 2.45))
        expected = np.interp(times, np.arange(n_frames) / rate, sound)
        np.testing.assert_allclose(clip.samples[inner], expected[inner], atol=0.02)


@pytest.fixture(scope="module")
def noise_files(tmp_path_factory):
    """A slow wave in a file of each rate; slow enough to be read between its samples."""
    folder = tmp_path_factory.mktemp("rates")
    files = {}
    for rate in (8_000, 11_025, 22_050, 44_100, 44_101, 96_000):
        t = np.arange(round(2.5 * rate)) / rate
        sound = (0.5 * np.sin(2 * np.pi * (5 * t + 8 * t**2))).astype(np.float32)
        path = write_sndfile(folder / f"{rate}.wav", sound[:, None], rate, subtype="FLOAT")
        files[rate] = path, sound
    return files


def test_the_middle_is_the_default(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(12, 8_000), 8_000)
    clip = decode(path, rate=8_000)
    assert (clip.start, len(clip.samples), clip.duration) == (1.0, 80_000, 12.0)


def test_a_file_shorter_than_the_window_gives_what_it_has(tmp_path):
    sound = timed_noise(0.3, 44_100)
    path = write_sndfile(tmp_path / "a.wav", sound, 44_100, subtype="FLOAT")
    clip = decode(path)
    assert (clip.start, clip.duration) == (0.0, 0.3)
    assert len(clip.samples) == 6615
    assert decode(path, start=0.1, seconds=5).samples.shape == (4410,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0}, "'rate' must be a whole number from 1000 to 1000000, got 0"),
        ({"rate": 22_050.5}, r"'rate' must be a whole number .* got 22050\.5"),
        ({"seconds": 0.0}, r"'seconds' must be a positive number, got 0\.0"),
        ({"seconds": float("nan")}, "'seconds' must be a positive number, got nan"),
        ({"start": -1.0}, r"'start' must be a number of seconds, at least 0, .* got -1\.0"),
        ({"start": float("inf")}, "'start' must be a number of seconds, .* got inf"),
    ],
)
def test_windows_that_cannot_be_are_refused(options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        decode(tmp_path / "a.wav", **options)
