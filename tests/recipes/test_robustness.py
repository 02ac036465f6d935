"""The same sound in other files."""

import numpy as np
import pytest
import soundfile
from builtin_model import other_files, robustness


@pytest.fixture
def files(tmp_path):
    """Two tones, one of them soft."""
    time = np.arange(11_025) / 11_025
    paths = [tmp_path / "loud.wav", tmp_path / "soft.wav"]
    for path, level in zip(paths, (0.5, 0.05), strict=True):
        soundfile.write(path, level * np.sin(440 * 2 * np.pi * time), 11_025, subtype="FLOAT")
    return paths


def levels(files):
    """In place of musicnn: how loud a file is, and how long."""
    sounds = [soundfile.read(file)[0] for file in files]
    return np.array([[np.sqrt(np.mean(s**2)), len(s) / 11_025] for s in sounds], np.float32)


def test_what_moves_and_which_tags_are_kept(files, monkeypatch):
    monkeypatch.setattr(robustness, "hear", levels)
    monkeypatch.setattr(other_files, "hear", levels)
    wav, mp3, softer = robustness.compare(files, lambda X: X, np.array([0.1, 2], np.float32))
    assert (wav["file"], softer["file"]) == ("WAV, 16 bit", "10 dB softer")
    assert wav["median"] == pytest.approx(0, abs=1e-4)
    assert wav["kept"] == mp3["kept"] == 1
    assert mp3["most"] > wav["most"]  # it is a little longer
    root = np.sqrt(0.5)
    moved = [0.5 * root * (1 - 10**-0.5), 0.05 * root * (1 - 10**-0.5), 0, 0]
    assert softer["most"] == pytest.approx(np.quantile(moved, 0.99), rel=1e-3)
    assert softer["kept"] == 1
    *_, softer = robustness.compare(files, lambda X: X, np.array([0.2, 2], np.float32))
    assert softer["kept"] == 0
