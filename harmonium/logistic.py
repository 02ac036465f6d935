"""The logistic function and what belongs to it, in NumPy and without overflow.

SciPy has some of these. They are written here for code that must start fast: importing SciPy takes
longer than tagging a file.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats

MAX_LOG_ODDS = 16.0  # for probabilities of 0 and 1; single precision has none farther from 0.5

_Precision = TypeVar("_Precision", bound=np.floating)


def sigmoid(x: NDArray[_Precision]) -> NDArray[_Precision]:
    """σ(x) = 1 / (1 + e^-x)."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def softplus(x: NDArray[_Precision]) -> NDArray[_Precision]:
    """log(1 + e^x)."""
    return np.logaddexp(0, x)


def log_odds(p: NDArray[_Precision], smallest: float = 0.0) -> NDArray[_Precision]:
    """log(p / (1 - p)), with p limited to [smallest, 1 - smallest]; without a limit, up to ±∞."""
    limited = np.clip(p, smallest, 1 - smallest) if smallest else p
    with np.errstate(divide="ignore"):
        return np.log(limited) - np.log1p(-limited)


def limited_log_odds(P: Floats) -> Doubles:
    """log(p / (1 - p)) in double precision, at most `MAX_LOG_ODDS` from 0."""
    return np.clip(log_odds(P.astype(np.float64)), -MAX_LOG_ODDS, MAX_LOG_ODDS)


def mean_probabilities(members: Sequence[Floats]) -> Floats:
    """σ of the mean of the members' log-odds, (N, C)."""
    if len(members) == 1:
        return members[0]
    return sigmoid(np.mean([limited_log_odds(P) for P in members], axis=0)).astype(np.float32)
