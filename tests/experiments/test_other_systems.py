"""Experiments where Unix's modules are missing, or measure in other units."""

import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from toy_data import RECIPE, write_toy

from harmonium.experiments import run

WITHOUT_UNIX = textwrap.dedent(
    """
    import sys
    from pathlib import Path

    for name in ("fcntl", "resource"):  # as on Windows
        sys.modules[name] = None

    from harmonium.experiments.recipe import read_recipe
    from harmonium.experiments.results import open_results
    from harmonium.experiments.run import run_experiment

    recipe, folder = Path(sys.argv[1]), Path(sys.argv[2])
    with open_results(folder, recipe.read_text()) as store:
        run_experiment(read_recipe(recipe), store, engine="serial")
    """
)


@pytest.mark.long
def test_an_experiment_runs_without_the_modules_of_unix(tmp_path):
    write_toy(tmp_path / "data")
    recipe, folder = tmp_path / "recipe.toml", tmp_path / "out"
    recipe.write_text(RECIPE)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, str(recipe), str(folder)],
        env=os.environ | {"HARMONIUM_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "measurements.jsonl").read_text().splitlines()
    assert len(lines) == 27
    assert all(json.loads(line)["peak_memory_mb"] is None for line in lines)


@pytest.mark.parametrize(("system", "unit"), [("linux", 1024), ("darwin", 1)])
def test_peak_memory_is_in_megabytes_on_every_system(monkeypatch, system, unit):
    """Linux counts in KiB, macOS in bytes; both here have used 300 MB."""
    used = SimpleNamespace(ru_maxrss=300 * 2**20 // unit)
    monkeypatch.setattr(run.resource, "getrusage", lambda who: used)
    monkeypatch.setattr(sys, "platform", system)
    assert run.peak_memory_mb() == 300.0
