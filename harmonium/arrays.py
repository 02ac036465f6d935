"""Names for the kinds of arrays that all packages use, and a few functions of them.

Nothing but NumPy is loaded.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ids = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]

BLOCK = 2**24
"""Numbers in one block of a table."""

_Precision = TypeVar("_Precision", bound=np.floating)


def sigmoid(x: NDArray[_Precision]) -> NDArray[_Precision]:
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def log_odds(p: NDArray[_Precision], smallest: float = 0.0) -> NDArray[_Precision]:
    """log(p / (1 - p)), of probabilities limited to [smallest, 1 - smallest].

    Without a limit, 0 and 1 give -∞ and ∞.
    """
    limited = np.clip(p, smallest, 1 - smallest) if smallest else p
    with np.errstate(divide="ignore"):
        return np.log(limited) - np.log1p(-limited)


def blocks(table: Any) -> Iterator[NDArray[Any]]:
    """All rows of a table (N, D), a block at a time; a small table is one block."""
    size = max(1, BLOCK // max(table.shape[1], 1))
    for first in range(0, len(table), size):
        yield table[first : first + size]


def is_soft(Y: Any) -> bool:
    """Whether some label of (N, C) is a probability other than 0 and 1."""
    return any(((block > 0) & (block < 1)).any() for block in blocks(Y))
