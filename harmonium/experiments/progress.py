"""How far an experiment is, and how long it will take."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harmonium.experiments.plan import Run, arms, finished, most_runs, outcome
from harmonium.experiments.results import Store
from harmonium.experiments.specs import Recipe

Row = tuple[str, str]
"""A dataset's label and a model's name."""


@dataclass
class Part:
    """What is known of one model on one dataset."""

    total: int = 0
    """Runs that it takes at most."""
    done: int = 0
    seconds: list[float] = field(default_factory=list)
    """Of the runs so far."""
    auc: float | None = None
    """Mean over tags, folds and arms that are finished."""


class Progress:
    """The state of an experiment, kept up to date run by run."""

    def __init__(self, recipe: Recipe, store: Store) -> None:
        self.recipe, self.store = recipe, store
        self.parts: dict[Row, Part] = {}
        for arm in arms(recipe):
            part = self.parts.setdefault((arm.dataset.label, arm.model.name), Part())
            part.total += most_runs(recipe, arm)
        self.refresh()
        for arm in arms(recipe):
            for fold in range(recipe.n_folds):
                for run in outcome(recipe, arm, fold, store.results).done:
                    self._count(
                        (arm.dataset.label, arm.model.name), store.measurements.get(run.key, {})
                    )

    def add(self, run: Run, measured: dict[str, Any]) -> None:
        """A run ended."""
        self._count((run.dataset.label, run.model), measured)

    def refresh(self) -> None:
        """Look up the scores of what is finished."""
        aucs: dict[Row, list[float]] = {row: [] for row in self.parts}
        for arm, _, state in finished(self.recipe, self.store.results):
            values = [self.store.results[run.key]["tests"][0]["auc"] for run in state.final]
            row = (arm.dataset.label, arm.model.name)
            aucs[row].append(float(np.nanmean(np.array(values, dtype=float))))
        for row, part in self.parts.items():
            part.auc = float(np.mean(aucs[row])) if aucs[row] else None

    def remaining_seconds(self, jobs: int) -> float | None:
        """From how long the runs of each model took so far; None before the first."""
        known = [seconds for part in self.parts.values() for seconds in part.seconds]
        if not known:
            return None
        usual = float(np.mean(known))
        left = sum(
            (part.total - part.done) * (float(np.mean(part.seconds)) if part.seconds else usual)
            for part in self.parts.values()
        )
        return left / jobs

    @property
    def done(self) -> int:
        """Runs that ended."""
        return sum(part.done for part in self.parts.values())

    @property
    def total(self) -> int:
        """Runs there are at most."""
        return sum(part.total for part in self.parts.values())

    def _count(self, row: Row, measured: dict[str, Any]) -> None:
        part = self.parts[row]
        part.done = min(part.done + 1, part.total)
        names = ("seconds", "test_seconds", "smoothing_seconds")
        if "seconds" in measured:
            part.seconds.append(sum(measured[name] for name in names))
