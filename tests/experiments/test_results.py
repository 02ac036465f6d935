import json

import pytest
from dataset_samples import RECIPE

from harmonium.errors import DataError
from harmonium.experiments.plan import missing
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.results import open_results, read_results

RUNS = missing(parse_recipe(RECIPE), {})


def add(store, run):
    store.add(run, {"valid_auc": 0.5, "tests": []}, {"seconds": 1.0})


def store_of(folder, runs):
    with open_results(folder, RECIPE) as store:
        for run in runs:
            add(store, run)
    return folder


def test_what_was_added_is_there_again(tmp_path):
    folder = store_of(tmp_path / "new" / "folder", RUNS[:3])
    with open_results(folder, RECIPE) as store:
        assert list(store.results) == [run.key for run in RUNS[:3]]
        assert store.results[RUNS[0].key]["valid_auc"] == 0.5
    recipe, results, measurements = read_results(folder)
    assert recipe == parse_recipe(RECIPE)
    assert results.keys() == measurements.keys()
    assert results[RUNS[1].key]["run"]["settings"] == RUNS[1].settings


def test_a_line_cut_anywhere_costs_that_run_only(tmp_path):
    path = store_of(tmp_path, RUNS[:3]) / "results.jsonl"
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for end in range(last, len(whole), 7):
        path.write_bytes(whole[:end])
        assert list(read_results(tmp_path)[1]) == [run.key for run in RUNS[:2]]
        with open_results(tmp_path, RECIPE) as store:
            assert path.read_bytes() == whole[:last]
            add(store, RUNS[2])
        assert path.read_bytes() == whole


def test_a_finished_file_does_not_depend_on_the_order(tmp_path):
    for name, runs in (("a", RUNS[:4]), ("b", RUNS[3::-1])):
        with open_results(tmp_path / name, RECIPE) as store:
            for run in runs:
                add(store, run)
            store.finish()
    a, b = ((tmp_path / name / "results.jsonl").read_bytes() for name in "ab")
    assert a == b
    assert len(a.splitlines()) == 4


def test_a_line_that_is_no_result_is_named(tmp_path):
    path = store_of(tmp_path, RUNS[:1]) / "results.jsonl"
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(DataError, match=r"results\.jsonl, line 1, is not a result"):
        read_results(tmp_path)


def test_two_processes_do_not_write_at_once(tmp_path):
    with (
        open_results(tmp_path, RECIPE),
        pytest.raises(DataError, match="Another process is writing"),
        open_results(tmp_path, RECIPE),
    ):
        pass


def test_results_are_strict_json(tmp_path):
    with open_results(tmp_path, RECIPE) as store, pytest.raises(ValueError, match="JSON"):
        store.add(RUNS[0], {"valid_auc": float("nan")}, {})
    store_of(tmp_path, RUNS[:1])
    for name in ("results.jsonl", "measurements.jsonl"):
        for line in (tmp_path / name).read_text().splitlines():
            json.loads(line, parse_constant=lambda value: pytest.fail(value))
