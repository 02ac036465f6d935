"""docs/benchmarks.md has the results that are kept, and no figure that was changed by hand."""

import importlib.util
import json

import pytest
from places import PROJECT


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("report", PROJECT / "benchmarks" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(**changes):
    row = {"task": "sums", "threads": None}
    return {
        "rows": [
            {**row, "program": "Harmonium", "seconds": 0.002},
            {**row, "program": "rival", "seconds": 0.003, "threads": 2},
        ],
        "notes": ["A note."],
        "skipped": [],
        "measured": {
            **{"when": "2026-11-16", "machine": "a machine", "load": 0.0, "minutes": 1.0},
            "versions": {"Python": "3.11"},
        },
        **changes,
    }


def test_the_page_is_what_the_results_give_even_if_changed_by_hand(report):
    results, page = report.kept(), report.PAGE.read_text()
    assert results
    assert report.rendered(page, results) == page
    assert " ms" in page
    by_hand = page.replace(" ms", " s", 1)
    assert report.rendered(by_hand, results) == page


def test_every_result_has_a_section_and_every_comparison_too(report, monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    comparisons = set(importlib.import_module("bench").COMPARISONS)
    assert set(report.sections(report.PAGE.read_text())) == comparisons
    assert {file.stem for file in report.RESULTS.glob("*.json")} <= comparisons


def test_every_plot_that_the_page_shows_is_there(report):
    page = report.PAGE.read_text()
    shown = {name for name in report.kept() if report.figure_name(name) in page}
    assert shown
    for name in shown:
        assert (report.FIGURES / report.figure_name(name)).read_text().startswith("<?xml")


def test_a_section(report):
    text = report.section("name", result(skipped=["another"]))
    assert "| sums | 2.00 ms | 3.00 ms (2) | 1.50 |" in text
    assert "Measured on 2026-11-16 on a machine" in text
    assert "not installed: another." in text
    assert text.index("| sums") < text.index("A note.")


def test_one_result_changes_its_own_section_alone(report):
    page = "".join(
        f"\n## About {name}\n<!-- {name} -->\nold\n<!-- end of {name} -->\nprose\n"
        for name in ("a", "b")
    )
    new = report.rendered(page, {"a": result()})
    assert "<!-- b -->\nold\n<!-- end of b -->" in new
    assert new.count("prose") == 2


def test_results_are_json_that_the_page_can_be_made_from(report, tmp_path):
    file = tmp_path / "found.json"
    report.write(file, [report.row("sums", "Harmonium", 1)], ["A note."], ["rival"])
    assert json.loads(file.read_text())["rows"][0]["seconds"] == 1.0


def test_durations(report):
    seconds = (12.3456, 0.0137, 0.4, 2.5e-6, 1234)
    expected = ["12.3 s", "13.7 ms", "400 ms", "2.50 µs", "1,234 s"]
    assert [report.duration(one) for one in seconds] == expected
