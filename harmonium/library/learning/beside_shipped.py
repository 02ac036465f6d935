"""One's own words beside those of the model that comes along.

What it says of a track is offered to training as further inputs. Where a word is in both
vocabularies, one's own examples count, and its word is a prior while they are few: n examples weigh
n / (n + 5) of the log-odds, if held-out tracks are ranked better so than by the examples alone.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.library.builtin import PART, PLACES, builtin_model, extractor_key
from harmonium.library.learning.fitting import Fitted
from harmonium.library.learning.training_set import TrainingSet
from harmonium.library.precision import PrecisionCurve, curves_to_arrays, precision_curves
from harmonium.library.store.models import StoredModel
from harmonium.library.tagger import Tagger, log_odds, mix

PRIOR_STRENGTH = 5.0
"""So many examples weigh as much as the shipped model."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ShippedSays:
    """The shipped model, and what it says of the tracks to learn from."""

    model: StoredModel
    probabilities: Floats
    """(n, n_shipped)"""

    @classmethod
    def of(cls, extractor: str, X: Floats) -> "ShippedSays | None":
        """None where the features are not those that it takes."""
        if extractor != extractor_key():
            return None
        model = builtin_model()
        return cls(model, Tagger(model).probabilities(X))

    def rows(self, rows: NDArray[np.intp]) -> "ShippedSays":
        """Of some of the tracks."""
        return replace(self, probabilities=np.array(self.probabilities[rows]))

    @property
    def inputs(self) -> Floats:
        """As further inputs, (n, n_shipped)."""
        return log_odds(self.probabilities)

    def as_prior(self, examples: TrainingSet, fitted: Fitted) -> tuple[Fitted, NDArray[Any]]:
        """The held-out probabilities with the prior where it helps, and the weights, (n_tags,)."""
        from harmonium.evaluation import auc_per_tag

        weights, held_out = np.ones(len(examples.tags)), examples.new_table()
        held_out[:] = fitted.held_out
        for j, tag in enumerate(examples.tags):
            if tag not in self.model.vocabulary:
                continue
            n = float((examples.Y[:, j] == 1).sum())
            weight = np.float32(n / (n + PRIOR_STRENGTH))
            prior = self.probabilities[:, self.model.vocabulary.index(tag)]
            both = np.stack([held_out[:, j], mix(held_out[:, j], prior, weight)], axis=1)
            alone, mixed = auc_per_tag(np.repeat(examples.Y[:, [j]], 2, axis=1), both).values
            if mixed > alone:
                weights[j], held_out[:, j] = weight, both[:, 1]
        return replace(fitted, held_out=held_out), weights

    def joined(
        self, stored: StoredModel, weights: NDArray[Any], own_curves: list[PrecisionCurve]
    ) -> tuple[StoredModel, dict[str, NDArray[Any]]]:
        """The stored model with the other tags of the shipped one after its own; more arrays."""
        own = list(stored.vocabulary)
        new = [j for j, tag in enumerate(self.model.vocabulary) if tag not in own]
        tags = own + [self.model.vocabulary[j] for j in new]
        thresholds = np.concatenate([stored.thresholds, self.model.thresholds[new]])
        shared = {name: self.model.report[name] for name in ("aliases", "precision")}
        report = stored.report | {"own": len(own)} | shared
        curves = precision_curves(self.model) or []
        arrays = {
            **curves_to_arrays([*own_curves, *(curves[j] for j in new if curves)]),
            PART: np.frombuffer(self.model.bytes, np.uint8),
            PLACES: np.array([tags.index(tag) for tag in self.model.vocabulary]),
            "own_weight": weights,
        }
        return replace(stored, vocabulary=tags, thresholds=thresholds, report=report), arrays
