"""The small recipes of all tables and figures run from the sound to the report."""

import re

import pytest
from places import PROJECT

from harmonium.experiments.datasets import load_dataset
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.report import build_report, summarise
from harmonium.experiments.report.items import Table
from harmonium.experiments.results import open_results, read_results
from harmonium.experiments.run import run_experiment

pytestmark = pytest.mark.long

SMALL = sorted((PROJECT / "recipes" / "small").glob("*.toml"))

FEW_CLIPS = """
[[dataset]]
name = "generated"
n_tags = 8
groups = "track"
options = { n_tracks = 18, clips_per_track = 2, n_users = 12 }
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder for the sound, which is made once."""
    return tmp_path_factory.mktemp("cache")


def shortened(text):
    """The recipe with fewer clips, and models that are trained for two epochs."""
    text = re.sub("max_epochs = [0-9]+", "max_epochs = 2", text)
    text = re.sub("clips = .*", "clips = [10, 0]", text)
    return text.replace('datasets = ["generated"]', "") + FEW_CLIPS


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_small_recipe_runs_to_its_report(path, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_CACHE", str(cache))
    load_dataset.cache_clear()
    text = shortened(path.read_text(encoding="utf-8"))
    recipe = parse_recipe(text)
    with open_results(tmp_path / "results", text) as store:
        run_experiment(recipe, store, engine="stacked")
    summary = summarise(*read_results(tmp_path / "results"))
    assert {score.arm.model.name for score in summary.scores} == {
        model.name for model in recipe.models
    }
    report = build_report(tmp_path / "results")
    assert not report.unfinished
    tables = [item for item in report.items if isinstance(item, Table)]
    assert any(model.name in str(tables) for model in recipe.models)
