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
from typing import NamedTuple

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from harmonium.arrays import Floats
from harmonium.audio.extractors import Extractor
from harmonium.audio.spectrum import MelParameters, mel_spectrogram, one_thread
from harmonium.audio.windows import Window
from harmonium.errors import DataError, ModelFileError
from harmonium.files import read_toml
from harmonium.logistic import sigmoid

FILE = Path(__file__).with_name("musicnn.safetensors")

RATE = 16_000
FRAME = 512
HOP = 256
BANDS = 96
PATCH_FRAMES = 187
PATCH_SECONDS = (FRAME + (PATCH_FRAMES - 1) * HOP) / RATE
N_HIDDEN = 200  # length of the last hidden layer of each network
SPECTRUM = MelParameters(
    rate=RATE, frame_length=FRAME, hop_length=HOP, n_mels=BANDS, lowest_hz=0.0, highest_hz=RATE / 2
)

NETWORKS = ("MSD", "MTT")  # in the order of their features; a tensor's name begins with one
FEATURE_NAMES = tuple(f"{name} {k}" for name in NETWORKS for k in range(N_HIDDEN))
# The outputs of the networks: Last.fm's top fifty, and the fifty most used tags of MagnaTagATune.
TAGS_FILE = FILE.parents[1] / "data/datasets/musicnn_tags.toml"
_TAGS = read_toml(TAGS_FILE, "The tags of musicnn")
HEAD_NAMES = tuple(f"{name} {tag}" for name in NETWORKS for tag in _TAGS[name])

EPSILON = 1e-3  # added to the variances in all batch normalisations
FILTER_FRAMES = 7  # frames that the filters of the timbre and of the middle layers span
FRAMES_TOGETHER = 17  # frames to filter at once, so that the output stays in the cache

# Layers of each kind, in the order in which they are numbered.
N_TIMBRE = 2
N_TEMPO = 3
N_MIDDLE = 3

Tensors = Mapping[str, Floats]


@dataclass(frozen=True)
class Patches:
    """The contiguous patches of a sound as windows; of more, those in the middle of equal parts."""

    most: int = 5

    def __call__(self, length: int | None, start: int | None) -> list[Window]:
        """The windows; if the length is unknown, the first ones."""
        begin = start or 0
        if length is None:
            n_frames = self.most * PATCH_FRAMES
        else:
            n_frames = 1 + (length - begin) // HOP
        n_patches = max(1, n_frames // PATCH_FRAMES)
        n_chosen = min(n_patches, self.most)
        n_samples = FRAME + (min(n_frames, PATCH_FRAMES) - 1) * HOP
        windows = []
        for part in range(n_chosen):
            patch = (2 * part + 1) * n_patches // (2 * n_chosen)
            first = begin + PATCH_FRAMES * patch * HOP - FRAME // 2
            windows.append(Window(first, first + n_samples))
        return windows


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


def listen(samples: Floats, rate: int) -> Floats:
    """(400 + 100,): the mean over patches of both networks' hidden layers and probabilities."""
    if rate != RATE:
        raise DataError(f"musicnn needs {RATE} samples per second, got {rate}.")
    patches = log_mel_patches(samples)
    hidden = []
    heads = []
    with one_thread():
        for network in load_networks():
            outputs = [network(patch) for patch in patches]
            hidden.append(np.mean([output.hidden for output in outputs], axis=0))
            heads.append(np.mean([output.heads for output in outputs], axis=0))
    return np.concatenate([*hidden, *heads])


EXTRACTOR = Extractor(
    name="musicnn",
    function=listen,
    feature_names=FEATURE_NAMES,
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
    prefix = f"{network}/"
    unscaled = {}
    for full_name, tensor in tensors.items():
        if full_name.startswith(prefix):
            unscaled[full_name.removeprefix(prefix)] = tensor
    scaled = {}
    for name, tensor in unscaled.items():
        if tensor.dtype == np.int16:
            tensor = tensor * unscaled[f"{name}/scale"]
        scaled[name] = tensor
    return scaled


def _numbered(name: str, number: int) -> str:
    """The name of a layer in the checkpoint: the first has no number."""
    return f"{name}_{number}" if number else name


class Affine:
    """x ↦ scale · x + shift by channel: a batch normalisation after training."""

    def __init__(self, tensors: Tensors, number: int) -> None:
        name = _numbered("batch_normalization", number)
        mean = tensors[f"{name}/moving_mean"]
        variance = tensors[f"{name}/moving_variance"]
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
        name = _numbered("conv2d", number)
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
            block = spectra[:, start : start + FRAMES_TOGETHER]
            shape = (len(block), -1)  # (k, frames · filters)
            even = self.cosines @ np.matmul(block, self.real).reshape(shape)
            odd = self.sines @ np.matmul(block, self.imag).reshape(shape)
            np.abs(odd, out=odd)
            even += odd
            even.max(axis=0, out=maximum[start : start + FRAMES_TOGETHER].reshape(-1))
        return self.pooled.finished(maximum)


class TempoFilters:
    """Filters along time, the maximum over all bands."""

    def __init__(self, tensors: Tensors, number: int) -> None:
        self.pooled = PooledFilters(tensors, number)
        self.kernel = np.ascontiguousarray(self.pooled.kernel[:, 0])  # (frame, filter)

    def __call__(self, x: Floats) -> Floats:
        """(n, n_bands) → (n, n_filters)"""
        length, n_filters = self.kernel.shape
        n_before = (length - 1) // 2
        padded = np.pad(x, ((n_before, length - 1 - n_before), (0, 0)))
        windows = sliding_window_view(padded, length, axis=0)  # (n, band, frame), not copied
        maximum = np.empty((len(x), n_filters), np.float32)
        filtered = np.empty((BANDS, FRAMES_TOGETHER, n_filters), np.float32)
        for start in range(0, len(x), FRAMES_TOGETHER):
            block = windows[start : start + FRAMES_TOGETHER]
            out = filtered[:, : len(block)]  # bands come first, so that their maximum is fast
            np.matmul(block, self.kernel, out=out.transpose(1, 0, 2))
            out.max(axis=0, out=maximum[start : start + FRAMES_TOGETHER])
        return self.pooled.finished(maximum)


class MiddleLayer:
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
        n = len(x)
        side = self.n_frames // 2
        parts = (x @ self.weights).reshape(n, self.n_frames, self.n_filters)
        total = np.zeros((n + 2 * side, self.n_filters), np.float32)
        for j in range(self.n_frames):  # frame t contributes to t + side − j
            total[2 * side - j :][:n] += parts[:, j]
        return self.norm(np.maximum(total[side : side + n] + self.bias, 0))


class Dense:
    """x ↦ x · weights + bias."""

    def __init__(self, tensors: Tensors, name: str) -> None:
        self.weights = tensors[f"{name}/kernel"]
        self.bias = tensors[f"{name}/bias"]

    def __call__(self, x: Floats) -> Floats:
        """(n_inputs,) → (n_outputs,)"""
        return x @ self.weights + self.bias


class Outputs(NamedTuple):
    """What a network makes of a patch."""

    hidden: Floats  # (N_HIDDEN,) the last hidden layer, normalised
    heads: Floats  # (50,) the probabilities of its tags


class Network:
    """A musicnn, by the tensors of its checkpoint."""

    def __init__(self, tensors: Tensors) -> None:
        n_front = N_TIMBRE + N_TEMPO
        self.input_norm = Affine(tensors, 0)
        self.timbre = [TimbreFilters(tensors, i) for i in range(N_TIMBRE)]
        self.tempo = [TempoFilters(tensors, i) for i in range(N_TIMBRE, n_front)]
        self.middle = [MiddleLayer(tensors, n_front + i) for i in range(N_MIDDLE)]
        self.pool_norm = Affine(tensors, n_front + N_MIDDLE + 1)
        self.hidden = Dense(tensors, "dense")
        self.hidden_norm = Affine(tensors, n_front + N_MIDDLE + 2)
        self.output = Dense(tensors, "dense_1")

    def __call__(self, patch: Floats) -> Outputs:
        """A log-mel patch → the last hidden layer and the tags' probabilities."""
        x = self.input_norm(patch)
        spectra = _neighbouring_spectra(x)
        timbre = [filters(spectra) for filters in self.timbre]
        tempo = [filters(x) for filters in self.tempo]
        front = np.concatenate([*timbre, *tempo], axis=1)

        first, second, third = self.middle
        x1 = first(front)
        x2 = second(x1) + x1
        x3 = third(x2) + x2
        layers = np.concatenate([front, x1, x2, x3], axis=1)  # (n_frames, n_channels)
        pooled = np.stack([layers.max(axis=0), layers.mean(axis=0)], axis=1).ravel()
        hidden = self.hidden_norm(np.maximum(self.hidden(self.pool_norm(pooled)), 0))
        return Outputs(hidden=hidden, heads=sigmoid(self.output(hidden)))


def _neighbouring_spectra(x: Floats) -> Floats:
    """The transforms of each frame and those around it: (n, n_bands) → (n_k, n, 2 · n_frames)."""
    side = FILTER_FRAMES // 2
    transformed = scipy.fft.rfft(np.pad(x, ((side, side), (0, 0))), axis=1, workers=1)
    windows = sliding_window_view(transformed, FILTER_FRAMES, axis=0)  # (n, k, frame)
    windows = windows.transpose(1, 0, 2)
    return np.concatenate([windows.real, windows.imag], axis=2)
