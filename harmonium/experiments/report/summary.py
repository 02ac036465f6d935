"""Results as arrays: every arm, test fold and tag, with the settings chosen and the time taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.experiments.plan import Arm, Outcome, Results, Run, arms, outcome
from harmonium.experiments.report.costs import Cost, cost_of, versions
from harmonium.experiments.report.reading import aucs_of, ways_of_testing
from harmonium.experiments.report.scores import AXES, Matrix, Score, distinct, mean_known
from harmonium.experiments.report.searching import Stage, mean_validation_auc, stages, trials
from harmonium.experiments.specs import Recipe


@dataclass(frozen=True, eq=False)
class ArmSummary:
    """What is known of one arm."""

    arm: Arm
    n_finished: int
    """Test folds whose runs are all there; the rest is about these."""
    chosen: tuple[dict[str, Any], ...]
    """The settings of each finished test fold."""
    valid_aucs: Matrix
    """(n_finished,) mean validation AUC of the final runs."""
    stages: tuple[Stage, ...]
    """Of the search; empty without one."""
    scores: tuple[Score, ...]
    """One for each way of testing."""
    cost: Cost


@dataclass(frozen=True, eq=False)
class Summary:
    """All results of a recipe."""

    recipe: Recipe
    arms: tuple[ArmSummary, ...]
    n_runs: int
    """Runs in the results."""
    versions: tuple[str, ...]
    """What the runs were computed with, each set of versions once."""

    @property
    def scores(self) -> list[Score]:
        """Those with a finished test fold, in the order of the recipe."""
        return [score for arm in self.arms for score in arm.scores if arm.n_finished]

    @property
    def unfinished(self) -> list[ArmSummary]:
        """The arms of which test folds are missing."""
        return [arm for arm in self.arms if arm.n_finished < self.recipe.n_folds]

    def varying(self, *but: str) -> tuple[str, ...]:
        """The axes on which the arms and tests differ, but for some."""
        scores = [score for arm in self.arms for score in arm.scores]
        axes = ("dataset", "model", *self.recipe.vary.settings, *AXES[2:])
        return tuple(a for a in axes if a not in but and len(distinct(scores, a)) > 1)


def summarise(recipe: Recipe, results: Results, measurements: Results) -> Summary:
    """What the results say of every arm of the recipe, finished or not."""
    return Summary(
        recipe=recipe,
        arms=tuple(_arm_summary(recipe, arm, results, measurements) for arm in arms(recipe)),
        n_runs=len(results),
        versions=versions(results, measurements),
    )


def _arm_summary(recipe: Recipe, arm: Arm, results: Results, measurements: Results) -> ArmSummary:
    states = [outcome(recipe, arm, fold, results) for fold in range(recipe.n_folds)]
    finished = np.array([s.settings is not None and not s.missing for s in states])
    done = [state for state, whole in zip(states, finished, strict=True) if whole]
    tried = [list(trials(arm, s.final, recipe.search_folds, results)) for s in done]
    return ArmSummary(
        arm=arm,
        n_finished=len(done),
        chosen=tuple(state.settings or {} for state in done),
        valid_aucs=np.array([mean_validation_auc(s.final, results) for s in done]),
        stages=stages(tried),
        scores=_scores(recipe, arm, done, finished, results),
        cost=cost_of(
            [run for state in done for run in state.final],
            [run for of in tried for trial in of for runs in trial.runs for run in runs],
            measurements,
        ),
    )


def _scores(
    recipe: Recipe, arm: Arm, done: list[Outcome], finished: NDArray[np.bool_], results: Results
) -> tuple[Score, ...]:
    """A score for each way of testing; ``done`` are the finished test folds, in order."""
    ways = ways_of_testing(recipe.tests.inference, recipe.tests.known)
    by_fold = [_fold_aucs(arm, state.final, results) for state in done]
    _check_same_tags(arm, by_fold)
    n_tags = by_fold[0].shape[1] if by_fold else 0
    aucs = np.full((recipe.n_folds, len(ways), n_tags), np.nan)
    if by_fold:
        aucs[finished] = by_fold
    tags = _tag_names(done[0].final if done else (), results, n_tags)
    return tuple(
        Score(arm=arm, inference=way, known=known, aucs=aucs[:, i], finished=finished, tags=tags)
        for i, (way, known) in enumerate(ways)
    )


def _fold_aucs(arm: Arm, final: Sequence[Run], results: Results) -> Matrix:
    """(n_tests, n_tags) means over the runs of one test fold."""
    of_runs = [aucs_of(results[run.key], run) for run in final]
    _check_same_tags(arm, of_runs)
    return mean_known(np.stack(of_runs), axis=0)


def _check_same_tags(arm: Arm, aucs: Sequence[Matrix]) -> None:
    sizes = sorted({matrix.shape[1] for matrix in aucs})
    if len(sizes) > 1:
        raise DataError(
            f"The runs of '{arm.label}' have {sizes[0]} and {sizes[-1]} tags: the dataset has "
            "changed between them. Run the experiment again in a new folder."
        )


def _tag_names(final: Sequence[Run], results: Results, n_tags: int) -> tuple[str, ...]:
    """The names that a run gave its tags; their numbers, from 1, where it gave none."""
    named = results[final[0].key].get("tags") if final else None
    if isinstance(named, list) and len(named) == n_tags:
        return tuple(str(name) for name in named)
    return tuple(str(number + 1) for number in range(n_tags))
