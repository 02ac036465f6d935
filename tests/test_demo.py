"""The README's first command, small: every step of it, and the files it leaves."""

import polars as pl
import pytest
from typer.testing import CliRunner

from harmonium import DiscriminativeRBM
from harmonium.cli import app


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["demo", str(folder), "--tracks", "20", "--clips", "2", "--jobs", "1"]
    return folder, CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_demo_tells_what_it_does(demo):
    _, result = demo
    assert result.exit_code == 0
    for words in ("20 tracks", "40 clips", "389 numbers", "AUC", "Told that"):
        assert words in result.output


def test_the_demo_leaves_a_model_and_a_table(demo):
    folder, _ = demo
    model = DiscriminativeRBM.load(folder / "model.safetensors")
    table = pl.read_csv(folder / "tags.csv")
    assert table.columns == ["path", *model.tags_]
    assert model.n_features_in_ == 389
    assert len(table) == 8  # a fifth of 40 clips
    probabilities = table.drop("path").to_numpy()
    assert (probabilities >= 0).all()
    assert (probabilities <= 1).all()
    assert all((folder / path).is_file() for path in table["path"])


def test_too_small_a_collection_says_what_is_needed(tmp_path):
    arguments = ["demo", str(tmp_path), "--tracks", "10", "--clips", "1", "--jobs", "1"]
    result = CliRunner().invoke(app, arguments)
    assert "Ask for more tracks" in str(result.exception)
