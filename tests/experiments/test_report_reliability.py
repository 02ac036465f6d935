"""The calibration error and the reliability diagram of a report."""

import json

import pytest
from fabricated import fabricate, write_lines

from harmonium.experiments.report.build import build_report, write_report

RECIPE = """
title = "Two models"
form = "comparison"
datasets = ["generated"]
n_folds = 3

[[model]]
name = "A"
estimator = "MLPTagger"

[[model]]
name = "B"
estimator = "SVMTagger"
"""


def bins(said, true):
    """A thousand labels in the bin of ``said``, that part of which are true."""
    empty = [0.0] * 13
    place = 3 + int(10 * said)
    n, scores, positives = ([*empty] for _ in range(3))
    n[place], scores[place], positives[place] = 1000, 1000 * said, 1000 * true
    return [n, scores, positives]


@pytest.fixture
def folder(tmp_path):
    folder = fabricate(tmp_path / "results", RECIPE, lambda *_: [0.6, 0.7])
    path = folder / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["run"]["model"] == "A":
            found = {"plain": bins(0.35, 0.5), "corrected": bins(0.55, 0.5)}
            line["tests"][0]["reliability"] = found
    write_lines(path, lines)
    return folder


def test_the_errors_of_all_runs_with_probabilities(folder):
    report = build_report(folder)
    table = next(item for item in report.tables if item.name == "calibration")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["generated", "A", "0.1500", "0.0500"]
    ]


def test_the_diagram_has_the_model_with_and_without_the_correction(folder):
    picture = next(item for item in build_report(folder).figures if item.name == "reliability")
    lines = {line.name: line for line in picture.panels[0].series}
    assert list(lines) == ["as said", "A", "A, not corrected"]
    assert lines["A"].x == pytest.approx((55.0,))
    assert lines["A"].values == pytest.approx((50.0,))
    write_report(folder)
    assert (folder / "report" / "figures" / "reliability.svg").stat().st_size > 1000
