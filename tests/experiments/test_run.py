"""Whole experiments on a small dataset: stopped, resumed, on any engine."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from dataset_samples import RECIPE, write_toy
from places import HELPERS
from scipy.special import expit, logit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonium.data.datasets import load
from harmonium.estimators import DiscriminativeRBM
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments.datasets import load_dataset
from harmonium.experiments.models import model_seed
from harmonium.experiments.plan import arms, fold_states, missing
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.results import open_results, read_results
from harmonium.experiments.run import RunError, run_experiment

OURS = """
title = "Toy"
form = "comparison"
n_folds = 3

[[dataset]]
name = "mulan:toy"
groups = "item"

[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
settings = { n_hidden = 3, max_epochs = 3 }
search = { learning_rate = [0.003, 0.03] }

[[model]]
name = "SVM"
estimator = "SVMTagger"
"""


CROSS_FITTED = OURS.partition("search =")[0].replace("n_folds = 3", "n_folds = 3\ncross_fit = true")
CROSS_FITTED += """
[[model]]
name = "trees"
estimator = "sklearn.ExtraTreesClassifier"
settings = { n_estimators = 5, min_samples_leaf = 5 }

[[model]]
name = "trees of all clips"
estimator = "sklearn.ExtraTreesClassifier"
settings = { n_estimators = 5, min_samples_leaf = 5 }
refit = true
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    write_toy(tmp_path / "data")
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "data"))
    load_dataset.cache_clear()
    return tmp_path


def run(folder, text=RECIPE, **options):
    recipe = parse_recipe(text)
    with open_results(folder, text) as store:
        run_experiment(recipe, store, **options)
        assert missing(recipe, store.results) == []
    return (folder / "results.jsonl").read_bytes()


def test_a_run_is_the_protocol(toy):
    run(toy / "out", engine="serial")
    _, results, measurements = read_results(toy / "out")
    data = load("mulan:toy")
    Y = data.labels().values
    folds = grouped_folds(data.groups("item"), Y, n_folds=3, seed=0)
    recipe = parse_recipe(RECIPE)
    arm = arms(recipe)[1]
    seen = 0
    for found, state in fold_states(recipe, results):
        if found != arm:
            continue
        assert state.finished
        fold = state.final[0].test_fold
        assert [run.valid_fold for run in state.final] == [(fold + 1) % 3, (fold + 2) % 3]
        for final in state.final:
            train = (folds != fold) & (folds != final.valid_fold)
            classifier = OneVsRestClassifier(LogisticRegression(C=0.5, random_state=0))
            model = make_pipeline(StandardScaler(), classifier).fit(data.features[train], Y[train])
            test = auc_per_tag(Y[folds == fold], model.predict_proba(data.features[folds == fold]))
            line = results[final.key]
            np.testing.assert_allclose(line["tests"][0]["auc"], test.values, atol=1e-9)
            valid = folds == final.valid_fold
            expected = auc_per_tag(Y[valid], model.predict_proba(data.features[valid])).mean
            assert line["valid_auc"] == pytest.approx(expected, abs=1e-9)
            assert measurements[final.key]["seconds"] > 0
            assert "jax" in measurements[final.key]["versions"]
            seen += 1
    assert seen == 6


def test_the_engine_does_not_matter(toy):
    serial = run(toy / "serial", engine="serial")
    assert run(toy / "processes", engine="processes", jobs=2) == serial


def test_no_run_is_repeated(toy):
    done = []

    def watch(run, _):
        done.append(run.key)

    lines = run(toy / "out", engine="serial", watch=watch).splitlines()
    assert len(done) == len(set(done)) == len(lines)
    run(toy / "out", engine="serial", watch=watch)
    assert len(done) == len(lines)


def test_stacked_training_gives_the_same_experiment(toy):
    run(toy / "serial", OURS, engine="serial")
    run(toy / "stacked", OURS, engine="stacked")
    _, one, _ = read_results(toy / "serial")
    _, other, _ = read_results(toy / "stacked")
    svm = [key for key in one if one[key]["run"]["estimator"] == "SVMTagger"]
    assert len(svm) == 6
    assert all(one[key] == other[key] for key in svm)
    searched = [key for key in one if one[key]["run"]["estimator"] == "DiscriminativeRBM"]
    shared = [key for key in searched if key in other]
    assert len(shared) == 3 * 2 * 2  # the search on every validation fold of each test fold
    aucs = [[lines[key]["valid_auc"] for key in shared] for lines in (one, other)]
    assert abs(np.mean(aucs[0]) - np.mean(aucs[1])) < 0.1


def test_a_cross_fitted_run_tests_the_mean_of_the_log_odds_of_a_model_for_each_fold(toy):
    run(toy / "out", CROSS_FITTED, engine="serial")
    data = load_dataset(parse_recipe(CROSS_FITTED).datasets[0])
    folds = grouped_folds(data.groups, data.Y, n_folds=3, seed=0)
    names = set()
    for line in read_results(toy / "out")[1].values():
        done, (test,) = line["run"], line["tests"]
        fold = done["test_fold"]
        train, asked = folds != fold, folds == fold
        X, labels = data.X[train], data.Y[train]
        if done["estimator"] == "DiscriminativeRBM":
            seed = model_seed(0, fold, fold)
            model = DiscriminativeRBM(**done["settings"], n_models=2, random_state=seed)
            model.fit(X, labels, groups=folds[train])
            held_out, P = model.held_out_, model.predict_proba(data.X[asked])
        else:
            held_out, odds = np.empty_like(labels), []
            for other in {0, 1, 2} - {fold}:
                rest, own = folds[train] != other, folds[train] == other
                seed = model_seed(0, fold, fold)
                model = ExtraTreesClassifier(**done["settings"], random_state=seed)
                model.fit(X[rest], labels[rest])
                held_out[own] = np.transpose(model.predict_proba(X[own]))[1]
                odds.append(logit(np.transpose(model.predict_proba(data.X[asked]))[1]))
            P = expit(np.mean(odds, axis=0)).astype(np.float32)  # ties as there
            if done["refit"]:
                P = np.transpose(model.fit(X, labels).predict_proba(data.X[asked]))[1]
        np.testing.assert_allclose(test["auc"], auc_per_tag(data.Y[asked], P).values)
        parts = [folds[train] == other for other in {0, 1, 2} - {fold}]
        aucs = [auc_per_tag(labels[own], held_out[own]).mean for own in parts]
        assert line["valid_auc"] == pytest.approx(np.mean(aucs))
        names.add(done["model"])
    assert names == {"DRBM", "trees", "trees of all clips"}
    run(toy / "stacked", CROSS_FITTED, engine="stacked")
    one, other = (read_results(toy / name)[1] for name in ("out", "stacked"))
    assert one.keys() == other.keys()
    aucs = [[line["valid_auc"] for line in lines.values()] for lines in (one, other)]
    assert np.abs(np.mean(aucs[0]) - np.mean(aucs[1])) < 0.1


def test_runs_with_fewer_clips_are_stacked_apart(toy):
    run(toy / "out", OURS + "\n[vary]\nclips = [0, 6]\n", engine="stacked")
    _, lines, _ = read_results(toy / "out")
    few = [line for line in lines.values() if line["run"]["clips"] == 6]
    assert few
    assert all(np.isfinite(line["valid_auc"]) for line in few)


def test_a_failed_run_says_which_it_is_while_others_are_kept(toy):
    text = OURS + "\n[vary]\nclips = [0, 36]\n"
    message = r"toy, DRBM.*test fold .*clips = 36 is more than the"
    with pytest.raises(RunError, match=message):
        run(toy / "out", text, engine="serial")
    assert len(read_results(toy / "out")[1]) > 0


@pytest.mark.long
def test_killed_twenty_times_the_results_are_those_of_an_undisturbed_run(toy):
    recipe = toy / "recipe.toml"
    text = RECIPE.replace("n_folds = 3", "n_folds = 5")
    recipe.write_text(text)
    undisturbed = run(toy / "undisturbed", text, engine="serial")
    sizes = np.sort(np.random.default_rng(0).integers(0, len(undisturbed), 20))
    path = toy / "killed" / "results.jsonl"
    script = [HELPERS / "killed.py", "experiment"]
    done = subprocess.run(
        [sys.executable, *script, recipe, toy / "killed", *map(str, sizes)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = done.stdout.split()
    assert len(killed) == 20
    assert killed.count("True") > 15  # the others were done before anybody saw it
    run(toy / "killed", text, engine="serial")
    assert path.read_bytes() == undisturbed
    keys = [json.loads(line)["key"] for line in path.read_bytes().splitlines()]
    assert len(keys) == len(set(keys))


@pytest.mark.long
def test_an_experiment_runs_without_the_modules_of_unix(toy):
    """As on Windows."""
    (toy / "recipe.toml").write_text(RECIPE)
    code = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None\n"
    code += "from harmonium.cli import main; main()"
    command = ["experiment", "run", toy / "recipe.toml", "-o", toy / "out", "--engine", "serial"]
    subprocess.run([sys.executable, "-c", code, *command], check=True)
    measured = read_results(toy / "out")[2].values()
    assert [line["peak_memory_mb"] for line in measured] == [None] * 27
