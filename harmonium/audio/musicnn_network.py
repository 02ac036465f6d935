"""The network of musicnn in NumPy: patches of a spectrum → its last hidden layer and its tags.

After Pons and Serra, "musicnn: Pre-trained convolutional neural networks for music audio tagging"
(2019). Frames are rows, (n_frames, n_bands), and become rows of channels, (n_frames, n_channels).

Nearly all of the work is in filters of 7 frames by 38 or 67 bands, of which only the maximum over
frequency counts. Along frequency they are done by a Fourier transform of all n = 96 bands. For a
frame and a filter let z_k, k = 0 … n/2, be the transform of what comes out, turned such that the
places where the filter fits wholly, g = −m … m, lie evenly about 0. There

    y(g) = C(g) − S(g),  C(g) = Σ_k Re z_k cos(2πkg/n),  S(g) = Σ_k Im z_k sin(2πkg/n),

and since C is even and S is odd, max(y(g), y(−g)) = C(g) + |S(g)|: the inverse transform is a
product with two matrices of half the places each, at the valid places only.
"""

from collections.abc import Mapping

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from harmonium.arrays import Floats

Tensors = Mapping[str, Floats]

N_BANDS = 96
EPSILON = 1e-3
"""What is added to the variances in all batch normalisations."""
FILTER_FRAMES = 7
"""Frames that the filters of the timbre and of the middle layers span."""
TIMBRE, TEMPO, MIDDLE = 2, 3, 3
"""The number of layers of each kind, in the order in which they are numbered."""
FRAMES_TOGETHER = 32
"""Frames whose filtered spectra are computed at once, so that they stay in the cache."""
BANDS_TOGETHER = 8
"""Bands that are filtered along time at once, so that they stay in the cache."""


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

    Where the normalisation turns the sign, that is the minimum before it: such filters have theirs
    turned, too.
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
        n_places = N_BANDS - width + 1
        k = np.arange(N_BANDS // 2 + 1)
        angle = 2 * np.pi * k / N_BANDS
        # conj: a correlation. Then the weight of k in the inverse, and the turn to the middle.
        weight = np.where((k == 0) | (2 * k == N_BANDS), 1, 2) / N_BANDS
        turn = weight * np.exp(1j * angle * (n_places - 1) / 2)
        filters = np.fft.rfft(kernel.astype(np.float64), N_BANDS, axis=1).conj() * turn[:, None]
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
        """The last hidden layer, normalised, (n_hidden,), and the tags' probabilities, (n_tags,).

        ``patch`` is a log-mel spectrum, (n_frames, n_bands).
        """
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
        longest = max(len(filters.kernel) for filters in self.tempo)
        n, before = len(x), (longest - 1) // 2
        padded = np.pad(x, ((before, longest - 1 - before), (0, 0))).T  # (band, frame)
        near = sliding_window_view(np.ascontiguousarray(padded), longest, axis=1)
        maxima = [np.full((n, one.kernel.shape[2]), -np.inf, np.float32) for one in self.tempo]
        for start in range(0, N_BANDS, BANDS_TOGETHER):
            some = np.ascontiguousarray(near[start : start + BANDS_TOGETHER])  # (bands, n, longest)
            rows = some.reshape(-1, longest)
            for filters, maximum in zip(self.tempo, maxima, strict=True):
                length = len(filters.kernel)
                first = before - (length - 1) // 2
                filtered = rows[:, first : first + length] @ filters.kernel[:, 0]
                found = filtered.reshape(len(some), n, -1).max(axis=0)
                np.maximum(maximum, found, out=maximum)
        return [one.finished(found) for one, found in zip(self.tempo, maxima, strict=True)]


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
