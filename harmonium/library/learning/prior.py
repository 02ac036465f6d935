"""The built-in model beside the library's own: a prior for its tags, and the source of others.

If a tag is in both vocabularies, the library's examples count, and the built-in model is a prior
while they are few: n examples weigh n / (n + 5) of the log-odds, if that ranks held-out tracks
better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harmonium.arrays import Arrays, Doubles, Floats, Ids
from harmonium.library.learning.examples import TrainingSet
from harmonium.library.learning.scores import score_tags
from harmonium.library.model.builtin import PART, PLACES, builtin_model
from harmonium.library.model.evidence import Evidence
from harmonium.library.model.odds import mix
from harmonium.library.model.precision import PrecisionCurve
from harmonium.library.store.models import StoredModel

PRIOR_STRENGTH = 5.0  # the weight of the built-in model, in examples


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedProbabilities:
    """Held-out probabilities with the built-in model as a prior where that helps."""

    held_out: Floats  # (n, C)
    own_weight: Doubles  # (C,) of the library's examples; 1 without a prior


def with_prior(
    examples: TrainingSet, held_out: Floats, folds: Ids, builtin_tags: Sequence[str]
) -> MixedProbabilities:
    """Mix held-out probabilities (n, C) with the built-in model's, tag by tag, where that helps."""
    own_weight = np.ones(len(examples.tags))
    held_out = held_out.copy()
    for j, tag in enumerate(examples.tags):
        if tag not in builtin_tags:
            continue
        y, own = examples.Y[:, j], held_out[:, j]
        n_examples = float((y == 1).sum())
        weight = np.float32(n_examples / (n_examples + PRIOR_STRENGTH))
        mixed = mix(own, examples.builtin(builtin_tags.index(tag)), weight)
        both = np.stack([own, mixed], axis=1)
        auc_own, auc_mixed = score_tags(np.stack([y, y], axis=1), both, folds).auc
        if auc_mixed > auc_own:
            own_weight[j] = weight
            held_out[:, j] = mixed
    return MixedProbabilities(held_out=held_out, own_weight=own_weight)


@dataclass(frozen=True, kw_only=True, eq=False)
class BuiltinTags:
    """The built-in model's tags that follow the own ones in the vocabulary of a library's model."""

    names: list[str]
    thresholds: Floats  # (n,)
    curves: list[PrecisionCurve]
    arrays: Arrays  # the built-in model, and where its tags are in the joint vocabulary

    def added_to(self, model: StoredModel) -> StoredModel:
        """A model that has these tags, too."""
        report = builtin_model().report
        return replace(
            model,
            vocabulary=[*model.vocabulary, *self.names],
            thresholds=np.concatenate([model.thresholds, self.thresholds]),
            report=replace(
                model.report,
                own=len(model.vocabulary),
                aliases=report.aliases,
                precision=report.precision,
                unconfirmed=report.unconfirmed,
            ),
        )


def builtin_tags_beside(own: Sequence[str]) -> BuiltinTags:
    """The built-in tags beside those that the library has learnt itself."""
    model = builtin_model()
    curves = Evidence(model, lambda: model.bytes).curves
    new = [j for j, tag in enumerate(model.vocabulary) if tag not in own]
    names = [model.vocabulary[j] for j in new]
    places = {tag: place for place, tag in enumerate([*own, *names])}
    return BuiltinTags(
        names=names,
        thresholds=model.thresholds[new],
        curves=[curves[j] for j in new],
        arrays={
            PART: np.frombuffer(model.bytes, np.uint8),
            PLACES: np.array([places[tag] for tag in model.vocabulary]),
        },
    )
