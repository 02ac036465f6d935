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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    format_percent,
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
    """Rows of text under a header. A row need not have every column."""

    name: str  # the name of its file, and of its place on the page
    title: str
    caption: str  # what the numbers are and how to read them
    records: Sequence[Mapping[str, str]]  # heading -> cell
    details: int = 0  # columns at the end that a narrow terminal leaves out

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The headings of all rows."""
        return tuple(dict.fromkeys(heading for record in self.records for heading in record))

    @cached_property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of each row."""
        return [tuple(record.get(head, NOTHING) for head in self.header) for record in self.records]

    @property
    def alignments(self) -> str:
        """For every column, r if all its cells begin like numbers, else l."""
        columns = zip(*self.rows, strict=True)
        number = re.compile(rf"[−+]?\d|{NOTHING}|<")
        return "".join("r" if all(map(number.match, column)) else "l" for column in columns)

    @cached_property
    def group_starts(self) -> set[int]:
        """The rows that start a new dataset; a row from the paper does not."""
        here = [(i, row[0]) for i, row in enumerate(self.rows) if not isinstance(row[0], Faint)]
        changes = itertools.pairwise(here if self.header[0] == "Dataset" else ())
        return {i for (_, above), (i, cell) in changes if cell != above}


Panel = dict[str, list[tuple[Any, float, float]]]
"""Name of a series -> its points: place, value, standard error. The place on a line is a number,
that of a bar the name of its group. AUCs are in percent; NaN if there is none."""


@dataclass(frozen=True)
class Picture:
    """A figure as data. Its panels share one legend and the scale of their axes."""

    name: str  # the name of its files, and of its place on the page
    title: str
    caption: str
    kind: Literal["lines", "bars"]
    panels: Mapping[str, Panel]  # title -> what is in it
    x_label: str = "Mean AUC (%)"
    y_label: str = "Mean AUC (%)"  # of lines
    log_x: bool = False


Items = list[Table | Picture]

_PERCENT = "Mean over tags and test folds in percent, ± its standard error over folds."
_BY_CHANCE = "Without any difference, about 2.5 % of the tags count as better, and 2.5 % as worse."
MIN_LABELS = 30  # the labels that a point of the reliability diagram needs

CAPTIONS = {
    "differences": "Difference: of the means, in percentage points, ± its paired standard error "
    "over test folds; p: two-sided paired t-test over folds, which share training clips, so p is "
    "somewhat too small. Better and worse: tags whose own test is significant at 95 %. "
    f"{_BY_CHANCE} Holm and BH: counts after Holm's or Benjamini and Hochberg's correction for the "
    "number of tags.",
    "search": "Mean AUC over tags on the validation folds of the search, and over test folds, with "
    "its standard error. Each stage keeps what the one before chose.",
    "search-tried": "Mean validation AUC in percent, ± its standard error over test folds; its "
    "difference to the best of the stage, ± the paired standard error; on how many test folds the "
    "setting was chosen. Bold: the best of its stage on average.",
    "calibration": "The mean difference between what was predicted and how often it was true, over "
    "all probabilities of the test folds in bins; 0 is best. Corrected: by what is true of the "
    "validation clips, where the model does so.",
    "reliability": "All tags of the test folds, with no tag known. On the line “perfect” "
    f"probabilities mean what they say. Points of fewer than {MIN_LABELS} labels are left out.",
    "times": "Train, to the best epoch, test: seconds of one run with the chosen settings, the "
    "median. All runs: everything that the finished test folds took, if done one run after the "
    "other. Memory: the largest of any process, which may have done other runs before. The paper "
    "reports about 48 CPU-hours for training a DRBM on its MajorMiner data.",
}
"""Of the tables and figures whose caption is always the same."""

# The paper's numbers, to compare with ours

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


def _score_cells(scores: Mapping[Any, Score | None]) -> dict[Any, str]:
    """Mean and standard error of each score, and how many folds if not all are finished.

    The best of two or more complete ones is bold, equals included.
    """
    complete = {key: format_percent(s.mean) for key, s in scores.items() if s and s.complete}
    means = {key: mean for key, mean in complete.items() if mean != NOTHING}
    best = max(means.values(), key=float) if len(means) > 1 else None
    cells = {}
    for key, score in scores.items():
        text = format_percent(score.mean, score.error) if score else NOTHING
        if score and not score.complete:
            text += f" ({score.n_finished}/{len(score.finished)})"
        cells[key] = Bold(text) if best and means.get(key) == best else text
    return cells


def _pairs(summary: Summary, axis: str, *, every: bool = False) -> list[Comparison]:
    """Scores that differ on one axis only: each less the first, or ``every`` pair."""
    common = summary.varying("dataset", axis)
    pairs = []
    for first, *rest in grouped(summary.scores, "dataset", *common).values():
        of_first = [(score, first) for score in rest]
        for two in itertools.combinations([first, *rest], 2) if every else of_first:
            pairs.append(compare(*two, (axis,), common))
    return [pair for pair in pairs if pair]


def _difference_table(
    pairs: list[Comparison], name: str = "differences", title: str = "Differences on the same folds"
) -> Table:
    """A row per comparison."""
    records, heads, caption = [], ["Dataset", "Score", "Less"], CAPTIONS["differences"]
    if any(pair.names[3] != NOTHING for pair in pairs):
        heads, caption = [*heads, "Both"], f"Both: what the two have in common. {caption}"
    for pair in pairs:
        record = dict(zip(heads, pair.names, strict=False))
        record["Difference"] = format_difference(pair.difference, pair.error)
        record["p"] = "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}".replace("nan", NOTHING)
        record |= {"Tags": str(pair.n_tested), "Folds": str(pair.folds.sum())}
        for end, test in zip(CORRECTIONS.values(), pair.tests.values(), strict=True):
            record |= {f"Better{end}": str(test.n_better), f"Worse{end}": str(test.n_worse)}
        records.append(record)
    return Table(name, title, caption, records, details=2 * len(CORRECTIONS) - 2)


Rows = dict[tuple[str, bool], dict[str, Score]]  # (dataset, whether smoothed) -> model -> score


def _rows(summary: Summary) -> tuple[Rows, list[str]]:
    """The rows of Table 2, raw tags before smoothed ones, and the names of the models."""
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    rows: Rows = {}
    for dataset, scores in grouped(summary.scores, "dataset").items():
        for score in sorted(scores, key=lambda score: score.arm.smoothing):
            rows.setdefault((dataset, score.arm.smoothing), {})[score.name(axes)] = score
    return rows, list(dict.fromkeys(name for scores in rows.values() for name in scores))


def comparison(summary: Summary) -> Items:
    """Table 2; every model against every other, and smoothed against raw tags; ranks."""
    rows, models = _rows(summary)
    pairs, smoothed = _pairs(summary, "model", every=True), _pairs(summary, "smoothing")
    first = summary.scores[0].arm.model.name
    mixed = [
        compare(one, other, ("model", "smoothing"))
        for one, other in itertools.permutations(summary.scores, 2)
        if one.axes["dataset"] == other.axes["dataset"]
        and (one.arm.model.name == first and not one.arm.smoothing)
        and (other.arm.model.name != first and other.arm.smoothing)
    ]
    base = {pair.names[0]: pair.names[3] for pair in reversed(pairs)}  # raw tags, if any
    of_first = [p for p in pairs if p.names[1] == first and p.names[3] == base[p.names[0]]]
    worth = "significantly better or worse"
    other_model = f"Tags on which {first} is {worth} than another model"
    smoothing = f"Tags on which smoothing the training tags is {worth}"
    title = "Every model less every other, on the same folds"
    title_smoothed = "Smoothed less raw training tags, on the same folds"
    return [
        _auc_table(rows, models),
        _difference_table([*pairs, *filter(None, mixed)], title=title),
        _count_figure(
            {pair: f"{first} against {pair.names[2]}" for pair in of_first},
            *("tags-better", f"{other_model} (as in the paper's Figure 4)", first),
        ),
        _count_figure(
            {pair: pair.names[3] for pair in smoothed},
            *("tags-smoothing", f"{smoothing} (as in the paper's Figure 5)", "smoothed"),
        ),
        _difference_table(smoothed, "differences-smoothing", title_smoothed),
        *_ranks(rows, models),
    ]


def _auc_table(rows: Rows, models: list[str]) -> Table:
    records: list[dict[str, str]] = []
    seldom: dict[str, None] = {}
    for (dataset, smoothing), scores in rows.items():
        best = max(scores.values(), key=lambda score: score.n_finished)
        head = {"Dataset": dataset, "Tags": str(len(best.tags)), "Sm": "−+"[smoothing]}
        records.append(head | _score_cells({name: scores.get(name) for name in models}))
        spec = best.arm.dataset
        printed = _PAPER_AUCS.get((spec.name, spec.n_tags or 0, smoothing))
        if printed:
            aucs = dict(zip(_PAPER_MODELS, map(str, printed), strict=True))
            head |= {"Dataset": f"{dataset}, paper", "Tags": str(spec.n_tags)}
            head |= {model: aucs.get(model, NOTHING) for model in models}
            records.append({heading: Faint(text) for heading, text in head.items()})
        in_folds = (~np.isnan(best.aucs[best.finished])).sum(axis=0)
        if n_seldom := (in_folds < best.n_finished).sum():
            seldom[f"{dataset} {n_seldom} ({(in_folds <= 1).sum()})"] = None
    caption = (
        f"{_PERCENT} Tags: how many were scored. Sm: trained on tags as people gave them (−) or "
        "smoothed (+); always tested on the former. Bold: the best of the row."
    )
    if any(not score.complete for scores in rows.values() for score in scores.values()):
        caption += " A fraction counts the finished test folds; such a score is never bold."
    if seldom:
        caption += (
            " Tags that are not scored in every fold, because a fold has no positive or no "
            "negative clip of theirs, and in brackets those scored in one fold at most: "
            f"{'; '.join(seldom)}. The latter have no test of their own."
        )
    if len(records) > len(rows):
        caption += f" Rows marked “paper”: {CITATION}, Table 2."
    title = "Mean AUC by dataset and model (as in the paper's Table 2)"
    return Table("auc", title, caption, records)


def _count_figure(pairs: Mapping[Comparison, str], name: str, title: str, whose: str) -> Picture:
    """The numbers of better and worse tags, by comparison and its name."""
    panels: dict[str, Panel] = {}
    for pair, called in pairs.items():
        folds = "" if pair.folds.all() else f", {pair.folds.sum()} folds"
        group, test = f"{called}, {pair.n_tested} tags{folds}", pair.tests["none"]
        panel = panels.setdefault(pair.names[0], {f"{whose} better": [], f"{whose} worse": []})
        for points, count in zip(panel.values(), (test.n_better, -test.n_worse), strict=True):
            points.append((group, count, math.nan))
    caption = (
        f"To the right, the tags on which {whose} is better; to the left, those on which it is "
        f"worse: two-sided paired t-test over test folds for each tag, at 95 %. {_BY_CHANCE}"
    )
    return Picture(name, title, caption, "bars", panels, "Number of tags")


def _ranks(rows: Rows, models: list[str]) -> list[Table]:
    """Average ranks over datasets, using the raw rows, with Nemenyi's difference."""
    raw = {dataset: rows.get((dataset, False), scores) for (dataset, _), scores in rows.items()}
    used = {
        dataset: [scores[name].mean for name in models]
        for dataset, scores in raw.items()
        if all(name in scores and scores[name].complete for name in models)
    }
    if len(models) < 3 or len(used) < 2:
        return []
    test = friedman(list(used.values()))
    caption = (
        f"Over {', '.join(used)}, raw tags; 1 is best. Friedman's χ² = {test.statistic:.2f}, p = "
        f"{test.p:.3g}. Ranks {test.critical_difference:.2f} apart differ significantly (Nemenyi, "
        "5 %), if p is below 0.05. The test takes the datasets as independent; those that share "
        "clips are not."
    )
    ranks = sorted(zip(test.average_ranks, models, strict=True), key=lambda pair: pair[0])
    records = [{"Model": model, "Average rank": f"{rank:.2f}"} for rank, model in ranks]
    return [Table("ranks", "Average rank of each model over datasets", caption, records)]


def per_tag_csv(summary: Summary) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    rows, (first, *others) = _rows(summary)
    frames = []
    for (dataset, smoothing), scores in rows.items():
        columns = {name: mean_known(score.aucs, axis=0) for name, score in scores.items()}
        for other in others:
            if {first, other} <= scores.keys() and (pair := compare(scores[first], scores[other])):
                columns[f"p {first} against {other}"] = pair.tests["none"].p
        texts = {
            name: [None if math.isnan(value) else f"{value:.6g}" for value in values]
            for name, values in columns.items()
        }
        head = {"dataset": dataset, "trained on": format_value("smoothing", smoothing)}
        frames.append(pl.DataFrame(head | {"tag": next(iter(scores.values())).tags} | texts))
    return pl.concat(frames, how="diagonal_relaxed").write_csv()


@dataclass(frozen=True)
class AxisForm:
    """A form that shows mean AUCs along an axis, as a table and a figure of the same numbers."""

    axis: str
    kind: Literal["lines", "bars"]
    title: str
    note: str = ""
    heading: str = "{}"  # the heading of a column of the table; {} is the value on the axis
    x_label: str = "Mean AUC (%)"
    table: str = "auc"  # the end of the table's name


AXIS_FORMS = {
    "damping": AxisForm(
        *("damping", "lines"),
        "Mean AUC by the damping of loopy belief propagation (as in the paper's Figure 2)",
        heading="β = {}",
        x_label="Damping factor β",
    ),
    "completion": AxisForm(
        *("known", "lines", "Mean AUC of the unknown tags by what is known of the others"),
        note=" The model is given a random share of each test clip's tags, or each of the clip's "
        "true tags in turn, if it has two or more; the AUC is over the tags not given. A model "
        "that takes no tags predicts from the audio alone.",
        heading="{} known",
        x_label="Known tags of the clip (%)",
    ),
    "learning-curve": AxisForm(
        *("clips", "lines", "Mean AUC against the number of training clips"),
        note=" “All” are the clips of all folds but two.",
        heading="{} clips",
        x_label="Training clips (logarithmic scale)",
    ),
    "approximations": AxisForm(
        *("inference", "bars"),
        "Mean AUC by the approximations of training and testing (as in the paper's Figure 3)",
        note=" CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy "
        "belief propagation.",
        heading="tested with {}",
    ),
    "feature-groups": AxisForm(
        *("features", "bars", "Mean AUC by the features that a model is given")
    ),
}
_CLIPS = (
    " Clips count alike; with one true tag known, a clip counts with the mean over its true tags. "
    "A clip without a true tag or without a false one among the others is left out."
)
WITHIN_CLIPS = {
    "clip_auc": AxisForm(
        *("known", "lines", "AUC within a clip"),
        f" How often a true tag of a clip is ranked before a false one.{_CLIPS}",
        *("{} known", "", "clip-auc"),
    ),
    "clip_precision_at_3": AxisForm(
        *("known", "lines", "Precision at 3 within a clip"),
        f" How many of the three tags ranked first are true.{_CLIPS}",
        *("{} known", "", "clip-precision"),
    ),
}
"""The measures within clips, each with its form."""


def along_axis(summary: Summary) -> Items:
    """A table, differences and a figure; for known tags, tables of the measures within clips."""
    form = AXIS_FORMS[summary.recipe.form]
    if form.axis == "damping" and form.axis not in summary.recipe.vary:
        raise DataError("A recipe of the form 'damping' needs damping = [...] under [vary].")
    items = _axis_items(summary, form)
    for measure, of_clips in WITHIN_CLIPS.items() if form.axis == "known" else ():
        within = summary.within_clips(measure)
        if any(not np.isnan(score.mean) for score in within.scores):
            items += _axis_items(within, of_clips)[:2]
    return items


def _axis_items(summary: Summary, form: AxisForm) -> Items:
    """A row per dataset and model, a column per place on the axis; the differences; and the figure.

    A row is a line or a group of bars. More known tags or clips are not compared with fewer.
    """
    positions: dict[str, float] = {}
    grid: dict[str, dict[str, dict[str, Score]]] = {}  # dataset -> name of a row -> place -> score
    own = summary.varying("dataset", form.axis)
    for score in summary.scores:
        place = form.heading.format(format_value(form.axis, score.axes[form.axis]))
        lines = grid.setdefault(score.axes["dataset"], {})
        lines.setdefault(score.name(own), {})[place] = score
        positions[place] = max(_position(form, score), positions.get(place, 0.0))
    places = sorted(positions, key=lambda place: positions[place])
    records: list[dict[str, str]] = []
    panels: dict[str, Panel] = {}
    for dataset, lines in grid.items():
        compared = [[(name, place) for place in places] for name in lines]
        cells: dict[tuple[str, str], str] = {}
        for keys in compared if form.kind == "bars" else zip(*compared, strict=True):
            cells |= _score_cells({(name, place): lines[name].get(place) for name, place in keys})
        panel = panels.setdefault(dataset, {})
        for name, line in lines.items():
            row = {place: cells[name, place] for place in places}
            records.append({"Dataset": dataset, "Model": name} | row)
            for place in places:
                at = line.get(place)
                auc = (100 * at.mean, 100 * at.error) if at else (math.nan, math.nan)
                if form.kind == "bars":
                    panel.setdefault(place, []).append((name, *auc))
                elif at and at.axes[form.axis] != ONE and positions[place] < math.inf:
                    panel.setdefault(name, []).append((_position(form, at), *auc))
    best = "row" if form.kind == "bars" else "dataset in the column"
    caption = f"{_PERCENT} Bold: the best of the {best}.{form.note}"
    name = f"{summary.recipe.form}-{form.table}"
    axes = summary.varying("dataset", *{"known", "clips"} & {form.axis})
    pairs = [pair for axis in axes for pair in _pairs(summary, axis)]
    words = [f"{name}-differences", f"{form.title}: differences on the same folds"]
    figure = (summary.recipe.form, form.title, f"{_PERCENT}{form.note}", form.kind, panels)
    return [
        Table(name, form.title, caption, records),
        _difference_table(pairs, *([] if form.table == "auc" else words)),
        Picture(*figure, form.x_label, log_x=form.axis == "clips"),
    ]


def _position(form: AxisForm, score: Score) -> float:
    """Where a score lies on the x axis: words at 1, all clips at the number trained on.

    One known tag has no place: it comes after no tag, just above 0.
    """
    value = score.axes[form.axis]
    if form.kind == "bars":
        return 0.0
    if form.axis == "known":
        return 100.0 * (1e-9 if value == ONE else value)
    if form.axis == "clips" and not value:
        clips = measured(score.final_runs, "clips")
        return float(np.median(clips)) if len(clips) else math.inf
    return float(value)


def search(summary: Summary) -> Items:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    searched = [arm[0] for arm in summary.arms if arm[0].n_finished and arm[0].stages]
    if not searched:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    records = []
    panels: dict[str, dict[str, Panel]] = {}
    for arm in searched:
        dataset, model = arm.axes["dataset"], summary.arm_name(arm)
        for number, (points, aucs) in enumerate(arm.stages, start=1):
            title = f"{model}, stage {number}" if len(arm.stages) > 1 else model
            series = panels.setdefault(dataset, {}).setdefault(title, {"": []})[""]
            means, times_chosen = mean_known(aucs, axis=0), Counter(aucs.argmax(axis=1).tolist())
            for i, (point, mean) in enumerate(zip(points, means, strict=True)):
                setting = ", ".join(itertools.starmap(format_setting, point.items()))
                error, less = standard_error(aucs[:, i]), aucs[:, i] - aucs[:, means.argmax()]
                auc, chosen = format_percent(mean, error, digits=2), times_chosen[i]
                name = f"{setting} (chosen {chosen}×)" if chosen else setting
                series.append((name, 100 * mean, 100 * error))
                record = {"Dataset": dataset, "Model": model, "Stage": str(number)}
                record["Setting"] = setting
                record["Validation AUC"] = Bold(auc) if mean == means.max() else auc
                record["Less the best"] = format_difference(less.mean(), standard_error(less))
                records.append(record | {"Chosen": str(chosen)})
    figures = [
        Picture(
            "search-" + re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-"),
            f"{dataset}: validation AUC by setting",
            *(CAPTIONS["search"], "bars", of_arms, "Mean validation AUC (%)"),
        )
        for dataset, of_arms in panels.items()
    ]
    tried = Table("search-tried", "Every setting tried", CAPTIONS["search-tried"], records)
    return [settings_table(summary), *figures, tried]


def settings_table(summary: Summary) -> Table:
    """A row per arm: what was chosen on how many test folds; no rows if nothing was searched."""
    finished = [arm[0] for arm in summary.arms if arm[0].n_finished]
    keys = list(dict.fromkeys(k for arm in finished for points, _ in arm.stages for k in points[0]))
    names = {key: SETTING_NAMES.get(key, key.replace("_", " ")) for key in keys}
    headings = {k: n[0].upper() + n[1:] if n.isascii() else n for k, n in names.items()}
    records: list[dict[str, str]] = []
    from_paper: set[tuple[str, str]] = set()
    for arm in finished if keys else ():
        place = dataset, model = (arm.arm.dataset.name, arm.arm.model.name)
        chosen = [state.settings or {} for state in arm.states]
        valid = (float(mean_known(arm.valid_aucs)), standard_error(arm.valid_aucs))
        head = {"Dataset": arm.axes["dataset"], "Model": summary.arm_name(arm)}
        head |= {headings[key]: _format_choices(key, chosen) for key in keys}
        head |= {"Validation AUC": format_percent(*valid)}
        records.append(head | {"Test AUC": format_percent(arm.mean, arm.error)})
        printed = _PAPER_SETTINGS.get(dataset, {}).get(model)
        if printed and place not in from_paper:
            texts = {headings[k]: format_value(k, v) for k, v in printed.items() if k in keys}
            row = {"Dataset": head["Dataset"], "Model": f"{model}, paper"} | texts
            records.append({heading: Faint(row.get(heading, NOTHING)) for heading in records[-1]})
            from_paper.add(place)
    recipe = summary.recipe
    amounts = " and ".join(format_value("known", amount) for amount in recipe.search_known)
    known = f", with {amounts} of the tags known" if recipe.search_known != (0.0,) else ""
    caption = (
        "Chosen for each test fold by the mean AUC on validation folds "
        f"({recipe.search_folds} in all){known}; the test fold is not used. ×n: on n of the test "
        "folds; without it, on all. AUCs are of the chosen settings, in percent, ± the standard "
        "error over folds."
    )
    caption += f" Rows marked “paper”: {CITATION}, Table 1." if from_paper else ""
    title = "Settings found by the search (as in the paper's Table 1)"
    return Table("settings", title, caption, records)


def _format_choices(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(format_value(key, settings[key]) for settings in chosen if key in settings)
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    texts = (f"{value}\u00a0×{times}" for value, times in counts.most_common())
    return ", ".join(texts) or NOTHING


def reliability_items(summary: Summary) -> Items:
    """The errors of all probabilities, and the diagram of those with no tag known."""
    axes = ("model", *summary.varying("dataset", "model"))
    records = []
    panels: dict[str, Panel] = {}
    for score in summary.scores:
        if not score.reliability:
            continue
        dataset, name = score.axes["dataset"], score.name(axes)
        plain, corrected = score.reliability["plain"], score.reliability["corrected"]
        errors = {"As predicted": f"{plain.error:.4f}", "Corrected": f"{corrected.error:.4f}"}
        records.append({"Dataset": dataset, "Model": name} | errors)
        if not score.axes["known"]:
            perfect = [(0.0, 0.0, 0.0), (100.0, 100.0, 0.0)]
            panel = panels.setdefault(dataset, {"perfect": perfect})
            panel[name] = _reliability_line(corrected)
            if plain.error != corrected.error:
                panel[f"{name}, not corrected"] = _reliability_line(plain)
    title = "How often a tag was true, by how likely it was predicted to be"
    labels = ("Probability, %", "Share that was true, %")
    return [
        Table("calibration", "Calibration error", CAPTIONS["calibration"], records),
        Picture("reliability", title, CAPTIONS["reliability"], "lines", panels, *labels),
    ]


def _reliability_line(found: Reliability) -> list[tuple[Any, float, float]]:
    shown = found.n >= MIN_LABELS
    x, y = (100 * part[shown] / found.n[shown] for part in (found.scores, found.positives))
    return list(zip(x, y, np.sqrt(y * (100 - y) / found.n[shown]), strict=True))


def times_table(summary: Summary) -> Table:
    """Seconds and memory by arm, if measured."""
    records = []
    columns = {"Train, s": "seconds", "To best, s": "seconds_to_best", "Test, s": "test_seconds"}
    for arm, *_ in summary.arms:
        if not len(measured(arm.final_runs, "seconds")):
            continue
        record = {"Dataset": arm.axes["dataset"], "Model": summary.arm_name(arm)}
        for heading, name in columns.items():
            seconds = measured(arm.final_runs, name)
            median = float(np.median(seconds)) if len(seconds) else math.nan
            digits = 0 if median >= 100 else 1 if median >= 10 else 2
            record[heading] = f"{median:,.{digits}f}".replace("nan", NOTHING)
        parts = ("seconds", "test_seconds", "smoothing_seconds")
        total = sum(measured(arm.all_runs, part).sum() for part in parts)
        unit, size = ("h", 3600) if total >= 3600 else ("min", 60) if total >= 60 else ("s", 1)
        record |= {"Runs": f"{len(arm.all_runs):,}", "All runs": f"{total / size:.1f} {unit}"}
        if len(memory := measured(arm.all_runs, "peak_memory_mb")):
            record["Memory, MB"] = f"{memory.max():,.0f}"
        records.append(record)
    return Table("times", "Time and memory", CAPTIONS["times"], records)


FORMS: dict[str, Callable[[Summary], Items]] = {
    "comparison": comparison,
    "search": search,
    **dict.fromkeys(AXIS_FORMS, along_axis),
}
"""Form -> its tables and figures, the main table first."""
