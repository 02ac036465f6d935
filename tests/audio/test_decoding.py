"""One window of a file, or several: where they lie, to the sample, in every format."""

import os

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_files import lag, timed_noise, write_ffmpeg, write_film, write_sndfile

from harmonium.audio import decode, decoding
from harmonium.audio.decoding import SpreadWindows, Window, decode_windows, find_audio
from harmonium.audio.ffmpeg import FFmpeg
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
def test_libsndfile_is_asked_first_and_ffmpeg_for_the_rest(name, options, decoder, tmp_path):
    path = write(tmp_path / name, timed_noise(2, 48_000, 2), 48_000, options)
    clip = decode(path)
    assert clip.decoder == decoder
    assert clip.duration == pytest.approx(2, abs=0.2)
    # the ending of the name does not matter
    assert decode(path.rename(tmp_path / "music")).samples.tobytes() == clip.samples.tobytes()


def test_the_sound_of_a_film(tmp_path):
    clip = decode(write_film(tmp_path / "film.mp4", timed_noise(2, 48_000, 2), 48_000))
    assert clip.decoder == "ffmpeg"
    # The last packet of AAC is as long as the others, wherever the sound ends.
    assert 0 <= len(clip.samples) - 2 * 22_050 <= 1024
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
    path = write_ffmpeg(tmp_path / "a.m4a", sound, 44_100, "aac")
    assert [len(window) for window in decode_windows(path, every_second, rate=16_000)] == [1000] * 4


def test_windows_that_touch_are_decoded_at_once_and_others_are_sought(monkeypatch):
    spans = []
    real = decoding._read_span
    watched = lambda source, *span: spans.append(span[0]) or real(source, *span)  # noqa: E731
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

    found = decoding._windows(Shorter(claimed), thirds, 8000, 10.0, None)
    assert asked[0] == claimed
    assert 950 <= (asked[-1] or 0) <= 1000 or asked[-1] == claimed == 1000
    np.testing.assert_array_equal(found, np.ones((3, 200)))


def test_windows_of_a_truncated_file_and_behind_its_end(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(4, 16_000), 16_000, subtype="PCM_16")
    path.write_bytes(path.read_bytes()[:70_000])  # 2.2 s
    assert len(decode_windows(path, every_second, rate=16_000)) == 3
    with pytest.raises(AudioError, match=r"there is no sound from 5\.0 s on"):
        decode_windows(path, every_second, rate=16_000, start=5)
    with pytest.raises(DataError, match="The samples have no such window"):
        decode_windows((np.zeros(10, np.float32), 8000), every_second, rate=8000, start=1)


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
    assert found == [(first, min(first + 10, length)) for first in firsts]
    assert SpreadWindows(3, 10)(length + 35, 35) == [(35, min(45, length + 35))]
    assert SpreadWindows(3, 10)(None, None) == [(0, 10), (10, 20), (20, 30)]


# Which files are found in folders, and in which order.


@pytest.fixture
def folder(tmp_path):
    for name in ("b/2.mp3", "b/10.FLAC", "a/x.wav", "a/notes.txt", "a/cover.jpg", "c.Ogg", "d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(paths, folder):
    return [os.path.relpath(path, folder) for path in find_audio(paths)[0]]


def test_music_by_its_ending_sorted_to_the_bottom_and_named_files_as_they_are(folder):
    assert names([folder], folder) == ["a/x.wav", "b/10.FLAC", "b/2.mp3", "c.Ogg"]
    paths = [folder / "d", folder / "a" / "notes.txt", folder / "not-there.mp3"]
    assert find_audio(paths)[0] == [str(path) for path in paths]
    paths = [folder / "b" / "2.mp3", folder, folder / "b"]  # each file once
    assert names(paths, folder) == ["b/2.mp3", "a/x.wav", "b/10.FLAC", "c.Ogg"]


def test_hidden_files_and_folders_are_left_out(folder):
    for name in ("a/._x.wav", ".trash/old.mp3", "...And Oceans/...intro.mp3"):  # the last is a band
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    files, _, hidden = find_audio([folder])
    assert names([folder], folder)[:2] == ["...And Oceans/...intro.mp3", "a/x.wav"]
    assert len(files) == 5
    assert hidden == [str(folder / ".trash")]
    assert names([folder / ".trash"], folder) == [".trash/old.mp3"]


def test_links_are_followed_but_not_in_circles(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "far.opus").touch()
    (folder / "a" / "up").symlink_to(folder)
    (folder / "a" / "self").symlink_to(folder / "a")
    (folder / "z").symlink_to(elsewhere)
    (folder / "gone.mp3").symlink_to(folder / "nothing")
    expected = ["a/x.wav", "b/10.FLAC", "b/2.mp3", "c.Ogg", "gone.mp3", "z/far.opus"]
    assert names([folder], folder) == expected


def test_deeper_than_python_recurses(tmp_path):
    folders = [str(tmp_path) + "/d" * depth for depth in range(1, 1401)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102
    file = f"{folders[-1]}/x.mp3"
    os.close(os.open(file, os.O_CREAT))
    try:
        assert find_audio([tmp_path])[0] == [file]
    finally:  # Python's own way of removing folders recurses
        os.remove(file)  # noqa: PTH107
        for folder in reversed(folders):
            os.rmdir(folder)  # noqa: PTH106


def test_a_folder_that_cannot_be_listed(folder, monkeypatch):
    real = os.scandir

    def scandir(path):
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names([folder], folder) == ["b/10.FLAC", "b/2.mp3", "c.Ogg"]
    assert find_audio([folder])[1] == {str(folder / "a"): "cannot be listed: Permission denied."}


def test_names_of_any_kind(tmp_path):
    odd = [os.fsdecode(b"\xff.mp3"), "two\nlines.mp3", "🎵.mp3"]
    for name in odd:
        (tmp_path / name).touch()
    assert set(names([tmp_path], tmp_path)) == set(odd)
