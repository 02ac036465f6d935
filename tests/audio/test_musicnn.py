"""musicnn: where it listens, its spectrum, its networks, and how their weights are stored."""

import librosa
import musicnn as recipe
import numpy as np
import pytest
from places import HELPERS
from safetensors.numpy import load_file
from scipy.signal import correlate
from sound_files import timed_noise, write_sndfile

from harmonium.audio import musicnn
from harmonium.audio.decoding import decode_windows
from harmonium.audio.extractors import get_extractor
from harmonium.errors import DataError

PATCH = musicnn.PATCH_FRAMES * musicnn.HOP
PATCHES = np.random.default_rng(0).gamma(2.0, 0.6, (3, 187, 96)).astype(np.float32)


def firsts(length, start=None):
    """The number of each window's first frame."""
    return [window.first / musicnn.HOP + 1 for window in musicnn.Patches()(length, start)]


def librosa_frames(sound):
    mel = librosa.feature.melspectrogram(y=sound, sr=16_000, hop_length=256, n_fft=512, n_mels=96)
    return np.log10(1 + 10_000 * mel.T)


def test_up_to_five_patches_are_contiguous_from_the_start():
    assert firsts(7 * 16_000) == [musicnn.PATCH_FRAMES * k for k in range(2)]
    assert firsts(15 * 16_000) == [musicnn.PATCH_FRAMES * k for k in range(5)]
    assert firsts(None) == [musicnn.PATCH_FRAMES * k for k in range(5)]
    assert firsts(4 * PATCH, start=256) == [1 + musicnn.PATCH_FRAMES * k for k in range(4)]


@pytest.mark.parametrize(
    ("n_patches", "chosen"), [(100, [10, 30, 50, 70, 90]), (6, [0, 1, 3, 4, 5])]
)
def test_of_a_longer_sound_five_lie_in_the_middle_of_equal_parts(n_patches, chosen):
    patches = np.array(firsts(n_patches * PATCH)) / musicnn.PATCH_FRAMES
    assert patches.tolist() == chosen


@pytest.mark.long  # librosa's first spectrum compiles for 20 s
def test_the_spectrum_is_librosas():
    sound = timed_noise(7, 16_000)[:, 0]
    frames = librosa_frames(sound)
    windows = decode_windows((sound, 16_000), musicnn.Patches(), rate=16_000)
    assert len(windows) == 2
    found = np.concatenate([musicnn.log_mel_patches(window)[0] for window in windows])
    np.testing.assert_allclose(found, frames[: 2 * musicnn.PATCH_FRAMES], rtol=0, atol=2e-5)
    (window,) = decode_windows((sound[:16_000], 16_000), musicnn.Patches(), rate=16_000)
    (patch,) = musicnn.log_mel_patches(window)
    np.testing.assert_allclose(patch[:63], librosa_frames(sound[:16_000]), rtol=0, atol=2e-5)


def test_a_sound_that_is_shorter_than_a_patch_is_repeated():
    sound = timed_noise(1, 16_000)[:, 0]
    (window,) = decode_windows((sound, 16_000), musicnn.Patches(), rate=16_000)
    (patch,) = musicnn.log_mel_patches(window)
    assert len(np.unique(patch[:63], axis=0)) == 63  # a second is 63 frames
    np.testing.assert_array_equal(patch[63:126], patch[:63])
    np.testing.assert_array_equal(patch[126:], patch[: 187 - 126])


@pytest.mark.parametrize("seconds", [0.0001, 0.5, 4, 40])
def test_a_file_of_any_length(seconds, tmp_path):
    sound = timed_noise(seconds + 0.01, 8_000)[: max(1, round(seconds * 8_000))]
    path = write_sndfile(tmp_path / "a.wav", sound, 8_000)
    heard = get_extractor("musicnn").extract(path)
    assert len(heard) == 400 + len(musicnn.HEAD_NAMES) == 500
    assert np.all((heard[400:] > 0) & (heard[400:] < 1))


def test_another_rate_is_refused():
    with pytest.raises(DataError, match="musicnn needs 16000 samples per second, got 8000"):
        musicnn.listen(np.zeros(1000, np.float32), 8000)


def test_a_sound_without_a_frame_is_refused():
    with pytest.raises(DataError, match="at least 512 samples"):
        musicnn.log_mel_patches(np.zeros(100, np.float32))


def directly(tensors, patch):
    """Hidden layer and probabilities, layer by layer in double precision."""
    t = {name: value.astype(np.float64) for name, value in tensors.items()}

    def named(name, i):
        return name + (f"_{i}" if i else "")

    def norm(x, i):
        gamma, beta, mean, variance = (
            t[f"{named('batch_normalization', i)}/{part}"]
            for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return gamma * (x - mean) / np.sqrt(variance + musicnn.EPSILON) + beta

    def convolution(x, i):
        """Of the same number of frames, and of the bands where the filter fits."""
        kernel, bias = t[f"{named('conv2d', i)}/kernel"], t[f"{named('conv2d', i)}/bias"]
        n = len(kernel) - 1
        padded = np.pad(x, ((n // 2, n - n // 2), (0, 0)))
        maps = [correlate(padded, kernel[:, :, 0, c], "valid") for c in range(kernel.shape[3])]
        return norm(np.maximum(np.stack(maps, axis=2) + bias, 0), i + 1)

    x = norm(patch.astype(np.float64), 0)
    front = np.concatenate([convolution(x, i).max(axis=1) for i in range(5)], axis=1)
    one = convolution(front, 5)[:, 0]
    two = convolution(one, 6)[:, 0] + one
    three = convolution(two, 7)[:, 0] + two
    layers = np.concatenate([front, one, two, three], axis=1)
    pooled = norm(np.stack([layers.max(axis=0), layers.mean(axis=0)], axis=1).ravel(), 9)
    hidden = norm(np.maximum(pooled @ t["dense/kernel"] + t["dense/bias"], 0), 10)
    return hidden, 1 / (1 + np.exp(-hidden @ t["dense_1/kernel"] - t["dense_1/bias"]))


@pytest.fixture(scope="module")
def tensors():
    stored = load_file(musicnn.FILE)
    return {name: musicnn.unpacked(stored, name) for name in musicnn.NETWORKS}


@pytest.mark.parametrize("n_frames", [187, 40])
@pytest.mark.parametrize("name", musicnn.NETWORKS)
def test_the_network_is_that_of_direct_convolutions(name, n_frames, tensors):
    patch = PATCHES[0, :n_frames]
    outputs = musicnn.Network(tensors[name])(patch)
    hidden, probabilities = directly(tensors[name], patch)
    np.testing.assert_allclose(outputs.hidden, hidden, rtol=0, atol=1e-5 * np.abs(hidden).max())
    np.testing.assert_allclose(outputs.heads, probabilities, rtol=0, atol=1e-5)


def sound():
    """Seven seconds of three plucked tones."""
    t = np.arange(7 * 16_000) / 16_000
    pairs = ((1, 220.0), (2, 440.0), (3, 987.8))
    tones = sum(np.sin(2 * np.pi * hz * t) * np.exp(-3 * ((2 * k * t) % 1)) for k, hz in pairs)
    noise = np.random.default_rng(1).normal(size=len(t))
    return (0.1 * tones + 0.01 * noise).astype(np.float32)


def test_a_sound_is_heard_as_by_the_original():
    """TensorFlow's weights are not rounded: `python benchmarks/musicnn_speed.py --fixture FILE`."""
    with np.load(HELPERS / "samples" / "musicnn_by_tensorflow.npz") as file:
        by_tensorflow = dict(file)
    heard = get_extractor("musicnn").extract((sound(), 16_000))
    of = {
        part: np.concatenate([by_tensorflow[f"{name}_sound_{part}"] for name in ("MSD", "MTT")])
        for part in ("hidden", "tags")
    }
    np.testing.assert_allclose(heard[400:], of["tags"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(heard[:400], of["hidden"], rtol=0, atol=recipe.TOLERANCE)
