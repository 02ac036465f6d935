"""What made a tag likely for a clip. JAX is loaded when it is first needed."""

from typing import NamedTuple

import numpy as np

from harmonium.arrays import Floats
from harmonium.estimators.architecture import Parameters, Predictor


class Importances(NamedTuple):
    """What features and known tags add to the log-odds of a tag, to first order."""

    features: Floats  # (n_clips, n_features)
    tags: Floats  # (n_clips, n_tags); 0 for tags that are not known


def importances_of(
    log_odds: Predictor,
    params: Parameters,
    place: int,
    X: Floats,
    known: Floats,
    surprise: Floats,
) -> Importances:
    """Of one member, for the tag at this place.

    ``X`` (N, D) are scaled features; ``known`` (N, C) the known tags, NaN for the others, and
    ``surprise`` (N, C) how far these are from what the features say.
    """
    from harmonium.rbm.slopes import slopes

    by_feature, by_tag = slopes(log_odds, params, X, known, place)
    return Importances(
        features=np.asarray(by_feature) * X,
        tags=np.asarray(by_tag) * surprise,
    )
