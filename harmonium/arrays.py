"""Names for the kinds of arrays that all packages use, and the places of the largest values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Numbers = NDArray[np.floating]  # single or double precision
Integers = NDArray[np.int64]
Ids = Integers
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]
Places = NDArray[np.intp]  # rows or columns of another array
Rng = np.random.Generator


def places_of_largest(score: Floats, n: int) -> Places:
    """Places of the n largest scores, largest first; ties keep their order."""
    candidates = np.arange(len(score))
    if n < len(score):
        candidates = np.flatnonzero(score >= np.partition(score, -n)[-n])
    return candidates[np.argsort(-score[candidates], kind="stable")][:n]
