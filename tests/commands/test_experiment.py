"""`harmonium experiment run`, `list` and `report`, as a user calls them."""

import pytest
from command_line import run_main
from dataset_samples import RECIPE, write_toy
from fabricated import RECIPES, fabricate, plausible, plausible_valid

from harmonium.commands import experiment
from harmonium.experiments.datasets import load_dataset
from harmonium.experiments.results import ResultStore


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_toy(tmp_path / "data")
    (tmp_path / "toy.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    load_dataset.cache_clear()
    return tmp_path


def call(*arguments):
    return run_main("experiment", *arguments)


def test_run_once_more(place):
    first = call("run", "toy.toml", "--engine", "serial")
    assert first.exit_code == 0, first.stderr
    assert "27 runs in" in first.stdout
    assert "harmonium experiment report results/toy" in first.stdout
    assert "21 / 21" in first.stdout  # of LOG: 7 for each of 3 test folds
    results = (place / "results" / "toy" / "results.jsonl").read_bytes()
    again = call("run", "toy.toml", "--engine", "serial")
    assert "27 runs are done already" in again.stdout
    assert "0 runs in" in again.stdout
    assert (place / "results" / "toy" / "results.jsonl").read_bytes() == results
    report = call("report", "results/toy")
    assert report.exit_code == 0, report.stderr
    assert (place / "results" / "toy" / "report" / "report.html").is_file()


def test_some_models_into_another_folder(place, monkeypatch):
    monkeypatch.setattr(experiment, "LINE_SECONDS", 0.0)
    done = call("run", "toy.toml", "-o", "out", "--models", "fixed", "--engine", "serial")
    assert done.exit_code == 0, done.stderr
    assert "1 of 6 runs, about 0:00:0" in done.stdout
    assert "6 of 6 runs\n" in done.stdout
    assert "6 runs in" in done.stdout
    assert len((place / "out" / "results.jsonl").read_text().splitlines()) == 6


def test_ctrl_c_says_how_many_runs_are_saved(place, monkeypatch):
    add = ResultStore.add

    def interrupted_at_the_third(store, *run):
        if len(store.results) == 2:
            raise KeyboardInterrupt
        add(store, *run)

    monkeypatch.setattr(ResultStore, "add", interrupted_at_the_third)
    done = call("run", "toy.toml", "--engine", "serial")
    assert done.exit_code == 130
    assert "Stopped; 2 runs are saved in results/toy." in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "There is no recipe 'none.toml'. 'harmonium experiment list'"),
        (["toy.toml", "--models", "LOGG"], "The recipe has no model 'LOGG'. It has LOG, fixed."),
        (["toy.toml", "--datasets", "x"], "The recipe has no dataset 'x'. It has toy."),
        (["toy.toml"], "datasets is on this machine: toy. Set HARMONIUM_DATA"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(place, arguments, message, monkeypatch):
    if len(arguments) == 1:
        monkeypatch.setenv("HARMONIUM_DATA", str(place / "nowhere"))
    done = call("run", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_list_shows_every_recipe(place):
    """In a pipe, without boxes."""
    done = call("list")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {line.count("\t") for line in lines} == {2}
    found = {line.partition("\t")[0] for line in lines}
    assert {"table1", "table2", "figure2", "small/table2", "completion", "learning-curve"} <= found
    assert "generated" in done.stdout


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return fabricate(
        tmp_path / "results",
        RECIPES["comparison"],
        plausible,
        valid=plausible_valid,
        wanted=lambda run: run.model != "SVM",
    )


def report(*arguments):
    done = call("report", *arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_report_in_another_folder(results, tmp_path):
    assert str(tmp_path / "out") in report(results, "-o", tmp_path / "out").replace("\n", "")
    assert (tmp_path / "out" / "figures" / "tags-better.svg").is_file()
    assert not (results / "report").exists()


def test_a_report_says_what_is_missing(results):
    lines = report(results).splitlines()
    words = [line.split() for line in lines]
    assert ["Dataset", "Tags", "Sm", "DRBM", "MLP"] in words
    assert ["mturk,", "paper", "77", "−", "65.9", "65.8"] in words
    assert any(line.startswith("Not finished: 4 of 12 arms") for line in lines)
    assert "report.html" in lines[-1]
    assert (results / "report" / "report.html").is_file()


def test_a_folder_without_results(tmp_path):
    assert "holds no results: it has no recipe.toml" in refusal(tmp_path)


def test_a_report_that_cannot_be_written(results, tmp_path):
    (tmp_path / "file").touch()
    assert "could not be written" in refusal(results, "-o", tmp_path / "file")


def refusal(*arguments):
    """The one message of a report that is refused."""
    done = call("report", *arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())
