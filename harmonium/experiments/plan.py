"""What is left to do, from the recipe and the results so far: a pure function of both.

Nothing else holds the state of an experiment, so it can be stopped and resumed anywhere.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harmonium.experiments.catalogue import has_audio, has_listeners, n_items
from harmonium.experiments.specs import DatasetSpec, ModelSpec, Recipe, grid


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of a comparison: a model on a dataset, trained in one way."""

    dataset: DatasetSpec
    model: ModelSpec
    settings: dict[str, Any]
    """Those that vary between arms."""
    smoothing: bool
    clips: int
    features: str

    @property
    def label(self) -> str:
        """What tells it from the others, in words."""
        parts = [self.dataset.label, self.model.name]
        parts += [f"{key} {value}" for key, value in self.settings.items()]
        parts += ["smoothed"] * self.smoothing
        parts += [f"{self.clips} clips"] * bool(self.clips)
        parts += [self.features] * (self.features != "all")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training and what is tested on it. Everything that its result depends on."""

    dataset: DatasetSpec
    model: str
    estimator: str
    settings: dict[str, Any]
    smoothing: bool
    clips: int
    features: str
    inference: tuple[str, ...]
    known: tuple[float, ...]
    n_folds: int
    test_fold: int
    valid_fold: int
    seed: int

    @cached_property
    def key(self) -> str:
        """A name made of the contents: equal runs of any recipe have the same."""
        content = asdict(self)
        del content["model"]
        del content["dataset"]["label"]
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


Results = Mapping[str, Mapping[str, Any]]
"""Run key -> what it gave."""


@dataclass(frozen=True)
class Outcome:
    """What is known of one arm and test fold."""

    settings: dict[str, Any] | None
    """Chosen on validation folds; None while the search is not over."""
    final: list[Run]
    """The runs whose mean is the score of the test fold; empty while the search is not over."""
    missing: list[Run]
    """The runs to do next."""
    done: list[Run]
    """Those that are done, of the search and after it."""


def arms(recipe: Recipe) -> list[Arm]:
    """Every combination of dataset, model and what varies, but for those that cannot be.

    Only tags whose givers are known can be smoothed, only features of sound have groups, and of a
    small dataset no large part can be taken.
    """
    return [
        Arm(
            dataset=dataset,
            model=model,
            settings=settings,
            smoothing=smoothing,
            clips=clips,
            features=features,
        )
        for dataset in recipe.datasets
        for model in recipe.models
        for settings in grid(recipe.vary.settings)
        for smoothing in recipe.vary.smoothing
        for clips in recipe.vary.clips
        for features in recipe.vary.features
        if _possible(recipe, dataset, smoothing, clips, features)
    ]


def _possible(
    recipe: Recipe, dataset: DatasetSpec, smoothing: bool, clips: int, features: str
) -> bool:
    n = n_items(dataset)
    # folds are not all of one size
    enough = n is None or clips <= 0.9 * n * (recipe.n_folds - 2) / recipe.n_folds
    return (
        (has_listeners(dataset) or not smoothing)
        and (has_audio(dataset) or features == "all")
        and enough
    )


def outcome(recipe: Recipe, arm: Arm, test_fold: int, results: Results) -> Outcome:
    """How far the search of one arm has come on one test fold.

    Settings are chosen by the mean AUC over tags and the first ``search_folds`` validation folds;
    the test fold has no part in it.
    """
    others = [(test_fold + i) % recipe.n_folds for i in range(1, recipe.n_folds)]
    settings = {**arm.model.settings, **arm.settings}
    done: dict[str, Run] = {}
    for stage in arm.model.search:
        points = grid(stage)
        if len(points) == 1:
            settings = {**settings, **points[0]}
            continue
        tried = [
            [
                _run(recipe, arm, {**settings, **point}, test_fold, valid)
                for valid in others[: recipe.search_folds]
            ]
            for point in points
        ]
        done |= {run.key: run for runs in tried for run in runs if run.key in results}
        missing = [run for runs in tried for run in runs if run.key not in results]
        if missing:
            return Outcome(None, [], missing, list(done.values()))
        best = max(range(len(points)), key=lambda i: _validation_auc(tried[i], results))
        settings = {**settings, **points[best]}
    final = [_run(recipe, arm, settings, test_fold, valid) for valid in others]
    done |= {run.key: run for run in final if run.key in results}
    missing = [run for run in final if run.key not in results]
    return Outcome(settings, final, missing, list(done.values()))


def missing(recipe: Recipe, results: Results) -> list[Run]:
    """The runs that can be done now, each once, in the order of the recipe."""
    found: dict[str, Run] = {}
    for arm in arms(recipe):
        for fold in range(recipe.n_folds):
            for run in outcome(recipe, arm, fold, results).missing:
                found.setdefault(run.key, run)
    return list(found.values())


def most_runs(recipe: Recipe, arm: Arm) -> int:
    """How many runs an arm takes at most: stages may repeat one another's points."""
    stages = [len(grid(stage)) for stage in arm.model.search]
    searched = recipe.search_folds * sum(size for size in stages if size > 1)
    again = recipe.search_folds if max(stages, default=1) > 1 else 0  # the winner's
    return (searched - again + recipe.n_folds - 1) * recipe.n_folds


def _run(
    recipe: Recipe, arm: Arm, settings: dict[str, Any], test_fold: int, valid_fold: int
) -> Run:
    return Run(
        dataset=arm.dataset,
        model=arm.model.name,
        estimator=arm.model.estimator,
        settings=settings,
        smoothing=arm.smoothing,
        clips=arm.clips,
        features=arm.features,
        inference=recipe.tests.inference,
        known=recipe.tests.known,
        n_folds=recipe.n_folds,
        test_fold=test_fold,
        valid_fold=valid_fold,
        seed=recipe.seed,
    )


def _validation_auc(runs: list[Run], results: Results) -> float:
    return float(np.mean([results[run.key]["valid_auc"] for run in runs]))


def finished(recipe: Recipe, results: Results) -> Iterator[tuple[Arm, int, Outcome]]:
    """Every arm and test fold whose runs are all there."""
    for arm in arms(recipe):
        for fold in range(recipe.n_folds):
            state = outcome(recipe, arm, fold, results)
            if state.settings is not None and not state.missing:
                yield arm, fold, state
