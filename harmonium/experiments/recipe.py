"""A recipe: what an experiment compares, on which data, and how hard it searches. TOML, checked.

A recipe names datasets and models; ``vary`` makes an arm of each combination of its values; a
model's ``search`` lists grids that are searched one after the other. See docs/experiments.md.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harmonium.errors import DataError
from harmonium.experiments.datasets import CATALOGUE, GROUPS, DatasetSpec
from harmonium.experiments.models import MODELS, check_settings
from harmonium.nearest_names import did_you_mean

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

FEATURE_GROUPS = ("all", "timbre", "rhythm")


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

    NAMES: ClassVar[tuple[str, ...]] = ("smoothing", "clips", "features")


@dataclass(frozen=True, kw_only=True)
class Tests:
    """What each trained model is tested with."""

    inference: tuple[str, ...] = ()
    """Ways to predict; by default the model's own."""
    known: tuple[float, ...] = (0.0,)
    """Shares of the tags that the model is told before it predicts the others."""


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
    search_folds: int = 1
    """Validation folds that the search uses for each test fold; the final runs use all."""
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
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"This is not TOML: {error}.") from None
    _check_keys(
        table,
        {"title", "form", "seed", "n_folds", "search_folds", "note"}
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
        vary=_vary(table.get("vary", {})),
        tests=_tests(table.get("tests", {})),
        n_folds=n_folds,
        search_folds=_whole(table, "search_folds", 1, least=1, most=n_folds - 1),
        seed=_whole(table, "seed", 0, least=0),
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
    for name in named:
        _check_choice("a dataset of the catalogue", name, CATALOGUE)
    described = _tables(table, "dataset") if "dataset" in table else []
    found = (*(CATALOGUE[name] for name in named), *(_dataset(entry) for entry in described))
    if not found:
        raise DataError("A recipe needs a dataset: datasets = [...], or a table [[dataset]].")
    return found


def _dataset(table: dict[str, Any]) -> DatasetSpec:
    _check_keys(
        table,
        set(DatasetSpec.__dataclass_fields__),
        where="[[dataset]]",
        needed=("name",),
    )
    groups = table.get("groups", "artist")
    _check_choice("groups", groups, GROUPS)
    name = _text(table, "name")
    return DatasetSpec(
        name=name,
        label=_text(table, "label", name),
        n_tags=_whole(table, "n_tags", None, least=1),
        min_positives=_whole(table, "min_positives", 5, least=1),
        groups=groups,
        options=dict(table.get("options", {})),
    )


def _model(table: dict[str, Any]) -> ModelSpec:
    _check_keys(
        table,
        {"name", "estimator", "settings", "search"},
        where="[[model]]",
        needed=("name", "estimator"),
    )
    estimator = table["estimator"]
    _check_choice("estimator", estimator, MODELS)
    settings = dict(table.get("settings", {}))
    stages = table.get("search", [])
    stages = [stages] if isinstance(stages, dict) else stages
    search = tuple({key: _values(key, values) for key, values in stage.items()} for stage in stages)
    return ModelSpec(
        name=_text(table, "name"), estimator=estimator, settings=settings, search=search
    )


def _vary(table: dict[str, Any]) -> Variations:
    own = {key: _values(key, table[key]) for key in Variations.NAMES if key in table}
    for value in own.get("features", ()):
        _check_choice("features", value, FEATURE_GROUPS)
    for value in own.get("smoothing", ()):
        if not isinstance(value, bool):
            raise DataError(f"'smoothing' must be a list of true and false, got {value!r}.")
    for value in own.get("clips", ()):
        if not isinstance(value, int) or value < 0:
            raise DataError(f"'clips' must be a list of whole numbers, got {value!r}.")
    settings = {k: _values(k, v) for k, v in table.items() if k not in Variations.NAMES}
    return Variations(settings=settings, **own)


def _tests(table: dict[str, Any]) -> Tests:
    _check_keys(table, {"inference", "known"}, where="[tests]")
    values = {key: _values(key, table[key]) for key in table}
    for value in values.get("inference", ()):
        _check_choice("inference", value, ("lbp", "mean_field", "gibbs", "exact"))
    for value in values.get("known", ()):
        if not isinstance(value, int | float) or not 0 <= value < 1:
            raise DataError(f"'known' must be shares from 0 to below 1, got {value!r}.")
    return Tests(**values)


def _check_keys(
    table: Mapping[str, Any], known: Collection[str], *, where: str, needed: Collection[str] = ()
) -> None:
    for key in table:
        _check_choice(f"a key of {where}", key, known)
    for key in needed:
        if key not in table:
            raise DataError(f"{where} needs the key '{key}'.")


def _check_choice(what: str, value: Any, known: Collection[str]) -> None:
    if value in known:
        return
    hint = did_you_mean(value, known)
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


def _values(key: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise DataError(f"'{key}' must be a list of values to try, such as [0.01, 0.1].")
    return tuple(values)


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
