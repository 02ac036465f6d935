"""The built-in model beside the library's own: a prior for its tags, and the source of others.

If a tag is in both vocabularies, the library's examples count, and the built-in model is a prior
while they are few: n examples weigh n / (n + 5) of the log-odds. The library's tracks also show how
often the built-in model's other genres are right here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harmonium.arrays import Arrays, Doubles, Floats
from harmonium.library.learning.examples import TrainingSet
from harmonium.library.learning.report import KnownTag
from harmonium.library.learning.scores import make_curve
from harmonium.library.model.builtin import PART, PLACES, builtin_kinds, builtin_model
from harmonium.library.model.evidence import Evidence
from harmonium.library.model.odds import mix
from harmonium.library.model.precision import PrecisionCurve
from harmonium.library.store.models import StoredModel

PRIOR_STRENGTH = 5.0  # the weight of the built-in model, in examples
NO_CURVE = make_curve(np.empty(0, np.float32), np.empty(0, np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedProbabilities:
    """Held-out probabilities with the built-in model as a prior for the tags that it knows."""

    held_out: Floats  # (n, C)
    own_weight: Doubles  # (C,) of the library's examples; 1 without a prior


def with_prior(
    examples: TrainingSet, held_out: Floats, builtin_tags: Sequence[str]
) -> MixedProbabilities:
    """Mix held-out probabilities (n, C) with the built-in model's, for the tags that it knows."""
    own_weight = np.ones(len(examples.tags))
    held_out = held_out.copy()
    for j, tag in enumerate(examples.tags):
        if tag in builtin_tags:
            n_examples = float((examples.Y[:, j] == 1).sum())
            own_weight[j] = n_examples / (n_examples + PRIOR_STRENGTH)
            prior = examples.builtin(builtin_tags.index(tag))
            held_out[:, j] = mix(held_out[:, j], prior, np.float32(own_weight[j]))
    return MixedProbabilities(held_out=held_out, own_weight=own_weight)


def known_tags() -> dict[str, KnownTag]:
    """The tags that the built-in model predicts, with what its own clips show about them."""
    model = builtin_model()
    evidence = Evidence(model, lambda: model.bytes)
    return {
        tag: KnownTag(threshold=float(model.thresholds[j]), curve=evidence.curve(j))
        for j, tag in enumerate(model.vocabulary)
        if np.isfinite(model.thresholds[j])
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class BuiltinTags:
    """The built-in model's tags that follow the own ones in the vocabulary of a library's model."""

    names: list[str]
    thresholds: Floats  # (n,)
    curves: list[PrecisionCurve]  # of the clips that they were learnt from
    checks: list[PrecisionCurve]  # of the library's tracks; empty if these say nothing
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


def builtin_tags_beside(examples: TrainingSet, labels: Callable[[str], Floats]) -> BuiltinTags:
    """The built-in tags beside those that the library has learnt itself.

    ``labels`` has the labels of a genre for the examples, (n,), as far as the library knows them.
    """
    model = builtin_model()
    evidence = Evidence(model, lambda: model.bytes)
    own = examples.tags
    new = [j for j, tag in enumerate(model.vocabulary) if tag not in own]
    names = [model.vocabulary[j] for j in new]
    places = {tag: place for place, tag in enumerate([*own, *names])}
    kinds = builtin_kinds()
    checks = [NO_CURVE] * len(new)
    for place, j in enumerate(new):
        is_written = np.isfinite(model.thresholds[j]) and evidence.curve(j) is not None
        if is_written and kinds[model.vocabulary[j]] == "genre":
            y = labels(model.vocabulary[j])
            checks[place] = make_curve(y, examples.builtin(j), examples.groups)
    return BuiltinTags(
        names=names,
        thresholds=model.thresholds[new],
        curves=[evidence.curves[j] for j in new],
        checks=checks,
        arrays={
            PART: np.frombuffer(model.bytes, np.uint8),
            PLACES: np.array([places[tag] for tag in model.vocabulary]),
        },
    )
