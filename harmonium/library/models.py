"""A library's models: list them, switch to one, compare two."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np

from harmonium.arrays import Mask
from harmonium.library.library import Library
from harmonium.library.model.tag_table import TagTable
from harmonium.library.store.models import CURRENT, ModelRows, StoredModel
from harmonium.library.store.predictions import Steps

MIN_GAIN = 0.01  # difference of AUCs needed for a tag to count as better or worse


@dataclass(frozen=True)
class ModelEntry:
    """A stored model, as a list shows it."""

    id: int
    made_at: datetime
    in_use: bool
    built_in: bool  # whether nothing of it was learnt here
    n_tags: int  # tags that people had given; for the built-in model, all that it was made for
    n_learnt: int  # how many of them it predicts better than chance
    mean_auc: float | None  # over its tags, for tracks held out in training
    n_tracks: int | None  # how many tracks it has learnt from
    n_tagged: int  # how many tracks of the library it has tagged


class Models(ModelRows):
    """The models of a library (`library.models`): they can be listed, used and compared."""

    def entries(self) -> list[ModelEntry]:
        """All models with what is known about them, the newest first."""
        return _entries(self._library)

    def use(self, model_id: int) -> int | None:
        """Use a model from now on; the number of the change, None if it was in use."""
        with self._library.learner.watching():
            return use_model(self._library, model_id)

    def compare(self, a: int, b: int) -> "ModelComparison":
        """What changes from model a to model b."""
        return _compare(self._library, a, b)


def _entries(library: Library) -> list[ModelEntry]:
    """All models, the newest first."""
    with library.reading():
        current = library.settings.get(CURRENT)
        return [
            _entry(library, model, in_use=model.id == current)
            for model in reversed(library.models.list())
        ]


def _entry(library: Library, model: StoredModel, *, in_use: bool) -> ModelEntry:
    report = model.report
    return ModelEntry(
        id=model.id,
        made_at=model.made_at,
        in_use=in_use,
        built_in=not model.has_own,
        n_tags=report.n_given,
        n_learnt=report.n_learnt,
        mean_auc=report.mean_auc,
        n_tracks=report.tracks,
        n_tagged=len(library.predictions.matrix(model.id, [0]).ids),
    )


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


def _compare(library: Library, a: int, b: int) -> ModelComparison:
    """Compare two stored models."""
    with library.reading():
        models = [library.models.get(number, whole=False) for number in (a, b)]
        old, new = (_aucs(model) for model in models)
        shared = [tag for tag in old if old[tag] is not None and new.get(tag) is not None]
        aucs = np.array([(old[tag], new[tag]) for tag in shared]).reshape(-1, 2)
        gains = aucs[:, 1] - aucs[:, 0]
        mean_a, mean_b = aucs.mean(axis=0).tolist() if shared else (None, None)
        tags: list[dict[Literal["tag", "auc_a", "auc_b"], Any]] = [
            {"tag": tag, "auc_a": old.get(tag), "auc_b": new.get(tag)}
            for tag in sorted({*old, *new})
        ]
        return ModelComparison(
            tags=tags,
            better=int((gains >= MIN_GAIN).sum()),
            worse=int((gains <= -MIN_GAIN).sum()),
            mean_a=mean_a,
            mean_b=mean_b,
            error=float(gains.std(ddof=1) / len(shared) ** 0.5) if len(shared) > 1 else None,
            changed_tracks=_n_changed(library, *models),
        )


def _aucs(model: StoredModel) -> dict[str, float | None]:
    """Own tag → its AUC; the built-in model's are from other music."""
    if not model.has_own:
        return {}
    names = model.vocabulary
    return {names[place]: tag.auc for place, tag in enumerate(model.report.tags)}


def _n_changed(library: Library, a: StoredModel, b: StoredModel) -> int | None:
    """How many tracks get different tags from two models; None if no track was tagged by both."""
    predictions_a, predictions_b = (library.predictions.matrix(model.id) for model in (a, b))
    ids, rows_a, rows_b = np.intersect1d(
        predictions_a.ids, predictions_b.ids, assume_unique=True, return_indices=True
    )
    if not len(ids):
        return None
    has_a = _given_tags(library, a, predictions_a.steps[:, rows_a])
    has_b = _given_tags(library, b, predictions_b.steps[:, rows_b])
    none = np.zeros(len(ids), bool)
    changed = none.copy()
    for tag in {*has_a, *has_b}:
        changed |= has_a.get(tag, none) != has_b.get(tag, none)
    return int(changed.sum())


def _given_tags(library: Library, model: StoredModel, steps: Steps) -> dict[str, Mask]:
    """Tag → the tracks that a model gives it, from its stored probabilities (n_tags, n)."""
    nowhere = np.empty(0, np.intp)
    given = {}
    for tag in TagTable.of_library(library, model).predicted:
        given[tag.name] = np.empty(steps.shape[1], bool)
        tag.holding(steps[tag.place], nowhere, nowhere, out=given[tag.name])
    return given
