"""The numbers behind a report: scores, their means and errors, and comparisons of two.

`summarise` makes them from a recipe and its results; nothing is trained and JAX is not imported.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from harmonium.arrays import Doubles, Mask
from harmonium.errors import DataError
from harmonium.evaluation import PairedTests, Reliability, paired_t_tests
from harmonium.experiments.plan import (
    MEASURES,
    Arm,
    FoldState,
    Results,
    Run,
    WayToTest,
    arms,
    fold_state,
    mean_validation_auc,
    ways_to_test,
)
from harmonium.experiments.recipe import RAW, Recipe
from harmonium.experiments.report.wording import NOTHING, format_setting
from harmonium.experiments.results import RESULTS

CORRECTIONS = {"none": "", "holm": ", Holm", "bh": ", BH"}
"""For many tests at once, as `harmonium.evaluation.paired_t_tests` and as tables name them."""


class SearchStage(NamedTuple):
    """One stage of a search, over the finished test folds."""

    points: list[dict[str, Any]]  # the settings that were tried
    aucs: Doubles  # (n_finished, n_points) mean validation AUCs


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """One arm, tested in one way."""

    arm: Arm
    axes: dict[str, Any]  # its dataset, model, settings that vary and so on, by name
    states: list[FoldState]  # the finished test folds
    finished: Mask  # (n_folds,) whether all runs of a test fold are there
    aucs: Doubles  # (n_folds, n_tags) means over a test fold's runs; NaN if there is none
    tags: tuple[str, ...]  # (n_tags,) names, or numbers where the results do not name them
    measures: Doubles  # (n_folds, n_measures) `MEASURES`; NaN if there is none
    reliability: dict[str, Reliability]  # "plain" and "corrected"; empty if there is none
    valid_aucs: Doubles  # (n_finished,) mean validation AUC of the final runs
    final_runs: list[Mapping[str, Any]]  # what was measured of each final run
    all_runs: list[Mapping[str, Any]]  # the same of every run, each once, the search included

    @property
    def n_finished(self) -> int:
        """Number of finished test folds."""
        return len(self.states)

    @property
    def complete(self) -> bool:
        """Whether all test folds are finished."""
        return bool(self.finished.all())

    @property
    def mean(self) -> float:
        """Mean over tags, then over the finished folds; NaN without any."""
        return float(mean_known(mean_known(self.aucs, axis=1)))

    @property
    def error(self) -> float:
        """Standard error of the mean over folds; NaN with fewer than two."""
        return standard_error(mean_known(self.aucs, axis=1))

    @property
    def stages(self) -> list[SearchStage]:
        """The stages of the search."""
        stages = []
        for stage_of_folds in zip(*(state.stages for state in self.states), strict=True):
            points, _ = stage_of_folds[0]
            aucs = np.array([aucs_of_fold for _, aucs_of_fold in stage_of_folds])
            stages.append(SearchStage(points, aucs))
        return stages

    def name(self, axes: Iterable[str]) -> str:
        """Its values on these axes in words; the model's name without axes."""
        values = [format_setting(axis, self.axes[axis]) for axis in axes]
        return ", ".join(values) or self.arm.model.name


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """All results of a recipe."""

    recipe: Recipe
    arms: list[list[Score]]  # the scores of each arm, one for each way to test
    n_runs: int  # runs in the results
    versions: list[str]  # what the runs were computed with, each set of versions once

    @property
    def scores(self) -> list[Score]:
        """Those with a finished test fold, in the order of the recipe."""
        return [score for arm in self.arms for score in arm if score.n_finished]

    @property
    def unfinished(self) -> list[Score]:
        """The first score of each arm that still lacks test folds."""
        return [arm[0] for arm in self.arms if not arm[0].complete]

    def within_clips(self, measure: str) -> "Summary":
        """The same summary, with one of `MEASURES` in place of the tags' AUCs."""
        column = [MEASURES.index(measure)]
        arms = []
        for scores in self.arms:
            arms.append(
                [
                    replace(score, aucs=score.measures[:, column], tags=(measure,))
                    for score in scores
                ]
            )
        return replace(self, arms=arms)

    def varying(self, *but: str) -> tuple[str, ...]:
        """The axes on which the arms and tests differ, except some."""
        scores = [score for arm in self.arms for score in arm]
        axes = [axis for axis in scores[0].axes if axis not in but]
        return tuple(axis for axis in axes if len(grouped(scores, axis)) > 1)

    def arm_name(self, score: Score) -> str:
        """The model and whatever else tells an arm from the others on its dataset."""
        return score.name(("model", *self.varying("dataset", "model", *WayToTest._fields)))


def grouped(scores: Iterable[Score], *axes: str) -> dict[Any, list[Score]]:
    """The scores by their value on an axis, or by those on several, in the order of the recipe."""
    groups: dict[Any, list[Score]] = {}
    for score in scores:
        values = tuple(score.axes[axis] for axis in axes)
        key = values if len(axes) > 1 else values[0]
        groups.setdefault(key, []).append(score)
    return groups


def mean_known(values: Doubles, axis: int | None = None) -> Any:
    """The mean ignoring NaN; NaN if there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)


def standard_error(values: Doubles) -> float:
    """sd / √n of the values that are not NaN, with n - 1 degrees of freedom; NaN for n < 2."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return math.nan
    return float(known.std(ddof=1) / np.sqrt(len(known)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Two scores on the same folds and tags."""

    dataset: str
    first: str  # the name of the first score
    second: str
    common: str  # what else both are; `NOTHING` if nothing else varies
    folds: Mask  # (n_folds,) whether both have finished a test fold
    difference: float  # the mean over tags and then over folds of the first AUC less the second
    error: float  # the standard error of the difference, paired: over the differences of the folds
    p: float  # two-sided p value of the paired t-test on the difference
    tests: dict[str, PairedTests]  # correction for many tests -> a test per tag

    @property
    def n_tested(self) -> int:
        """Tags with an AUC in at least two common folds."""
        return len(self.tests["none"].p) - len(self.tests["none"].reasons)


def compare(
    first: Score, second: Score, axes: Sequence[str] = (), common: Sequence[str] = ()
) -> Comparison | None:
    """The difference and its test, paired over folds, of the mean over tags and of each tag.

    ``axes`` name the scores, and ``common`` what both are. None with fewer than two common folds.
    """
    folds = first.finished & second.finished
    if first.aucs.shape != second.aucs.shape or folds.sum() < 2:
        return None
    by_fold = mean_known(first.aucs - second.aucs, axis=1)
    overall = paired_t_tests(by_fold[:, None], np.zeros((len(by_fold), 1)))
    tests = {}
    for correction in CORRECTIONS:
        tests[correction] = paired_t_tests(first.aucs, second.aucs, correction=correction)
    return Comparison(
        dataset=first.axes["dataset"],
        first=first.name(axes),
        second=second.name(axes),
        common=first.name(common) if common else NOTHING,
        folds=folds,
        difference=float(overall.difference[0]),
        error=standard_error(by_fold),
        p=float(overall.p[0]),
        tests=tests,
    )


def measured(runs: Sequence[Mapping[str, Any]], name: str) -> Doubles:
    """One measurement, of the runs that have it."""
    values = [run.get(name) for run in runs]
    numbers = [value for value in values if isinstance(value, int | float)]
    return np.array(numbers, dtype=np.float64)


def summarise(recipe: Recipe, results: Results, measurements: Results) -> Summary:
    """What the results say about every arm of the recipe, finished or not."""
    versions = set()
    for key in results:
        packages = measurements.get(key, {}).get("versions")
        if packages:
            names = [f"{name} {number}" for name, number in sorted(packages.items())]
            versions.add(", ".join(names))
    return Summary(
        recipe=recipe,
        arms=[_scores_of_arm(recipe, arm, results, measurements) for arm in arms(recipe)],
        n_runs=len(results),
        versions=sorted(versions),
    )


def _scores_of_arm(
    recipe: Recipe, arm: Arm, results: Results, measurements: Results
) -> list[Score]:
    """A score for each way to test an arm."""
    states = [fold_state(recipe, arm, fold, results) for fold in range(recipe.n_folds)]
    finished = np.array([state.finished for state in states])
    states = [state for state in states if state.finished]
    final_runs = [run for state in states for run in state.final]
    result_lines = [results[run.key] for run in final_runs]
    ways = ways_to_test(recipe.inference, recipe.known)

    measures = [_run_measures(results[run.key], run) for run in final_runs]
    n_tags = _n_tags(arm, measures)
    # (n_folds, n_ways, n_tags + n_measures)
    by_fold = np.full((recipe.n_folds, len(ways), n_tags + len(MEASURES)), np.nan)
    if measures:
        of_runs = np.reshape(measures, (len(states), -1, *by_fold.shape[1:]))
        by_fold[finished] = mean_known(of_runs, axis=1)

    axes = {"dataset": arm.dataset.label, "model": arm.model.name, **arm.settings}
    smoothing = RAW if arm.smoothing is None else arm.smoothing.name
    axes |= {"smoothing": smoothing, "clips": arm.clips, "features": arm.features}
    valid_aucs = np.array([mean_validation_auc(state.final, results) for state in states])
    all_keys = dict.fromkeys(run.key for state in states for run in state.done)
    scores = []
    for number, way in enumerate(ways):
        diagrams = [line["tests"][number].get("reliability") for line in result_lines]
        scores.append(
            Score(
                arm=arm,
                axes=axes | way._asdict(),
                states=states,
                finished=finished,
                aucs=by_fold[:, number, :n_tags],
                tags=_tag_names(result_lines, n_tags),
                measures=by_fold[:, number, n_tags:],
                reliability=_total_reliability(diagrams),
                valid_aucs=valid_aucs,
                final_runs=[measurements.get(run.key, {}) for run in final_runs],
                all_runs=[measurements.get(key, {}) for key in all_keys],
            )
        )
    return scores


def _n_tags(arm: Arm, measures: Sequence[Doubles]) -> int:
    """The number of tags that the runs were tested on, which must be one; 0 without runs."""
    numbers = sorted({matrix.shape[1] - len(MEASURES) for matrix in measures})
    if len(numbers) > 1:
        raise DataError(
            f"The runs of '{arm.label}' have {numbers[0]} and {numbers[-1]} tags: "
            "the dataset has changed between them. Run the experiment again in a new folder."
        )
    return numbers[0] if numbers else 0


def _tag_names(lines: Sequence[Mapping[str, Any]], n_tags: int) -> tuple[str, ...]:
    """The tags' names in the results; else their numbers from 1 on."""
    names = lines[0].get("tags") if lines else None
    if isinstance(names, list) and len(names) == n_tags:
        return tuple(map(str, names))
    return tuple(str(number) for number in range(1, n_tags + 1))


def _total_reliability(diagrams: Sequence[Mapping[str, Any] | None]) -> dict[str, Reliability]:
    """The diagrams of runs added up; empty if a run has none."""
    complete = [diagram for diagram in diagrams if diagram]
    if not complete or len(complete) < len(diagrams):
        return {}
    totals = {}
    for name in complete[0]:
        n, scores, positives = np.sum([diagram[name] for diagram in complete], axis=0)
        totals[name] = Reliability(n=n, scores=scores, positives=positives)
    return totals


def _run_measures(line: Mapping[str, Any], run: Run) -> Doubles:
    """(n_ways, n_tags + n_measures) the AUCs of the tags, then the measures within clips.

    A row per way to test; NaN where undefined, and where an older result has no such measure.
    """
    where = f"The result of run '{run.key}' ({run.dataset.label}, {run.model})"
    way_out = f"Remove its line from {RESULTS} and do that run again."
    ways = []
    rows = []
    try:
        for test in line["tests"]:
            ways.append(WayToTest(inference=test["inference"], known=test["known"]))
            measures = [*test["auc"], *map(test.get, MEASURES)]
            rows.append(np.array(measures, dtype=np.float64))
        matrix = np.stack(rows)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where} is damaged ({error!r}). {way_out}") from None
    expected = ways_to_test(run.inference, run.known)
    if ways != expected:
        raise DataError(
            f"{where} has the tests {[*map(tuple, ways)]}, expected {[*map(tuple, expected)]}. "
            f"{way_out}"
        )
    return matrix
