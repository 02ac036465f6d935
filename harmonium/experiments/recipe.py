"""A recipe: what an experiment compares, on which data, and how hard it searches. TOML, checked.

A recipe names datasets and models; ``vary`` makes an arm of each combination of its values; a
model's ``search`` lists grids that are searched one after the other. See docs/experiments.md.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harmonium.errors import DataError, did_you_mean
from harmonium.experiments.datasets import CATALOGUE, GROUPS, UNKNOWN, DatasetSpec
from harmonium.experiments.models import MODELS, check_settings

FORMS = (
    "comparison",
    "damping",
    "approximations",
    "search",
    "completion",
    "learning-curve",
    "feature-groups",
)
"""How the report shows the results."""

ONE = "one"
"""One tag that holds for the clip is told, and no other."""

Known = float | str
"""What a model is told of a clip's tags: a share of those that are known, or `ONE`."""

_CHOICES = {
    "features": ("all", "timbre", "rhythm"),
    "inference": ("lbp", "mean_field", "gibbs", "exact"),
}
_RULES = {
    "smoothing": (lambda value: isinstance(value, bool), "a list of true and false"),
    "clips": (lambda value: isinstance(value, int) and value >= 0, "a list of whole numbers"),
    "unsure": (
        lambda value: value == UNKNOWN or (isinstance(value, float) and 0 < value < 1),
        f'"{UNKNOWN}" or probabilities between 0 and 1',
    ),
} | dict.fromkeys(
    ("known", "search_known"),
    (
        lambda value: value == ONE or (isinstance(value, int | float) and 0 <= value < 1),
        f"shares from 0 to below 1, or '{ONE}'",
    ),
)
"""Key of a list -> what holds for each of its values, and how that is said."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model, and the settings that are fixed or searched."""

    name: str
    """In tables and figures."""
    estimator: str
    """One of `harmonium.experiments.models.MODELS`."""
    settings: dict[str, Any] = field(default_factory=dict)
    search: tuple[dict[str, tuple[Any, ...]], ...] = ()
    """Grids, each searched around what the one before found."""


@dataclass(frozen=True, kw_only=True)
class Variations:
    """Every combination of these is an arm of its own."""

    settings: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    smoothing: tuple[bool, ...] = (False,)
    """Train on smoothed tags; needs a dataset with triples."""
    clips: tuple[int, ...] = (0,)
    """Train on so many clips; 0 is all of them."""
    features: tuple[str, ...] = ("all",)
    unsure: tuple[float | str, ...] = (UNKNOWN,)
    """What a tag counts for in training that some people gave, but too few: "unknown", or the
    probability that it applies."""

    NAMES: ClassVar[tuple[str, ...]] = ("smoothing", "clips", "features", "unsure")


@dataclass(frozen=True, kw_only=True)
class Tests:
    """What each trained model is tested with."""

    inference: tuple[str, ...] = ()
    """Ways to predict; by default the model's own."""
    known: tuple[Known, ...] = (0.0,)
    """What the model is told of a clip's tags before it predicts the others."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment."""

    title: str
    form: str
    datasets: tuple[DatasetSpec, ...]
    models: tuple[ModelSpec, ...]
    vary: Variations = Variations()
    tests: Tests = Tests()
    n_folds: int = 5
    search_folds: int = 4
    """Validation folds that the search uses for each test fold; the final runs use all."""
    search_known: tuple[Known, ...] = (0.0,)
    """What the model is told where the search judges it; the mean over these chooses."""
    seed: int = 0
    note: str = ""
    """Said in the report."""


def read_recipe(path: str | Path, *, trusted: bool = False) -> Recipe:
    """The recipe in a TOML file; ``trusted`` as for `parse_recipe`."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(
            f"There is no recipe '{path}'. 'harmonium experiment list' shows those there are."
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
    _check_keys(
        table,
        {"title", "form", "seed", "n_folds", "search_folds", "search_known", "note"}
        | {"datasets", "dataset", "model", "vary", "tests"},
        where="a recipe",
        needed=("title", "form", "model"),
    )
    _check_choice("form", table["form"], FORMS)
    n_folds = _whole(table, "n_folds", 5, least=3)
    recipe = Recipe(
        title=_text(table, "title"),
        form=table["form"],
        datasets=_datasets(table),
        models=tuple(_model(entry) for entry in _tables(table, "model")),
        vary=_vary(_table(table, "vary")),
        tests=_tests(_table(table, "tests")),
        n_folds=n_folds,
        search_folds=_whole(table, "search_folds", n_folds - 1, least=1, most=n_folds - 1),
        seed=_whole(table, "seed", 0, least=0),
        **_checked_lists({key: table[key] for key in ("search_known",) if key in table}),
        note=_text(table, "note", ""),
    )
    _check_distinct("dataset label", [spec.label for spec in recipe.datasets])
    _check_distinct("model name", [spec.name for spec in recipe.models])
    if not trusted:
        _check_settings(recipe)
    return recipe


def _check_settings(recipe: Recipe) -> None:
    """Every setting that the recipe names is one of the estimator."""
    for model in recipe.models:
        where = f"of model '{model.name}'"
        check_settings(model.estimator, model.settings, where=f"settings {where}")
        for stage in model.search:
            check_settings(model.estimator, stage, where=f"search {where}")
        check_settings(model.estimator, recipe.vary.settings, where="[vary]")


def _datasets(table: dict[str, Any]) -> tuple[DatasetSpec, ...]:
    """Those of the catalogue that are named, and those that the recipe describes itself."""
    named = table.get("datasets", [])
    if not isinstance(named, list):
        raise DataError(f"'datasets' must be a list of names, got {named!r}.")
    for name in named:
        _check_choice("a dataset of the catalogue", name, CATALOGUE)
    described = _tables(table, "dataset") if "dataset" in table else []
    found = (*(CATALOGUE[name] for name in named), *(_dataset(entry) for entry in described))
    if not found:
        raise DataError("A recipe needs a dataset: datasets = [...], or a table [[dataset]].")
    return found


def _dataset(table: dict[str, Any]) -> DatasetSpec:
    _check_keys(table, DatasetSpec.__dataclass_fields__, where="[[dataset]]", needed=("name",))
    groups = table.get("groups", "artist")
    _check_choice("groups", groups, GROUPS)
    name = _text(table, "name")
    return DatasetSpec(
        name=name,
        label=_text(table, "label", name),
        n_tags=_whole(table, "n_tags", None, least=1),
        min_positives=_whole(table, "min_positives", 5, least=1),
        groups=groups,
        options=_table(table, "options"),
    )


def _model(table: dict[str, Any]) -> ModelSpec:
    needed = ("name", "estimator")
    _check_keys(table, ModelSpec.__dataclass_fields__, where="[[model]]", needed=needed)
    _check_choice("estimator", table["estimator"], MODELS)
    stages = table.get("search", [])
    stages = [stages] if isinstance(stages, dict) else stages
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        raise DataError(f"'search' must be a table or a list of tables, got {stages!r}.")
    return ModelSpec(
        name=_text(table, "name"),
        estimator=table["estimator"],
        settings=_table(table, "settings"),
        search=tuple(_lists(stage) for stage in stages),
    )


def _vary(table: dict[str, Any]) -> Variations:
    own = {key: values for key, values in table.items() if key in Variations.NAMES}
    settings = {key: values for key, values in table.items() if key not in own}
    return Variations(settings=_lists(settings), **_checked_lists(own))


def _tests(table: dict[str, Any]) -> Tests:
    _check_keys(table, Tests.__dataclass_fields__, where="[tests]")
    return Tests(**_checked_lists(table))


def _lists(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise DataError(f"'{key}' must be a list of values to try, such as [0.01, 0.1].")
    return {key: tuple(values) for key, values in table.items()}


def _checked_lists(table: Mapping[str, Any]) -> dict[str, Any]:
    """Lists that are not of a model's settings: what their values may be is known here."""
    found = _lists(table)
    for key, value in ((key, value) for key, values in found.items() for value in values):
        if key in _CHOICES:
            _check_choice(key, value, _CHOICES[key])
            continue
        holds, rule = _RULES[key]
        if not holds(value):
            raise DataError(f"'{key}' must be {rule}, got {value!r}.")
    return found


def _check_keys(
    table: Mapping[str, Any], known: Collection[str], *, where: str, needed: Collection[str] = ()
) -> None:
    for key in table:
        _check_choice(f"a key of {where}", key, known)
    for key in needed:
        if key not in table:
            raise DataError(f"{where} needs the key '{key}'.")


def _check_choice(what: str, value: Any, known: Collection[str]) -> None:
    if isinstance(value, str) and value in known:
        return
    hint = did_you_mean(str(value), known)
    raise DataError(f"{value!r} is not {what}.{hint} Known are {', '.join(sorted(known))}.")


def _check_distinct(what: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise DataError(f"The {what} {value!r} occurs more than once. Give each its own.")


def _tables(table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = table[key]
    are_tables = isinstance(entries, list) and all(isinstance(e, dict) for e in entries)
    if not are_tables or not entries:
        raise DataError(f"'{key}' must be tables: write [[{key}]] above each.")
    return entries


def _table(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise DataError(f"'{key}' must be a table, got {value!r}.")
    return dict(value)


def _text(table: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise DataError(f"'{key}' must be text, got {value!r}.")
    return value


def _whole(
    table: Mapping[str, Any], key: str, default: Any, *, least: int, most: float = float("inf")
) -> Any:
    value = table.get(key, default)
    if value is default:
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limits = f"at least {least}" if most == float("inf") else f"from {least} to {most}"
        raise DataError(f"'{key}' must be a whole number, {limits}. Got {value!r}.")
    return value
