"""A library's models: list them, switch to one, compare two."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np

from harmonium.arrays import Mask
from harmonium.library.library import Library
from harmonium.library.store.models import CURRENT, StoredModel, packed

MIN_GAIN = 0.01  # difference of AUCs needed for a tag to count as better or worse


@dataclass(frozen=True)
class ModelEntry:
    """A stored model, as a list shows it."""

    id: int
    made_at: datetime
    in_use: bool
    built_in: bool  # whether nothing of it was learnt here
    n_tags: int  # tags that it tried to learn here; for the built-in model, all
    n_learnt: int  # how many of them it predicts better than chance
    mean_auc: float | None  # over its tags, for tracks held out in training
    n_tracks: int | None  # how many tracks it has learnt from
    n_tagged: int  # how many tracks of the library it has tagged


def list_models(library: Library) -> list[ModelEntry]:
    """All models, the newest first."""
    with library.reading():
        current = library.settings.get(CURRENT)
        found = []
        for one in reversed(library.models.list()):
            own = one.is_own if one.n_own else np.ones(len(one.vocabulary), bool)
            n_tags = (int(own.sum()), int((one.learnt & own).sum()))
            trained = (one.report.get("mean_auc"), one.report.get("tracks"))
            n_tagged = len(library.predictions.columns(one.id, [0])[0])
            about = (one.id, one.made_at, one.id == current, not one.n_own)
            found.append(ModelEntry(*about, *n_tags, *trained, n_tagged))
        return found


def use_model(library: Library, model_id: int) -> int | None:
    """Use this model from now on; the number of the change, None if it was in use already."""
    library.models.get(model_id, whole=False)
    summary = f"model {model_id} in use instead of {library.settings.get(CURRENT)}"
    return library.changes.set_settings("models", summary, {CURRENT: int(model_id)})


@dataclass(frozen=True)
class ModelComparison:
    """What changes from model a to model b."""

    tags: list[dict[Literal["tag", "auc_a", "auc_b"], Any]]  # AUCs for held-out tracks, by tag
    better: int  # how many shared tags b knows better by at least `MIN_GAIN`
    worse: int
    mean_a: float | None  # mean AUC of the shared tags
    mean_b: float | None
    error: float | None  # standard error of the difference of the means
    changed_tracks: int | None  # tracks that get other tags; None if a model has not tagged them


def compare_models(library: Library, a: int, b: int) -> ModelComparison:
    """Compare two stored models."""
    with library.reading():
        models = [library.models.get(number, whole=False) for number in (a, b)]
        old, new = (  # the built-in model's are from other music
            {tag["tag"]: tag.get("auc") for tag in model.report.get("tags", []) if model.n_own}
            for model in models
        )
        known = [tag for tag in old if old[tag] is not None and new.get(tag) is not None]
        aucs = np.array([(old[tag], new[tag]) for tag in known]).reshape(-1, 2)
        gains = aucs[:, 1] - aucs[:, 0]
        mean_a, mean_b = aucs.mean(axis=0).tolist() if known else (None, None)
        tags: list[dict[Any, Any]] = [
            {"tag": tag, "auc_a": old.get(tag), "auc_b": new.get(tag)}
            for tag in sorted({*old, *new})
        ]
        better, worse = int((gains >= MIN_GAIN).sum()), int((gains <= -MIN_GAIN).sum())
        error = float(gains.std(ddof=1) / len(known) ** 0.5) if len(known) > 1 else None
        n_changed = _n_changed(library, *models)
        return ModelComparison(tags, better, worse, mean_a, mean_b, error, n_changed)


def _n_changed(library: Library, *models: StoredModel) -> int | None:
    """How many tracks get different tags from two models; None if no track was tagged by both."""
    (ids_a, a), (ids_b, b) = (library.predictions.matrix(model.id) for model in models)
    ids, rows_a, rows_b = np.intersect1d(ids_a, ids_b, assume_unique=True, return_indices=True)
    if not len(ids):
        return None
    has: list[dict[str, Mask]] = []
    for model, steps in zip(models, (a[:, rows_a], b[:, rows_b]), strict=True):
        least = packed(model.thresholds)
        places = np.flatnonzero(model.learnt).tolist()
        has.append({model.vocabulary[j]: steps[j] >= least[j] for j in places})
    none, changed = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
    for tag in {*has[0], *has[1]}:
        changed |= has[0].get(tag, none) != has[1].get(tag, none)
    return int(changed.sum())
