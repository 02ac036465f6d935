"""What the search of an arm tried on each test fold, and what it chose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.experiments.plan import Arm, Results, Run
from harmonium.experiments.specs import grid


@dataclass(frozen=True)
class Trial:
    """One stage of a search on one test fold."""

    points: list[dict[str, Any]]
    runs: list[list[Run]]
    """The runs of each point."""
    values: list[float]
    """The mean validation AUC of each point."""
    chosen: int


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a search over the finished test folds."""

    points: list[dict[str, Any]]
    values: NDArray[np.float64]
    """(n_finished, n_points) mean validation AUC."""
    chosen: NDArray[np.intp]
    """(n_finished,) the point taken."""

    def times_chosen(self, point: int) -> int:
        """On how many test folds a point was taken."""
        return int((self.chosen == point).sum())


def trials(arm: Arm, final: Sequence[Run], search_folds: int, results: Results) -> Iterator[Trial]:
    """The stages of a finished search, as the plan goes through them.

    ``final`` are the runs of the test fold with the chosen settings; the first ``search_folds`` of
    them have the validation folds that the search used.
    """
    settings = {**arm.model.settings, **arm.settings}
    for stage in arm.model.search:
        points = grid(stage)
        if len(points) > 1:
            trial = _trial(settings, points, final[:search_folds], results)
            yield trial
            points = [points[trial.chosen]]
        settings = {**settings, **points[0]}


def _trial(
    settings: Mapping[str, Any],
    points: list[dict[str, Any]],
    finals: Sequence[Run],
    results: Results,
) -> Trial:
    runs = [[replace(run, settings={**settings, **point}) for run in finals] for point in points]
    values = [mean_validation_auc(of_point, results) for of_point in runs]
    return Trial(points, runs, values, int(np.argmax(values)))


def mean_validation_auc(runs: Sequence[Run], results: Results) -> float:
    """The mean over runs of the mean AUC on their validation folds."""
    return float(np.mean([results[run.key]["valid_auc"] for run in runs]))


def stages(by_fold: Sequence[Sequence[Trial]]) -> tuple[Stage, ...]:
    """The trials of several test folds, put together stage by stage."""
    return tuple(
        Stage(
            points=of_stage[0].points,
            values=np.array([trial.values for trial in of_stage]),
            chosen=np.array([trial.chosen for trial in of_stage]),
        )
        for of_stage in zip(*by_fold, strict=True)
    )
