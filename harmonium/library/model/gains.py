"""What tags gained from answers since the model was trained.

In log-odds it is b + wᵀv, where v is how the track sounds (`library.sound`). A new word, which the
model was not trained with, has no other log-odds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium import logistic
from harmonium.arrays import Floats, Ids
from harmonium.library.library import Library
from harmonium.library.model.odds import log_odds
from harmonium.library.sound import FULL, SoundVectors
from harmonium.library.store.models import StoredModel
from harmonium.library.store.refinements import Refinement

SOUND_DEVIATION = 1.0  # of wᵀv before any answer; chosen on 4Q and GTZAN, as the next one is
BIAS_DEVIATION = 1.0  # of b before any answer (`benchmarks/quick_learning.py --choose`)
PAGE = 8192  # tracks that are computed at a time


class Gains(NamedTuple):
    """What some tags gain, as a function of the sound."""

    refinements: Sequence[Refinement]
    W: Floats  # (N_AXES, n_tags)
    bias: Floats  # (n_tags,)

    @classmethod
    def of(cls, refinements: Sequence[Refinement], sounds: SoundVectors) -> "Gains":
        """The gains from refinements; a track without a vector teaches nothing."""
        columns = []
        for refinement in refinements:
            known = sounds.rows(refinement.ids)
            vectors = sounds.at(refinement.ids[known])
            columns.append(vectors.T @ refinement.weights[known] * SOUND_DEVIATION**2)
        W = np.stack(columns, axis=1).astype(np.float32)
        bias = np.array([refinement.bias for refinement in refinements], np.float32)
        return cls(refinements=refinements, W=W, bias=bias)

    @property
    def places(self) -> list[int]:
        """The tags' places in the model's vocabulary; 0 if the model has no say."""
        return [refinement.place if refinement.has_model else 0 for refinement in self.refinements]

    def added(self, P: Floats, vectors: NDArray[np.int8]) -> Floats:
        """The tags' probabilities (n, n_tags), from the model's at `places`."""
        gained = np.empty((len(vectors), len(self.bias)), np.float32)
        for start in range(0, len(vectors), PAGE):  # all as floats would not fit the cache
            page = vectors[start : start + PAGE].astype(np.float32)
            gained[start : start + PAGE] = page @ (self.W / np.float32(FULL))
        has_model = np.array([refinement.has_model for refinement in self.refinements])
        odds = np.where(has_model, log_odds(P), np.float32(0)) + (gained + self.bias)
        return logistic.sigmoid(odds).astype(np.float32)


def refined_columns(
    library: Library, model: StoredModel, refinements: Sequence[Refinement], sounds: SoundVectors
) -> dict[int, tuple[Ids, Floats]]:
    """Place → the tracks that the model has tagged, (n,), and their probabilities, (n,)."""
    if not refinements:
        return {}
    gains = Gains.of(refinements, sounds)
    ids, P = library.predictions.columns(model.id, gains.places, refined=False)
    known = sounds.rows(ids)
    vectors = sounds.vectors[np.searchsorted(sounds.ids, ids[known])]
    probabilities = gains.added(P[known], vectors)
    columns = {}
    for i, refinement in enumerate(refinements):
        columns[refinement.place] = (ids[known], probabilities[:, i])
    return columns
