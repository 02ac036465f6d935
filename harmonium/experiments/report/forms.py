"""The forms of a report: its tables, curves and bars, by what an experiment compares.

- ``comparison``: models by datasets, with and without smoothing (Table 2, Figures 4 and 5)
- ``search``: the settings found, and what each is worth (Table 1)
- all others: mean AUCs along an axis, as curves (Figure 2) or as groups of bars (Figure 3)
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from harmonium.errors import DataError
from harmonium.evaluation import Reliability, friedman
from harmonium.experiments.recipe import ONE
from harmonium.experiments.report.formats import NOTHING, Bold, Faint, Panel, Picture, Series, Table
from harmonium.experiments.report.numbers import (
    CORRECTIONS,
    ArmSummary,
    Numbers,
    PairedComparison,
    Score,
    Summary,
    by_dataset,
    compare,
    distinct,
    format_difference,
    format_p,
    format_percent,
    format_setting,
    format_value,
    grouped,
    mean_known,
    measured,
    setting_heading,
    standard_error,
)

Items = list[Table | Picture]

_PERCENT = "Mean over tags and test folds in percent, ± its standard error over folds."

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


def _format_score(score: Score | None) -> str:
    """Mean and standard error in percent, and how many folds where not all are finished."""
    if score is None or not score.n_finished:
        return NOTHING
    text = format_percent(score.mean, score.error)
    return text if score.complete else f"{text} ({score.n_finished}/{len(score.finished)})"


def _score_cells(scores: Sequence[Score | None]) -> list[str]:
    """A cell for each score; the best of two or more complete ones is bold, equals included."""
    means = [format_percent(s.mean) if s and s.complete else NOTHING for s in scores]
    known = [mean for mean in means if mean != NOTHING]
    best = max(known, key=float) if len(known) > 1 else None
    texts = [_format_score(score) for score in scores]
    return [Bold(t) if mean == best else t for t, mean in zip(texts, means, strict=True)]


class Pair(NamedTuple):
    """Two scores that are compared, in words, and the comparison."""

    dataset: str
    first: str
    second: str
    common: str
    """What else both are."""
    found: PairedComparison


def _pairs(summary: Summary, axis: str, *, every: bool = False) -> list[Pair]:
    """Scores that differ on one axis only: each less the first of them, or ``every`` two."""
    common = summary.varying("dataset", axis)
    alike = grouped(
        summary.scores, lambda score: tuple(score.value(other) for other in ("dataset", *common))
    )
    pairs = []
    for first, *rest in alike.values():
        of_first = [(score, first) for score in rest]
        for one, other in itertools.combinations([first, *rest], 2) if every else of_first:
            if found := compare(one, other):
                names = (one.name((axis,)), other.name((axis,)))
                both = one.name(common) if common else NOTHING
                pairs.append(Pair(one.arm.dataset.label, *names, both, found))
    return pairs


_BY_CHANCE = "Without any difference, about 2.5 % of the tags count as better and as many as worse."


def _difference_table(
    pairs: list[Pair], name: str = "differences", title: str = "Differences on the same folds"
) -> list[Table]:
    """A row per comparison; no table without any."""
    if not pairs:
        return []
    counts = [f"{which}{end}" for end in CORRECTIONS.values() for which in ("Better", "Worse")]
    rows = []
    for *texts, pair in pairs:
        tests = [pair.tests[correction] for correction in CORRECTIONS]
        found = [str(count) for test in tests for count in (test.n_better, test.n_worse)]
        difference = (format_difference(pair.difference, pair.error), format_p(pair.p))
        rows.append((*texts, *difference, str(pair.n_tested), str(pair.n_folds), *found))
    table = Table(
        name=name,
        title=title,
        caption="Both: what the two have in common. Difference: of the means, in percentage "
        "points, ± its paired standard error over test folds; p: two-sided paired t-test over "
        "folds. The folds share training clips, so p is somewhat too small. Better and worse: tags "
        f"whose own test is significant at 95 %. {_BY_CHANCE} Holm and BH: counts that remain "
        "after correcting for the number of tags by Holm's or Benjamini and Hochberg's method.",
        header=("Dataset", "Score", "Less", "Both", "Difference", "p", "Tags", "Folds", *counts),
        align="llll",
        rows=rows,
        details=len(counts) - 2,
    )
    return [table]


# Comparison: Table 2, Figures 4 and 5

_SIGN = {False: "−", True: "+"}
"""How Table 2 shows whether tags are smoothed."""

Rows = dict[tuple[str, bool], dict[str, Score]]
"""The rows of Table 2: (dataset, whether smoothed) -> model -> score, for those that have one."""


def _rows(summary: Summary) -> tuple[Rows, list[str]]:
    """The rows of Table 2 and the names of the models."""
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    found: Rows = {}
    for score in summary.scores:
        place = (score.value("dataset"), score.value("smoothing"))
        found.setdefault(place, {})[score.name(axes)] = score
    datasets = distinct(summary.scores, "dataset")
    rows = {place: found[place] for place in itertools.product(datasets, _SIGN) if place in found}
    return rows, list(dict.fromkeys(name for scores in rows.values() for name in scores))


def comparison(summary: Summary) -> Items:
    """The tables and figures, Table 2 first."""
    rows, models = _rows(summary)
    return [
        _auc_table(rows, models),
        *_models_against_others(summary),
        *_smoothed_against_raw(summary),
        *_ranks(rows, models),
    ]


def _auc_table(rows: Rows, models: list[str]) -> Table:
    cells: list[tuple[str, ...]] = []
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
    caption = (
        f"{_PERCENT} Tags: how many were scored. Sm: trained on tags as people gave them (−) or "
        "smoothed (+); always tested on the former. Bold: the best of the row."
    )
    if any(not score.complete for scores in rows.values() for score in scores.values()):
        caption += " A fraction: so many test folds are finished; such a score is never bold."
    if seldom := _seldom_scored(rows):
        caption += (
            " Tags that are not scored in every fold, because a fold has no positive or no "
            f"negative clip of theirs, and in brackets those scored in one fold at most: {seldom}. "
            "The latter have no test of their own."
        )
    if len(cells) > len(rows):
        caption += f" Rows marked “paper”: {CITATION}, Table 2."
    return Table(
        name="auc",
        title="Mean AUC by dataset and model (as in the paper's Table 2)",
        caption=caption,
        header=("Dataset", "Tags", "Sm", *models),
        align="lrc",
        rows=cells,
    )


def _seldom_scored(rows: Rows) -> str:
    """How many tags are not scored in every fold: all their positives are by one or two artists."""
    found: dict[str, None] = {}
    for (dataset, _), scores in rows.items():
        score = max(scores.values(), key=lambda score: score.n_finished)
        in_folds = (~np.isnan(score.aucs[score.finished])).sum(axis=0)
        n_seldom, n_once = int((in_folds < score.n_finished).sum()), int((in_folds <= 1).sum())
        if n_seldom:
            found[f"{dataset} {n_seldom} ({n_once})"] = None
    return "; ".join(found)


def _models_against_others(summary: Summary) -> Items:
    """Every two models trained on the same tags; the first, on raw tags, also with smoothed."""
    pairs = _pairs(summary, "model", every=True)
    first = summary.scores[0].arm.model.name
    mixed = []
    for dataset, scores in by_dataset(summary.scores).items():
        raw = [s for s in scores if s.arm.model.name == first and not s.arm.smoothing]
        others = [s for s in scores if s.arm.model.name != first and s.arm.smoothing]
        for one, other in itertools.product(raw, others):
            if found := compare(one, other):
                names = (f"{first}, raw", f"{other.arm.model.name}, smoothed")
                mixed.append(Pair(dataset, *names, NOTHING, found))
    base = {pair.dataset: pair.common for pair in reversed(pairs)}  # raw tags, where there are any
    figure = _count_figure(
        [
            (f"{first} against {pair.second}", pair)
            for pair in pairs
            if pair.first == first and pair.common == base[pair.dataset]
        ],
        name="tags-better",
        title=f"Tags on which {first} is significantly better or worse than another model "
        "(as in the paper's Figure 4)",
        whose=first,
    )
    title = "Every model less every other, on the same folds"
    return [*_difference_table([*pairs, *mixed], title=title), *figure]


def _smoothed_against_raw(summary: Summary) -> Items:
    """Each model, trained on smoothed tags and on raw ones."""
    pairs = _pairs(summary, "smoothing")
    figure = _count_figure(
        [(pair.common, pair) for pair in pairs],
        name="tags-smoothing",
        title="Tags on which smoothing the training tags is significantly better or worse "
        "(as in the paper's Figure 5)",
        whose="smoothed",
    )
    title = "Smoothed less raw training tags, on the same folds"
    return [*figure, *_difference_table(pairs, "differences-smoothing", title)]


def _count_figure(
    pairs: list[tuple[str, Pair]], *, name: str, title: str, whose: str
) -> list[Picture]:
    """Bars to the right and to the left, of (what is compared, pair); no figure without any."""
    if not pairs:
        return []
    panels = []
    for dataset, own in grouped(pairs, lambda entry: entry[1].dataset).items():
        groups = [
            f"{compared}, {pair.found.n_tested} tags"
            + (f", {pair.found.n_folds} folds" if not pair.found.complete else "")
            for compared, pair in own
        ]
        tests = [pair.found.tests["none"] for _, pair in own]
        series = (
            Series(f"{whose} better", tuple(test.n_better for test in tests)),
            Series(f"{whose} worse", tuple(-test.n_worse for test in tests)),
        )
        panels.append(Panel(dataset, series, tuple(groups)))
    figure = Picture(
        name=name,
        title=title,
        caption=f"To the right, the tags on which {whose} is better; to the left, those on which "
        "it is worse: two-sided paired t-test over test folds for each tag, at 95 %. "
        f"{_BY_CHANCE}",
        kind="counts",
        x_label="Number of tags",
        panels=tuple(panels),
    )
    return [figure]


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
    table = Table(
        name="ranks",
        title="Average rank of each model over datasets",
        caption=f"Over {', '.join(used)}, raw tags; 1 is best. Friedman's χ² = "
        f"{test.statistic:.2f}, p = {test.p:.3g}. Ranks {test.critical_difference:.2f} apart "
        "differ significantly (Nemenyi, 5 %), if p is below 0.05. The test takes the datasets as "
        "independent; those that share clips are not.",
        header=("Model", "Average rank"),
        align="l",
        rows=[
            (models[i], f"{test.average_ranks[i]:.2f}")
            for i in np.argsort(test.average_ranks, kind="stable")
        ],
        grouped=False,
    )
    return [table]


def per_tag_csv(summary: Summary) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    rows, models = _rows(summary)
    first, *others = models
    frames = []
    for (dataset, smoothing), scores in rows.items():
        tags = next(iter(scores.values())).tags
        nothing = np.full(len(tags), np.nan)
        columns = {name: scores[name].by_tag if name in scores else nothing for name in models}
        for other in others:
            pair = compare(scores.get(first), scores.get(other))
            columns[f"p {first} against {other}"] = pair.tests["none"].p if pair else nothing
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
    heading: str = "{}"
    """The heading of a column of the table; {} is the value on the axis."""
    x_label: str = "Mean AUC (%)"
    table: str = "auc"
    """The end of the table's name."""


DAMPING = AxisForm(
    axis="damping",
    title="Mean AUC against the damping of loopy belief propagation (as in the paper's Figure 2)",
    heading="β = {}",
    x_label="Damping factor β",
)
COMPLETION = AxisForm(
    axis="known",
    title="Mean AUC of the unknown tags by what is known of the others",
    note=" The model is given a random share of each test clip's tags, or each of the clip's true "
    "tags in turn, if it has two or more; the AUC is that of the tags not given. A model that "
    "takes no tags predicts from the audio alone.",
    heading="{} known",
    x_label="Known tags of the clip (%)",
)
LEARNING = AxisForm(
    axis="clips",
    title="Mean AUC against the number of training clips",
    note=" “All” are the clips of all folds but two.",
    heading="{} clips",
    x_label="Training clips (logarithmic scale)",
)
APPROXIMATIONS = AxisForm(
    axis="inference",
    kind="bars",
    title="Mean AUC by the approximations used for training and for testing "
    "(as in the paper's Figure 3)",
    note=" CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy belief "
    "propagation.",
    heading="tested with {}",
)
FEATURES = AxisForm(
    axis="features", kind="bars", title="Mean AUC by the features that a model is given"
)

_CLIPS = (
    " Clips count alike; with one true tag known, a clip counts with the mean over its true tags. "
    "A clip without a true tag or without a false one among the others is left out."
)
WITHIN_CLIPS = {
    "clip_auc": replace(
        COMPLETION,
        table="clip-auc",
        title="AUC within a clip",
        note=f" How often a true tag of a clip is ranked before a false one.{_CLIPS}",
    ),
    "clip_precision_at_3": replace(
        COMPLETION,
        table="clip-precision",
        title="Precision at 3 within a clip",
        note=f" How many of the three tags ranked first are true.{_CLIPS}",
    ),
}
"""The measures within clips, each with its form."""


def along_axis(summary: Summary, form: AxisForm) -> Items:
    """The table, the differences, and the figure: a line or a group of bars per row."""
    if form is DAMPING and form.axis not in summary.recipe.vary.settings:
        raise DataError("A recipe of the form 'damping' needs damping = [...] under [vary].")
    headings, grid = _grid(summary, form)
    panels = []
    for dataset, lines in grid.items():
        if form.kind == "lines":
            panels.append(Panel(dataset, _lines(summary, lines, form)))
        else:
            columns = zip(headings, zip(*lines.values(), strict=True), strict=True)
            bars = tuple(_series(heading, enumerate(column)) for heading, column in columns)
            panels.append(Panel(dataset, bars, tuple(lines)))
    figure = Picture(
        name=summary.recipe.form,
        title=form.title,
        caption=f"{_PERCENT}{form.note}",
        kind=form.kind,
        x_label=form.x_label,
        y_label="Mean AUC (%)",
        log_x=form.axis == "clips",
        panels=tuple(panels),
    )
    return [_axis_table(summary, form), *_difference_table(_pairs_along(summary, form)), figure]


def _pairs_along(summary: Summary, form: AxisForm) -> list[Pair]:
    """Comparisons on every axis, but not of more known tags or more clips with fewer."""
    but = [axis for axis in ("known", "clips") if axis == form.axis]
    return [pair for axis in summary.varying("dataset", *but) for pair in _pairs(summary, axis)]


def _grid(summary: Summary, form: AxisForm) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The places on the axis in words, and dataset -> name of a row -> its score at each place."""

    def order(value: Any) -> Any:
        """Numbers by size, but all clips come last, and one tag after none; words as they come."""
        if form.kind == "bars":
            return 0
        return 1e-9 if value == ONE else math.inf if form.axis == "clips" and not value else value

    places = sorted(distinct(summary.scores, form.axis), key=order)
    axes = summary.varying("dataset", form.axis)
    grid: dict[str, dict[str, Any]] = {}
    for score in summary.scores:
        lines = grid.setdefault(score.arm.dataset.label, {})
        line = lines.setdefault(score.name(axes), [None] * len(places))
        line[places.index(score.value(form.axis))] = score
    return [form.heading.format(format_value(form.axis, place)) for place in places], grid


def _axis_table(summary: Summary, form: AxisForm) -> Table:
    """A row per dataset and model, a column per place on the axis."""
    headings, grid = _grid(summary, form)
    rows = []
    for dataset, lines in grid.items():
        if form.kind == "bars":
            rows += [(dataset, name, *_score_cells(line)) for name, line in lines.items()]
        else:
            columns = [_score_cells(column) for column in zip(*lines.values(), strict=True)]
            rows += [(dataset, *cells) for cells in zip(lines, *columns, strict=True)]
    best = "row" if form.kind == "bars" else "dataset in the column"
    return Table(
        name=f"{summary.recipe.form}-{form.table}",
        title=form.title,
        caption=f"{_PERCENT} Bold: the best of the {best}.{form.note}",
        header=("Dataset", "Model", *headings),
        align="ll",
        rows=rows,
    )


def _series(name: str, points: Iterable[tuple[float, Score | None]]) -> Series:
    """A series of (position, score) points; NaN where there is no score."""
    x, scores = zip(*points, strict=True)
    return Series(
        name,
        values=tuple(100 * score.mean if score else math.nan for score in scores),
        errors=tuple(100 * score.error if score else math.nan for score in scores),
        x=x,
    )


def _lines(summary: Summary, lines: dict[str, Any], form: AxisForm) -> tuple[Series, ...]:
    """A line for each row that has points; one known tag is no place on the axis."""
    series = []
    for name, scores in lines.items():
        points = [(_position(summary, score, form), score) for score in scores if score]
        points = [(x, score) for x, score in points if not math.isnan(x)]
        if points:
            series.append(_series(name, sorted(points, key=lambda point: point[0])))
    return tuple(series)


def _position(summary: Summary, score: Score, form: AxisForm) -> float:
    """Where a score lies on the x axis; all clips are as many as were trained on."""
    value = score.value(form.axis)
    if form.axis == "known":
        return math.nan if value == ONE else 100.0 * value
    if form.axis != "clips" or value:
        return float(value)
    runs = next(arm.final_runs for arm in summary.arms if arm.arm is score.arm)
    return float(np.median(clips)) if len(clips := measured(runs, "clips")) else math.nan


def completion(summary: Summary) -> Items:
    """The AUC by tag as curves; then, by each measure within clips, a table and the differences."""
    items = along_axis(summary, COMPLETION)
    for measure, form in WITHIN_CLIPS.items():
        of_clips = summary.within_clips(measure)
        if any(not np.isnan(score.mean) for score in of_clips.scores):
            name = f"{summary.recipe.form}-{form.table}-differences"
            title = f"{form.title}: differences on the same folds"
            pairs = _pairs_along(of_clips, form)
            items += [_axis_table(of_clips, form), *_difference_table(pairs, name, title)]
    return items


# Search: Table 1


def search(summary: Summary) -> Items:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    found = settings_table(summary)
    if not found:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    searched = [arm for arm in summary.arms if arm.n_finished and arm.stages]
    figures = [
        _search_figure(dataset, arms, summary)
        for dataset, arms in grouped(searched, lambda arm: arm.arm.dataset.label).items()
    ]
    return [*found, *figures, _tried_table(summary, searched)]


def settings_table(summary: Summary) -> list[Table]:
    """A row per arm: what was chosen on how many test folds; no table if nothing was searched."""
    finished = [arm for arm in summary.arms if arm.n_finished]
    keys = list(dict.fromkeys(k for arm in finished for points, _ in arm.stages for k in points[0]))
    if not keys:
        return []
    rows = []
    from_paper: set[tuple[str, str]] = set()
    for arm in finished:
        place = dataset, model = (arm.arm.dataset.name, arm.arm.model.name)
        head, test = (arm.arm.dataset.label, summary.arm_name(arm.arm)), arm.scores[0]
        valid = format_percent(float(mean_known(arm.valid_aucs)), standard_error(arm.valid_aucs))
        choices = [_format_choices(key, arm.chosen) for key in keys]
        rows.append((*head, *choices, valid, format_percent(test.mean, test.error)))
        printed = _PAPER_SETTINGS.get(dataset, {}).get(model)
        if printed and place not in from_paper:
            values = [format_value(k, printed[k]) if k in printed else NOTHING for k in keys]
            texts = (head[0], f"{model}, paper", *values, NOTHING, NOTHING)
            rows.append(tuple(map(Faint, texts)))
            from_paper.add(place)
    table = Table(
        name="settings",
        title="Settings found by the search (as in the paper's Table 1)",
        caption=_settings_caption(summary)
        + (f" Rows marked “paper”: {CITATION}, Table 1." if from_paper else ""),
        header=("Dataset", "Model", *map(setting_heading, keys), "Validation AUC", "Test AUC"),
        align="ll" + "l" * len(keys),
        rows=rows,
    )
    return [table]


def _settings_caption(summary: Summary) -> str:
    known = summary.recipe.search_known
    amounts = " and ".join(format_value("known", amount) for amount in known)
    return (
        "Chosen for each test fold by the mean AUC on validation folds (so many: "
        f"{summary.recipe.search_folds})"
        + (f", with {amounts} of the tags known" if known != (0.0,) else "")
        + "; the test fold has no part in it. ×n: on n of the test folds; without it, on all. AUCs "
        "are of the chosen settings, in percent, ± the standard error over folds."
    )


def _format_choices(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(format_value(key, settings[key]) for settings in chosen if key in settings)
    if not counts:
        return NOTHING
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    return ", ".join(f"{value}\u00a0×{times}" for value, times in counts.most_common())


def _format_point(point: dict[str, Any]) -> str:
    return ", ".join(format_setting(key, value) for key, value in point.items())


def _times_chosen(valid_aucs: Numbers) -> list[int]:
    """On how many test folds each point of a stage was chosen."""
    return np.bincount(valid_aucs.argmax(axis=1), minlength=valid_aucs.shape[1]).tolist()


def _search_figure(dataset: str, arms: list[ArmSummary], summary: Summary) -> Picture:
    panels = []
    for arm in arms:
        for number, (points, aucs) in enumerate(arm.stages, start=1):
            stage = f", stage {number}" if len(arm.stages) > 1 else ""
            means = tuple((100 * aucs.mean(axis=0)).tolist())
            errors = tuple(100 * standard_error(column) for column in aucs.T)
            notes = tuple(f"chosen {times}×" if times else "" for times in _times_chosen(aucs))
            groups = tuple(map(_format_point, points))
            series = (Series("", means, errors),)
            panels.append(Panel(summary.arm_name(arm.arm) + stage, series, groups, notes))
    return Picture(
        name="search-" + re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-"),
        title=f"{dataset}: validation AUC by setting",
        caption="Mean AUC over tags on the validation folds of the search, and over test folds, "
        "with its standard error; beside it, on how many test folds the setting was chosen. Each "
        "stage keeps what the one before has chosen.",
        kind="bars",
        x_label="Mean validation AUC (%)",
        panels=tuple(panels),
    )


def _tried_table(summary: Summary, arms: list[ArmSummary]) -> Table:
    rows = []
    for arm in arms:
        place = (arm.arm.dataset.label, summary.arm_name(arm.arm))
        for number, (points, aucs) in enumerate(arm.stages, start=1):
            means = mean_known(aucs, axis=0)
            less = aucs - aucs[:, [means.argmax()]]
            for i, (point, times) in enumerate(zip(points, _times_chosen(aucs), strict=True)):
                auc = format_percent(float(means[i]), standard_error(aucs[:, i]), digits=2)
                auc = Bold(auc) if means[i] == means.max() else auc
                apart = format_difference(float(less[:, i].mean()), standard_error(less[:, i]))
                rows.append((*place, str(number), _format_point(point), auc, apart, str(times)))
    header = ("Dataset", "Model", "Stage", "Setting", "Validation AUC", "Less the best", "Chosen")
    return Table(
        name="search-tried",
        title="Every setting tried",
        caption="Mean validation AUC in percent, ± its standard error over test folds; its "
        "difference to the best of the stage in percentage points, ± the paired standard error; on "
        "how many test folds the setting was chosen. Bold: the best of its stage on average.",
        header=header,
        align="llcl",
        rows=rows,
    )


# Reliability: of any form whose results have probabilities

MIN_LABELS = 30
"""The labels that a point of the diagram needs."""


def reliability_items(summary: Summary) -> Items:
    """The table and the diagram; nothing where the results have no probabilities."""
    scores = [score for score in summary.scores if score.reliability]
    if not scores:
        return []
    axes = ("model", *summary.varying("dataset", "model"))
    rows = []
    for score in scores:
        errors = (score.reliability[name].error for name in ("plain", "corrected"))
        rows.append((score.value("dataset"), score.name(axes), *(f"{e:.4f}" for e in errors)))
    table = Table(
        name="calibration",
        title="Calibration error",
        caption="Of all probabilities of the test folds, in bins: the mean difference between what "
        "was predicted and how often it was true; 0 is best. Corrected: by what is true of the "
        "validation clips, where the model does so.",
        header=("Dataset", "Model", "As predicted", "Corrected"),
        align="ll",
        rows=rows,
    )
    alone = by_dataset(score for score in scores if not score.way.known)
    picture = Picture(
        name="reliability",
        title="How often a tag was true, by how likely it was predicted to be",
        caption="All tags of the test folds, with no tag known. On the line “perfect” "
        "probabilities mean what they say. Points of fewer than "
        f"{MIN_LABELS} labels are left out.",
        kind="lines",
        x_label="Probability, %",
        y_label="Share that was true, %",
        panels=tuple(Panel(name, _reliability_lines(own, axes)) for name, own in alone.items()),
    )
    return [table, picture] if alone else [table]


def _reliability_lines(scores: list[Score], axes: tuple[str, ...]) -> tuple[Series, ...]:
    lines = [Series("perfect", (0.0, 100.0), (0.0, 0.0), (0.0, 100.0))]
    for score in scores:
        name, (plain, corrected) = score.name(axes), score.reliability.values()
        lines.append(_reliability_line(name, corrected))
        if plain.error != corrected.error:
            lines.append(_reliability_line(f"{name}, not corrected", plain))
    return tuple(lines)


def _reliability_line(name: str, found: Reliability) -> Series:
    shown = found.n >= MIN_LABELS
    x, y = (100 * part[shown] / found.n[shown] for part in (found.scores, found.positives))
    errors = np.sqrt(y * (100 - y) / found.n[shown])
    return Series(name, tuple(y), tuple(errors), tuple(x))


FORMS: dict[str, Callable[[Summary], Items]] = {
    "comparison": comparison,
    "search": search,
    "completion": completion,
    "damping": partial(along_axis, form=DAMPING),
    "approximations": partial(along_axis, form=APPROXIMATIONS),
    "learning-curve": partial(along_axis, form=LEARNING),
    "feature-groups": partial(along_axis, form=FEATURES),
}
"""Form -> its tables and figures, the main table first."""
