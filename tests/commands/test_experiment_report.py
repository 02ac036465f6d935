"""The command `harmonium experiment report`."""

from functools import partial

import pytest
from command_line import output_of, run_main
from fabricated import RECIPES, fabricate, plausible, plausible_valid


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


run = partial(output_of, "experiment", "report")


def test_the_main_table_what_is_missing_and_where_the_rest_is(results):
    lines = run(results).splitlines()
    words = [line.split() for line in lines]
    assert ["Dataset", "Tags", "Sm", "DRBM", "MLP"] in words
    assert ["mturk,", "paper", "77", "−", "65.9", "65.8"] in words
    assert any(line.startswith("Not finished: 4 of 12 arms") for line in lines)
    assert "report.html" in lines[-1]
    assert (results / "report" / "report.html").is_file()


def test_another_folder(results, tmp_path):
    assert str(tmp_path / "out") in run(results, "-o", tmp_path / "out").replace("\n", "")
    assert (tmp_path / "out" / "figures" / "tags-better.svg").is_file()
    assert not (results / "report").exists()


def test_a_narrow_window_shows_every_column(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    text = RECIPES["comparison"] + '[[model]]\nname = "LOG"\nestimator = "LogisticTagger"\n'
    output = run(fabricate(tmp_path / "results", text, plausible))
    words = [line.split() for line in output.splitlines()]
    assert ["Dataset", "Tags", "Sm", "DRBM", "MLP", "SVM", "LOG"] in words
    assert all(len(line) <= 50 for line in output.splitlines())
    assert "Standard errors are in the report" in " ".join(output.split())


def test_what_is_wrong_is_one_message(results, tmp_path):
    (tmp_path / "file").touch()
    for arguments, message in (
        ([tmp_path], "holds no results: it has no recipe.toml"),
        ([results, "-o", tmp_path / "file"], "could not be written"),
    ):
        done = run_main("experiment", "report", *arguments)
        assert done.exit_code == 2
        assert message in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
