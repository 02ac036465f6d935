"""Two models of a library side by side."""

from dataclasses import dataclass

import numpy as np

from harmonium.library.library import Library
from harmonium.library.store.models import StoredModel
from harmonium.library.store.predictions import packed

NOTABLE = 0.01
"""A difference of AUCs from which on a tag counts as better or worse."""


@dataclass(frozen=True)
class ComparedTag:
    """How well two models know a tag, for held-out tracks."""

    tag: str
    auc_a: float | None
    auc_b: float | None


@dataclass(frozen=True)
class ModelComparison:
    """What changes from model a to model b."""

    tags: list[ComparedTag]
    better: int
    worse: int
    """How many tags of both b knows better, or worse, by at least `NOTABLE`."""
    changed_tracks: int | None
    """How many tracks get other tags; None where one of the models has not tagged them."""


def compare_models(library: Library, a: int, b: int) -> ModelComparison:
    """Compare two stored models."""
    with library.reading():
        one, other = (library.models.get(number, whole=False) for number in (a, b))
        aucs = [_aucs(one), _aucs(other)]
        tags = [
            ComparedTag(tag, aucs[0].get(tag), aucs[1].get(tag))
            for tag in sorted({*aucs[0], *aucs[1]})
        ]
        gains = [
            tag.auc_b - tag.auc_a for tag in tags if tag.auc_a is not None and tag.auc_b is not None
        ]
        return ModelComparison(
            tags,
            sum(gain >= NOTABLE for gain in gains),
            sum(gain <= -NOTABLE for gain in gains),
            _changed(library, one, other),
        )


def _aucs(model: StoredModel) -> dict[str, float | None]:
    return {tag["tag"]: tag.get("auc") for tag in model.report.get("tags", [])}


def _changed(library: Library, one: StoredModel, other: StoredModel) -> int | None:
    (ids_a, a), (ids_b, b) = (library.predictions.matrix(model.id or 0) for model in (one, other))
    ids = np.intersect1d(ids_a, ids_b)
    if not len(ids):
        return None
    rows_a, rows_b = np.searchsorted(ids_a, ids), np.searchsorted(ids_b, ids)
    changed = np.zeros(len(ids), bool)
    least_a, least_b = packed(one.thresholds), packed(other.thresholds)
    for tag in {*one.vocabulary, *other.vocabulary}:
        has = [
            matrix[model.vocabulary.index(tag)][rows] >= least[model.vocabulary.index(tag)]
            if tag in model.vocabulary and model.learnt[model.vocabulary.index(tag)]
            else np.zeros(len(ids), bool)
            for model, matrix, rows, least in (
                (one, a, rows_a, least_a),
                (other, b, rows_b, least_b),
            )
        ]
        changed |= has[0] != has[1]
    return int(changed.sum())
