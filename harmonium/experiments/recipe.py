"""A recipe: what an experiment compares, on which data, and how hard it searches. TOML, checked.

A recipe names datasets and models; ``vary`` makes an arm of each combination of its values; a
model's ``search`` lists grids that are searched one after the other. See docs/experiments.md.
"""

import inspect
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from harmonium.errors import DataError, did_you_mean
from harmonium.experiments.datasets import CATALOGUE, GROUPS, UNKNOWN, DatasetSpec

FORMS = (
    *("comparison", "damping", "approximations", "search"),
    *("completion", "learning-curve", "feature-groups"),
)
"""How the report shows the results."""

ONE = "one"
"""One true tag of the clip is known, and no other."""

Known = float | str
"""How much of a clip's tags a model is given: a share of those that are known, or `ONE`."""


SKLEARN = "sklearn."
MODELS = {
    **dict.fromkeys(
        (
            *("DiscriminativeRBM", "GenerativeRBM", "MLPTagger", "LogisticTagger", "SVMTagger"),
            *("ChainTagger", "CooccurrenceTagger", "NaiveBayesTagger"),
        ),
        "harmonium.estimators",
    ),
    f"{SKLEARN}MLPClassifier": "sklearn.neural_network",
    f"{SKLEARN}LogisticRegression": "sklearn.linear_model",
    f"{SKLEARN}ExtraTreesClassifier": "sklearn.ensemble",
    f"{SKLEARN}HistGradientBoostingClassifier": "sklearn.ensemble",
}
"""Name -> the module of its class. Estimators of Harmonium take unknown and soft labels."""

ARM_AXES: dict[str, tuple[Any, ...]] = {
    "smoothing": (False,),
    "clips": (0,),
    "features": ("all",),
    "unsure": (UNKNOWN,),
}
"""What may vary besides settings, with its default: whether to train on smoothed tags, on how many
clips (0 is all) and on which features; and what a tag counts for that some people gave, but too
few: "unknown", or the probability that it applies."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model, and the settings that are fixed or searched."""

    name: str  # in tables and figures
    estimator: str  # one of `MODELS`
    settings: dict[str, Any] = field(default_factory=dict)
    search: tuple[dict[str, tuple[Any, ...]], ...] = ()  # each around what the one before found
    skip: tuple[str, ...] = ()  # datasets that it takes too long for
    refit: bool = False  # cross-fitted, but tested as one model of all training clips


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment."""

    title: str
    form: str
    datasets: tuple[DatasetSpec, ...]
    models: tuple[ModelSpec, ...]
    vary: dict[str, tuple[Any, ...]]  # settings and all `ARM_AXES`; each combination is an arm
    inference: tuple[str, ...] = ()  # ways to predict in the tests; by default the model's own
    known: tuple[Known, ...] = (0.0,)  # how much of a clip's tags is given in the tests
    n_folds: int = 5
    search_folds: int = 4  # validation folds that the search uses; the final runs use all
    search_known: tuple[Known, ...] = (0.0,)  # what the search gives; the mean over these chooses
    cross_fit: bool = False  # a model is the mean of members, each stopped on another fold
    seed: int = 0
    note: str = ""  # said in the report


def read_recipe(path: str | Path, *, trusted: bool = False) -> Recipe:
    """The recipe in a TOML file; ``trusted`` as for `parse_recipe`."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(
            f"There is no recipe '{path}'. 'harmonium experiment list' shows all."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' cannot be read as a recipe: {error}.") from None
    try:
        return parse_recipe(text, trusted=trusted)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def parse_recipe(text: str, *, trusted: bool = False) -> Recipe:
    """A recipe from TOML, or a DataError that names the key and the nearest known one.

    A ``trusted`` recipe's settings were checked before: the check imports the estimators, and JAX.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"This is not TOML: {error}.") from None
    own = {"title", "form", "seed", "n_folds", "search_folds", "search_known", "cross_fit", "note"}
    tables = {"datasets", "dataset", "model", "vary", "tests"}
    _check(table, own | tables, where="a recipe", needed=("title", "form", "model"))
    tests = table.get("tests", {})
    _check(tests, ("inference", "known"), where="[tests]")
    n_folds = table.get("n_folds", 5)
    recipe = Recipe(
        **{"search_folds": n_folds - 1, **_with_tuples(table, own), **_with_tuples(tests)},
        datasets=_datasets(table),
        models=tuple(_model(entry) for entry in table["model"]),
        vary=_vary(table.get("vary", {})),
    )
    if recipe.search_folds >= n_folds:
        raise DataError(f"'search_folds' must be at most {n_folds - 1}, one less than 'n_folds'.")
    if recipe.cross_fit and recipe.search_known != (0.0,):
        raise DataError("'search_known' must be [0.0] with 'cross_fit'.")
    labels = [spec.label for spec in recipe.datasets]
    _check_distinct("dataset label", labels)
    _check_distinct("model name", [spec.name for spec in recipe.models])
    for model in () if trusted else recipe.models:
        for label in model.skip:
            _check_choice("a dataset of the recipe", label, labels)
        varied = [key for key in recipe.vary if key not in ARM_AXES]
        _check_settings(model, model.settings, where=f"settings of model '{model.name}'")
        _check_settings(model, chain(*model.search), where=f"search of model '{model.name}'")
        _check_settings(model, varied, where="[vary]")
    return recipe


def model_class(estimator: str) -> Callable[..., Any]:
    """The class of one of `MODELS`, imported only now: JAX takes a second."""
    return getattr(import_module(MODELS[estimator]), estimator.removeprefix(SKLEARN))


def _check_settings(model: ModelSpec, settings: Iterable[str], *, where: str) -> None:
    for key in settings:
        known = sorted(inspect.signature(model_class(model.estimator)).parameters)
        if key not in known:
            raise DataError(
                f"{where}: {model.estimator} has no setting '{key}'.{did_you_mean(key, known)} "
                f"It has {', '.join(known)}."
            )


def _datasets(table: dict[str, Any]) -> tuple[DatasetSpec, ...]:
    """Those of the catalogue that are named, and those that the recipe describes itself."""
    found = []
    for name in table.get("datasets", []):
        _check_choice("a dataset of the catalogue", name, CATALOGUE)
        found.append(CATALOGUE[name])
    for entry in table.get("dataset", []):
        _check(entry, _names(DatasetSpec), where="[[dataset]]", needed=("name",))
        found.append(DatasetSpec(**{"label": entry["name"], **entry}))
    if not found:
        raise DataError("A recipe needs a dataset: datasets = [...], or a table [[dataset]].")
    return tuple(found)


def _model(entry: dict[str, Any]) -> ModelSpec:
    _check(entry, _names(ModelSpec), where="[[model]]", needed=("name", "estimator"))
    stages = entry.get("search", [])
    stages = [stages] if isinstance(stages, dict) else stages
    for stage in stages:
        _check_lists(stage)
    return ModelSpec(**entry | {"search": tuple(_with_tuples(stage) for stage in stages)})


def _vary(table: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    settings = {key: values for key, values in table.items() if key not in ARM_AXES}
    own = {key: values for key, values in table.items() if key in ARM_AXES}
    _check_lists(settings)
    _check(own, ARM_AXES, where="[vary]")
    return _with_tuples(settings) | ARM_AXES | _with_tuples(own)


# What each key may hold

Rule = tuple[Callable[[Any], bool], str]
"""What holds for a value, and how that is said."""


def _whole(least: int) -> Rule:
    return lambda value: type(value) is int and value >= least, f"a whole number, at least {least}"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_table, value))


def _is_unsure(value: Any) -> bool:
    return value == UNKNOWN or (isinstance(value, float) and 0 < value < 1)


def _is_known(value: Any) -> bool:
    return value == ONE or (isinstance(value, int | float) and 0 <= value < 1)


_RULES: dict[str, Rule] = {
    key: rule
    for keys, rule in (
        ("n_folds", _whole(3)),
        ("search_folds n_tags min_positives", _whole(1)),
        ("seed clips", _whole(0)),
        ("title note name label", (lambda value: isinstance(value, str), "text")),
        ("settings options vary tests", (_is_table, "a table")),
        ("dataset model", (lambda value: bool(value) and _are_tables(value), "[[...]] tables")),
        ("search", (lambda v: _is_table(v) or _are_tables(v), "a table or a list of tables")),
        ("datasets skip", (lambda value: isinstance(value, list), "a list of names")),
        ("cross_fit refit smoothing", (lambda value: isinstance(value, bool), "true or false")),
        ("unsure", (_is_unsure, f'"{UNKNOWN}" or probabilities between 0 and 1')),
        ("known search_known", (_is_known, f"shares from 0 to below 1, or '{ONE}'")),
    )
    for key in keys.split()
}
_CHOICES: dict[str, Collection[str]] = {
    "form": FORMS,
    "groups": GROUPS,
    "estimator": MODELS,
    "features": ("all", "timbre", "rhythm"),
    "inference": ("lbp", "mean_field", "gibbs", "exact"),
}
_LISTS = {*ARM_AXES, "known", "search_known", "inference"}
"""Keys with a list of values, each of which follows the rule or is one of the choices."""


def _check(
    table: Mapping[str, Any], known: Collection[str], *, where: str, needed: Collection[str] = ()
) -> None:
    """Every key is known, every needed one is there, and every value follows its rule."""
    for key in table:
        _check_choice(f"a key of {where}", key, known)
    for key in needed:
        if key not in table:
            raise DataError(f"{where} needs the key '{key}'.")
    for key, value in table.items():
        if key in _LISTS:
            _check_lists({key: value})
        for each in value if key in _LISTS else [value]:
            if key in _CHOICES:
                _check_choice(key, each, _CHOICES[key])
            elif not _RULES[key][0](each):
                raise DataError(f"'{key}' must be {_RULES[key][1]}. Got {each!r}.")


def _check_lists(table: Mapping[str, Any]) -> None:
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise DataError(f"'{key}' must be a list of values to try, such as [0.01, 0.1].")


def _check_choice(what: str, value: Any, known: Collection[str]) -> None:
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(str(value), known)
        raise DataError(f"{value!r} is not {what}.{hint} Known are {', '.join(sorted(known))}.")


def _check_distinct(what: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise DataError(f"The {what} {value!r} occurs more than once. Give each its own.")


def _names(record: Any) -> list[str]:
    return [one.name for one in fields(record)]


def _with_tuples(table: Mapping[str, Any], keys: Collection[str] | None = None) -> dict[str, Any]:
    """Some of the values, or all, with tuples for lists."""
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
        if keys is None or key in keys
    }
