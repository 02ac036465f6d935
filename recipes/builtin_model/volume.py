"""How volume changes musicnn's features, and features without that change.

musicnn's features depend on how loud a file is, and a softer copy of a song gets other tags. Clips
are made softer and louder; the differences of their features have a few main directions. Removing
these loses none of the music and much of the volume (`benchmarks/builtin.py`, part volume).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_model.other_files import Floats, hear, hear_louder

DIRECTIONS = 2
GAINS = (-12.0, 6.0)
"""In decibels."""
FIRST, STEP = 1, 4
"""The clips to learn it from: the second, the sixth and so on."""


class Volume(NamedTuple):
    """k directions in which features move with the volume; both (k, D).

    Where the features are x, ``measured`` @ x is how far they are in each direction, and
    ``moved`` is what they move by.
    """

    measured: Floats
    moved: Floats

    def taken_out(self, X: Floats) -> Floats:
        """The features (n, D) without these directions."""
        return (X - X @ self.measured.T @ self.moved).astype(np.float32)

    def unheard_by(self, W: Floats, scale: NDArray[np.floating]) -> Floats:
        """Weights for raw features that do what W does without these directions.

        W is (..., D), for features divided by ``scale``.
        """
        by_feature = (W / scale).astype(np.float64)
        heard = by_feature - by_feature @ self.moved.T.astype(np.float64) @ self.measured
        return (heard * scale).astype(np.float32)


def learn_volume(files: Sequence[str | Path], n_directions: int = DIRECTIONS) -> Volume:
    """The main directions, from some of these clips."""
    some = [Path(file) for file in files][FIRST::STEP]
    X = hear(some)
    return find_volume(X, [hear_louder(some, gain) for gain in GAINS], n_directions)


def find_volume(X: Floats, louder: Sequence[Floats], n_directions: int) -> Volume:
    """The main directions between features (n, D) and those of the same clips louder or softer.

    Features are divided by their standard deviations for this.
    """
    deviation = X.std(axis=0) + 1e-6
    differences = np.vstack([(other - X) / deviation for other in louder])
    _, _, directions = np.linalg.svd(differences.astype(np.float64), full_matrices=False)
    main = directions[:n_directions]
    return Volume((main / deviation).astype(np.float32), (main * deviation).astype(np.float32))
