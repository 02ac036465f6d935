"""The picture of a clip shows what it says, and the command draws it."""

import re

import numpy as np
import pytest
from command_line import run_main
from matplotlib.image import imread
from sound_files import RATE, clicks, music, write_sndfile

from harmonium.audio import Clip
from harmonium.audio.extractors import DEFAULTS, decibels, mel_spectrogram, raise_to_floor
from harmonium.audio.pictures import draw_clip, save_picture

BANDS = ("low", "low-mid", "high-mid", "high")


def clip_of(samples, start=0.0):
    return Clip(samples, RATE, start, len(samples) / RATE, "none")


def test_the_spectrum_is_that_of_the_clip_at_its_time():
    samples = music(3)
    figure = draw_clip(clip_of(samples, start=7.5), title="song")
    above, below, scale = figure.get_axes()
    (image,) = above.get_images()
    mel = raise_to_floor(mel_spectrogram(samples - samples.mean(), DEFAULTS), DEFAULTS)
    levels = decibels(mel).T
    np.testing.assert_allclose(image.get_array(), levels - levels.max(), atol=1e-3)
    assert above.get_xlim()[0] == 7.5
    assert (above.get_ylabel(), above.get_xlabel()) == ("Hz", "seconds into the file")
    assert below.get_xlabel() == "times per second (Hz)"
    assert scale.get_ylabel() == "dB, 0 is the strongest"
    assert figure.get_suptitle() == "song"


def test_a_click_track_swings_in_its_band():
    figure = draw_clip(clip_of(clicks(120, hz=100)))
    below = figure.get_axes()[1]
    assert [text.split(", ")[0] for text in below.get_legend_handles_labels()[1]] == [*BANDS]
    hertz, depth = below.get_lines()[0].get_data()
    assert hertz[1 + np.argmax(depth[1:])] == pytest.approx(2, abs=0.25)  # 120 a minute


def test_silence_is_dark():
    figure = draw_clip(clip_of(np.zeros(3 * RATE, np.float32)))
    (image,) = figure.get_axes()[0].get_images()
    np.testing.assert_allclose(image.get_array(), -80, rtol=1e-6)


@pytest.mark.parametrize("title", ["$x^2$ \\frac\nb 🎵 \udcff", "long " * 100], ids=["odd", "long"])
def test_any_title_is_drawn_as_it_stands(title, tmp_path):
    figure = draw_clip(clip_of(music(2)), title=title)
    save_picture(figure, tmp_path / "a.svg")
    assert len(figure.get_suptitle()) <= 100
    assert "\n" not in figure.get_suptitle()


# The command. ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def song(tmp_path_factory):
    sound = music(4)[:, None]
    return write_sndfile(tmp_path_factory.mktemp("song") / "a song.wav", sound, RATE)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")


def run(*arguments):
    done = run_main("inspect", *arguments)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_draws_a_png(song, tmp_path):
    path = tmp_path / "clip.png"
    done = run(song, "-o", path, "--start", "0.5", "--seconds", "2")
    assert done == (0, f"Drawn: {path}\n", "")
    picture = imread(path)
    assert picture.shape == (1275, 1650, 4)
    assert len(np.unique(picture[::3, ::3, 1])) > 100  # shades of green


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "clip.xyz"), "cannot be written: Format 'xyz' is not supported"),
        (("-o", "none/clip.png"), "cannot be written: .*No such file or directory"),
        (("-o", "a.png", "--start", "9"), "it lasts 4.000 s, and the window should begin at 9 s"),
        (("-o", "a.png", "--start", "3.5"), "'.*a song.wav' cannot be drawn: .* at least 1.00 s"),
    ],
)
def test_what_cannot_be_drawn_is_one_message(options, message, song, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(song, *options)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert list(tmp_path.iterdir()) == []
