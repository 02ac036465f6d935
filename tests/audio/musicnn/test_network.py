"""The network: against direct convolutions, and against what TensorFlow gives."""

import numpy as np
import pytest
from places import HELPERS
from scipy.signal import correlate
from tiny_musicnn import random_tensors

from harmonium.audio.extractors import get_extractor
from harmonium.audio.musicnn.network import EPSILON, Network
from harmonium.audio.musicnn.weights import load_networks
from harmonium.errors import ModelFileError

PATCHES = np.random.default_rng(0).gamma(2.0, 0.6, (3, 187, 96)).astype(np.float32)


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
        return gamma * (x - mean) / np.sqrt(variance + EPSILON) + beta

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


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_frames", [187, 40])
def test_the_network_is_that_of_direct_convolutions(seed, n_frames):
    tensors = random_tensors(seed)
    found = Network(tensors)(PATCHES[seed, :n_frames])
    hidden, probabilities = directly(tensors, PATCHES[seed, :n_frames])
    np.testing.assert_allclose(found.hidden, hidden, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=0, atol=1e-6)


def test_tensors_of_something_else():
    tensors = random_tensors()
    del tensors["conv2d_3/kernel"]
    with pytest.raises(ModelFileError, match=r"not the weights of a musicnn: 'conv2d_3/kernel'"):
        Network(tensors)


# With the real weights. The fixture: `python benchmarks/musicnn_speed.py --fixture FILE`.


@pytest.fixture(scope="module")
def by_tensorflow():
    with np.load(HELPERS / "samples" / "musicnn_by_tensorflow.npz") as file:
        return dict(file)


@pytest.mark.parametrize(("k", "name"), [(0, "MSD"), (1, "MTT")])
def test_outputs_are_those_of_tensorflow(k, name, by_tensorflow, musicnn_weights):
    network = load_networks()[k]
    for patch, hidden, tags in zip(
        PATCHES, by_tensorflow[f"{name}_hidden"], by_tensorflow[f"{name}_tags"], strict=True
    ):
        found = network(patch)
        np.testing.assert_allclose(found.probabilities, tags, rtol=0, atol=1e-5)
        np.testing.assert_allclose(found.hidden, hidden, rtol=0, atol=1e-5 * np.abs(hidden).max())


def sound():
    """Seven seconds of three plucked tones."""
    t = np.arange(7 * 16_000) / 16_000
    pairs = ((1, 220.0), (2, 440.0), (3, 987.8))
    tones = sum(np.sin(2 * np.pi * hz * t) * np.exp(-3 * ((2 * k * t) % 1)) for k, hz in pairs)
    noise = np.random.default_rng(1).normal(size=len(t))
    return (0.1 * tones + 0.01 * noise).astype(np.float32)


def test_a_sound_is_heard_as_by_librosa_and_tensorflow(by_tensorflow, musicnn_weights):
    heard = get_extractor("musicnn").hear_samples(sound(), 16_000)
    of = {
        part: np.concatenate([by_tensorflow[f"{name}_sound_{part}"] for name in ("MSD", "MTT")])
        for part in ("hidden", "tags")
    }
    np.testing.assert_allclose(heard.heads, of["tags"], rtol=0, atol=1e-5)
    largest = np.abs(of["hidden"]).max()
    np.testing.assert_allclose(heard.features, of["hidden"], rtol=0, atol=1e-5 * largest)
