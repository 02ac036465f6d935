"""Recipes, and the runs that follow from them and from the results so far."""

import itertools
import re

import numpy as np
import pytest
from dataset_samples import RECIPE
from places import PROJECT

from harmonium import DiscriminativeRBM, paper_options
from harmonium.errors import DataError
from harmonium.experiments import plan
from harmonium.experiments.plan import arms, fold_state, fold_states, missing, most_runs
from harmonium.experiments.recipe import parse_recipe, read_recipe
from harmonium.experiments.results import open_results, read_results

RECIPES = PROJECT / "recipes"

OURS = """
title = "Ours"
form = "comparison"
datasets = ["emotify"]

[[model]]
name = "MLP"
estimator = "MLPTagger"
settings = { n_hidden = 7 }
"""

every_recipe = pytest.mark.parametrize(
    "path", sorted(RECIPES.rglob("*.toml")), ids=lambda path: str(path.relative_to(RECIPES))
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "tittle =", "'tittle' is not a key of a recipe. Did you mean 'title'?"),
        ('"comparison"', '"comparsion"', "Did you mean 'comparison'?"),
        ('groups = "item"', 'group = "item"', "a key of a recipe. Did you mean 'groups'?"),
        ('groups = "item"', 'groups = "album"', "'artist', 'track' or 'item'. Got 'album'"),
        ("sklearn.LogisticRegression", "LogisticTager", "Did you mean 'LogisticTagger'?"),
        ("{ C = 0.5 }", "{ fit_intercep = true }", "Did you mean 'fit_intercept'?"),
        ("C = [0.01, 0.1, 1.0, 10.0]", "CC = [1]", "search of model 'LOG'"),
        ("C = [0.01, 0.1, 1.0, 10.0]", "C = 1.0", "should be a valid tuple. Got 1.0"),
        ("n_folds = 3", "n_folds = 2", "greater than or equal to 3. Got 2"),
        ("search_folds = 1", "search_folds = 3", "at most 2"),
        ('name = "fixed"', 'name = "LOG"', "model name 'LOG' occurs more than once"),
        ("form =", "form", "This is not TOML"),
        ("n_folds = 3", 'datasets = ["emotfy"]', "Did you mean 'emotify'?"),
        (
            "n_folds = 3",
            "[vary]\nsmoothing = [1]",
            "Or: Input should be a valid string. Got 1",
        ),
        ("n_folds = 3", "[vary]\nsmoothing = ['twice']", "'twice' is not a [[smoothing]]"),
        ("n_folds = 3", "[vary]\nclips = [-1]", "greater than or equal to 0. Got -1"),
        ("n_folds = 3", '[vary]\nfeatures = ["timber"]', "Did you mean 'timbre'?"),
        ("n_folds = 3", "[vary]\ndampin = [0.5]", "[vary]: sklearn.LogisticRegression has no"),
        ("n_folds = 3", "[tests]\nknown = [1.0]", "'one'. Got 1.0"),
        ("n_folds = 3", "n_folds = 3\nsearch_known = ['on']", "'one'. Got 'on'"),
        ('name = "LOG"', 'name = "LOG"\nskip = ["tyo"]', "Did you mean 'toy'?"),
        ("n_folds = 3", "cross_fit = true\nsearch_known = [0.5]", "'search_known' must be [0.0]"),
        ("n_folds = 3", '[tests]\ninference = ["lpb"]', "Did you mean 'lbp'?"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_one(old, new, message):
    assert old in RECIPE
    with pytest.raises(DataError, match=re.escape(message)):
        parse_recipe(RECIPE.replace(old, new, 1))


def test_a_recipe_without_a_dataset():
    lines = [line for line in RECIPE.splitlines() if line]
    start = lines.index("[[dataset]]")
    with pytest.raises(DataError, match="A recipe needs a dataset"):
        parse_recipe("\n".join(lines[:start] + lines[start + 4 :]))


def test_a_table_of_the_wrong_form():
    with pytest.raises(DataError, match="of the wrong form"):
        parse_recipe("vary = 3")


def test_a_recipe_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="There is no recipe"):
        read_recipe(tmp_path / "none.toml")


def test_a_recipe_that_is_no_text(tmp_path):
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"bad.toml.*cannot be read"):
        read_recipe(tmp_path / "bad.toml")


@every_recipe
def test_every_recipe_has_arms(path):
    assert arms(read_recipe(path))


def test_every_experiment_has_a_small_version():
    large = {path.name for path in RECIPES.glob("*.toml")} - {"models.toml"}
    small = {path.name for path in (RECIPES / "small").glob("*.toml")}
    assert small - {"smoothed-examples.toml"} == large  # it is about small collections


def trainings(recipe, model):
    """Every way in which a recipe may train one of its discriminative RBMs."""
    given = [model.fixed.get("training", DiscriminativeRBM().training)]
    ways = set(recipe.vary.get("training", given))
    for values in model.search:
        ways.update(values.get("training", ()))
    return ways


@every_recipe
def test_a_label_says_how_the_model_is_trained(path):
    """DRBM is the paper's model; DRBM-MP is trained by multi-prediction."""
    recipe = read_recipe(path)
    for model in recipe.models:
        if model.estimator != "DiscriminativeRBM":
            assert not model.name.startswith("DRBM")
            continue
        ways = trainings(recipe, model)
        if model.name.startswith("DRBM-MP"):
            assert ways == {"multi_prediction"}
        else:
            assert "multi_prediction" not in ways, f"{model.name} needs a 'training'"


@every_recipe
def test_the_steps_of_training_belong_to_a_named_training(path):
    """Ten steps mean one thing for contrastive divergence and another for multi-prediction."""
    recipe = read_recipe(path)
    for model in recipe.models:
        varied = {*model.fixed, *recipe.vary, *itertools.chain(*model.search)}
        if model.estimator == "DiscriminativeRBM" and "training_steps" in varied:
            assert "training" in varied


def test_the_settings_of_the_paper_come_before_those_of_the_recipe():
    text = OURS.replace("settings", "paper = true\nsettings")
    model = parse_recipe(text).models[0]
    assert model.fixed == {**paper_options("MLPTagger"), "n_hidden": 7}
    assert arms(parse_recipe(text))[0].fixed == model.fixed
    with pytest.raises(DataError, match="one that the paper trains"):
        parse_recipe(text.replace("MLPTagger", "ChainTagger").replace("n_hidden = 7", ""))


def varying(line):
    """The arms of a recipe with two datasets, of which only emotify has triples and sound."""
    tables = f'datasets = ["emotify", "cal500"]\n[vary]\n{line}'
    return arms(parse_recipe(RECIPE.replace("n_folds = 3", tables)))


def test_a_skipped_dataset_has_no_arm():
    skipping = RECIPE.replace('name = "LOG"', 'name = "LOG"\nskip = ["toy"]')
    assert [arm.label for arm in arms(parse_recipe(skipping))] == ["toy, fixed"]


def test_only_triples_are_smoothed():
    smoothed = [arm for arm in varying("smoothing = [false, true]") if arm.smoothing]
    assert {arm.dataset.label for arm in smoothed} == {"emotify"}


SMOOTHED = """
smoothing = [false, "doubly"]

[[smoothing]]
name = "doubly"
settings = { n_hidden = 20 }
search = [{ auxiliary = [["user"], ["clip"], []] }, { target = ["new_user", "any_user"] }]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "doubly"', 'name = "dubly"', "Did you mean 'dubly'?"),
        ('name = "doubly"', 'name = "raw"', "The smoothing name 'raw' occurs more than once"),
        ('[false, "doubly"]', "[false, true]", "[[smoothing]] 'doubly' is not used"),
        ('"doubly"\nset', '"doubly"\nsetings = {}\nset', "Did you mean 'settings'?"),
        ("{ n_hidden", "{ n_hiden", "settings of smoothing 'doubly': TagSmoother has no setting"),
        ("{ target", "{ tarjet", "Did you mean 'target'?"),
    ],
)
def test_a_way_to_smooth_that_is_wrong(old, new, message):
    assert old in SMOOTHED
    with pytest.raises(DataError, match=re.escape(message)):
        varying(SMOOTHED.replace(old, new))


def test_the_search_of_a_smoothing_comes_before_that_of_the_model():
    """The classifier chooses the smoothing; raw tags are searched as if there were none."""
    tables = f'datasets = ["emotify"]\n[vary]\n{SMOOTHED}'
    recipe = parse_recipe(RECIPE.replace("n_folds = 3", tables))
    raw, smoothed = [arm for arm in arms(recipe) if arm.model.name == "LOG"][:2]
    assert (raw.smoothing, smoothed.smoothing.name) == (None, "doubly")
    assert raw.search == [*raw.model.search]

    def valid_auc(run):
        scores = {"user": 0.1, "clip": 0.3}
        score = sum(scores.get(part, 0) for part in run.smoothing.get("auxiliary", ()))
        score += 0.2 * (run.smoothing.get("target") == "any_user")
        return score + 0.01 * (run.settings.get("C") == 1.0)

    results = {}
    tried = []
    while runs := fold_state(recipe, smoothed, 0, results).missing:
        tried.append([(run.smoothing, run.settings) for run in runs])
        results |= {run.key: result(valid_auc(run)) for run in runs}
    auxiliary = [["user"], ["clip"], []]
    assert [smoothing["auxiliary"] for smoothing, _ in tried[0]] == auxiliary
    assert {smoothing["n_hidden"] for smoothing, _ in tried[0]} == {20}
    assert {"C" in settings for _, settings in tried[0]} == {False}
    chosen = {"n_hidden": 20, "auxiliary": ["clip"], "target": "any_user"}
    assert all(smoothing == chosen for smoothing, _ in tried[2])
    assert [settings["C"] for _, settings in tried[2]] == [0.01, 0.1, 1.0, 10.0]
    final = fold_state(recipe, smoothed, 0, results)
    assert final.settings["smoothing.target"] == "any_user"
    assert final.settings["C"] == 1.0
    assert len(final.done) <= most_runs(recipe, smoothed)


def test_only_features_of_sound_have_groups():
    rhythm = [arm for arm in varying('features = ["all", "rhythm"]') if arm.features == "rhythm"]
    assert {arm.dataset.label for arm in rhythm} == {"emotify"}


def test_a_small_dataset_has_no_large_part():
    curve = varying("clips = [100, 100000, 0]")
    assert {arm.clips for arm in curve if arm.dataset.label == "emotify"} == {0, 100}


def result(valid_auc, test_auc=0.5):
    return {"valid_auc": valid_auc, "tests": [{"auc": [test_auc]}]}


def test_a_search_stage_by_stage_until_the_final_runs():
    recipe = parse_recipe(RECIPE)
    arm = arms(recipe)[0]
    results = {}
    first = fold_state(recipe, arm, 0, results)
    assert [run.settings for run in first.missing] == [{"C": c} for c in (0.01, 0.1, 1.0, 10.0)]
    assert {run.valid_fold for run in first.missing} == {1}
    half = fold_state(recipe, arm, 0, {first.missing[0].key: result(0.9)})
    assert (half.settings, half.final, half.missing) == (None, [], first.missing[1:])
    for run in first.missing:
        results[run.key] = result({0.01: 0.5, 0.1: 0.6, 1.0: 0.8, 10.0: 0.7}[run.settings["C"]])
    second = fold_state(recipe, arm, 0, results)
    tried = [{"C": 1.0, "fit_intercept": value} for value in (True, False)]
    assert [run.settings for run in second.missing] == tried
    for run in second.missing:
        results[run.key] = result(0.9 if run.settings["fit_intercept"] else 0.95)
    final = fold_state(recipe, arm, 0, results)
    assert final.settings == {"C": 1.0, "fit_intercept": False}
    assert [run.valid_fold for run in final.final] == [1, 2]
    assert [run.valid_fold for run in final.missing] == [2]  # the other was part of the search
    results[final.missing[0].key] = result(0.1)
    assert fold_state(recipe, arm, 0, results).missing == []


def test_no_test_fold_has_a_part_in_the_choice():
    recipe = parse_recipe(RECIPE)
    arm = arms(recipe)[0]

    def chosen(test_auc):
        results = {}
        while runs := fold_state(recipe, arm, 0, results).missing:
            for run in runs:
                results[run.key] = result(-run.settings["C"], test_auc(run.settings["C"]))
        return fold_state(recipe, arm, 0, results).settings

    assert chosen(lambda C: C) == chosen(lambda C: -C)


def test_the_search_uses_every_validation_fold_by_default():
    recipe = parse_recipe(RECIPE.replace("search_folds = 1", ""))
    state = fold_state(recipe, arms(recipe)[0], 0, {})
    tried = [(run.settings["C"], run.valid_fold) for run in state.missing]
    assert tried == [(c, fold) for c in (0.01, 0.1, 1.0, 10.0) for fold in (1, 2)]


def test_a_cross_fitted_setting_has_one_run_per_test_fold():
    recipe = parse_recipe(RECIPE.replace("n_folds = 3", "n_folds = 3\ncross_fit = true"))
    searched, fixed = arms(recipe)
    results = {}
    while runs := missing(recipe, results):
        assert {run.valid_fold for run in runs} == {None}
        results |= {run.key: result(run.settings["C"]) for run in runs}
    of_fold = fold_state(recipe, searched, 0, results)
    assert [run.settings for run in of_fold.final] == [{"C": 10.0, "fit_intercept": True}]
    assert len(of_fold.done) == 4 + 2
    assert len(results) == 3 * (4 + 2) + 3
    assert [most_runs(recipe, arm) for arm in (searched, fixed)] == [3 * (4 + 2), 3]


def test_missing_gives_each_run_once_until_none_is_left():
    recipe = parse_recipe(RECIPE)
    rng = np.random.default_rng(0)
    results = {}
    while runs := missing(recipe, results):
        keys = [run.key for run in runs]
        assert len(set(keys)) == len(keys)
        # any order, any number at a time
        for i in rng.permutation(len(runs))[: rng.integers(1, 5)]:
            assert runs[i].key not in results
            results[runs[i].key] = result(rng.random())
    assert sum(state.finished for _, state in fold_states(recipe, results)) == 2 * 3
    assert len(results) <= sum(most_runs(recipe, arm) for arm in arms(recipe))
    # of each of three test folds: 4 + 2 in the search, 1 more validation fold; and 2 of "fixed"
    assert len(results) == 3 * (4 + 2 + 1) + 3 * 2


def test_the_key_is_of_what_the_result_depends_on(monkeypatch):
    def keys(old="", new=""):
        return {run.key for run in missing(parse_recipe(RECIPE.replace(old, new)), {})}

    def with_line(line):
        return keys("n_folds = 3", f"n_folds = 3\n{line}")

    usual = keys()
    assert usual == keys('"toy"', '"other"') == keys('"LOG"', '"LR"')
    assert usual == with_line("search_known = [0.0]") == with_line("cross_fit = false")
    assert not usual & with_line("seed = 1")
    assert not usual & with_line('search_known = [0.0, "one"]')
    monkeypatch.setattr(plan, "MEANING", 2)
    assert "0c556d02a36020e8960c" in keys()  # as before recipes could be cross-fitted


# Results in files.

RUNS = missing(parse_recipe(RECIPE), {})


def add(store, run):
    store.add(run, {"valid_auc": 0.5, "tests": []}, {"seconds": 1.0})


def store_of(folder, runs):
    with open_results(folder, RECIPE) as store:
        for run in runs:
            add(store, run)
    return folder


def test_a_line_cut_anywhere_costs_that_run_only(tmp_path):
    path = store_of(tmp_path, RUNS[:3]) / "results.jsonl"
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for end in range(last, len(whole), 7):
        path.write_bytes(whole[:end])
        assert list(read_results(tmp_path)[1]) == [run.key for run in RUNS[:2]]
        with open_results(tmp_path, RECIPE) as store:
            assert path.read_bytes() == whole[:last]
            add(store, RUNS[2])
        assert path.read_bytes() == whole


def test_a_line_of_nonsense_is_named(tmp_path):
    path = store_of(tmp_path, RUNS[:1]) / "results.jsonl"
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(DataError, match=r"results\.jsonl, line 1, is not a result"):
        read_results(tmp_path)


def test_a_finished_file_does_not_depend_on_the_order(tmp_path):
    for name, runs in (("a", RUNS[:4]), ("b", RUNS[3::-1])):
        with open_results(tmp_path / name, RECIPE) as store:
            for run in runs:
                add(store, run)
            store.finish()
    a, b = ((tmp_path / name / "results.jsonl").read_bytes() for name in "ab")
    assert a == b
    assert len(a.splitlines()) == 4


def test_two_processes_do_not_write_at_once(tmp_path):
    with (
        open_results(tmp_path, RECIPE),
        pytest.raises(DataError, match="Another process is writing"),
    ):
        open_results(tmp_path, RECIPE).__enter__()


def test_results_are_strict_json(tmp_path):
    with open_results(tmp_path, RECIPE) as store, pytest.raises(ValueError, match="JSON"):
        store.add(RUNS[0], {"valid_auc": float("nan")}, {})
