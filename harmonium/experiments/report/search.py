"""The form ``search``: the settings found, and what each is worth (the paper's Table 1)."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harmonium.errors import DataError
from harmonium.experiments.report.items import Bold, Faint, Items, Panel, Picture, Point, Table
from harmonium.experiments.report.numbers import (
    Score,
    SearchStage,
    Summary,
    mean_known,
    standard_error,
)
from harmonium.experiments.report.paper import CITATION, paper_settings
from harmonium.experiments.report.wording import (
    NOTHING,
    format_difference,
    format_percent,
    format_setting,
    format_value,
    setting_name,
)

_FIGURE_CAPTION = (
    "Mean AUC over tags on the validation folds of the search, and over test folds, with "
    "its standard error. Each stage keeps what the one before chose."
)
_TRIED_CAPTION = (
    "Mean validation AUC in percent, ± its standard error over test folds; its "
    "difference to the best of the stage, ± the paired standard error; on how many test folds the "
    "setting was chosen. Bold: the best of its stage on average."
)


def search(summary: Summary) -> Items:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    searched = [arm[0] for arm in summary.arms if arm[0].n_finished and arm[0].stages]
    if not searched:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    records = []
    panels_of_dataset: dict[str, dict[str, Panel]] = {}
    for score in searched:
        dataset = score.axes["dataset"]
        model = summary.arm_name(score)
        panels = panels_of_dataset.setdefault(dataset, {})
        for number, stage in enumerate(score.stages, start=1):
            title = f"{model}, stage {number}" if len(score.stages) > 1 else model
            panels[title] = {"": []}
            for tried in _tried(stage):
                panels[title][""].append(tried.bar())
                head = {"Dataset": dataset, "Model": model, "Stage": str(number)}
                records.append(head | tried.cells())
    tried_table = Table(
        name="search-tried",
        title="Every setting tried",
        caption=_TRIED_CAPTION,
        records=records,
    )
    figures = [_figure(dataset, panels) for dataset, panels in panels_of_dataset.items()]
    return [settings_table(summary), *figures, tried_table]


def _figure(dataset: str, panels: dict[str, Panel]) -> Picture:
    return Picture(
        name="search-" + re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-"),
        title=f"{dataset}: validation AUC by setting",
        caption=_FIGURE_CAPTION,
        kind="bars",
        panels=panels,
        x_label="Mean validation AUC (%)",
    )


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """A setting of one stage of a search, beside the others of the stage."""

    setting: str
    mean: float  # of its validation AUCs
    error: float
    is_best: bool
    less_the_best: str  # the difference to the best of the stage, in words
    times_chosen: int  # on how many test folds

    def bar(self) -> Point:
        """Its bar in the figure."""
        name = self.setting
        if self.times_chosen:
            name += f" (chosen {self.times_chosen}×)"
        return Point(name, 100 * self.mean, 100 * self.error)

    def cells(self) -> dict[str, str]:
        """Its part of a row of the table."""
        auc = format_percent(self.mean, self.error, digits=2)
        return {
            "Setting": self.setting,
            "Validation AUC": Bold(auc) if self.is_best else auc,
            "Less the best": self.less_the_best,
            "Chosen": str(self.times_chosen),
        }


def _tried(stage: SearchStage) -> list[_Tried]:
    means = mean_known(stage.aucs, axis=0)
    best = means.argmax()
    times_chosen = Counter(stage.aucs.argmax(axis=1).tolist())
    tried = []
    for i, point in enumerate(stage.points):
        aucs = stage.aucs[:, i]
        below_best = aucs - stage.aucs[:, best]
        tried.append(
            _Tried(
                setting=", ".join(itertools.starmap(format_setting, point.items())),
                mean=float(means[i]),
                error=standard_error(aucs),
                is_best=means[i] == means[best],
                less_the_best=format_difference(below_best.mean(), standard_error(below_best)),
                times_chosen=times_chosen[i],
            )
        )
    return tried


def settings_table(summary: Summary) -> Table:
    """A row per arm: what was chosen on how many test folds; no rows if nothing was searched."""
    finished = [arm[0] for arm in summary.arms if arm[0].n_finished]
    searched = _searched_settings(finished)
    headings = {key: _heading(key) for key in searched}
    records: list[dict[str, str]] = []
    from_paper: set[tuple[str, str]] = set()
    if searched:
        for score in finished:
            records.append(_settings_record(summary, score, headings))
            place = (score.arm.dataset.name, score.arm.model.name)
            printed = paper_settings(*place)
            if printed and place not in from_paper:
                records.append(_paper_record(score, printed, headings, like=records[-1]))
                from_paper.add(place)
    recipe = summary.recipe
    known = ""
    if recipe.search_known != (0.0,):
        amounts = " and ".join(format_value("known", amount) for amount in recipe.search_known)
        known = f", with {amounts} of the tags known"
    caption = (
        "Chosen for each test fold by the mean AUC on validation folds "
        f"({recipe.search_folds} in all){known}; the test fold is not used. ×n: on n of the test "
        "folds; without it, on all. AUCs are of the chosen settings, in percent, ± the standard "
        "error over folds."
    )
    if from_paper:
        caption += f" Rows marked “paper”: {CITATION}, Table 1."
    return Table(
        name="settings",
        title="Settings found by the search (as in the paper's Table 1)",
        caption=caption,
        records=records,
    )


def _searched_settings(scores: Sequence[Score]) -> list[str]:
    """The settings that any search tried, each once."""
    keys: dict[str, None] = {}
    for score in scores:
        for stage in score.stages:
            keys |= dict.fromkeys(stage.points[0])
    return list(keys)


def _heading(key: str) -> str:
    """The name of a setting with a capital; Greek letters stay small."""
    name = setting_name(key)
    return name[0].upper() + name[1:] if name.isascii() else name


def _settings_record(summary: Summary, score: Score, headings: dict[str, str]) -> dict[str, str]:
    """What was chosen for one arm."""
    chosen = [state.settings or {} for state in score.states]
    record = {"Dataset": score.axes["dataset"], "Model": summary.arm_name(score)}
    for key, heading in headings.items():
        record[heading] = _format_choices(key, chosen)
    valid_auc = float(mean_known(score.valid_aucs))
    record["Validation AUC"] = format_percent(valid_auc, standard_error(score.valid_aucs))
    record["Test AUC"] = format_percent(score.mean, score.error)
    return record


def _paper_record(
    score: Score, printed: dict[str, float], headings: dict[str, str], *, like: dict[str, str]
) -> dict[str, str]:
    """What the paper chose, with the same headings."""
    row = {"Dataset": score.axes["dataset"], "Model": f"{score.arm.model.name}, paper"}
    for key, value in printed.items():
        if key in headings:
            row[headings[key]] = format_value(key, value)
    return {heading: Faint(row.get(heading, NOTHING)) for heading in like}


def _format_choices(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(format_value(key, settings[key]) for settings in chosen if key in settings)
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    texts = [f"{value}\u00a0×{times}" for value, times in counts.most_common()]
    return ", ".join(texts) or NOTHING
