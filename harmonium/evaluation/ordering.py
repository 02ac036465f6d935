"""Scores and labels of many tags, sorted together: what the ranking metrics are computed from.

Sorting is nearly all the work of a ranking metric, and sorting numbers is much faster than sorting
indices. So score and label become one 64-bit integer, the key: the score's place among the floating
point numbers (its ordinal), shifted left by one, and the label as last bit. Keys sort as the scores
do, negatives before positives where scores are equal, and nothing is rounded.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harmonium.evaluation.inputs import Ternary

_INT64_MAX = np.iinfo(np.int64).max
_UNKNOWN = _INT64_MAX - 1  # larger than any score's key, and even: never counted as positive
_BLOCK = 2**17  # entries sorted together: 1 MB, which stays in the processor's cache


def sorted_keys(
    labels: Ternary, scores: NDArray[np.floating]
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Pairs of some tags and their keys (tags, n_clips), ascending, unknown labels last."""
    n_clips, n_tags = scores.shape
    step = max(1, _BLOCK // max(1, n_clips))
    for start in range(0, n_tags, step):
        tags = slice(start, min(start + step, n_tags))
        keys = ordinals(scores[:, tags].T)
        keys <<= 1
        keys |= labels.positive[:, tags].T
        if labels.known is not None:
            np.copyto(keys, _UNKNOWN, where=~labels.known[:, tags].T)
        keys.sort(axis=1)
        yield tags, keys


def ordinals(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """A new array of integers between ±2⁶² that are in the same order as the scores, ties included.

    The bits of positive floating point numbers, read as integers, are in the numbers' order; those
    of negative ones are in reverse. Both leave one bit free for numbers between -1 and 1, and
    multiplying by a power of two, which is exact, brings all scores there.
    """
    values = np.add(scores, 0.0, dtype=np.float64, order="C")  # -0.0 + 0.0 is 0.0
    lowest, highest = values.min(initial=0.0), values.max(initial=0.0)
    if max(-lowest, highest) > 1:
        scaled = _scaled(values, max(-lowest, highest))
        if scaled is None:
            return np.unique(values, return_inverse=True)[1].reshape(values.shape)
        values = scaled
    bits = values.view(np.int64)
    if lowest < 0:
        bits ^= (bits >> 63) & _INT64_MAX  # of negative numbers, all bits but the sign
    return bits


def _scaled(values: NDArray[np.float64], largest: float) -> NDArray[np.float64] | None:
    """The values times the power of two that makes the largest less than 1, or None if one is lost.

    One can be lost where magnitudes differ by a factor of 2¹⁰²² or more.
    """
    factor = 0.5 ** float(np.frexp(largest)[1])
    scaled = values * factor
    return scaled if np.array_equal(scaled / factor, values) else None
