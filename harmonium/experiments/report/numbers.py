"""The numbers behind a report, and how they are formatted.

`summarise` makes them from a recipe and its results; nothing is trained and JAX is not imported.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonium.arrays import Doubles, Mask
from harmonium.errors import DataError
from harmonium.evaluation import PairedTests, Reliability, paired_t_tests
from harmonium.experiments.plan import (
    CLIP_MEASURES,
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
from harmonium.experiments.recipe import ONE, Recipe
from harmonium.experiments.results import RESULTS

NOTHING = "—"  # the text of a cell that has no value

CORRECTIONS = {"none": "", "holm": ", Holm", "bh": ", BH"}
"""For many tests at once, as `harmonium.evaluation.paired_t_tests` and as tables name them."""


@dataclass(frozen=True, eq=False)
class Score:
    """One arm, tested in one way."""

    arm: Arm
    axes: dict[str, Any]  # its dataset, model, settings that vary and so on, by name
    states: list[FoldState]  # the finished test folds
    finished: Mask  # (n_folds,) whether all runs of a test fold are there
    aucs: Doubles  # (n_folds, n_tags) means over a test fold's runs; NaN if there is none
    tags: tuple[str, ...]  # (n_tags,) names, or numbers where the results do not name them
    of_clips: Doubles  # (n_folds, n_measures) `CLIP_MEASURES`; NaN if there is none
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
    def stages(self) -> list[tuple[list[dict[str, Any]], Doubles]]:
        """Each stage of the search: the points, and (n_finished, n_points) validation AUCs."""
        of_folds = zip(*(state.stages for state in self.states), strict=True)
        return [(stage[0][0], np.array([aucs for _, aucs in stage])) for stage in of_folds]

    def name(self, axes: Iterable[str]) -> str:
        """Its values on these axes in words; the model's name without axes."""
        return ", ".join(format_setting(a, self.axes[a]) for a in axes) or self.arm.model.name


@dataclass(frozen=True, eq=False)
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
        """The same summary, with one of `CLIP_MEASURES` in place of the tags' AUCs."""
        at = [CLIP_MEASURES.index(measure)]
        arms = [[replace(s, aucs=s.of_clips[:, at], tags=(measure,)) for s in a] for a in self.arms]
        return replace(self, arms=arms)

    def varying(self, *but: str) -> tuple[str, ...]:
        """The axes on which the arms and tests differ, except some."""
        scores = [score for arm in self.arms for score in arm]
        return tuple(a for a in scores[0].axes if a not in but and len(grouped(scores, a)) > 1)

    def arm_name(self, score: Score) -> str:
        """The model and whatever else tells an arm from the others on its dataset."""
        return score.name(("model", *self.varying("dataset", "model", *WayToTest._fields)))


def grouped(scores: Iterable[Score], *axes: str) -> dict[Any, list[Score]]:
    """The scores by their value on an axis, or by those on several, in the order of the recipe."""
    found: dict[Any, list[Score]] = {}
    for score in scores:
        key = tuple(score.axes[axis] for axis in axes)
        found.setdefault(key if len(axes) > 1 else key[0], []).append(score)
    return found


def mean_known(values: Doubles, axis: int | None = None) -> Any:
    """The mean ignoring NaN; NaN if there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)


def standard_error(values: Doubles) -> float:
    """sd / √n of the values that are not NaN, with n - 1 degrees of freedom; NaN for n < 2."""
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else math.nan


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two scores on the same folds and tags."""

    names: tuple[str, str, str, str]  # the dataset, the two scores, and what else both are
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
    both = first.name(common) if common else NOTHING
    by_fold = mean_known(first.aucs - second.aucs, axis=1)
    overall = paired_t_tests(by_fold[:, None], np.zeros((len(by_fold), 1)))
    return Comparison(
        names=(first.axes["dataset"], first.name(axes), second.name(axes), both),
        folds=folds,
        difference=float(overall.difference[0]),
        error=standard_error(by_fold),
        p=float(overall.p[0]),
        tests={c: paired_t_tests(first.aucs, second.aucs, correction=c) for c in CORRECTIONS},
    )


def measured(runs: Sequence[Mapping[str, Any]], name: str) -> Doubles:
    """One measurement, of the runs that have it."""
    values = [run.get(name) for run in runs]
    return np.array([v for v in values if isinstance(v, int | float)], dtype=np.float64)


def summarise(recipe: Recipe, results: Results, measurements: Results) -> Summary:
    """What the results say about every arm of the recipe, finished or not."""
    texts = {
        ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
        for key in results
        if (packages := measurements.get(key, {}).get("versions"))
    }
    scores = [_scores(recipe, arm, results, measurements) for arm in arms(recipe)]
    return Summary(recipe, scores, n_runs=len(results), versions=sorted(texts))


def _scores(recipe: Recipe, arm: Arm, results: Results, measurements: Results) -> list[Score]:
    """A score for each way to test an arm."""
    states = [fold_state(recipe, arm, fold, results) for fold in range(recipe.n_folds)]
    finished = np.array([state.finished for state in states])
    states = [state for state in states if state.finished]
    final = [run for state in states for run in state.final]
    lines = [results[run.key] for run in final]
    ways = ways_to_test(recipe.inference, recipe.known)
    measures = [_run_measures(*pair) for pair in zip(lines, final, strict=True)]
    n_tags, *others = sorted({matrix.shape[1] for matrix in measures}) or [len(CLIP_MEASURES)]
    n_tags -= len(CLIP_MEASURES)
    if others:
        raise DataError(
            f"The runs of '{arm.label}' have {n_tags} and {others[-1] - len(CLIP_MEASURES)} tags: "
            "the dataset has changed between them. Run the experiment again in a new folder."
        )
    by_fold = np.full((recipe.n_folds, len(ways), n_tags + len(CLIP_MEASURES)), np.nan)
    if measures:
        of_runs = np.reshape(measures, (len(states), -1, *by_fold.shape[1:]))
        by_fold[finished] = mean_known(of_runs, axis=1)
    named = lines[0].get("tags") if lines else None
    if not isinstance(named, list) or len(named) != n_tags:
        named = range(1, n_tags + 1)
    keys = dict.fromkeys(run.key for state in states for run in state.done)
    places = {"dataset": arm.dataset.label, "model": arm.model.name, **arm.settings}
    places |= {name: getattr(arm, name) for name in ("smoothing", "clips", "features")}
    return [
        Score(
            arm=arm,
            axes=places | way._asdict(),
            states=states,
            finished=finished,
            aucs=by_fold[:, i, :n_tags],
            tags=tuple(map(str, named)),
            of_clips=by_fold[:, i, n_tags:],
            reliability=_reliability([line["tests"][i].get("reliability") for line in lines]),
            valid_aucs=np.array([mean_validation_auc(state.final, results) for state in states]),
            final_runs=[measurements.get(run.key, {}) for run in final],
            all_runs=[measurements.get(key, {}) for key in keys],
        )
        for i, way in enumerate(ways)
    ]


def _reliability(diagrams: Sequence[Mapping[str, Any] | None]) -> dict[str, Reliability]:
    """The diagrams of runs added up; None if a run has none."""
    found = [diagram for diagram in diagrams if diagram]
    if not found or len(found) < len(diagrams):
        return {}
    return {name: Reliability(*np.sum([one[name] for one in found], axis=0)) for name in found[0]}


def _run_measures(line: Mapping[str, Any], run: Run) -> Doubles:
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


SETTING_NAMES = {
    "n_hidden": "hidden units",
    "inference_steps": "test steps",
    "training": "trained with",
    "inference": "tested with",
    "known": "tags known",
    "l2": "L2",
    "nu": "ν",
    "clips": "training clips",
}
_APPROXIMATIONS = {"multi_prediction": "MP", "mean_field": "MF", "gibbs": "Gibbs", "exact": "exact"}


def format_value(key: str, value: Any) -> str:
    """The value of a setting, without its name."""
    if key in ("training", "inference"):
        return _APPROXIMATIONS.get(value, value.upper() if value else "own")
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
    if key == "known":
        return f"{text} known"
    return f"{SETTING_NAMES.get(key, key.replace('_', ' '))} {text}"


def format_percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, if any."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def format_difference(difference: float, error: float) -> str:
    """A difference of AUCs in percentage points, with its sign and its standard error."""
    if math.isnan(difference):
        return NOTHING
    return ("−" if difference < 0 else "+") + format_percent(abs(difference), error, digits=2)
