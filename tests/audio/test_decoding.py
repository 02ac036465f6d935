"""One window of a file, or several: where they lie, to the sample, in every format."""

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import lag, timed_noise, write_ffmpeg, write_film, write_sndfile

from harmonium.audio import decode, decoding
from harmonium.audio.decoding import decode_windows
from harmonium.audio.ffmpeg import FFmpeg
from harmonium.audio.windows import Window
from harmonium.errors import AudioError, DataError

EVERY_RATE = (8_000, 44_100, 48_000, 192_000)

WAV = {"subtype": "PCM_16"}
OPUS = {"format": "OGG", "subtype": "OPUS"}
AAC = {"codec": "aac"}
CONSTANT = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
VARIABLE = {"bitrate_mode": "VARIABLE", "compression_level": 0.2}
SOME = ((8_000, 6), (44_100, 2), (192_000, 1))

LOSSLESS = [
    *(("a.wav", rate, channels, WAV) for rate in EVERY_RATE for channels in (1, 2, 6)),
    *((f"{bits}.wav", 48_000, 2, {"subtype": bits}) for bits in ("PCM_U8", "PCM_24", "FLOAT")),
    *(("a.flac", rate, channels, {}) for rate, channels in SOME),
    ("a.aiff", 48_000, 2, WAV),
    ("a.au", 44_100, 6, WAV),
    ("alac.m4a", 44_100, 2, {"codec": "alac"}),
    ("a.wv", 44_100, 2, {"codec": "wavpack"}),
]
LOSSY = [
    *(("a.ogg", rate, channels, {}) for rate, channels in SOME),
    ("constant.mp3", 44_100, 2, CONSTANT),
    ("variable.mp3", 44_100, 2, VARIABLE),
    ("constant.mp3", 8_000, 1, CONSTANT),
    ("variable.mp3", 48_000, 1, VARIABLE),
    ("lame.mp3", 44_100, 1, {"codec": "libmp3lame", "flags": "+qscale", "global_quality": "472"}),
    ("a.opus", 48_000, 2, OPUS),
    ("ffmpeg.opus", 48_000, 1, {"codec": "libopus"}),
    *(("a.m4a", rate, channels, AAC) for rate, channels in ((8_000, 1), (44_100, 2), (48_000, 6))),
]


def write(path, sound, rate, options):
    return (write_ffmpeg if "codec" in options else write_sndfile)(path, sound, rate, **options)


def case_name(case):
    return "-".join(map(str, case[:3]))


@pytest.fixture(params=["first that can", "ffmpeg"])
def decoder(request, monkeypatch):
    if request.param == "ffmpeg":
        monkeypatch.setattr(decoding, "decoders", lambda: [FFmpeg])
    return request.param


@pytest.mark.parametrize("case", LOSSLESS, ids=case_name)
def test_a_lossless_window_holds_those_very_samples(case, tmp_path, decoder):
    name, rate, channels, options = case
    sound = timed_noise(3, rate, channels)
    path = write(tmp_path / name, sound, rate, options)
    for start in (0.0, 0.7, 1.3):
        clip = decode(path, rate=rate, seconds=1.5, start=start)
        first = round(start * rate)
        assert (clip.start, clip.duration) == (first / rate, 3)
        expected = sound[first : first + round(1.5 * rate)].mean(axis=1)
        step = 1 / 120 if name in ("PCM_U8.wav", "a.wv") else 1 / 30_000  # of 8 bits, or more
        np.testing.assert_allclose(clip.samples, expected, atol=step)


@pytest.mark.parametrize("case", LOSSY, ids=case_name)
def test_a_lossy_window_lies_where_it_says_to_the_sample(case, tmp_path, decoder):
    name, rate, channels, options = case
    sound = timed_noise(4, rate, channels)
    path = write(tmp_path / name, sound, rate, options)
    for start in (None, 0.2, 2.9):
        clip = decode(path, rate=rate, seconds=1, start=start)
        first = round(clip.start * rate)
        assert lag(clip.samples, sound.mean(axis=1), first) == 0
        assert clip.start == pytest.approx(1.5 if start is None else start, abs=0.01)
        likeness = np.corrcoef(clip.samples, sound[first : first + rate].mean(axis=1))[0, 1]
        assert likeness > 0.9


@pytest.mark.parametrize("name", ["a.webm", "a.mkv"])
def test_where_a_container_counts_milliseconds_so_does_the_window(name, tmp_path):
    sound = timed_noise(4, 48_000, 2)
    codec = "libopus" if name == "a.webm" else "aac"
    path = write_ffmpeg(tmp_path / name, sound, 48_000, codec)
    for start in (0.3, 2.5):
        clip = decode(path, rate=48_000, seconds=1, start=start)
        assert abs(lag(clip.samples, sound.mean(axis=1), round(start * 48_000))) <= 48


@pytest.mark.parametrize(
    ("name", "options", "decoder"),
    [
        ("a.mp3", {}, "libsndfile"),
        ("a.opus", OPUS, "libsndfile"),
        ("a.m4a", AAC, "ffmpeg"),
        ("bare.aac", {"codec": "aac", "container": "adts"}, "ffmpeg"),
        ("opus.webm", {"codec": "libopus"}, "ffmpeg"),
        ("a.wma", {"codec": "wmav2", "container": "asf", "b": "128000"}, "ffmpeg"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_which_decoder_reads_a_file(name, options, decoder, tmp_path):
    path = write(tmp_path / name, timed_noise(2, 48_000, 2), 48_000, options)
    clip = decode(path)
    assert clip.decoder == decoder
    assert clip.duration == pytest.approx(2, abs=0.2)


def test_the_ending_of_the_name_does_not_matter(tmp_path):
    path = write_ffmpeg(tmp_path / "a.m4a", timed_noise(2, 48_000, 2), 48_000, "aac")
    before = decode(path).samples
    assert decode(path.rename(tmp_path / "music")).samples.tobytes() == before.tobytes()


def test_the_sound_of_a_film(tmp_path):
    clip = decode(write_film(tmp_path / "film.mp4", timed_noise(2, 48_000, 2), 48_000))
    assert clip.decoder == "ffmpeg"
    # The last packet of AAC is as long as the others, wherever the sound ends.
    assert 0 <= len(clip.samples) - 2 * 22_050 <= 1024


def test_a_silent_film(tmp_path):
    with pytest.raises(AudioError, match="no sound in it"):
        decode(write_film(tmp_path / "silent.mp4", None, 48_000))


@pytest.fixture(scope="module")
def wave_files(tmp_path_factory):
    """A slow wave in a file of each rate; slow enough to be read between its samples."""
    folder = tmp_path_factory.mktemp("rates")
    files = {}
    for rate in (8_000, 11_025, 22_050, 44_100, 44_101, 96_000):
        t = np.arange(round(2.5 * rate)) / rate
        sound = (0.5 * np.sin(2 * np.pi * (5 * t + 8 * t**2))).astype(np.float32)
        path = write_sndfile(folder / f"{rate}.wav", sound[:, None], rate, subtype="FLOAT")
        files[rate] = path, sound
    return files


@settings(max_examples=40, deadline=None)
@given(
    rate=st.sampled_from([8_000, 11_025, 22_050, 44_100, 44_101, 96_000]),
    wanted=st.sampled_from([8_000, 16_000, 22_050]),
    start=st.floats(0, 3),
    seconds=st.floats(0.1, 4),
)
def test_any_window_is_a_part_of_the_whole(wave_files, rate, wanted, start, seconds):
    path, sound = wave_files[rate]
    n_frames = len(sound)
    if round(start * rate) >= n_frames:
        with pytest.raises(AudioError, match=r"it lasts 2\.500 s"):
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rate", rate) for rate in (0, 22_050.5)),
        *(("seconds", seconds) for seconds in (0.0, float("nan"))),
        *(("start", start) for start in (-1.0, float("inf"))),
    ],
)
def test_windows_that_cannot_be_are_refused(name, value, tmp_path):
    with pytest.raises(DataError, match=f"'{name}' must be .* got {value}"):
        decode(tmp_path / "a.wav", **{name: value})


# Several windows.


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
        assert np.abs(window - padded[16_000 * k :][:1000]).max() < 1e-4


def test_windows_of_a_compressed_file(tmp_path):
    path = write_ffmpeg(tmp_path / "a.m4a", timed_noise(3.3, 44_100), 44_100, "aac")
    assert [len(window) for window in decode_windows(path, every_second, rate=16_000)] == [1000] * 4


def test_windows_that_touch_are_decoded_at_once(monkeypatch):
    spans = []
    real = decoding._read_span

    def watched(source, span, rate):
        spans.append(span)
        return real(source, span, rate)

    monkeypatch.setattr(decoding, "_read_span", watched)
    sound = np.arange(100, dtype=np.float32)

    def plan(length, start):
        return [Window(60, 70), Window(-5, 20), Window(20, 30), Window(65, 80), Window(95, 110)]

    found = decode_windows((sound, 8000), plan, rate=8000)
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

    found = decoding._planned_windows(Shorter(claimed), thirds, 8000, None)
    assert asked[0] == claimed
    assert 950 <= (asked[-1] or 0) <= 1000 or asked[-1] == claimed == 1000
    np.testing.assert_array_equal(found, np.ones((3, 200)))


@pytest.fixture
def truncated(tmp_path):
    """A file of 4 s, of which 2.2 s are there."""
    path = write_sndfile(tmp_path / "a.wav", timed_noise(4, 16_000), 16_000, subtype="PCM_16")
    path.write_bytes(path.read_bytes()[:70_000])
    return path


def test_windows_of_a_truncated_file(truncated):
    assert len(decode_windows(truncated, every_second, rate=16_000)) == 3


def test_windows_behind_the_end(truncated):
    with pytest.raises(AudioError, match=r"there is no sound from 5\.0 s on"):
        decode_windows(truncated, every_second, rate=16_000, start=5)


def test_windows_behind_the_end_of_samples():
    with pytest.raises(DataError, match="The samples have no such window"):
        decode_windows((np.zeros(10, np.float32), 8000), every_second, rate=8000, start=1)
