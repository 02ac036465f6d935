"""What is left to do, from the recipe and the results so far: a pure function of both.

Nothing else holds the state of an experiment, so it can be stopped and resumed anywhere.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from harmonium.experiments.datasets import DatasetSpec
from harmonium.experiments.recipe import ARM_AXES, Known, ModelSpec, Recipe, SmoothingSpec

MEANING = 3
"""Increased whenever runs with the same description give other results, so that old ones are not
reused. 2: artists are grouped by `artist_key`; SVMs choose clips by shares. 3: models with few
clips are trained for longer."""

SMOOTHING = "smoothing."
"""Begins the names of a smoother's settings where they stand among those of a model."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of a comparison: a model on a dataset, trained in one way."""

    dataset: DatasetSpec
    model: ModelSpec
    settings: dict[str, Any]  # those that vary between arms
    smoothing: SmoothingSpec | None  # None: trained on raw tags
    clips: int
    features: str

    @property
    def label(self) -> str:
        """What tells it from the others, in words."""
        parts = [self.dataset.label, self.model.name]
        parts += [f"{key} {value}" for key, value in self.settings.items()]
        if self.smoothing:
            parts.append(self.smoothing.name)
        if self.clips:
            parts.append(f"{self.clips} clips")
        if self.features != "all":
            parts.append(self.features)
        return ", ".join(parts)

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that no search chooses, with the smoother's."""
        settings = {**self.model.fixed, **self.settings}
        if self.smoothing is not None:
            settings |= _of_smoother(self.smoothing.settings)
        return settings

    @property
    def search(self) -> list[dict[str, Any]]:
        """The grids of the search; those of the smoothing come first."""
        grids: list[dict[str, Any]] = []
        if self.smoothing is not None:
            grids += map(_of_smoother, self.smoothing.search)
        return [*grids, *self.model.search]


def _of_smoother(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a smoother, named as such."""
    return {SMOOTHING + name: value for name, value in settings.items()}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training and its tests: everything that their result depends on."""

    dataset: DatasetSpec
    model: str
    estimator: str
    settings: dict[str, Any]
    smoothing: dict[str, Any] | None  # settings of the smoother; None: trained on raw tags
    clips: int
    features: str
    inference: tuple[str, ...]
    known: tuple[Known, ...]
    n_folds: int
    test_fold: int
    valid_fold: int | None  # None: each of the other folds in turn, for one member of the model
    seed: int
    search_known: tuple[Known, ...] = (0.0,)
    refit: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Its test and validation folds; twice the test fold if all others validate in turn."""
        if self.valid_fold is None:
            return self.test_fold, self.test_fold
        return self.test_fold, self.valid_fold

    @cached_property
    def key(self) -> str:
        """A name made from the contents: equal runs of any recipe have the same."""
        # "unsure" was once an option, and the keys of old results contain it
        content = asdict(self) | {"meaning": MEANING, "unsure": "unknown"}
        del content["model"]
        del content["dataset"]["label"]
        if self.smoothing is None:
            content["smoothing"] = False  # as it was named when smoothing had no settings
        for name in ("search_known", "refit"):  # as runs were named before this option existed
            if getattr(self, name) == getattr(Run, name):
                del content[name]
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


class WayToTest(NamedTuple):
    """One of the tests of a trained model."""

    inference: str | None  # how to predict; None is the model's own way
    known: Known  # how much of a clip's tags the model observes


def ways_to_test(inference: Sequence[str], known: Iterable[Known]) -> list[WayToTest]:
    """Each way to predict with each amount of known tags, in the order of a run's tests."""
    return [WayToTest(*way) for way in itertools.product(inference or (None,), known)]


CLIP_MEASURES = ("clip_auc", "clip_precision_at_3")  # means over clips, for the tags not observed
SET_MEASURES = (  # of decisions by thresholds, and of the order of a clip's tags
    "macro_f1",
    "micro_f1",
    "hamming_loss",
    "subset_accuracy",
    "coverage_error",
    "ranking_precision",
)
MEASURES = (*CLIP_MEASURES, *SET_MEASURES)

Results = Mapping[str, Mapping[str, Any]]  # run key -> the result of the run

Stage = tuple[list[dict[str, Any]], list[float]]  # settings tried, their mean validation AUCs


@dataclass(frozen=True)
class FoldState:
    """How far one arm has come on one test fold."""

    settings: dict[str, Any] | None
    """Chosen on validation folds, with the smoother's; None during the search."""
    stages: list[Stage]  # the stages of the search that are done
    final: list[Run]  # the runs whose mean is the fold's score; empty during the search
    missing: list[Run]  # the runs to do next
    done: list[Run]  # the runs that are done, of the search and after it, each once

    @property
    def finished(self) -> bool:
        """Whether all runs are there."""
        return self.settings is not None and not self.missing


def grid(values: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, the last name varying fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def arms(recipe: Recipe) -> list[Arm]:
    """Every combination of dataset, model and what varies, except skipped and impossible ones.

    Only tags whose givers are known can be smoothed, only features of sound have groups, and a
    small dataset has no large part.
    """
    possible = []
    for dataset, model in itertools.product(recipe.datasets, recipe.models):
        # folds are not all of one size
        max_clips = 0.9 * (dataset.n_clips or math.inf) * (recipe.n_folds - 2) / recipe.n_folds
        for point in grid(recipe.vary):
            axes = {name: point.pop(name) for name in ARM_AXES}
            axes["smoothing"] = recipe.smoothing(axes["smoothing"])
            arm = Arm(dataset=dataset, model=model, settings=point, **axes)
            if (
                dataset.label not in model.skip
                and (dataset.has_triples or arm.smoothing is None)
                and (dataset.has_audio or arm.features == "all")
                and arm.clips <= max_clips
            ):
                possible.append(arm)
    return possible


def fold_state(recipe: Recipe, arm: Arm, test_fold: int, results: Results) -> FoldState:
    """How far one arm has come on one test fold.

    Settings are chosen by the mean AUC over tags and the first ``search_folds`` validation folds,
    asked as ``search_known`` says; the test fold is not used.
    """
    others: list[int | None] = [None]
    if not recipe.cross_fit:
        others = [(test_fold + i) % recipe.n_folds for i in range(1, recipe.n_folds)]

    def runs_with(settings: dict[str, Any], folds: Sequence[int | None]) -> list[Run]:
        of_smoother = {}
        of_model = {}
        for name, value in settings.items():
            if name.startswith(SMOOTHING):
                of_smoother[name.removeprefix(SMOOTHING)] = value
            else:
                of_model[name] = value
        return [
            Run(
                dataset=arm.dataset,
                model=arm.model.name,
                estimator=arm.model.estimator,
                settings=of_model,
                smoothing=None if arm.smoothing is None else of_smoother,
                clips=arm.clips,
                features=arm.features,
                inference=recipe.inference,
                known=recipe.known,
                n_folds=recipe.n_folds,
                test_fold=test_fold,
                valid_fold=fold,
                seed=recipe.seed,
                search_known=recipe.search_known,
                refit=arm.model.refit,
            )
            for fold in folds
        ]

    settings = arm.fixed
    stages: list[Stage] = []
    runs: list[Run] = []
    final: list[Run] = []
    for values in arm.search:
        points = grid(values)
        if len(points) > 1:
            folds = others[: recipe.search_folds]
            tried = [runs_with({**settings, **point}, folds) for point in points]
            runs += itertools.chain(*tried)
            if any(run.key not in results for run in runs):
                break
            aucs = [mean_validation_auc(of_point, results) for of_point in tried]
            stages.append((points, aucs))
            points = [points[np.argmax(aucs)]]  # the first, if several are equal
        settings = {**settings, **points[0]}
    else:
        final = runs_with(settings, others)
    runs += final
    return FoldState(
        settings=settings if final else None,
        stages=stages,
        final=final,
        missing=[run for run in runs if run.key not in results],
        done=list({run.key: run for run in runs if run.key in results}.values()),
    )


def mean_validation_auc(runs: Sequence[Run], results: Results) -> float:
    """The mean over runs of the mean AUC on their validation folds."""
    return float(np.mean([results[run.key]["valid_auc"] for run in runs]))


def fold_states(recipe: Recipe, results: Results) -> Iterator[tuple[Arm, FoldState]]:
    """Every arm with the state of each of its test folds, in order."""
    for arm in arms(recipe):
        for fold in range(recipe.n_folds):
            yield arm, fold_state(recipe, arm, fold, results)


def missing(recipe: Recipe, results: Results) -> list[Run]:
    """The runs that can be done now, each once, in the order of the recipe."""
    runs: dict[str, Run] = {}
    for _, state in fold_states(recipe, results):
        for run in state.missing:
            runs.setdefault(run.key, run)
    return list(runs.values())


def most_runs(recipe: Recipe, arm: Arm) -> int:
    """The most runs that an arm can take: stages may repeat each other's points."""
    stages = [len(grid(values)) for values in arm.search]
    n_final = 1 if recipe.cross_fit else recipe.n_folds - 1
    n_search = min(recipe.search_folds, n_final)
    searched = n_search * sum(size for size in stages if size > 1)
    again = n_search if max(stages, default=1) > 1 else 0  # the winner's
    return (searched - again + n_final) * recipe.n_folds
