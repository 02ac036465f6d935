"""The same sound in other files, and features without what a change of volume changes."""

import numpy as np
import pytest
import soundfile
from builtin_model import making, other_files, robustness, volume
from builtin_model.corpus import Corpus
from builtin_model.volume import find_volume, learn_volume

from harmonium import DiscriminativeRBM


@pytest.fixture
def heard():
    """Features of clips, and of the same ones softer and louder: two of many directions move."""
    rng = np.random.default_rng(0)
    X = rng.normal(3, [1, 5, 0.2, 1, 2, 1], size=(80, 6)).astype(np.float32)
    moves = np.array([[1, 5, 0, 0, 0, 0], [0, 0, 0.2, 0, -2, 0]], np.float32)
    others = [(X + rng.normal(gain, 0.5, size=(80, 2)) @ moves) for gain in (-2, 1)]
    return X, [other.astype(np.float32) for other in others]


def test_what_moves_with_the_volume_is_taken_out_and_nothing_else(heard):
    X, others = heard
    found = find_volume(X, others, 2)
    for other in others:
        np.testing.assert_allclose(found.taken_out(other), found.taken_out(X), atol=1e-4)
    np.testing.assert_allclose(found.taken_out(X)[:, [3, 5]], X[:, [3, 5]], atol=0.02)
    np.testing.assert_allclose(found.taken_out(found.taken_out(X)), found.taken_out(X), atol=1e-4)


def test_the_model_that_is_made_hears_features_as_they_are(heard, monkeypatch):
    monkeypatch.setitem(making.SETTINGS, "n_hidden", 5)
    monkeypatch.setitem(making.SETTINGS, "max_epochs", 30)
    X, others = heard
    found = find_volume(X, others, 2)
    Y = (X[:, [3, 5]] > 3).astype(np.float32)
    plain = found.taken_out(X)
    groups = np.array([f"4q: {number // 2}" for number in range(80)])
    names = np.full(80, "4q")
    corpus = Corpus(plain, Y, np.full_like(Y, np.nan), ("calm", "jazz"), names, groups, found)
    made = making.make(corpus)
    again = DiscriminativeRBM.from_bytes(made.to_bytes())
    expected = made.model.recalibration_(making.fit(corpus).predict_proba(plain))
    for features in (X, *others):
        np.testing.assert_allclose(again.predict_proba(features), expected, atol=1e-4)


def test_clips_are_heard_softer_and_louder(tmp_path, monkeypatch):
    def peaks(files):
        return np.array([[np.abs(soundfile.read(file)[0]).max(), 1] for file in files], np.float32)

    monkeypatch.setattr(volume, "hear", peaks)
    monkeypatch.setattr(other_files, "hear", peaks)
    rng, files = np.random.default_rng(0), [tmp_path / f"{number}.wav" for number in range(20)]
    for file in files:
        soundfile.write(file, 0.5 * rng.random() * rng.random(100), 8000, subtype="FLOAT")
    found = learn_volume(files, 1)
    assert np.abs(found.moved[0, 0]) > 0
    np.testing.assert_allclose(found.moved[0, 1], 0, atol=1e-6)


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
