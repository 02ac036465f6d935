"""The commands on a real Dask cluster: what comes out is to the bit what this machine gives alone.

A worker is killed and another joins in the middle of the work; the cluster is gone, and is back.
"""

import functools
import json
import threading

import odd_extractors as odd
import pytest
import small_library
from command_line import run_main
from dask_cluster import cluster
from dataset_samples import RECIPE, write_toy
from processes_in_tests import end, wait_until

from harmonium.engine import dask
from harmonium.experiments.datasets import load_dataset
from harmonium.library import Library
from harmonium.library.learning import train as train_module
from harmonium.library.learning.examples import Hyperparameters
from harmonium.library.learning.fitting import fit
from harmonium.library.model.tagger import Tagger

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Two workers without anybody who restarts them."""
    folder = tmp_path_factory.mktemp("cluster")
    write_toy(folder / "data")
    env = {"ODD_GATE": str(folder / "gate"), "HARMONIUM_DATA": str(folder / "data")}
    with pytest.MonkeyPatch.context() as patch, cluster(folder, n_workers=2, env=env) as running:
        patch.setenv("HARMONIUM_DATA", str(folder / "data"))
        running.gate = folder / "gate"
        load_dataset.cache_clear()
        yield running
    load_dataset.cache_clear()


def test_train_on_a_cluster_that_changes(running, tmp_path, monkeypatch):
    """Every array of the model is the same; with the settings that were tried, and their AUC."""
    to_try = tuple(Hyperparameters(0.01, l2) for l2 in (0.03, 0.1, 0.3, 1.0))
    monkeypatch.setattr(train_module, "fit", functools.partial(fit, to_try=to_try, n_hidden=5))
    done = []

    def disturb(what, n_done, total):
        done.append(n_done)
        if n_done == 1:
            end(running.workers.pop(0))  # SIGKILL one, and let another join
            running.add_worker()

    with Library.open(tmp_path / "library.db") as library:
        small_library.fill(library, 60)
        there = train_module.train(library, engine=running.address, progress=disturb)
        here = train_module.train(library)
    assert done[-1] == len(to_try)
    assert sorted(set(done)) == list(range(done[-1] + 1))
    on_cluster = Tagger(there).arrays
    alone = Tagger(here).arrays
    assert on_cluster.keys() == alone.keys()
    differ = [name for name in alone if alone[name].tobytes() != on_cluster[name].tobytes()]
    assert set(differ) <= {"history.seconds"}
    assert there.report["trials"] == here.report["trials"]
    assert there.report["mean_auc"] == here.report["mean_auc"]


def test_an_experiment_that_is_stopped_by_the_loss_of_the_cluster(running, tmp_path, monkeypatch):
    """It says what to do; the same command then does the rest, and the file is the same."""
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 2)
    recipe = tmp_path / "toy.toml"
    recipe.write_text(RECIPE)
    command = ("experiment", "run", recipe)
    assert run_main(*command, "-o", tmp_path / "alone", "--engine", "serial").exit_code == 0
    on_cluster = (*command, "-o", tmp_path / "cluster", "--engine", running.address)
    lines = tmp_path / "cluster" / "results.jsonl"

    def kill_after_the_first_line():
        wait_until(lambda: lines.exists() and lines.stat().st_size, "the first result")
        running.kill()

    thread = threading.Thread(target=kill_after_the_first_line)
    thread.start()
    lost = run_main(*on_cluster)
    thread.join()
    assert lost.exit_code == 2
    assert "is gone" in " ".join(lost.stderr.split())
    assert "run the same command again" in " ".join(lost.stderr.split())
    n_kept = len(lines.read_text().splitlines())
    running.restart()
    assert run_main(*on_cluster).exit_code == 0
    assert lines.read_bytes() == (tmp_path / "alone" / "results.jsonl").read_bytes()
    keys = [json.loads(line)["key"] for line in lines.read_text().splitlines()]
    assert 0 < n_kept <= len(keys) == len(set(keys))


def test_features_stopped_by_ctrl_c(running, tmp_path):
    """It ends at once and says what is kept; the workers stay, and the next run goes on."""
    running.gate.unlink(missing_ok=True)
    errors = odd.stop_features(tmp_path, running.gate, "--engine", running.address)
    assert f"They are kept in {tmp_path}; the same command continues." in errors
