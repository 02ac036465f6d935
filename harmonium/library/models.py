"""The models of a library: which there are, which is in use, and two of them side by side."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from harmonium.library.library import Library
from harmonium.library.store.changes import SETTING
from harmonium.library.store.models import CURRENT, StoredModel, packed

MIN_GAIN = 0.01
"""The difference of AUCs from which on a tag counts as better or worse."""


@dataclass(frozen=True)
class ModelEntry:
    """A stored model, as a list shows it."""

    id: int
    made_at: datetime
    in_use: bool
    n_tags: int
    n_learnt: int
    """How many of its tags it predicts better than chance."""
    mean_auc: float | None
    """Over its tags, for tracks held out in training."""
    n_tracks: int | None
    """How many tracks it has learnt from."""
    n_tagged: int
    """How many tracks of the library it has tagged."""


def list_models(library: Library) -> list[ModelEntry]:
    """All models, the newest first."""
    with library.reading():
        current = library.settings.get(CURRENT)
        return [
            ModelEntry(
                one.id,
                one.made_at,
                one.id == current,
                len(one.vocabulary),
                int(one.learnt.sum()),
                one.report.get("mean_auc"),
                one.report.get("tracks"),
                len(library.predictions.columns(one.id, [0])[0]),
            )
            for one in reversed(library.models.list())
            if one.id is not None
        ]


def use_model(library: Library, model_id: int) -> int | None:
    """Use this model from now on; the number of the change, None where it was in use already."""
    library.models.get(model_id, whole=False)
    before = library.settings.get(CURRENT)
    with library.begin():
        number = library.changes.begin("models", f"model {model_id} in use instead of {before}")
        if not library.changes.set_value(number, SETTING, CURRENT, int(model_id)):
            library.changes.drop(number)
            return None
    return number


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
    """How many tags of both b knows better by at least `MIN_GAIN`."""
    worse: int
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
            sum(gain >= MIN_GAIN for gain in gains),
            sum(gain <= -MIN_GAIN for gain in gains),
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
