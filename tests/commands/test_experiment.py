"""`harmonium experiment run` and `list`, as a user calls them."""

import os
import subprocess
import sys

import pytest
from command_line import run
from toy_data import RECIPE, write_toy

RUN = [sys.executable, "-c", "from harmonium.cli import main; main()", "experiment"]


@pytest.fixture
def place(tmp_path):
    write_toy(tmp_path / "data")
    (tmp_path / "toy.toml").write_text(RECIPE)
    return tmp_path


def call(place, *arguments, data="data"):
    environment = os.environ | {"HARMONIUM_DATA": str(place / data), "COLUMNS": "100"}
    return subprocess.run(
        [*RUN, *arguments], cwd=place, env=environment, capture_output=True, text=True, check=False
    )


def test_run_and_run_again(place):
    first = call(place, "run", "toy.toml", "--engine", "serial")
    assert first.returncode == 0, first.stderr
    assert "27 runs in" in first.stdout
    assert "harmonium experiment report results/toy" in first.stdout
    assert "21 / 21" in first.stdout  # of LOG: 7 for each of 3 test folds
    results = (place / "results" / "toy" / "results.jsonl").read_bytes()
    again = call(place, "run", "toy.toml", "--engine", "serial")
    assert "27 runs are done already" in again.stdout
    assert "0 runs in" in again.stdout
    assert (place / "results" / "toy" / "results.jsonl").read_bytes() == results
    report = call(place, "report", "results/toy")
    assert report.returncode == 0, report.stderr
    assert (place / "results" / "toy" / "report" / "report.html").is_file()


def test_some_models_into_another_folder(place):
    done = call(place, "run", "toy.toml", "-o", "out", "--models", "fixed", "--engine", "serial")
    assert done.returncode == 0, done.stderr
    assert "6 runs in" in done.stdout
    assert len((place / "out" / "results.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "There is no recipe 'none.toml'. 'harmonium experiment list'"),
        (["toy.toml", "--models", "LOGG"], "The recipe has no model 'LOGG'. It has LOG, fixed."),
        (["toy.toml", "--datasets", "x"], "The recipe has no dataset 'x'. It has toy."),
        (["toy.toml", "--engine", "proceses"], "Did you mean 'processes'?"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(place, arguments, message):
    done = call(place, "run", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_without_data_it_says_what_to_do(place):
    done = call(place, "run", "toy.toml", data="nowhere")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "None of the recipe's datasets is at hand: toy. Set HARMONIUM_DATA" in said


def test_list_shows_every_recipe(place):
    done = call(place, "list")
    assert done.returncode == 0, done.stderr
    for name in ("table1", "table2", "figure2", "small/table2", "completion", "learning-curve"):
        assert name in done.stdout
    assert "generated" in done.stdout


def test_the_list_of_recipes_has_no_boxes_in_a_pipe():
    lines = run("experiment", "list").stdout.splitlines()
    assert {line.count("\t") for line in lines} == {2}
    assert any(line.startswith("small/table2\t") for line in lines)
