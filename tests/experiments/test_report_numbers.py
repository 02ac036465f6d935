"""The numbers of a report, on results small enough to do by hand."""

import json

import numpy as np
import pytest
from fabricated import RECIPES, fabricate, plausible, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harmonium.errors import DataError
from harmonium.experiments.report import build_report, write_report
from harmonium.experiments.report.items import Bold, Faint
from harmonium.experiments.report.numbers import mean_known, standard_error

TWO_MODELS = """
title = "By hand"
form = "comparison"
datasets = ["emotify"]
n_folds = 3
[vary]
smoothing = [false, true]
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
[[model]]
name = "LOG"
estimator = "LogisticTagger"
"""
OF_FOLD = (0.625, 0.75, 0.875)  # mean 0.75; sd 0.125; standard error 0.125 / √3 = 7.2 %
STEP = 1 / 64  # exact in binary, so that equal differences are equal


def by_hand(run, way, known):
    """Four tags: LOG is worse on the first, better on the second, even on the third; none the last.

    The two runs of a test fold differ, and their mean is what OF_FOLD says. LOG's means of the
    folds are 0.625, 0.75 - STEP * 2/3 and 0.875 - STEP / 3: their mean 0.745, standard error 0.071.
    """
    base = OF_FOLD[run.test_fold] + (STEP if run.valid_fold == (run.test_fold + 1) % 3 else -STEP)
    if run.model == "DRBM":
        return [base + STEP * (run.smoothing is not None)] * 3 + [None]
    wobble = (STEP, -STEP, 0.0)[run.test_fold]
    return [base - 2 * STEP, base + STEP, base + wobble, None]


def rows(table):
    return [list(row) for row in table.rows]


def table_of(report, name):
    return next(table for table in report.tables if table.name == name)


@pytest.fixture(scope="module")
def hand_made(tmp_path_factory):
    return build_report(fabricate(tmp_path_factory.mktemp("hand"), TWO_MODELS, by_hand))


class TestComparison:
    def test_means_over_folds_with_their_errors(self, hand_made):
        assert hand_made.unfinished == ""
        assert rows(hand_made.tables[0]) == [
            ["emotify", "4", "−", "75.0 ± 7.2", "74.5 ± 7.1"],
            ["emotify", "4", "+", "76.6 ± 7.2", "74.5 ± 7.1"],
        ]

    def test_the_best_is_bold(self, hand_made):
        bold = [[isinstance(c, Bold) for c in row[3:]] for row in hand_made.tables[0].rows]
        assert bold == [[True, False], [True, False]]

    def test_equals_are_all_bold(self, tmp_path):
        def even(run, way, known):
            return [0.7 + (0.0001 if run.model == "LOG" else 0.0)]

        main = build_report(fabricate(tmp_path, TWO_MODELS, even)).tables[0]
        assert main.rows[0][3:] == ("70.0 ± 0.0", "70.0 ± 0.0")  # equal to the digit
        assert all(isinstance(cell, Bold) for cell in main.rows[0][3:])

    def test_paired_differences(self, hand_made):
        """Three tags are tested; of the constant differences p = 0, which no correction changes.

        DRBM less LOG by fold, in steps: 0, 2/3, 1/3; mean 1/3, sd 1/3, error 1/3/√3 = 0.19;
        t = √3 with 2 degrees of freedom. Smoothed, all are one step more.
        """
        raw = ["+0.52 ± 0.30", "0.225", "3", "3", "1", "1", "1", "1", "1", "1"]
        smoothed = ["+2.08 ± 0.30", "0.020", "3", "3", "1", "0", "1", "0", "1", "0"]
        assert rows(table_of(hand_made, "differences")) == [
            ["emotify", "DRBM", "LOG", "raw", *raw],
            ["emotify", "DRBM", "LOG", "smoothed", *smoothed],
            ["emotify", "DRBM, raw", "LOG, smoothed", "—", *raw],
        ]
        assert [table.name for table in hand_made.shown] == ["auc", "differences"]

    def test_differences_by_smoothing(self, hand_made):
        better = ["+1.56 ± 0.00", "< 0.001", "3", "3", *["3", "0"] * 3]
        same = ["+0.00 ± 0.00", "1.000", "3", "3", *["0", "0"] * 3]
        assert rows(table_of(hand_made, "differences-smoothing")) == [
            ["emotify", "smoothed", "raw", "DRBM", *better],
            ["emotify", "smoothed", "raw", "LOG", *same],
        ]

    def test_figures_of_the_tags_that_are_better_or_worse(self, hand_made):
        shown = {
            name: [point[:2] for point in points]
            for picture in hand_made.figures
            for name, points in picture.panels["emotify"].items()
        }
        assert shown == {
            "DRBM better": [("DRBM against LOG, 3 tags", 1)],
            "DRBM worse": [("DRBM against LOG, 3 tags", -1)],
            "smoothed better": [("DRBM, 3 tags", 3), ("LOG, 3 tags", 0)],
            "smoothed worse": [("DRBM, 3 tags", 0), ("LOG, 3 tags", 0)],
        }

    def test_the_paper_s_numbers_stand_beside_the_same_dataset(self, tmp_path):
        main = build_report(fabricate(tmp_path, RECIPES["comparison"], plausible)).tables[0]
        assert rows(main)[-1] == ["mturk, paper", "77", "−", "65.9", "65.8", "59.2"]
        assert all(isinstance(cell, Faint) for cell in main.rows[-1])
        assert sum("paper" in row[0] for row in main.rows) == 1
        assert "arXiv:1103.2832" in main.caption

    def test_ranks_over_datasets(self, tmp_path):
        order = {"DRBM": 0.8, "MLP": 0.7, "SVM": 0.6}
        folder = fabricate(tmp_path, RECIPES["comparison"], lambda run, *_: [order[run.model]])
        ranks = table_of(build_report(folder), "ranks")
        assert rows(ranks) == [["DRBM", "1.00"], ["MLP", "2.00"], ["SVM", "3.00"]]
        # three blocks ranked alike: χ² = n (k - 1) = 6, p = exp(-3) with 2 degrees of freedom
        assert "χ² = 6.00, p = 0.0498" in ranks.caption


def test_a_file_with_a_line_per_tag(hand_made):
    lines = [line.split(",") for line in hand_made.files["per-tag.csv"].splitlines()]
    assert lines[0] == ["dataset", "trained on", "tag", "DRBM", "LOG", "p DRBM against LOG"]
    assert lines[1] == ["emotify", "raw", "1", "0.75", "0.71875", "0"]
    assert lines[4] == ["emotify", "raw", "4", "", "", ""]
    assert len(lines) == 1 + 2 * 4


def test_a_file_with_the_names_of_the_tags(tmp_path):
    tags = ["rock", "jazz, cool", "=pop", "folk"]
    report = build_report(fabricate(tmp_path, TWO_MODELS, by_hand, tags=tags))
    assert 'emotify,raw,"jazz, cool",' in report.files["per-tag.csv"]
    assert "emotify,raw,'=pop," in report.files["per-tag.csv"]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    def valid(run):
        wanted = {"DRBM": 0.1, "LOG": 2.0}.get(run.model)
        found = run.settings.get("learning_rate")
        return 0.6 + 0.1 * (found == wanted) + 0.2 * (run.test_fold == 2 and found == 0.01)

    folder = tmp_path_factory.mktemp("search")
    return build_report(fabricate(folder, RECIPES["search"], plausible, valid=valid))


class TestSettings:
    def test_what_was_chosen_beside_the_paper_s_choice(self, searched):
        found = {(row[0], row[1]): row[2:6] for row in rows(searched.tables[0])}
        assert found["mturk", "DRBM"] == ["0.1\u00a0×2, 0.01\u00a0×1", "50", "CD", "1"]
        assert found["mturk", "DRBM, paper"] == ["0.01", "50", "—", "—"]
        assert found["mturk", "LOG"] == ["2", "—", "—", "—"]
        assert found["mturk", "LOG, paper"] == ["2", "—", "—", "—"]
        assert ("cal500", "DRBM, paper") not in found

    def test_every_setting_tried(self, searched):
        tried = [row for row in rows(table_of(searched, "search-tried")) if row[0] == "cal500"]
        low, high = ["66.67 ± 6.67", "−3.33 ± 6.67"], ["70.00 ± 0.00", "+0.00 ± 0.00"]
        assert [row[1:] for row in tried[:4]] == [
            ["DRBM", "1", "learning rate 0.01, hidden units 50", *low, "1"],
            ["DRBM", "1", "learning rate 0.01, hidden units 100", *low, "0"],
            ["DRBM", "1", "learning rate 0.1, hidden units 50", *high, "2"],
            ["DRBM", "1", "learning rate 0.1, hidden units 100", *high, "0"],
        ]
        assert [row[2:4] for row in tried[4:6]] == [
            ["2", "trained with CD, training steps 1"],
            ["2", "trained with PL, training steps 1"],
        ]

    def test_the_time_that_a_search_takes(self, searched):
        found = {(row[0], row[1]): row[2:] for row in rows(table_of(searched, "times"))}
        # DRBM, each of 3 test folds: 4 and 2 points on 2 folds; the final runs are among them
        assert found["cal500", "DRBM"] == ["2.00", "1.50", "0.50", "36", "1.5 min", "300"]
        assert found["cal500", "SVM"] == ["2.00", "—", "0.50", "6", "15.0 s", "300"]


class TestOtherForms:
    def report(self, tmp_path, form):
        return build_report(fabricate(tmp_path, RECIPES[form], plausible))

    @pytest.mark.parametrize(
        ("form", "columns", "x"),
        [
            ("damping", ["β = 0", "β = 0.5", "β = 0.9"], (0.0, 0.5, 0.9)),
            ("completion", ["0 % known", "25 % known", "50 % known"], (0.0, 25.0, 50.0)),
            ("learning-curve", ["50 clips", "200 clips", "all clips"], (50.0, 200.0, 1415.0)),
        ],
    )
    def test_curves(self, tmp_path, form, columns, x):
        report = self.report(tmp_path, form)
        assert list(report.tables[0].header[2:]) == columns
        line = next(iter(report.figures[0].panels.values()))["DRBM"]
        assert tuple(place for place, _, _ in line) == x
        shown = [text.split()[0] for text in report.tables[0].rows[0][2:]]
        assert shown == [f"{value:.1f}" for _, value, _ in line]

    def test_differences_along_a_curve(self, tmp_path):
        """Damping factors are compared, amounts of known tags are not."""
        damping = table_of(self.report(tmp_path / "a", "damping"), "differences")
        labels = [["majorminer-104", f"damping {x}", "damping 0"] for x in (0.5, 0.9)]
        assert [row[:3] for row in rows(damping)] == labels  # which have nothing else in common
        assert "Both" not in damping.header
        completion = table_of(self.report(tmp_path / "b", "completion"), "differences")
        assert rows(completion)[1][1:4] == ["SVM", "DRBM", "0 % known"]
        assert len(completion.rows) == 3 * 2 * 3

    def test_bars(self, tmp_path):
        report = self.report(tmp_path, "approximations")
        main = report.tables[0]
        assert list(main.header[2:]) == ["tested with LBP", "tested with MF"]
        panel = report.figures[0].panels["mturk"]
        values = {name: dict(point[:2] for point in points) for name, points in panel.items()}
        for of_way in values.values():
            assert list(of_way) == [f"trained with {way}" for way in ("CD", "PL", "MF", "LBP")]
        shown = [f"{of_way['trained with MF']:.1f}" for of_way in values.values()]
        assert [text.split()[0] for text in rows(main)[6][2:]] == shown
        differences = rows(table_of(report, "differences"))
        assert len(differences) == 2 * (3 * 2 + 1 * 4)
        assert differences[0][1:4] == ["trained with PL", "trained with CD", "tested with LBP"]
        found = next(row[4] for row in differences if row[0] == "mturk").split()[0]
        cd, pl, *_ = values["tested with LBP"].values()
        assert float(found.replace("−", "-")) == pytest.approx(pl - cd, abs=0.01)

    def test_measures_within_clips(self, tmp_path):
        folder = fabricate(tmp_path, RECIPES["completion"], plausible)

        def add(line):
            worth = 0.5 + 0.25 * (line["run"]["model"] == "DRBM")
            for test in line["tests"]:
                test["clip_auc"] = worth

        change_lines(folder, add)
        report = build_report(folder)
        names = {table.name for table in report.tables}
        assert "completion-clip-auc" in names
        assert "completion-clip-precision" not in names
        found = rows(table_of(report, "completion-clip-auc-differences"))
        assert found[0][1:6] == ["MLP", "DRBM", "0 % known", "−25.00 ± 0.00", "< 0.001"]


def change_lines(folder, edit):
    path = folder / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        edit(line)
    write_lines(path, lines)


def bins(said, true):
    """A thousand labels in the bin of ``said``, that part of which are true."""
    place = 3 + int(10 * said)
    return [[value * (i == place) for i in range(13)] for value in (1000, 1000 * said, 1000 * true)]


def test_calibration_of_the_models_that_give_probabilities(tmp_path):
    folder = fabricate(tmp_path, TWO_MODELS.replace("[false, true]", "[false]"), by_hand)

    def add(line):
        if line["run"]["model"] == "DRBM":
            found = {"corrected": bins(0.55, 0.5), "plain": bins(0.35, 0.5)}  # as files sort them
            line["tests"][0]["reliability"] = found

    change_lines(folder, add)
    report = build_report(folder)
    assert rows(table_of(report, "calibration")) == [["emotify", "DRBM", "0.1500", "0.0500"]]
    picture = next(item for item in report.figures if item.name == "reliability")
    lines = picture.panels["emotify"]
    assert list(lines) == ["perfect", "DRBM", "DRBM, not corrected"]
    assert lines["DRBM"][0][:2] == pytest.approx((55.0, 50.0))
    write_report(folder)
    assert (folder / "report" / "figures" / "reliability.svg").stat().st_size > 1000


def test_the_table_of_sets_has_only_models_that_were_judged_by_them(tmp_path):
    folder = fabricate(tmp_path, TWO_MODELS.replace("[false, true]", "[false]"), by_hand)

    def add(line):
        if line["run"]["model"] == "DRBM":
            means = {"macro_f1": 0.5, "micro_f1": 0.6, "hamming_loss": 0.1, "subset_accuracy": None}
            line["tests"][0] |= means | {"coverage_error": 2.345, "ranking_precision": 0.875}

    change_lines(folder, add)
    row = ["emotify", "DRBM", "50.0", "60.0", "10.0", "—", "2.35", "87.5"]
    assert rows(table_of(build_report(folder), "sets")) == [row]


class TestUnfinished:
    def test_finished_folds_are_shown_beside_what_is_missing(self, tmp_path):
        def wanted(run):
            smoothed = run.smoothing is not None
            return not smoothed if run.model == "DRBM" else smoothed or run.test_fold < 2

        report = build_report(fabricate(tmp_path, TWO_MODELS, by_hand, wanted=wanted))
        assert rows(report.tables[0]) == [
            ["emotify", "4", "−", "75.0 ± 7.2", "68.2 ± 5.7 (2/3)"],
            ["emotify", "4", "+", "—", "74.5 ± 7.1"],
        ]
        assert not any(isinstance(cell, Bold) for row in report.tables[0].rows for cell in row)
        assert report.unfinished.startswith("2 of 4 arms are not finished, 1 of them with some")
        differences = rows(table_of(report, "differences"))
        assert differences[0][:4] == ["emotify", "DRBM", "LOG", "raw"]
        assert differences[0][6:8] == ["3", "2"]  # tags, folds


class TestFaults:
    @pytest.fixture
    def folder(self, tmp_path):
        return fabricate(tmp_path / "results", TWO_MODELS, by_hand)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"valid_auc": None}, "damaged: it needs a number 'valid_auc'"),
            ({"tests": [{"inference": None, "known": 0.0}]}, "is damaged"),
            ({"tests": [{"inference": None, "known": 0.0, "auc": ["high"]}]}, "is damaged"),
            ({"tests": [{"inference": "lbp", "known": 0.0, "auc": [0.5] * 4}]}, "has the tests"),
            ({"tests": [{"inference": None, "known": 0.0, "auc": [0.5] * 3}]}, "3 and 4 tags"),
        ],
        ids=["no-score", "no-auc", "no-number", "another-test", "another-number-of-tags"],
    )
    def test_results_that_are_damaged(self, folder, changed, message):
        key = json.loads((folder / "results.jsonl").read_text().splitlines()[0])["key"]
        change_lines(folder, lambda line: line["key"] == key and line.update(changed))
        with pytest.raises(DataError, match=message):
            build_report(folder)

    def test_results_without_measurements(self, folder):
        (folder / "measurements.jsonl").unlink()
        report = build_report(folder)
        assert "times" not in {table.name for table in report.tables}
        assert rows(report.tables[0])[0][3] == "75.0 ± 7.2"

    def test_results_without_a_finished_fold(self, folder):
        path = folder / "results.jsonl"
        path.write_text(path.read_text().splitlines(keepends=True)[0])
        with pytest.raises(DataError, match="holds 1 run, but no test fold"):
            build_report(folder)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                RECIPES["damping"].replace("damping = [0.0, 0.5, 0.9]", "training_steps = [1, 2]"),
                "damping",
            ),
            (TWO_MODELS.replace('"comparison"', '"search"'), "a model with search"),
        ],
        ids=["damping", "search"],
    )
    def test_a_form_without_what_it_shows(self, tmp_path, text, message):
        with pytest.raises(DataError, match=f"needs {message}"):
            build_report(fabricate(tmp_path, text, plausible))


values = arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 6)),
    elements=st.one_of(st.floats(0, 1), st.just(float("nan"))),
)


@settings(deadline=None, max_examples=50)
@given(values)
def test_undefined_values_are_left_out(matrix):
    for axis in (0, 1):
        lines = np.moveaxis(matrix, axis, -1)
        for mean, line in zip(mean_known(matrix, axis=axis), lines, strict=True):
            known = line[~np.isnan(line)]
            np.testing.assert_allclose(mean, known.mean() if len(known) else np.nan)
            error = np.sqrt(known.var(ddof=1) / len(known)) if len(known) > 1 else np.nan
            np.testing.assert_allclose(standard_error(line), error)
