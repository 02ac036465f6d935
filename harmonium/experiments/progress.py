"""How far an experiment is, and how long it will take."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harmonium.experiments.plan import Run, arms, fold_states, most_runs
from harmonium.experiments.recipe import Recipe
from harmonium.experiments.results import ResultStore

DatasetAndModel = tuple[str, str]
"""A dataset's label and a model's name."""


@dataclass
class ModelProgress:
    """How far one model is on one dataset."""

    total: int = 0
    """Runs that it takes at most."""
    done: int = 0
    seconds: list[float] = field(default_factory=list)
    """What each run so far has taken."""
    auc: float | None = None
    """Mean over tags, folds and arms that are finished."""


class ExperimentProgress:
    """The state of an experiment, kept up to date run by run."""

    def __init__(self, recipe: Recipe, store: ResultStore) -> None:
        self.recipe, self.store = recipe, store
        self.models: dict[DatasetAndModel, ModelProgress] = {}
        for arm in arms(recipe):
            name = (arm.dataset.label, arm.model.name)
            self.models.setdefault(name, ModelProgress()).total += most_runs(recipe, arm)
        for _, state in fold_states(recipe, store.results):
            for run in state.done:
                self.add(run, store.measurements.get(run.key, {}))
        self.refresh()

    def add(self, run: Run, measured: dict[str, Any]) -> None:
        """A run ended."""
        model = self.models[run.dataset.label, run.model]
        model.done = min(model.done + 1, model.total)
        names = ("seconds", "test_seconds", "smoothing_seconds")
        if "seconds" in measured:
            model.seconds.append(sum(measured[name] for name in names))

    def refresh(self) -> None:
        """Look up the scores of what is finished."""
        aucs: dict[DatasetAndModel, list[float]] = {name: [] for name in self.models}
        for arm, state in fold_states(self.recipe, self.store.results):
            if state.finished:
                values = [self.store.results[run.key]["tests"][0]["auc"] for run in state.final]
                mean = float(np.nanmean(np.array(values, dtype=float)))
                aucs[arm.dataset.label, arm.model.name].append(mean)
        for name, model in self.models.items():
            model.auc = float(np.mean(aucs[name])) if aucs[name] else None

    def remaining_seconds(self, jobs: int) -> float | None:
        """From how long the runs of each model took so far; None before the first."""
        known = [seconds for model in self.models.values() for seconds in model.seconds]
        if not known:
            return None
        usual = float(np.mean(known))
        left = sum(
            (model.total - model.done) * (float(np.mean(model.seconds)) if model.seconds else usual)
            for model in self.models.values()
        )
        return left / jobs

    @property
    def done(self) -> int:
        """Runs that ended."""
        return sum(model.done for model in self.models.values())

    @property
    def total(self) -> int:
        """Runs there are at most."""
        return sum(model.total for model in self.models.values())
