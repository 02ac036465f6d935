"""The numbers behind a report, and how they are written.

`summarise` makes them from a recipe and its results; nothing is trained and JAX is not imported.
"""

import math
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
from harmonium.experiments.recipe import ONE, Recipe
from harmonium.experiments.report.formats import NOTHING
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

    @property
    def n_finished(self) -> int:
        """Number of finished test folds."""
        return int(self.finished.sum())

    @property
    def complete(self) -> bool:
        """Whether all test folds are finished."""
        return bool(self.finished.all())

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
        return getattr(self.way, axis) if axis in WayToTest._fields else arm_value(self.arm, axis)

    def name(self, axes: Iterable[str]) -> str:
        """What it is on these axes; the model's name where there is nothing to say."""
        parts = [format_setting(axis, self.value(axis)) for axis in axes]
        return ", ".join(parts) or self.arm.model.name


def arm_value(arm: Arm, axis: str) -> Any:
    """An arm's place on one of the axes, or the value of a setting that varies."""
    if axis in ("dataset", "model"):
        return arm.dataset.label if axis == "dataset" else arm.model.name
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
    return float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else math.nan


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """Two scores on the same folds and tags."""

    n_folds: int
    """Test folds that both have finished."""
    complete: bool
    """Whether these are all test folds."""
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
    common = first.finished & second.finished
    if common.sum() < 2 or first.aucs.shape != second.aucs.shape:
        return None
    by_fold = mean_known(first.aucs - second.aucs, axis=1)
    overall = paired_t_tests(by_fold[:, None], np.zeros((len(by_fold), 1)))
    return PairedComparison(
        n_folds=int(common.sum()),
        complete=bool(common.all()),
        difference=float(overall.difference[0]),
        error=standard_error(by_fold),
        p=float(overall.p[0]),
        tests={c: paired_t_tests(first.aucs, second.aucs, correction=c) for c in CORRECTIONS},
    )


@dataclass(frozen=True, eq=False)
class ArmSummary:
    """What is known of one arm, by its finished test folds."""

    arm: Arm
    chosen: list[dict[str, Any]]
    """The settings of each finished test fold."""
    valid_aucs: Numbers
    """(n_finished,) mean validation AUC of the final runs."""
    stages: list[tuple[list[dict[str, Any]], Numbers]]
    """Each stage of the search: the points tried, and (n_finished, n_points) validation AUCs."""
    scores: list[Score]
    """One for each way to test."""
    final_runs: list[Mapping[str, Any]]
    """What was measured of each final run; empty where nothing was."""
    all_runs: list[Mapping[str, Any]]
    """The same of every run, each once, the search included."""

    @property
    def n_finished(self) -> int:
        """Number of finished test folds."""
        return len(self.chosen)


def measured(runs: Sequence[Mapping[str, Any]], name: str) -> Numbers:
    """One measurement, of the runs that have it."""
    values = [run.get(name) for run in runs]
    return np.array([v for v in values if isinstance(v, int | float)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Summary:
    """All results of a recipe."""

    recipe: Recipe
    arms: list[ArmSummary]
    n_runs: int
    """Runs in the results."""
    versions: list[str]
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
        """The same summary, with one of `CLIP_MEASURES` in the place of the AUC of a single tag."""
        at = CLIP_MEASURES.index(measure)

        def changed(score: Score) -> Score:
            return replace(score, aucs=score.of_clips[:, [at]], tags=(measure,))

        arms = [replace(arm, scores=[changed(score) for score in arm.scores]) for arm in self.arms]
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
    versions = [measurements.get(key, {}).get("versions") for key in results]
    return Summary(
        recipe=recipe,
        arms=[_arm_summary(recipe, arm, results, measurements) for arm in arms(recipe)],
        n_runs=len(results),
        versions=sorted(
            {
                ", ".join(f"{name} {packages[name]}" for name in sorted(packages))
                for packages in versions
                if isinstance(packages, dict) and packages
            }
        ),
    )


def _arm_summary(recipe: Recipe, arm: Arm, results: Results, measurements: Results) -> ArmSummary:
    states = [fold_state(recipe, arm, fold, results) for fold in range(recipe.n_folds)]
    finished = [state for state in states if state.finished]
    final = [run.key for state in finished for run in state.final]
    keys = dict.fromkeys([*final, *(run.key for state in finished for run in state.done)])
    return ArmSummary(
        arm=arm,
        chosen=[state.settings or {} for state in finished],
        valid_aucs=np.array([mean_validation_auc(state.final, results) for state in finished]),
        stages=[
            (of_folds[0].points, np.array([stage.valid_aucs for stage in of_folds]))
            for of_folds in zip(*(state.stages for state in finished), strict=True)
        ],
        scores=_scores(recipe, arm, states, results),
        final_runs=[measurements.get(key, {}) for key in final],
        all_runs=[measurements.get(key, {}) for key in keys],
    )


def _scores(recipe: Recipe, arm: Arm, states: Sequence[FoldState], results: Results) -> list[Score]:
    """A score for each way to test."""
    ways = ways_to_test(recipe.inference, recipe.known)
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
    (n_tags,) = sizes
    measures = np.full((recipe.n_folds, len(ways), n_tags + more), np.nan)
    if by_fold:
        measures[finished] = [mean_known(np.stack(runs), axis=0) for runs in by_fold]
    lines = [results[run.key] for runs in final for run in runs]
    named = lines[0].get("tags") if lines else None
    if not isinstance(named, list) or len(named) != n_tags:
        named = range(1, n_tags + 1)
    return [
        Score(
            arm=arm,
            way=way,
            aucs=measures[:, i, :n_tags],
            finished=finished,
            tags=tuple(map(str, named)),
            of_clips=measures[:, i, n_tags:],
            reliability=_reliability(lines, i),
        )
        for i, way in enumerate(ways)
    ]


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


# Numbers and settings as text

_SETTING_NAMES = {
    "n_hidden": "hidden units",
    "inference_steps": "test steps",
    "training": "trained with",
    "inference": "tested with",
    "known": "tags known",
    "l2": "L2",
    "nu": "ν",
    "clips": "training clips",
    "unsure": "unsure tags",
}
_APPROXIMATIONS = {
    None: "own",
    "cd": "CD",
    "pl": "PL",
    "multi_prediction": "MP",
    "mean_field": "MF",
    "lbp": "LBP",
    "gibbs": "Gibbs",
}


def setting_name(key: str) -> str:
    """The name of a setting in words."""
    return _SETTING_NAMES.get(key, key.replace("_", " "))


def setting_heading(key: str) -> str:
    """The name of a setting at the head of a column."""
    text = setting_name(key)
    return text[0].upper() + text[1:] if text[0].isascii() else text


def format_value(key: str, value: Any) -> str:
    """The value of a setting, without its name."""
    if key in ("training", "inference"):
        return _APPROXIMATIONS.get(value, str(value))
    if key == "features" and value == "all":
        return "timbre + rhythm"
    if key == "smoothing":
        return "smoothed" if value else "raw"
    if key == "known":
        return "one true tag" if value == ONE else f"{100 * value:g} %"
    if key == "clips":
        return f"{value:,}" if value else "all"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    return "default" if value is None else str(value)


def format_setting(key: str, value: Any) -> str:
    """The value of a setting with its name, unless the value speaks for itself."""
    text = format_value(key, value)
    if key in ("dataset", "model", "smoothing", "features"):
        return text
    return f"{text} known" if key == "known" else f"{setting_name(key)} {text}"


def format_percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, where it has one."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def format_difference(difference: float, error: float) -> str:
    """A difference of AUCs in percentage points, with its sign and its standard error."""
    if math.isnan(difference):
        return NOTHING
    return ("−" if difference < 0 else "+") + format_percent(abs(difference), error, digits=2)


def format_p(p: float) -> str:
    """A p value, to three decimals."""
    if math.isnan(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_seconds(values: Numbers) -> str:
    """The median of times in seconds, to three digits or so."""
    if not len(values):
        return NOTHING
    value = float(np.median(values))
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_duration(value: float) -> str:
    """A long time in the unit that suits it."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"
