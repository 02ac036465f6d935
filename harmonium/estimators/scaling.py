"""Features brought to one scale, so that one learning rate serves every kind of feature."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scaling(NamedTuple):
    """x ← (x - mean) / scale, by feature."""

    mean: NDArray[np.float64]  # (D,)
    scale: NDArray[np.float64]  # (D,), never 0

    def __call__(self, X: NDArray[np.floating]) -> NDArray[np.float32]:
        """Scaled in double precision, given in single. Shape (N, D)."""
        return ((X - self.mean) / self.scale).astype(np.float32)


def standardising(X: NDArray[np.floating]) -> Scaling:
    """Zero mean, and a variance of 1 / D for each of the D features.

    A clip's vector then has a norm of about 1 whatever D is, as the paper's have: the input of a
    hidden unit, and the change of it by one step, does not grow with the number of features.
    """
    X = X.astype(np.float64)
    deviation = X.std(axis=0)
    # what is constant but for rounding carries nothing, and must not be blown up
    constant = deviation <= 1e-9 * np.maximum(np.abs(X).max(axis=0), 1e-300)
    return Scaling(X.mean(axis=0), np.where(constant, 1.0, deviation) * np.sqrt(X.shape[1]))


def unscaled(n_features: int) -> Scaling:
    """Features as they are."""
    return Scaling(np.zeros(n_features), np.ones(n_features))
