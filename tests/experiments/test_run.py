"""Whole experiments on a small dataset: stopped, resumed, on any engine."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from dataset_samples import RECIPE, write_samples, write_toy
from places import HELPERS
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonium.data.datasets import load
from harmonium.errors import DataError
from harmonium.estimators import CooccurrenceTagger, DiscriminativeRBM
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments import run as run_module
from harmonium.experiments.datasets import CATALOGUE, GENERATED, DatasetSpec, _counts, load_dataset
from harmonium.experiments.plan import arms, fold_states, missing
from harmonium.experiments.recipe import ONE, parse_recipe
from harmonium.experiments.results import open_results, read_results
from harmonium.synthetic import make_collection

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
        run_module.run_experiment(recipe, store, **options)
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


def test_the_engine_does_not_matter_and_nothing_is_repeated(toy):
    alone = run(toy / "serial", engine="serial")
    done = []
    watch = lambda run, _: done.append(run.key)  # noqa: E731
    assert run(toy / "processes", engine="processes", jobs=2, watch=watch) == alone
    assert len(done) == len(set(done)) == len(alone.splitlines())
    run(toy / "processes", engine="serial", watch=watch)
    assert len(done) == len(alone.splitlines())


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
            seed = run_module._seed(0, fold, fold)
            model = DiscriminativeRBM(**done["settings"], n_models=2, random_state=seed)
            model.fit(X, labels, groups=folds[train])
            held_out, P = model.held_out_, model.predict_proba(data.X[asked])
        else:
            held_out, odds = np.empty_like(labels), []
            for other in {0, 1, 2} - {fold}:
                rest, own = folds[train] != other, folds[train] == other
                seed = run_module._seed(0, fold, fold)
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


def test_a_run_that_fails_names_itself_and_keeps_the_others(toy):
    text = OURS + "\n[vary]\nclips = [0, 36]\n"
    message = r"toy, DRBM.*test fold .*clips = 36 is more than the"
    with pytest.raises(run_module.RunError, match=message):
        run(toy / "out", text, engine="serial")
    assert len(read_results(toy / "out")[1]) > 0


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [("ExtraTreesClassifier", {"n_estimators": 3}), ("HistGradientBoostingClassifier", {})],
)
def test_scikit_learns_classifiers_learn_a_tag_where_it_is_known(estimator, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = (X[:, :3] > 0).astype(np.float32)
    Y[:30, 0], Y[:, 2] = NAN, 0
    model = run_module.build_model(f"sklearn.{estimator}", settings, seed=0)
    P = model.fit(X, Y).predict_proba(X)
    alone = clone(model.classifier).fit(StandardScaler().fit_transform(X[30:]), Y[30:, 0])
    expected = alone.predict_proba((X - X[30:].mean(axis=0)) / X[30:].std(axis=0))[:, 1]
    np.testing.assert_allclose(P[:, 0], expected)
    assert (P[:, 2] == 0).all()  # a tag that no clip has


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


# What a model is asked and how its answers are judged, against a loop over questions.

NAN = np.nan
Y = np.array([[1, 1, 0, 0, NAN], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]], np.float32)


def test_each_true_tag_is_told_in_turn_and_a_share_is_told_or_asked_but_never_both():
    asked = run_module.questions(Y, ONE, (0,))
    assert asked.clips.tolist() == [0, 0, 2, 2, 2]
    assert (np.nansum(asked.given, axis=1) == 1).all()
    assert (np.sum(~np.isnan(asked.given), axis=1) == 1).all()
    np.testing.assert_array_equal(asked.asked[0], [NAN, 1, 0, 0, NAN])
    np.testing.assert_array_equal(asked.asked[4], [1, 1, NAN, 0, 0])
    asked = run_module.questions(Y, 0.5, (0, 1))
    told, rest = ~np.isnan(asked.given), ~np.isnan(asked.asked)
    assert told.any()
    assert not (told & rest).any()
    np.testing.assert_array_equal(told | rest, ~np.isnan(Y))


def test_the_measures_within_clips_are_means_over_a_clips_questions_and_then_over_clips():
    rng = np.random.default_rng(0)
    train = (rng.random((500, 6)) < np.linspace(0.2, 0.7, 6)).astype(float)
    labels = (rng.random((20, 6)) < 0.4).astype(np.float32)
    X = np.zeros((20, 1))
    model = CooccurrenceTagger().fit(np.zeros((500, 1)), train)
    aucs, precisions = [], []
    for y in labels:
        of_clip = []
        for tag in np.flatnonzero(y == 1) if y.sum() >= 2 else []:
            told = np.full(6, NAN)
            told[tag] = 1
            rest = np.arange(6) != tag
            s = model.complete([[0.0]], told[None])[0]
            assert len(np.unique(s[rest])) == 5  # no ties, which argsort would break
            best = np.argsort(-s[rest])[:3]
            auc = roc_auc_score(y[rest], s[rest]) if y[rest].min() == 0 else NAN
            of_clip.append((auc, y[rest][best].mean()))
        if of_clip:
            aucs.append(np.mean([auc for auc, _ in of_clip]))
            precisions.append(np.mean([precision for _, precision in of_clip]))
    found = run_module.judge(model, X, labels, ONE, (0,))
    assert found["clip_auc"] == pytest.approx(np.nanmean(aucs))
    assert found["clip_precision_at_3"] == pytest.approx(np.mean(precisions))
    alone = auc_per_tag(labels, model.predict_proba(X)).mean
    assert run_module.validation_score(model, X, labels, (0.0,), (0,)) == pytest.approx(alone)
    both = run_module.validation_score(model, X, labels, (0.0, ONE), (0,))
    assert both == pytest.approx((alone + found["clip_auc"]) / 2)


# What experiments take from a dataset.

OPTIONS = {"n_tracks": 4, "clips_per_track": 2, "n_users": 12, "clip_seconds": 2.0}


def generated(**fields):
    return DatasetSpec(name=GENERATED, label="g", min_positives=2, options=OPTIONS, **fields)


def test_what_a_run_takes_from_the_generated_collection(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_dataset.cache_clear()
    collection = make_collection(**OPTIONS)
    for kind in ("item", "track", "artist"):
        data = load_dataset(generated(groups=kind))
        names = collection.clips[kind].to_list()
        alike = np.equal.outer(data.groups, data.groups)
        assert (alike == np.array([[a == b for a in names] for b in names])).all()
    triples = collection.triples
    items, tags = triples.items.gather(triples.item), triples.tags.gather(triples.tag)
    said = set(zip(items, tags, strict=True))
    expected = [[(item, tag) in said for tag in data.tags] for item in collection.clips["item"]]
    assert data.Y.tolist() == np.array(expected, float).tolist()
    assert (data.Y.sum(axis=0) >= 2).all()
    assert data.X.shape == (8, 389)
    timbre, rhythm = data.features("timbre"), data.features("rhythm")
    assert np.hstack([timbre, rhythm]).tolist() == data.X.tolist()
    smoothed = data.smoothed(np.arange(6), seed=0)
    assert np.isfinite(smoothed[:6]).all()
    assert np.isnan(smoothed[6:]).all()
    with pytest.raises(DataError, match="No tag of 'g' has 100 positive clips"):
        load_dataset(DatasetSpec(name=GENERATED, label="g", min_positives=100, options=OPTIONS))


def test_the_svm_chooses_by_what_the_labels_go_by(tmp_path, monkeypatch):
    """Emotify's labels are shares of listeners: so are the counts, and the most are positive."""
    write_samples(tmp_path)
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path))
    data = load("emotify")
    shares = _counts(data, data.tags)
    counts = data.counts.matrix.toarray()
    np.testing.assert_allclose(shares * data.listeners[:, None], counts, rtol=1e-6)
    Y = data.labels().values
    for tag in range(len(data.tags)):
        positive, negative = shares[Y[:, tag] == 1, tag], shares[Y[:, tag] == 0, tag]
        assert positive.min(initial=1) > negative.max(initial=0)
    assert all(spec.label == label for label, spec in CATALOGUE.items())
