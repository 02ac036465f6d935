"""The command `harmonium experiment report`."""

import sys

import pytest
from fabricated import RECIPES, fabricate, plausible, plausible_valid
from typer.testing import CliRunner

from harmonium import cli


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


def run(*arguments):
    result = CliRunner().invoke(cli.app, ["experiment", "report", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


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


def test_a_folder_without_results_is_an_error_in_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["harmonium", "experiment", "report", str(tmp_path)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert "holds no results: it has no recipe.toml" in " ".join(message.split())
    assert "Traceback" not in message


def test_a_folder_that_cannot_be_written(results, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    arguments = ["harmonium", "experiment", "report", str(results), "-o", str(tmp_path / "file")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert "could not be written" in " ".join(capsys.readouterr().err.split())


def test_help_teaches_with_an_example():
    result = CliRunner().invoke(cli.app, ["experiment", "report", "--help"])
    assert "harmonium experiment report results/table2" in result.output
