"""The numbers behind a report: scores by arm, fold and tag, what was chosen, and what it took.

`summarise` makes them from a recipe and its results; nothing is trained and JAX is not imported.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.evaluation import PairedTests, Reliability, paired_t_tests
from harmonium.experiments.plan import (
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
from harmonium.experiments.questions import CLIP_MEASURES
from harmonium.experiments.recipe import Recipe
from harmonium.experiments.report.tables import format_setting
from harmonium.experiments.results import RESULTS

Numbers = NDArray[np.float64]
T = TypeVar("T")

ARM_AXES = ("dataset", "model", "smoothing", "clips", "features", "unsure")
"""What tells one arm from another, besides the settings that vary."""

CORRECTIONS = {"none": "", "holm": ", Holm", "bh": ", BH"}
"""For many tests at once, as `harmonium.evaluation.paired_t_tests` and as tables name them."""


@dataclass(frozen=True, eq=False)
class Score:
    """The AUCs of one arm, tested in one way."""

    arm: Arm
    way: WayToTest
    aucs: Numbers
    """(n_folds, n_tags) means over the runs of a test fold; NaN where undefined or not finished."""
    finished: NDArray[np.bool_]
    """(n_folds,) whether all runs of a test fold are there."""
    tags: tuple[str, ...]
    """(n_tags,) names, or numbers where the results do not name them."""
    of_clips: Numbers
    """(n_folds, n_measures) the measures within clips; NaN where the results do not have them."""
    reliability: dict[str, Reliability] = field(default_factory=dict)
    """"plain" and "corrected": that of the finished runs; empty where the results have none."""

    def within_clips(self, measure: str) -> "Score":
        """The same score by one of `CLIP_MEASURES`, in the place of the AUC of a single tag."""
        values = self.of_clips[:, [CLIP_MEASURES.index(measure)]]
        return replace(self, aucs=values, tags=(measure,))

    @property
    def n_finished(self) -> int:
        """Number of finished test folds."""
        return int(self.finished.sum())

    @property
    def complete(self) -> bool:
        """Whether all test folds are finished."""
        return bool(self.finished.all())

    @property
    def n_tags(self) -> int:
        """Number of tags; 0 where no test fold is finished."""
        return self.aucs.shape[1]

    @property
    def by_fold(self) -> Numbers:
        """(n_folds,) mean over the tags that have an AUC; NaN where not finished."""
        return mean_known(self.aucs, axis=1)

    @property
    def by_tag(self) -> Numbers:
        """(n_tags,) mean over the folds in which the tag has an AUC."""
        return mean_known(self.aucs, axis=0)

    @property
    def mean(self) -> float:
        """Mean over tags, then over the finished folds; NaN where none is."""
        return float(mean_known(self.by_fold))

    @property
    def error(self) -> float:
        """Standard error of the mean over folds; NaN with fewer than two."""
        return standard_error(self.by_fold)

    def value(self, axis: str) -> Any:
        """Its place on one of the axes, or the value of a setting that varies."""
        if axis in WayToTest._fields:
            return getattr(self.way, axis)
        return arm_value(self.arm, axis)

    def name(self, axes: Iterable[str]) -> str:
        """What it is on these axes; the model's name where there is nothing to say."""
        parts = [format_setting(axis, self.value(axis)) for axis in axes]
        return ", ".join(parts) or self.arm.model.name


def arm_value(arm: Arm, axis: str) -> Any:
    """An arm's place on one of the axes, or the value of a setting that varies."""
    if axis == "dataset":
        return arm.dataset.label
    if axis == "model":
        return arm.model.name
    return getattr(arm, axis) if axis in ARM_AXES else arm.settings[axis]


def distinct(scores: Iterable[Score], axis: str) -> list[Any]:
    """The values on an axis, each once, in the order of the recipe."""
    return list(dict.fromkeys(score.value(axis) for score in scores))


def grouped(values: Iterable[T], key: Callable[[T], Hashable]) -> dict[Any, list[T]]:
    """The values by their key, in the order in which the keys are found."""
    found: dict[Any, list[T]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found


def by_dataset(scores: Iterable[Score]) -> dict[str, list[Score]]:
    """The scores by the label of their dataset."""
    return grouped(scores, lambda score: score.arm.dataset.label)


def mean_known(values: Numbers, axis: int | None = None) -> Any:
    """The mean without the NaN; NaN where there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)


def standard_error(values: Numbers) -> float:
    """sd / √n of the values that are not NaN, with n - 1 degrees of freedom; NaN for n < 2."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan")
    return float(known.std(ddof=1) / np.sqrt(len(known)))


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """Two scores on the same folds and tags."""

    first: Score
    second: Score
    n_folds: int
    """Test folds that both have finished."""
    difference: float
    """The mean over tags and then over folds of the first AUC less the second."""
    error: float
    """The standard error of the difference, paired: over the differences of the folds."""
    p: float
    """Two-sided p value of the paired t-test on the difference."""
    tests: dict[str, PairedTests]
    """Correction for many tests -> a test per tag."""

    @property
    def n_tested(self) -> int:
        """Tags with an AUC in at least two common folds."""
        return len(self.tests["none"].p) - len(self.tests["none"].reasons)


def compare(first: Score | None, second: Score | None) -> PairedComparison | None:
    """The difference and its test, paired over folds, of the mean over tags and of each tag.

    None with fewer than two common folds.
    """
    if first is None or second is None:
        return None
    common = int((first.finished & second.finished).sum())
    if common < 2 or first.n_tags != second.n_tags:
        return None
    tests = {c: paired_t_tests(first.aucs, second.aucs, correction=c) for c in CORRECTIONS}
    difference, error, p = paired_difference(mean_known(first.aucs - second.aucs, axis=1))
    return PairedComparison(first, second, common, difference, error, p, tests)


def paired_difference(by_fold: Numbers) -> tuple[float, float, float]:
    """Mean, standard error and p value of (n_folds,) differences; NaN where a fold has none."""
    test = paired_t_tests(by_fold[:, None], np.zeros((len(by_fold), 1)))
    return float(test.difference[0]), standard_error(by_fold), float(test.p[0])


@dataclass(frozen=True, eq=False)
class Cost:
    """What the runs of an arm took; empty arrays where nothing was measured."""

    training: Numbers
    """Seconds of training, of each final run."""
    to_best: Numbers
    """Seconds until the best epoch, of each final run that stops early."""
    testing: Numbers
    """Seconds of testing, of each final run."""
    clips: Numbers
    """Clips trained on, of each final run."""
    n_runs: int
    """All runs, the search included."""
    total: float
    """Seconds of all runs, smoothing and testing included; NaN where nothing was measured."""
    peak_memory: float
    """Megabytes of the process, the largest of all runs; NaN where nothing was measured."""


def _cost(states: Sequence[FoldState], measurements: Results) -> Cost:
    """What the runs of finished test folds took; each run counts once."""
    final = [run.key for state in states for run in state.final]
    keys = list(dict.fromkeys([*final, *(run.key for state in states for run in state.done)]))
    of_all = [measurements[key] for key in keys if key in measurements]
    of_final = [measurements[key] for key in final if key in measurements]
    parts = ("seconds", "test_seconds", "smoothing_seconds")
    memory = _measured(of_all, "peak_memory_mb")
    return Cost(
        training=_measured(of_final, "seconds"),
        to_best=_measured(of_final, "seconds_to_best"),
        testing=_measured(of_final, "test_seconds"),
        clips=_measured(of_final, "clips"),
        n_runs=len(keys),
        total=sum(_measured(of_all, part).sum() for part in parts) if of_all else np.nan,
        peak_memory=float(memory.max()) if len(memory) else np.nan,
    )


def _measured(lines: Sequence[Mapping[str, Any]], name: str) -> Numbers:
    """One measurement, of the runs that have it."""
    values = [line.get(name) for line in lines]
    return np.array([v for v in values if isinstance(v, int | float)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class StageSummary:
    """One stage of a search over the finished test folds."""

    points: list[dict[str, Any]]
    """The settings that were tried."""
    valid_aucs: Numbers
    """(n_finished, n_points) mean validation AUC."""
    chosen: NDArray[np.intp]
    """(n_finished,) the point taken."""

    def times_chosen(self, point: int) -> int:
        """On how many test folds a point was taken."""
        return int((self.chosen == point).sum())


@dataclass(frozen=True, eq=False)
class ArmSummary:
    """What is known of one arm."""

    arm: Arm
    n_finished: int
    """Test folds whose runs are all there; the rest is about these."""
    chosen: tuple[dict[str, Any], ...]
    """The settings of each finished test fold."""
    valid_aucs: Numbers
    """(n_finished,) mean validation AUC of the final runs."""
    stages: tuple[StageSummary, ...]
    """The stages of the search; empty without one."""
    scores: tuple[Score, ...]
    """One for each way to test."""
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
        """The arms that still lack test folds."""
        return [arm for arm in self.arms if arm.n_finished < self.recipe.n_folds]

    def within_clips(self, measure: str) -> "Summary":
        """The same summary with `Score.within_clips` for each score."""
        arms = tuple(
            replace(arm, scores=tuple(score.within_clips(measure) for score in arm.scores))
            for arm in self.arms
        )
        return replace(self, arms=arms)

    def varying(self, *but: str) -> tuple[str, ...]:
        """The axes on which the arms and tests differ, except some."""
        scores = [score for arm in self.arms for score in arm.scores]
        settings = self.recipe.vary.settings
        axes = ("dataset", "model", *settings, *ARM_AXES[2:], *WayToTest._fields)
        return tuple(a for a in axes if a not in but and len(distinct(scores, a)) > 1)

    def arm_name(self, arm: Arm) -> str:
        """The model and whatever else tells an arm from the others on its dataset."""
        axes = ("model", *self.varying("dataset", "model", *WayToTest._fields))
        return ", ".join(format_setting(axis, arm_value(arm, axis)) for axis in axes)


def summarise(recipe: Recipe, results: Results, measurements: Results) -> Summary:
    """What the results say about every arm of the recipe, finished or not."""
    return Summary(
        recipe=recipe,
        arms=tuple(_arm_summary(recipe, arm, results, measurements) for arm in arms(recipe)),
        n_runs=len(results),
        versions=_versions(results, measurements),
    )


def _versions(results: Results, measurements: Results) -> tuple[str, ...]:
    found = set()
    for key in results:
        packages = measurements.get(key, {}).get("versions")
        if isinstance(packages, dict) and packages:
            found.add(", ".join(f"{name} {packages[name]}" for name in sorted(packages)))
    return tuple(sorted(found))


def _arm_summary(recipe: Recipe, arm: Arm, results: Results, measurements: Results) -> ArmSummary:
    states = [fold_state(recipe, arm, fold, results) for fold in range(recipe.n_folds)]
    finished = [state for state in states if state.finished]
    return ArmSummary(
        arm=arm,
        n_finished=len(finished),
        chosen=tuple(state.settings or {} for state in finished),
        valid_aucs=np.array([mean_validation_auc(state.final, results) for state in finished]),
        stages=tuple(
            StageSummary(
                points=of_folds[0].points,
                valid_aucs=np.array([stage.valid_aucs for stage in of_folds]),
                chosen=np.array([stage.chosen for stage in of_folds]),
            )
            for of_folds in zip(*(state.stages for state in finished), strict=True)
        ),
        scores=_scores(recipe, arm, states, results),
        cost=_cost(finished, measurements),
    )


def _scores(
    recipe: Recipe, arm: Arm, states: Sequence[FoldState], results: Results
) -> tuple[Score, ...]:
    """A score for each way to test."""
    ways = ways_to_test(recipe.tests.inference, recipe.tests.known)
    finished = np.array([state.finished for state in states])
    final = [state.final for state in states if state.finished]
    by_fold = [[_run_measures(results[run.key], run) for run in runs] for runs in final]
    more = len(CLIP_MEASURES)
    sizes = sorted({matrix.shape[1] - more for runs in by_fold for matrix in runs}) or [0]
    if len(sizes) > 1:
        raise DataError(
            f"The runs of '{arm.label}' have {sizes[0]} and {sizes[-1]} tags: the dataset has "
            "changed between them. Run the experiment again in a new folder."
        )
    measures = np.full((recipe.n_folds, len(ways), sizes[0] + more), np.nan)
    if by_fold:
        measures[finished] = [mean_known(np.stack(runs), axis=0) for runs in by_fold]
    tags = _tag_names(results[final[0][0].key] if final else {}, sizes[0])
    return tuple(
        Score(
            arm=arm,
            way=way,
            aucs=measures[:, i, : sizes[0]],
            finished=finished,
            tags=tags,
            of_clips=measures[:, i, sizes[0] :],
            reliability=_reliability([results[run.key] for runs in final for run in runs], i),
        )
        for i, way in enumerate(ways)
    )


def _reliability(lines: Sequence[Mapping[str, Any]], way: int) -> dict[str, Reliability]:
    """The diagrams of runs, tested in one way, added up; none where a run has none."""
    total: dict[str, Reliability] = {}
    for line in lines:
        found = line["tests"][way].get("reliability")
        if not found:
            return {}
        for name, parts in found.items():
            one = Reliability(*(np.array(part) for part in parts))
            total[name] = total[name] + one if name in total else one
    return total


def _run_measures(line: Mapping[str, Any], run: Run) -> Numbers:
    """(n_ways, n_tags + n_measures) the AUCs of the tags, then the measures within clips.

    A row per way to test; NaN where undefined, and where an older result has no such measure.
    """
    where = f"The result of run '{run.key}' ({run.dataset.label}, {run.model})"
    way_out = f"Remove its line from {RESULTS} and do that run again."
    try:
        found = [tuple(test[name] for name in WayToTest._fields) for test in line["tests"]]
        rows = [[*test["auc"], *map(test.get, CLIP_MEASURES)] for test in line["tests"]]
        matrix = np.stack([np.array(row, dtype=np.float64) for row in rows])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where} is damaged ({error!r}). {way_out}") from None
    wanted = [tuple(way) for way in ways_to_test(run.inference, run.known)]
    if found != wanted or matrix.ndim != 2:
        raise DataError(f"{where} has the tests {found}, expected {wanted}. {way_out}")
    return matrix


def _tag_names(line: Mapping[str, Any], n_tags: int) -> tuple[str, ...]:
    """The names that a run gave its tags; their numbers, from 1, where it gave none."""
    named = line.get("tags")
    if isinstance(named, list) and len(named) == n_tags:
        return tuple(str(name) for name in named)
    return tuple(str(number + 1) for number in range(n_tags))
