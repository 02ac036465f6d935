"""How sure a measured precision is: the bound that libraries and estimators promise by.

The precision of what was chosen has a beta distribution. The expected precision, which is the mean
of the probabilities, counts as much as `PRIOR` clips, since of many tags some pass by luck, and
those are the ones that are used. Clips of one artist are right or wrong together: n clips, n_g of
each artist, tell as much as n² / Σ n_g² clips by different artists (Kish).
"""

import numpy as np

from harmonium.arrays import Doubles

DOUBT = 0.2  # the share of tags about which a bound may be wrong
PRIOR = 10.0  # the number of held-out clips that count as much as the probabilities themselves
MIN_EFFECTIVE = 8.0  # clips by different artists that a threshold needs above it


def precision_quantile(
    share: float, *, precision: Doubles, effective: Doubles, expected: Doubles
) -> Doubles:
    """The quantile of the precision at ``share``; at `DOUBT` it is the lower bound.

    Parameters
    ----------
    precision : (n,) share of the chosen clips that are right
    effective : (n,) how many clips by different artists would tell as much as those chosen
    expected : (n,) mean probability of those chosen
    """
    from scipy.stats import beta

    right = PRIOR * np.clip(expected, 0.01, 0.99) + precision * effective
    return np.asarray(beta.ppf(share, right, PRIOR + effective - right))
