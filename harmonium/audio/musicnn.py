"""musicnn: where it listens, its spectrum, and its two networks in NumPy.

After Pons and Serra, "musicnn: Pre-trained convolutional neural networks for music audio tagging"
(2019). The samples are at 16 kHz. Frames are centred on every 256th sample, starting with the
first, so that the first and the last reach half a frame beyond the sound, where it is silent.
Frames are rows, (n_frames, n_bands), and become rows of channels, (n_frames, n_channels).

Nearly all of the work is in filters of 7 frames by 38 or 67 bands, of which only the maximum over
frequency counts. Along frequency they are done by a Fourier transform of all n = 96 bands. For a
frame and a filter let z_k, k = 0 … n/2, be the transform of what comes out, turned such that the
places where the filter fits completely, g = −m … m, lie evenly about 0. There

    y(g) = C(g) − S(g),  C(g) = Σ_k Re z_k cos(2πkg/n),  S(g) = Σ_k Im z_k sin(2πkg/n),

and since C is even and S is odd, max(y(g), y(−g)) = C(g) + |S(g)|: the inverse transform is a
product with two matrices of half the places each, at the valid places only.

The weights are in musicnn.safetensors, which recipes/musicnn.py makes. The largest kernels are
16-bit integers there, with a scale for each filter and frame.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from harmonium.arrays import Floats
from harmonium.audio.decoding import Window
from harmonium.audio.extractors import Extractor, FeatureParameters, mel_spectrogram
from harmonium.errors import DataError, ModelFileError
from harmonium.files import read_toml

FILE = Path(__file__).with_name("musicnn.safetensors")

RATE, FRAME, HOP, BANDS = 16_000, 512, 256, 96
PATCH_FRAMES = 187
PATCH_SECONDS = (FRAME + (PATCH_FRAMES - 1) * HOP) / RATE
N_HIDDEN = 200  # length of the last hidden layer of each network
SPECTRUM = FeatureParameters(
    rate=RATE, frame_length=FRAME, hop_length=HOP, n_mels=BANDS, lowest_hz=0.0, highest_hz=RATE / 2
)

NETWORKS = ("MSD", "MTT")  # in the order of their features; a tensor's name begins with one
FEATURE_NAMES = tuple(f"{name} {k}" for name in NETWORKS for k in range(N_HIDDEN))
# The outputs of the networks: Last.fm's top fifty, and the fifty most used tags of MagnaTagATune.
_TAGS = read_toml(FILE.parents[1] / "data/datasets/datasets.toml", "The datasets")["musicnn"]
HEAD_NAMES = tuple(f"{name} {tag}" for name in NETWORKS for tag in _TAGS[name])

EPSILON = 1e-3  # added to the variances in all batch normalisations
FILTER_FRAMES = 7  # frames that the filters of the timbre and of the middle layers span
TIMBRE, TEMPO, MIDDLE = 2, 3, 3  # layers of each kind, in the order in which they are numbered
FRAMES_TOGETHER = 17  # frames to filter at once, so that the output stays in the cache

Tensors = Mapping[str, Floats]


@dataclass(frozen=True)
class Patches:
    """The contiguous patches of a sound as windows; of more, those in the middle of equal parts."""

    most: int = 5

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """The windows; if the length is unknown, the first ones."""
        begin = start or 0
        n_frames = self.most * PATCH_FRAMES if length is None else 1 + (length - begin) // HOP
        n_patches = max(1, n_frames // PATCH_FRAMES)
        n = min(n_patches, self.most)
        chosen = [(2 * k + 1) * n_patches // (2 * n) for k in range(n)]
        firsts = [begin + PATCH_FRAMES * k * HOP - FRAME // 2 for k in chosen]
        n_samples = FRAME + (min(n_frames, PATCH_FRAMES) - 1) * HOP
        return [Window(first, first + n_samples) for first in firsts]


def log_mel_patches(samples: Floats) -> Floats:
    """log₁₀(1 + 10⁴ mel) of the frames within the samples, (n_patches, PATCH_FRAMES, BANDS)."""
    # A sound shorter than a patch is repeated to fill one; the rest after the last patch is
    # dropped.
    if len(samples) < FRAME:
        raise DataError(f"musicnn needs at least {FRAME} samples at {RATE} Hz, got {len(samples)}.")
    frames = np.log10(1 + 10_000 * mel_spectrogram(samples, SPECTRUM))
    if len(frames) < PATCH_FRAMES:
        frames = np.resize(frames, (PATCH_FRAMES, BANDS))
    n_patches = len(frames) // PATCH_FRAMES
    return frames[: n_patches * PATCH_FRAMES].reshape(n_patches, PATCH_FRAMES, BANDS)


@cache
def _blas() -> Any:
    """Limits the small matrix products to one thread: on a busy machine, two would wait."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def listen(samples: Floats, rate: int) -> Floats:
    """(400 + 100,): the mean over patches of both networks' hidden layers and probabilities."""
    if rate != RATE:
        raise DataError(f"musicnn needs {RATE} samples per second, got {rate}.")
    patches = log_mel_patches(samples)
    with _blas().limit(limits=1):
        found = [[network(patch) for patch in patches] for network in load_networks()]
    hidden = [np.mean([hidden for hidden, _ in outputs], axis=0) for outputs in found]
    heads = [np.mean([heads for _, heads in outputs], axis=0) for outputs in found]
    return np.concatenate([*hidden, *heads])


EXTRACTOR = Extractor(
    "musicnn",
    listen,
    FEATURE_NAMES,
    rate=RATE,
    seconds=PATCH_SECONDS,
    head_names=HEAD_NAMES,
    windows=Patches(),
    summary="what two networks learnt to hear for tags",
    auc=0.809,
    milliseconds=215,
)


@cache
def load_networks() -> "tuple[Network, ...]":
    """Both networks, read when they are first needed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(FILE)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(
            f"The weights of musicnn in {FILE} cannot be used ({error}). Install Harmonium again; "
            "`--extractor paper` does without them."
        ) from error
    return tuple(Network(unpacked(tensors, name)) for name in NETWORKS)


def unpacked(tensors: Tensors, network: str) -> Tensors:
    """The tensors of one network by their names in its checkpoint, all float32."""
    own = {
        name.removeprefix(f"{network}/"): tensor
        for name, tensor in tensors.items()
        if name.startswith(f"{network}/")
    }
    return {
        name: tensor * own[f"{name}/scale"] if tensor.dtype == np.int16 else tensor
        for name, tensor in own.items()
    }


class Affine:
    """x ↦ scale · x + shift by channel: a batch normalisation after training."""

    def __init__(self, tensors: Tensors, number: int) -> None:
        name = "batch_normalization" + (f"_{number}" if number else "")
        mean, variance = tensors[f"{name}/moving_mean"], tensors[f"{name}/moving_variance"]
        scale = tensors[f"{name}/gamma"] / np.sqrt(variance.astype(np.float64) + EPSILON)
        self.scale = scale.astype(np.float32)
        self.shift = (tensors[f"{name}/beta"] - scale * mean).astype(np.float32)

    def __call__(self, x: Floats) -> Floats:
        """(…, n_channels) → the same shape"""
        return x * self.scale + self.shift


class PooledFilters:
    """norm(relu(filters + bias)), then the maximum over frequency.

    If the normalisation flips the sign, that is the minimum before it: such filters are flipped,
    too.
    """

    def __init__(self, tensors: Tensors, number: int) -> None:
        name = "conv2d" + (f"_{number}" if number else "")
        self.norm = Affine(tensors, number + 1)
        self.sign = np.where(self.norm.scale < 0, -1, 1).astype(np.float32)
        self.bias = tensors[f"{name}/bias"]
        self.kernel = tensors[f"{name}/kernel"][:, :, 0] * self.sign  # (frame, band, filter)

    def finished(self, maximum: Floats) -> Floats:
        """(…, n_filters) maxima of the filters with their signs → outputs"""
        return self.norm(np.maximum(self.sign * maximum + self.bias, 0))


class TimbreFilters:
    """Filters of some frames by many bands, at all places where they fit within the spectrum."""

    def __init__(self, tensors: Tensors, number: int) -> None:
        self.pooled = PooledFilters(tensors, number)
        kernel = self.pooled.kernel
        self.n_frames, width, self.n_filters = kernel.shape
        n_places = BANDS - width + 1
        k = np.arange(BANDS // 2 + 1)
        angle = 2 * np.pi * k / BANDS
        # conj: a correlation. Then the weight of k in the inverse, and the turn to the middle.
        weight = np.where((k == 0) | (2 * k == BANDS), 1, 2) / BANDS
        turn = weight * np.exp(1j * angle * (n_places - 1) / 2)
        filters = np.fft.rfft(kernel.astype(np.float64), BANDS, axis=1).conj() * turn[:, None]
        filters = filters.transpose(1, 0, 2)  # (k, frame, filter)
        # Real and imaginary part of a product with [Re x, Im x] of each frame.
        self.real = np.concatenate([filters.real, -filters.imag], 1).astype(np.float32)
        self.imag = np.concatenate([filters.imag, filters.real], 1).astype(np.float32)
        g = np.arange((n_places + 1) // 2) + (0 if n_places % 2 else 0.5)
        self.cosines = np.cos(np.outer(g, angle)).astype(np.float32)
        self.sines = np.sin(np.outer(g, angle)).astype(np.float32)

    def __call__(self, spectra: Floats) -> Floats:
        """(n_k, n, 2 · n_frames) transformed frames before and after n → (n, n_filters)"""
        n = spectra.shape[1]
        maximum = np.empty((n, self.n_filters), np.float32)
        for start in range(0, n, FRAMES_TOGETHER):
            some = spectra[:, start : start + FRAMES_TOGETHER]
            shape = (len(some), -1)  # (k, frames · filters)
            even = self.cosines @ np.matmul(some, self.real).reshape(shape)
            odd = self.sines @ np.matmul(some, self.imag).reshape(shape)
            np.abs(odd, out=odd)
            even += odd
            even.max(axis=0, out=maximum[start : start + FRAMES_TOGETHER].reshape(-1))
        return self.pooled.finished(maximum)


class Network:
    """A musicnn, by the tensors of its checkpoint."""

    def __init__(self, tensors: Tensors) -> None:
        self.input_norm = Affine(tensors, 0)
        self.timbre = [TimbreFilters(tensors, i) for i in range(TIMBRE)]
        first = TIMBRE + TEMPO
        self.tempo = [PooledFilters(tensors, i) for i in range(TIMBRE, first)]
        self.middle = [_MiddleLayer(tensors, first + i) for i in range(MIDDLE)]
        self.pool_norm = Affine(tensors, first + MIDDLE + 1)
        self.hidden = tensors["dense/kernel"], tensors["dense/bias"]
        self.hidden_norm = Affine(tensors, first + MIDDLE + 2)
        self.output = tensors["dense_1/kernel"], tensors["dense_1/bias"]

    def __call__(self, patch: Floats) -> tuple[Floats, Floats]:
        """A log-mel patch → the last hidden layer, normalised, and the tags' probabilities."""
        x = self.input_norm(patch)
        front = np.concatenate([*self._timbre(x), *self._tempo(x)], axis=1)
        first, second, third = self.middle
        one = first(front)
        two = second(one) + one
        three = third(two) + two
        layers = np.concatenate([front, one, two, three], axis=1)  # (n_frames, n_channels)
        pooled = np.stack([layers.max(axis=0), layers.mean(axis=0)], axis=1).ravel()
        weights, bias = self.hidden
        hidden = self.hidden_norm(np.maximum(self.pool_norm(pooled) @ weights + bias, 0))
        weights, bias = self.output
        logits = hidden @ weights + bias
        return hidden, 1 / (1 + np.exp(-logits))

    def _timbre(self, x: Floats) -> list[Floats]:
        side = FILTER_FRAMES // 2
        transformed = scipy.fft.rfft(np.pad(x, ((side, side), (0, 0))), axis=1, workers=1)
        near = sliding_window_view(transformed, FILTER_FRAMES, axis=0)  # (n, k, frame)
        near = near.transpose(1, 0, 2)
        spectra = np.concatenate([near.real, near.imag], axis=2)  # (k, n, 2 · frames)
        return [filters(spectra) for filters in self.timbre]

    def _tempo(self, x: Floats) -> list[Floats]:
        """Filters along time, the maximum over all bands."""
        found = []
        for filters in self.tempo:
            kernel = np.ascontiguousarray(filters.kernel[:, 0])  # (frame, filter)
            length, n_filters = kernel.shape
            before = (length - 1) // 2
            padded = np.pad(x, ((before, length - 1 - before), (0, 0)))
            near = sliding_window_view(padded, length, axis=0)  # (n, band, frame), not copied
            maximum = np.empty((len(x), n_filters), np.float32)
            filtered = np.empty((BANDS, FRAMES_TOGETHER, n_filters), np.float32)
            for start in range(0, len(x), FRAMES_TOGETHER):
                some = near[start : start + FRAMES_TOGETHER]
                out = filtered[:, : len(some)]  # bands come first, so that their maximum is fast
                np.matmul(some, kernel, out=out.transpose(1, 0, 2))
                out.max(axis=0, out=maximum[start : start + FRAMES_TOGETHER])
            found.append(filters.finished(maximum))
        return found


class _MiddleLayer:
    """Filters of some frames by all channels."""

    def __init__(self, tensors: Tensors, number: int) -> None:
        name = f"conv2d_{number}"
        kernel = tensors[f"{name}/kernel"][:, :, 0]  # (frame, channel, filter)
        self.n_frames, _, self.n_filters = kernel.shape
        self.weights = np.concatenate(kernel, axis=1)  # (channel, frame · filter)
        self.bias = tensors[f"{name}/bias"]
        self.norm = Affine(tensors, number + 1)

    def __call__(self, x: Floats) -> Floats:
        """(n, n_channels) → (n, n_filters)"""
        n, side = len(x), self.n_frames // 2
        parts = (x @ self.weights).reshape(n, self.n_frames, self.n_filters)
        total = np.zeros((n + 2 * side, self.n_filters), np.float32)
        for j in range(self.n_frames):  # frame t contributes to t + side − j
            total[2 * side - j :][:n] += parts[:, j]
        return self.norm(np.maximum(total[side : side + n] + self.bias, 0))
