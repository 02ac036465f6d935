"""The tables and figures of a report, as data, by what an experiment compares.

- ``comparison``: models by datasets, with and without smoothing (Table 2, Figures 4 and 5)
- ``search``: the settings found, and what each is worth (Table 1)
- all others: mean AUCs along an axis, as curves (Figure 2) or as groups of bars (Figure 3)

A table without rows and a figure without panels are left out of the report.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from harmonium.errors import DataError
from harmonium.evaluation import Reliability, friedman
from harmonium.experiments.recipe import ONE
from harmonium.experiments.report.numbers import (
    CORRECTIONS,
    NOTHING,
    SETTING_NAMES,
    Comparison,
    Score,
    Summary,
    compare,
    format_difference,
    format_duration,
    format_p,
    format_percent,
    format_seconds,
    format_setting,
    format_value,
    grouped,
    mean_known,
    measured,
    standard_error,
)


class Bold(str):
    """A cell with the best value of those it is compared with."""


class Faint(str):
    """A cell that was not measured here: it is from the paper."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    name: str  # the name of its file, and of its place on the page
    title: str
    caption: str  # what the numbers are and how to read them
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    align: str = "ll"  # l, r or c for each column; columns beyond these are aligned to the right
    details: int = 0  # columns at the end that a terminal, which is narrow, leaves out

    @property
    def alignments(self) -> str:
        """l, r or c for every column."""
        return self.align.ljust(len(self.header), "r")

    @cached_property
    def group_starts(self) -> set[int]:
        """The rows that begin another dataset; a row from the paper begins none."""
        here = [(i, row[0]) for i, row in enumerate(self.rows) if not isinstance(row[0], Faint)]
        changes = itertools.pairwise(here if self.header[0] == "Dataset" else ())
        return {i for (_, above), (i, cell) in changes if cell != above}


Panel = dict[str, list[tuple[Any, float, float]]]
"""Name of a series -> its points: place, value, standard error. The place on a line is a number,
that of a bar the name of its group. AUCs are in percent; NaN where there is none."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as data. Its panels share one legend and the scale of their axes."""

    name: str  # the name of its files, and of its place on the page
    title: str
    caption: str
    kind: Literal["lines", "bars", "counts"]  # counts: two series, left and right from zero
    x_label: str
    y_label: str = ""
    panels: Mapping[str, Panel]  # title -> what is in it
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the text beside each group
    log_x: bool = False


Items = list[Table | Picture]

_PERCENT = "Mean over tags and test folds in percent, ± its standard error over folds."
_BY_CHANCE = "Without any difference, about 2.5 % of the tags count as better and as many as worse."
MIN_LABELS = 30
"""The labels that a point of the reliability diagram needs."""

CAPTIONS = {
    "differences": "Both: what the two have in common. Difference: of the means, in percentage "
    "points, ± its paired standard error over test folds; p: two-sided paired t-test over folds. "
    "The folds share training clips, so p is somewhat too small. Better and worse: tags whose own "
    f"test is significant at 95 %. {_BY_CHANCE} Holm and BH: counts that remain after correcting "
    "for the number of tags by Holm's or Benjamini and Hochberg's method.",
    "search": "Mean AUC over tags on the validation folds of the search, and over test folds, with "
    "its standard error; beside it, on how many test folds the setting was chosen. Each stage "
    "keeps what the one before has chosen.",
    "search-tried": "Mean validation AUC in percent, ± its standard error over test folds; its "
    "difference to the best of the stage in percentage points, ± the paired standard error; on how "
    "many test folds the setting was chosen. Bold: the best of its stage on average.",
    "calibration": "Of all probabilities of the test folds, in bins: the mean difference between "
    "what was predicted and how often it was true; 0 is best. Corrected: by what is true of the "
    "validation clips, where the model does so.",
    "reliability": "All tags of the test folds, with no tag known. On the line “perfect” "
    f"probabilities mean what they say. Points of fewer than {MIN_LABELS} labels are left out.",
    "times": "Train, to the best epoch, test: seconds of one run with the chosen settings, the "
    "median. All runs: everything that the finished test folds took, search, smoothing and testing "
    "included, if done one run after the other. Memory: the largest of any process, which may have "
    "done other runs before. The paper reports about 48 CPU-hours for training a DRBM on its "
    "MajorMiner data.",
    "unfinished": "An arm is a model on a dataset, trained in one way. Means are over the test "
    "folds that are finished.",
}
"""Of the tables and figures whose caption is always the same."""

# What the paper printed, to stand beside what was found here

CITATION = "Mandel, Pascanu, Larochelle and Bengio, arXiv:1103.2832, 2011"
_PAPER_MODELS = ("DRBM", "MLP", "RBM", "LOG", "SVM")
_PAPER_AUCS = {
    ("mturk", 27, False): (68.8, 65.4, 65.4, 65.7, 62.3),
    ("mturk", 27, True): (68.4, 65.6, 64.6, 66.7, 66.0),
    ("mturk", 77, False): (65.9, 65.8, 62.9, 63.4, 59.2),
    ("mturk", 77, True): (65.9, 66.1, 62.4, 64.6, 64.0),
    ("majmin", 77, False): (76.1, 75.3, 70.0, 70.7, 64.5),
    ("majmin", 77, True): (74.8, 74.8, 68.2, 73.3, 71.5),
    ("lastfm", 70, False): (72.2, 72.0, 65.9, 70.3, 64.6),
    ("lastfm", 100, False): (72.4, 72.4, 66.1, 70.2, 64.5),
}
"""Table 2: (dataset, number of tags, smoothed) -> mean AUC in percent of each model."""

_PAPER_SETTINGS: dict[str, dict[str, dict[str, float]]] = {
    dataset: {
        "DRBM": {"learning_rate": 0.01, "n_hidden": drbm},
        "RBM": {"learning_rate": 0.01, "n_hidden": rbm},
        "MLP": {"learning_rate": 0.001, "n_hidden": 250},
        "LOG": {"learning_rate": 2.0},
    }
    for dataset, drbm, rbm in (("mturk", 50, 200), ("majmin", 100, 300), ("lastfm", 200, 300))
}
"""Table 1: dataset -> model -> its settings."""


# Parts of every form


def _score_cells(scores: Sequence[Score | None]) -> list[str]:
    """Mean and standard error of each score, and how many folds where not all are finished.

    The best of two or more complete ones is bold, equals included.
    """
    means = [format_percent(s.mean) if s and s.complete else NOTHING for s in scores]
    known = [mean for mean in means if mean != NOTHING]
    best = max(known, key=float) if len(known) > 1 else None
    cells = []
    for score, mean in zip(scores, means, strict=True):
        text = format_percent(score.mean, score.error) if score else NOTHING
        if score and not score.complete:
            text += f" ({score.n_finished}/{len(score.finished)})"
        cells.append(Bold(text) if mean == best else text)
    return cells


Pair = tuple[str, str, str, str, Comparison]
"""A dataset, two scores that are compared and what else both are, in words; and the comparison."""


def _pairs(summary: Summary, axis: str, *, every: bool = False) -> list[Pair]:
    """Scores that differ on one axis only: each less the first of them, or ``every`` two."""
    common = summary.varying("dataset", axis)
    pairs = []
    for first, *rest in grouped(summary.scores, "dataset", *common).values():
        of_first = [(score, first) for score in rest]
        for one, other in itertools.combinations([first, *rest], 2) if every else of_first:
            if found := compare(one, other):
                names = (one.name((axis,)), other.name((axis,)))
                both = one.name(common) if common else NOTHING
                pairs.append((one.axes["dataset"], *names, both, found))
    return pairs


def _difference_table(
    pairs: list[Pair], name: str = "differences", title: str = "Differences on the same folds"
) -> Table:
    """A row per comparison."""
    counts = [f"{which}{end}" for end in CORRECTIONS.values() for which in ("Better", "Worse")]
    rows = []
    for *texts, pair in pairs:
        difference = (format_difference(pair.difference, pair.error), format_p(pair.p))
        numbers = [pair.n_tested, pair.common.sum()]
        for test in pair.tests.values():
            numbers += [test.n_better, test.n_worse]
        rows.append((*texts, *difference, *map(str, numbers)))
    header = ("Dataset", "Score", "Less", "Both", "Difference", "p", "Tags", "Folds", *counts)
    return Table(name, title, CAPTIONS["differences"], header, rows, "llll", len(counts) - 2)


# Comparison: Table 2, Figures 4 and 5

_SIGN = {False: "−", True: "+"}
"""How Table 2 shows whether tags are smoothed."""

Rows = dict[tuple[str, bool], dict[str, Score]]
"""The rows of Table 2: (dataset, whether smoothed) -> model -> score, for those that have one."""


def _rows(summary: Summary) -> tuple[Rows, list[str]]:
    """The rows of Table 2 and the names of the models."""
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    alike = grouped(summary.scores, "dataset", "smoothing")
    places = itertools.product(grouped(summary.scores, "dataset"), _SIGN)
    rows = {at: {score.name(axes): score for score in alike[at]} for at in places if at in alike}
    return rows, list(dict.fromkeys(name for scores in rows.values() for name in scores))


def comparison(summary: Summary) -> Items:
    """Table 2; every model against every other, and smoothed against raw tags; ranks."""
    rows, models = _rows(summary)
    pairs = _pairs(summary, "model", every=True)
    first = summary.scores[0].arm.model.name
    mixed: list[Pair] = []  # the first model on raw tags, the others on smoothed ones
    for dataset, scores in grouped(summary.scores, "dataset").items():
        raw = [s for s in scores if s.arm.model.name == first and not s.arm.smoothing]
        others = [s for s in scores if s.arm.model.name != first and s.arm.smoothing]
        for one, other in itertools.product(raw, others):
            if found := compare(one, other):
                names = (f"{first}, raw", f"{other.arm.model.name}, smoothed")
                mixed.append((dataset, *names, NOTHING, found))
    base = {dataset: common for dataset, *_, common, _ in reversed(pairs)}  # raw tags, if any
    of_first = [
        (dataset, f"{first} against {second}", found)
        for dataset, one, second, common, found in pairs
        if one == first and common == base[dataset]
    ]
    smoothed = _pairs(summary, "smoothing")
    title = "Every model less every other, on the same folds"
    title_smoothed = "Smoothed less raw training tags, on the same folds"
    return [
        _auc_table(rows, models),
        _difference_table([*pairs, *mixed], title=title),
        _count_figure(
            of_first,
            name="tags-better",
            title=f"Tags on which {first} is significantly better or worse than another model "
            "(as in the paper's Figure 4)",
            whose=first,
        ),
        _count_figure(
            [(dataset, common, found) for dataset, _, _, common, found in smoothed],
            name="tags-smoothing",
            title="Tags on which smoothing the training tags is significantly better or worse "
            "(as in the paper's Figure 5)",
            whose="smoothed",
        ),
        _difference_table(smoothed, "differences-smoothing", title_smoothed),
        *_ranks(rows, models),
    ]


def _auc_table(rows: Rows, models: list[str]) -> Table:
    cells: list[tuple[str, ...]] = []
    seldom: dict[str, None] = {}
    for (dataset, smoothing), scores in rows.items():
        n_tags = max(len(score.tags) for score in scores.values())
        of_models = _score_cells([scores.get(name) for name in models])
        cells.append((dataset, str(n_tags), _SIGN[smoothing], *of_models))
        spec = next(iter(scores.values())).arm.dataset
        printed = _PAPER_AUCS.get((spec.name, spec.n_tags or 0, smoothing))
        if printed:
            aucs = dict(zip(_PAPER_MODELS, map(str, printed), strict=True))
            head = (f"{dataset}, paper", str(spec.n_tags), _SIGN[smoothing])
            cells.append(tuple(map(Faint, (*head, *(aucs.get(m, NOTHING) for m in models)))))
        score = max(scores.values(), key=lambda score: score.n_finished)
        in_folds = (~np.isnan(score.aucs[score.finished])).sum(axis=0)
        if n_seldom := (in_folds < score.n_finished).sum():
            seldom[f"{dataset} {n_seldom} ({(in_folds <= 1).sum()})"] = None
    caption = (
        f"{_PERCENT} Tags: how many were scored. Sm: trained on tags as people gave them (−) or "
        "smoothed (+); always tested on the former. Bold: the best of the row."
    )
    if any(not score.complete for scores in rows.values() for score in scores.values()):
        caption += " A fraction: so many test folds are finished; such a score is never bold."
    if seldom:
        caption += (
            " Tags that are not scored in every fold, because a fold has no positive or no "
            "negative clip of theirs, and in brackets those scored in one fold at most: "
            f"{'; '.join(seldom)}. The latter have no test of their own."
        )
    if len(cells) > len(rows):
        caption += f" Rows marked “paper”: {CITATION}, Table 2."
    title = "Mean AUC by dataset and model (as in the paper's Table 2)"
    return Table("auc", title, caption, ("Dataset", "Tags", "Sm", *models), cells, "lrc")


def _count_figure(
    pairs: Iterable[tuple[str, str, Comparison]], *, name: str, title: str, whose: str
) -> Picture:
    """Bars to the right and to the left, of (dataset, what is compared, comparison)."""
    panels: dict[str, Panel] = {}
    for dataset, compared, found in pairs:
        folds = "" if found.common.all() else f", {found.common.sum()} folds"
        group, test = f"{compared}, {found.n_tested} tags{folds}", found.tests["none"]
        panel = panels.setdefault(dataset, {f"{whose} better": [], f"{whose} worse": []})
        for points, count in zip(panel.values(), (test.n_better, -test.n_worse), strict=True):
            points.append((group, count, 0.0))
    return Picture(
        name=name,
        title=title,
        caption=f"To the right, the tags on which {whose} is better; to the left, those on which "
        "it is worse: two-sided paired t-test over test folds for each tag, at 95 %. "
        f"{_BY_CHANCE}",
        kind="counts",
        x_label="Number of tags",
        panels=panels,
    )


def _ranks(rows: Rows, models: list[str]) -> list[Table]:
    """Average ranks over datasets, of which the raw rows count, with Nemenyi's difference."""
    raw = {dataset: rows[dataset, smoothing] for dataset, smoothing in reversed(rows)}
    used = {
        dataset: [scores[name].mean for name in models]
        for dataset, scores in reversed(raw.items())
        if all(name in scores and scores[name].complete for name in models)
    }
    if len(models) < 3 or len(used) < 2:
        return []
    test = friedman(list(used.values()))
    ranks = sorted(zip(test.average_ranks, models, strict=True), key=lambda pair: pair[0])
    caption = (
        f"Over {', '.join(used)}, raw tags; 1 is best. Friedman's χ² = {test.statistic:.2f}, p = "
        f"{test.p:.3g}. Ranks {test.critical_difference:.2f} apart differ significantly (Nemenyi, "
        "5 %), if p is below 0.05. The test takes the datasets as independent; those that share "
        "clips are not."
    )
    words = ("ranks", "Average rank of each model over datasets", caption)
    cells = [(model, f"{rank:.2f}") for rank, model in ranks]
    return [Table(*words, ("Model", "Average rank"), cells, align="l")]


def per_tag_csv(summary: Summary) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    rows, models = _rows(summary)
    first, *others = models
    frames = []
    for (dataset, smoothing), scores in rows.items():
        tags = next(iter(scores.values())).tags
        columns = dict.fromkeys(models, np.full(len(tags), np.nan))
        columns |= {name: mean_known(score.aucs, axis=0) for name, score in scores.items()}
        for other in others:
            pair = compare(scores.get(first), scores.get(other))
            p = pair.tests["none"].p if pair else np.full(len(tags), np.nan)
            columns[f"p {first} against {other}"] = p
        texts = {
            name: [None if math.isnan(value) else f"{value:.6g}" for value in values]
            for name, values in columns.items()
        }
        head = {"dataset": dataset, "trained on": format_value("smoothing", smoothing), "tag": tags}
        frames.append(pl.DataFrame(head | texts))
    return pl.concat(frames, how="vertical_relaxed").write_csv()


# Curves and bars: mean AUCs along an axis


@dataclass(frozen=True, kw_only=True)
class AxisForm:
    """A form that shows mean AUCs along an axis, as a table and a figure of the same numbers."""

    axis: str
    kind: Literal["lines", "bars"] = "lines"
    title: str
    note: str = ""
    heading: str = "{}"  # the heading of a column of the table; {} is the value on the axis
    x_label: str = "Mean AUC (%)"
    table: str = "auc"  # the end of the table's name


AXIS_FORMS = {
    "damping": AxisForm(
        axis="damping",
        title="Mean AUC against the damping of loopy belief propagation (as in the paper's "
        "Figure 2)",
        heading="β = {}",
        x_label="Damping factor β",
    ),
    "completion": AxisForm(
        axis="known",
        title="Mean AUC of the unknown tags by what is known of the others",
        note=" The model is given a random share of each test clip's tags, or each of the clip's "
        "true tags in turn, if it has two or more; the AUC is that of the tags not given. A model "
        "that takes no tags predicts from the audio alone.",
        heading="{} known",
        x_label="Known tags of the clip (%)",
    ),
    "learning-curve": AxisForm(
        axis="clips",
        title="Mean AUC against the number of training clips",
        note=" “All” are the clips of all folds but two.",
        heading="{} clips",
        x_label="Training clips (logarithmic scale)",
    ),
    "approximations": AxisForm(
        axis="inference",
        kind="bars",
        title="Mean AUC by the approximations used for training and for testing "
        "(as in the paper's Figure 3)",
        note=" CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy "
        "belief propagation.",
        heading="tested with {}",
    ),
    "feature-groups": AxisForm(
        axis="features", kind="bars", title="Mean AUC by the features that a model is given"
    ),
}

_CLIPS = (
    " Clips count alike; with one true tag known, a clip counts with the mean over its true tags. "
    "A clip without a true tag or without a false one among the others is left out."
)
WITHIN_CLIPS = {
    measure: replace(AXIS_FORMS["completion"], table=table, title=title, note=f" {note}{_CLIPS}")
    for measure, table, title, note in (
        (
            *("clip_auc", "clip-auc", "AUC within a clip"),
            "How often a true tag of a clip is ranked before a false one.",
        ),
        (
            *("clip_precision_at_3", "clip-precision", "Precision at 3 within a clip"),
            "How many of the three tags ranked first are true.",
        ),
    )
}
"""The measures within clips, each with its form."""


def along_axis(summary: Summary) -> Items:
    """The table, the differences, and the figure: a line or a group of bars per row."""
    form = AXIS_FORMS[summary.recipe.form]
    if form.axis == "damping" and form.axis not in summary.recipe.vary:
        raise DataError("A recipe of the form 'damping' needs damping = [...] under [vary].")
    headings, grid = _grid(summary, form)
    panels: dict[str, Panel] = {}
    for dataset, lines in grid.items():
        panel = panels.setdefault(dataset, {})
        for name, scores in lines.items():
            for heading, score in zip(headings, scores, strict=True):
                mean, error = (score.mean, score.error) if score else (math.nan, math.nan)
                if form.kind == "bars":
                    panel.setdefault(heading, []).append((name, 100 * mean, 100 * error))
                elif score and not math.isnan(x := _position(score, form.axis)):
                    panel.setdefault(name, []).append((x, 100 * mean, 100 * error))
        if form.kind == "lines":
            panels[dataset] = {name: sorted(points) for name, points in panel.items()}
    figure = Picture(
        name=summary.recipe.form,
        title=form.title,
        caption=f"{_PERCENT}{form.note}",
        kind=form.kind,
        x_label=form.x_label,
        y_label="Mean AUC (%)",
        log_x=form.axis == "clips",
        panels=panels,
    )
    return [_axis_table(summary, form), _difference_table(_pairs_along(summary, form)), figure]


def _pairs_along(summary: Summary, form: AxisForm) -> list[Pair]:
    """Comparisons on every axis, but not of more known tags or more clips with fewer."""
    but = [axis for axis in ("known", "clips") if axis == form.axis]
    return [pair for axis in summary.varying("dataset", *but) for pair in _pairs(summary, axis)]


def _grid(summary: Summary, form: AxisForm) -> tuple[list[str], dict[str, dict[str, list[Any]]]]:
    """The places on the axis in words, and dataset -> name of a row -> its score at each place."""

    def order(value: Any) -> Any:
        """Numbers by size, but all clips come last, and one tag after none; words as they come."""
        if form.kind == "bars":
            return 0
        return 1e-9 if value == ONE else math.inf if form.axis == "clips" and not value else value

    places = sorted(grouped(summary.scores, form.axis), key=order)
    axes = summary.varying("dataset", form.axis)
    grid: dict[str, dict[str, list[Any]]] = {}
    for score in summary.scores:
        lines = grid.setdefault(score.axes["dataset"], {})
        line = lines.setdefault(score.name(axes), [None] * len(places))
        line[places.index(score.axes[form.axis])] = score
    return [form.heading.format(format_value(form.axis, place)) for place in places], grid


def _axis_table(summary: Summary, form: AxisForm) -> Table:
    """A row per dataset and model, a column per place on the axis."""
    headings, grid = _grid(summary, form)
    rows: list[tuple[str, ...]] = []
    for dataset, lines in grid.items():
        if form.kind == "bars":
            rows += [(dataset, name, *_score_cells(line)) for name, line in lines.items()]
        else:
            columns = [_score_cells(column) for column in zip(*lines.values(), strict=True)]
            rows += [(dataset, *cells) for cells in zip(lines, *columns, strict=True)]
    best = "row" if form.kind == "bars" else "dataset in the column"
    caption = f"{_PERCENT} Bold: the best of the {best}.{form.note}"
    name = f"{summary.recipe.form}-{form.table}"
    return Table(name, form.title, caption, ("Dataset", "Model", *headings), rows)


def _position(score: Score, axis: str) -> float:
    """Where a score lies on the x axis; all clips are as many as were trained on.

    NaN for one known tag, which is no place on the axis.
    """
    value = score.axes[axis]
    if axis == "known":
        return math.nan if value == ONE else 100.0 * value
    if axis != "clips" or value:
        return float(value)
    clips = measured(score.final_runs, "clips")
    return float(np.median(clips)) if len(clips) else math.nan


def completion(summary: Summary) -> Items:
    """The AUC by tag as curves; then, by each measure within clips, a table and the differences."""
    items = along_axis(summary)
    for measure, form in WITHIN_CLIPS.items():
        of_clips = summary.within_clips(measure)
        if any(not np.isnan(score.mean) for score in of_clips.scores):
            name = f"{summary.recipe.form}-{form.table}-differences"
            title = f"{form.title}: differences on the same folds"
            pairs = _pairs_along(of_clips, form)
            items += [_axis_table(of_clips, form), _difference_table(pairs, name, title)]
    return items


# Search: Table 1


def search(summary: Summary) -> Items:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    searched = [arm[0] for arm in summary.arms if arm[0].n_finished and arm[0].stages]
    if not searched:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    rows: list[tuple[str, ...]] = []
    figures: Items = []
    for dataset, arms in grouped(searched, "dataset").items():
        panels: dict[str, Panel] = {}
        notes: dict[str, list[str]] = {}
        for arm in arms:
            model = summary.arm_name(arm)
            for number, (points, aucs) in enumerate(arm.stages, start=1):
                title = f"{model}, stage {number}" if len(arm.stages) > 1 else model
                names = [", ".join(itertools.starmap(format_setting, p.items())) for p in points]
                means, errors = mean_known(aucs, axis=0), [standard_error(c) for c in aucs.T]
                chosen = np.bincount(aucs.argmax(axis=1), minlength=len(points))
                scaled = zip(names, 100 * means, 100 * np.array(errors), strict=True)
                panels[title] = {"": list(scaled)}
                notes[title] = [f"chosen {times}×" if times else "" for times in chosen]
                less = aucs - aucs[:, [means.argmax()]]
                for i, (name, mean, error) in enumerate(zip(names, means, errors, strict=True)):
                    auc = format_percent(mean, error, digits=2)
                    auc = Bold(auc) if mean == means.max() else auc
                    apart = format_difference(less[:, i].mean(), standard_error(less[:, i]))
                    rows.append((dataset, model, str(number), name, auc, apart, str(chosen[i])))
        figure = Picture(
            name="search-" + re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-"),
            title=f"{dataset}: validation AUC by setting",
            caption=CAPTIONS["search"],
            kind="bars",
            x_label="Mean validation AUC (%)",
            panels=panels,
            notes=notes,
        )
        figures.append(figure)
    header = ("Dataset", "Model", "Stage", "Setting", "Validation AUC", "Less the best", "Chosen")
    words = ("search-tried", "Every setting tried", CAPTIONS["search-tried"])
    tried = Table(*words, header, rows, align="llcl")
    return [settings_table(summary), *figures, tried]


def settings_table(summary: Summary) -> Table:
    """A row per arm: what was chosen on how many test folds; no rows if nothing was searched."""
    finished = [arm[0] for arm in summary.arms if arm[0].n_finished]
    keys = list(dict.fromkeys(k for arm in finished for points, _ in arm.stages for k in points[0]))
    rows: list[tuple[str, ...]] = []
    from_paper: set[tuple[str, str]] = set()
    for arm in finished if keys else ():
        place = dataset, model = (arm.arm.dataset.name, arm.arm.model.name)
        label = arm.axes["dataset"]
        valid = format_percent(float(mean_known(arm.valid_aucs)), standard_error(arm.valid_aucs))
        choices = [_format_choices(k, [state.settings or {} for state in arm.states]) for k in keys]
        aucs = (valid, format_percent(arm.mean, arm.error))
        rows.append((label, summary.arm_name(arm), *choices, *aucs))
        printed = _PAPER_SETTINGS.get(dataset, {}).get(model)
        if printed and place not in from_paper:
            values = [format_value(k, printed[k]) if k in printed else NOTHING for k in keys]
            rows.append(tuple(map(Faint, (label, f"{model}, paper", *values, NOTHING, NOTHING))))
            from_paper.add(place)
    names = [SETTING_NAMES.get(key, key.replace("_", " ")) for key in keys]
    headings = [name[0].upper() + name[1:] if name[0].isascii() else name for name in names]
    recipe = summary.recipe
    amounts = " and ".join(format_value("known", amount) for amount in recipe.search_known)
    return Table(
        name="settings",
        title="Settings found by the search (as in the paper's Table 1)",
        caption="Chosen for each test fold by the mean AUC on validation folds (so many: "
        f"{recipe.search_folds})"
        + (f", with {amounts} of the tags known" if recipe.search_known != (0.0,) else "")
        + "; the test fold has no part in it. ×n: on n of the test folds; without it, on all. AUCs "
        "are of the chosen settings, in percent, ± the standard error over folds."
        + (f" Rows marked “paper”: {CITATION}, Table 1." if from_paper else ""),
        header=("Dataset", "Model", *headings, "Validation AUC", "Test AUC"),
        align="ll" + "l" * len(keys),
        rows=rows,
    )


def _format_choices(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(format_value(key, settings[key]) for settings in chosen if key in settings)
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    texts = (f"{value}\u00a0×{times}" for value, times in counts.most_common())
    return ", ".join(texts) or NOTHING


# Of any form: reliability, where the results have probabilities; times; what is not finished


def reliability_items(summary: Summary) -> Items:
    """The errors of all probabilities, and the diagram of those with no tag known."""
    axes = ("model", *summary.varying("dataset", "model"))
    rows: list[tuple[str, ...]] = []
    panels: dict[str, Panel] = {}
    for score in summary.scores:
        if not score.reliability:
            continue
        dataset, name = score.axes["dataset"], score.name(axes)
        plain, corrected = score.reliability["plain"], score.reliability["corrected"]
        rows.append((dataset, name, f"{plain.error:.4f}", f"{corrected.error:.4f}"))
        if not score.axes["known"]:
            perfect = [(0.0, 0.0, 0.0), (100.0, 100.0, 0.0)]
            panel = panels.setdefault(dataset, {"perfect": perfect})
            panel[name] = _reliability_line(corrected)
            if plain.error != corrected.error:
                panel[f"{name}, not corrected"] = _reliability_line(plain)
    header = ("Dataset", "Model", "As predicted", "Corrected")
    table = Table("calibration", "Calibration error", CAPTIONS["calibration"], header, rows)
    picture = Picture(
        name="reliability",
        title="How often a tag was true, by how likely it was predicted to be",
        caption=CAPTIONS["reliability"],
        kind="lines",
        x_label="Probability, %",
        y_label="Share that was true, %",
        panels=panels,
    )
    return [table, picture]


def _reliability_line(found: Reliability) -> list[tuple[Any, float, float]]:
    shown = found.n >= MIN_LABELS
    x, y = (100 * part[shown] / found.n[shown] for part in (found.scores, found.positives))
    return list(zip(x, y, np.sqrt(y * (100 - y) / found.n[shown]), strict=True))


def times_table(summary: Summary) -> Table:
    """Seconds and memory by arm, where they were measured."""
    rows = []
    for arm, *_ in summary.arms:
        columns = ("seconds", "seconds_to_best", "test_seconds")
        seconds = [measured(arm.final_runs, name) for name in columns]
        if not len(seconds[0]):
            continue
        parts = ("seconds", "test_seconds", "smoothing_seconds")
        total = sum(measured(arm.all_runs, part).sum() for part in parts)
        memory = measured(arm.all_runs, "peak_memory_mb")
        largest = f"{memory.max():,.0f}" if len(memory) else NOTHING
        everything = (f"{len(arm.all_runs):,}", format_duration(total), largest)
        name = (arm.axes["dataset"], summary.arm_name(arm))
        rows.append((*name, *map(format_seconds, seconds), *everything))
    header = ("Dataset", "Model", "Train, s", "To best, s", "Test, s", "Runs", "All runs")
    return Table("times", "Time and memory", CAPTIONS["times"], (*header, "Memory, MB"), rows)


def unfinished_table(summary: Summary) -> Table:
    """A row per arm that is partly there, and one per dataset for those without a finished fold."""
    rows = []
    n_folds = summary.recipe.n_folds
    for dataset, arms in grouped(summary.unfinished, "dataset").items():
        names = {summary.arm_name(arm): arm.n_finished for arm in arms}
        rows += [(dataset, name, f"{n}/{n_folds}") for name, n in names.items() if n]
        if missing := [name for name, n in names.items() if not n]:
            every = sum(arm[0].axes["dataset"] == dataset for arm in summary.arms)
            text = "all" if len(missing) == every else "; ".join(missing)
            rows.append((dataset, text, f"0/{n_folds}"))
    header = ("Dataset", "Arms", "Test folds")
    return Table("unfinished", "Not finished", CAPTIONS["unfinished"], header, rows)


FORMS: dict[str, Callable[[Summary], Items]] = {
    "comparison": comparison,
    "search": search,
    **dict.fromkeys(AXIS_FORMS, along_axis),
    "completion": completion,
}
"""Form -> its tables and figures, the main table first."""
