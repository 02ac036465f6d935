import numpy as np
from toy_data import RECIPE

from harmonium.experiments.plan import arms, fold_state, fold_states, missing, most_runs
from harmonium.experiments.recipe import parse_recipe


def result(valid_auc, test_auc=0.5):
    return {"valid_auc": valid_auc, "tests": [{"auc": [test_auc]}]}


def test_the_search_comes_first_and_the_final_runs_use_every_validation_fold():
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
    assert [run.settings for run in second.missing] == [
        {"C": 1.0, "fit_intercept": value} for value in (True, False)
    ]
    for run in second.missing:
        results[run.key] = result(0.9 if run.settings["fit_intercept"] else 0.95)
    final = fold_state(recipe, arm, 0, results)
    assert final.settings == {"C": 1.0, "fit_intercept": False}
    assert [run.valid_fold for run in final.final] == [1, 2]
    assert [run.valid_fold for run in final.missing] == [2]  # the other was part of the search
    results[final.missing[0].key] = result(0.1)
    assert fold_state(recipe, arm, 0, results).missing == []


def test_the_test_fold_has_no_part_in_the_choice():
    recipe = parse_recipe(RECIPE)
    arm = arms(recipe)[0]

    def chosen(test_auc):
        results = {}
        while runs := fold_state(recipe, arm, 0, results).missing:
            for run in runs:
                results[run.key] = result(-run.settings["C"], test_auc(run.settings["C"]))
        return fold_state(recipe, arm, 0, results).settings

    assert chosen(lambda C: C) == chosen(lambda C: -C)


def test_the_search_uses_every_validation_fold_unless_told_otherwise():
    recipe = parse_recipe(RECIPE.replace("search_folds = 1", ""))
    state = fold_state(recipe, arms(recipe)[0], 0, {})
    tried = [(run.settings["C"], run.valid_fold) for run in state.missing]
    assert tried == [(c, fold) for c in (0.01, 0.1, 1.0, 10.0) for fold in (1, 2)]


def test_missing_gives_each_run_once_and_ends():
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


def test_the_key_is_of_what_the_result_depends_on():
    def keys(old="", new=""):
        return {run.key for run in missing(parse_recipe(RECIPE.replace(old, new)), {})}

    def with_line(line):
        return keys("n_folds = 3", f"n_folds = 3\n{line}")

    usual = keys()
    assert usual == keys('"toy"', '"other"') == keys('"LOG"', '"LR"')
    assert usual == with_line("search_known = [0.0]")
    assert not usual & with_line("seed = 1")
    assert not usual & with_line('search_known = [0.0, "one"]')
