import re

import pytest
from places import PROJECT
from toy_data import RECIPE

from harmonium.errors import DataError
from harmonium.experiments.plan import arms
from harmonium.experiments.recipe import parse_recipe, read_recipe

RECIPES = PROJECT / "recipes"


def test_a_recipe_says_what_it_says():
    recipe = parse_recipe(RECIPE)
    assert recipe.title == "Toy"
    assert recipe.n_folds == 3
    assert recipe.datasets[0].label == "toy"
    assert recipe.models[0].search == (
        {"C": (0.01, 0.1, 1.0, 10.0)},
        {"fit_intercept": (True, False)},
    )
    assert recipe.models[1].settings == {"C": 0.5}
    assert [arm.label for arm in arms(recipe)] == ["toy, LOG", "toy, fixed"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "tittle =", "'tittle' is not a key of a recipe. Did you mean 'title'?"),
        ('"comparison"', '"comparsion"', "Did you mean 'comparison'?"),
        ("[[dataset]]", "[[datasett]]", "Did you mean 'dataset'?"),
        ('groups = "item"', 'group = "item"', "a key of [[dataset]]. Did you mean 'groups'?"),
        ('groups = "item"', 'groups = "album"', "'album' is not groups"),
        ("estimator =", "estimater =", "Did you mean 'estimator'?"),
        ("sklearn.LogisticRegression", "LogisticTager", "Did you mean 'LogisticTagger'?"),
        ("{ C = 0.5 }", "{ fit_intercep = true }", "Did you mean 'fit_intercept'?"),
        ("C = [0.01, 0.1, 1.0, 10.0]", "CC = [1]", "search of model 'LOG'"),
        ("C = [0.01, 0.1, 1.0, 10.0]", "C = 1.0", "'C' must be a list of values"),
        ("n_folds = 3", "n_folds = 2", "at least 3. Got 2"),
        ("search_folds = 1", "search_folds = 3", "at most 2"),
        ('name = "fixed"', 'name = "LOG"', "model name 'LOG' occurs more than once"),
        ("form =", "form", "This is not TOML"),
        ("n_folds = 3", 'datasets = ["emotfy"]', "Did you mean 'emotify'?"),
        ("n_folds = 3", "[vary]\nsmoothing = [1]", "true and false. Got 1"),
        ("n_folds = 3", "[vary]\nunsure = [1.5]", '"unknown" or probabilities between 0 and 1'),
        ("n_folds = 3", "[vary]\nclips = [-1]", "whole number, at least 0. Got -1"),
        ("n_folds = 3", '[vary]\nfeatures = ["timber"]', "Did you mean 'timbre'?"),
        ("n_folds = 3", "[vary]\ndampin = [0.5]", "[vary]: sklearn.LogisticRegression has no"),
        ("n_folds = 3", "[tests]\nknown = [1.0]", "'one'. Got 1.0"),
        ("n_folds = 3", "n_folds = 3\nsearch_known = ['on']", "'search_known' must be shares"),
        ("n_folds = 3", '[tests]\ninference = ["lpb"]', "Did you mean 'lbp'?"),
    ],
)
def test_what_is_not_known_is_an_error_that_names_the_nearest(old, new, message):
    assert old in RECIPE
    with pytest.raises(DataError, match=re.escape(message)):
        parse_recipe(RECIPE.replace(old, new, 1))


def test_a_recipe_without_a_dataset_or_a_file(tmp_path):
    lines = [line for line in RECIPE.splitlines() if line]
    start = lines.index("[[dataset]]")
    with pytest.raises(DataError, match="A recipe needs a dataset"):
        parse_recipe("\n".join(lines[:start] + lines[start + 4 :]))
    with pytest.raises(DataError, match="There is no recipe"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"bad.toml.*cannot be read"):
        read_recipe(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    "path", sorted(RECIPES.rglob("*.toml")), ids=lambda path: str(path.relative_to(RECIPES))
)
def test_every_recipe_is_valid_and_has_arms(path):
    assert arms(read_recipe(path))


def test_every_experiment_has_a_small_version():
    large = {path.name for path in RECIPES.glob("*.toml")} - {"models.toml"}
    assert large == {path.name for path in (RECIPES / "small").glob("*.toml")}


def test_arms_that_cannot_be_are_left_out():
    text = RECIPE.replace("n_folds = 3", 'datasets = ["emotify", "cal500"]\n[vary]\nXX')
    smoothed = arms(parse_recipe(text.replace("XX", "smoothing = [false, true]")))
    assert {arm.dataset.label for arm in smoothed if arm.smoothing} == {"emotify"}
    grouped = arms(parse_recipe(text.replace("XX", 'features = ["all", "rhythm"]')))
    assert {arm.dataset.label for arm in grouped if arm.features == "rhythm"} == {"emotify"}
    curve = arms(parse_recipe(text.replace("XX", "clips = [100, 100000, 0]")))
    assert {arm.clips for arm in curve if arm.dataset.label == "emotify"} == {0, 100}
