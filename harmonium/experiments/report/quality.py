"""What every form ends with: calibration, and the time and memory that the runs took."""

import math

import numpy as np

from harmonium.arrays import Doubles
from harmonium.evaluation import Reliability
from harmonium.experiments.plan import MEASURES, SET_MEASURES
from harmonium.experiments.report.items import Items, Panel, Picture, Point, Record, Table
from harmonium.experiments.report.numbers import Summary, mean_known, measured
from harmonium.experiments.report.wording import NOTHING, format_percent

MIN_LABELS = 30  # the labels that a point of the reliability diagram needs

_CALIBRATION_CAPTION = (
    "The mean difference between what was predicted and how often it was true, over "
    "all probabilities of the test folds in bins; 0 is best. Corrected: by what is true of the "
    "validation clips, where the model does so."
)
_SETS_CAPTION = (
    "With no tag known, in percent except for coverage; means over the finished test folds. A tag "
    "holds from its threshold on, which as many validation clips reach as have the tag; from 0.5 "
    "on by models without thresholds. Hamming loss: wrong labels. Whole sets: clips without a "
    "wrong label. Coverage: how many tags of a clip's ranking contain all that hold. LRAP: label "
    "ranking average precision. Unknown labels are left out."
)
_RELIABILITY_CAPTION = (
    "All tags of the test folds, with no tag known. On the line “perfect” "
    f"probabilities mean what they say. Points of fewer than {MIN_LABELS} labels are left out."
)
_TIMES_CAPTION = (
    "Train, to the best epoch, test: seconds of one run with the chosen settings, the "
    "median. All runs: everything that the finished test folds took, if done one run after the "
    "other. Memory: the largest of any process, which may have done other runs before. The paper "
    "reports about 48 CPU-hours for training a DRBM on its MajorMiner data."
)
_PERFECT = [Point(0.0, 0.0, 0.0), Point(100.0, 100.0, 0.0)]


def reliability_items(summary: Summary) -> Items:
    """The errors of all probabilities, and the diagram of those with no tag known."""
    axes = ("model", *summary.varying("dataset", "model"))
    records = []
    panels: dict[str, Panel] = {}
    for score in summary.scores:
        if not score.reliability:
            continue
        dataset = score.axes["dataset"]
        name = score.name(axes)
        plain = score.reliability["plain"]
        corrected = score.reliability["corrected"]
        records.append(
            {
                "Dataset": dataset,
                "Model": name,
                "As predicted": f"{plain.error:.4f}",
                "Corrected": f"{corrected.error:.4f}",
            }
        )
        if not score.axes["known"]:
            panel = panels.setdefault(dataset, {"perfect": _PERFECT})
            panel[name] = _reliability_line(corrected)
            if plain.error != corrected.error:
                panel[f"{name}, not corrected"] = _reliability_line(plain)
    return [
        Table(
            name="calibration",
            title="Calibration error",
            caption=_CALIBRATION_CAPTION,
            records=records,
        ),
        Picture(
            name="reliability",
            title="How often a tag was true, by how likely it was predicted to be",
            caption=_RELIABILITY_CAPTION,
            kind="lines",
            panels=panels,
            x_label="Probability, %",
            y_label="Share that was true, %",
        ),
    ]


def _reliability_line(diagram: Reliability) -> list[Point]:
    """The bins with enough labels: mean probability, share of positives and its error."""
    points = []
    for n, scores, positives in zip(diagram.n, diagram.scores, diagram.positives, strict=True):
        if n >= MIN_LABELS:
            share = 100 * positives / n
            points.append(Point(100 * scores / n, share, math.sqrt(share * (100 - share) / n)))
    return points


def sets_table(summary: Summary) -> Table:
    """Decisions, and the order of a clip's tags, with no tag known."""
    axes = ("model", *summary.varying("dataset", "model"))
    records = []
    for score in summary.scores:
        means = dict(zip(MEASURES, mean_known(score.measures, axis=0), strict=True))
        if score.axes["known"] or np.isnan([means[name] for name in SET_MEASURES]).all():
            continue
        records.append(
            {
                "Dataset": score.axes["dataset"],
                "Model": score.name(axes),
                "Macro F1": format_percent(means["macro_f1"]),
                "Micro F1": format_percent(means["micro_f1"]),
                "Hamming loss": format_percent(means["hamming_loss"]),
                "Whole sets": format_percent(means["subset_accuracy"]),
                "Coverage": f"{means['coverage_error']:.2f}",
                "LRAP": format_percent(means["ranking_precision"]),
            }
        )
    return Table(
        name="sets", title="Decisions and rankings", caption=_SETS_CAPTION, records=records
    )


def times_table(summary: Summary) -> Table:
    """Seconds and memory by arm, if measured."""
    records = []
    for score, *_ in summary.arms:
        if not len(measured(score.final_runs, "seconds")):
            continue
        record: Record = {
            "Dataset": score.axes["dataset"],
            "Model": summary.arm_name(score),
            "Train, s": _format_median(measured(score.final_runs, "seconds")),
            "To best, s": _format_median(measured(score.final_runs, "seconds_to_best")),
            "Test, s": _format_median(measured(score.final_runs, "test_seconds")),
            "Runs": f"{len(score.all_runs):,}",
        }
        total = sum(
            measured(score.all_runs, part).sum()
            for part in ("seconds", "test_seconds", "smoothing_seconds")
        )
        record["All runs"] = _format_duration(total)
        memory = measured(score.all_runs, "peak_memory_mb")
        if len(memory):
            record["Memory, MB"] = f"{memory.max():,.0f}"
        records.append(record)
    return Table(name="times", title="Time and memory", caption=_TIMES_CAPTION, records=records)


def _format_median(seconds: Doubles) -> str:
    """The median, with fewer digits the larger it is; `NOTHING` if none was measured."""
    if not len(seconds):
        return NOTHING
    median = float(np.median(seconds))
    if median >= 100:
        return f"{median:,.0f}"
    if median >= 10:
        return f"{median:,.1f}"
    return f"{median:,.2f}"


def _format_duration(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 60:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s"
