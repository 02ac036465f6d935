"""Log-odds of probabilities, in which layers of a tagger add up."""

import numpy as np

from harmonium import logistic
from harmonium.arrays import Floats

MIN_PROBABILITY = 1e-4  # distance from 0 and 1 at which probabilities are clipped for log-odds


def log_odds(P: Floats) -> Floats:
    """log p / (1 - p), with p kept away from 0 and 1."""
    return logistic.log_odds(P, MIN_PROBABILITY).astype(np.float32)


def mix(own: Floats, prior: Floats, weight: Floats | np.float32) -> Floats:
    """σ(weight · own log-odds + (1 - weight) · the prior's log-odds)."""
    z = weight * log_odds(own) + (1 - weight) * log_odds(prior)
    return logistic.sigmoid(z).astype(np.float32)
