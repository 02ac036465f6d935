"""A recipe: what an experiment compares, on which data, and how widely it searches. Checked TOML.

A recipe names datasets, models and ways to smooth tags; ``vary`` makes an arm from each combination
of its values; a ``search`` lists grids that are searched one after another. See
docs/experiments.md.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from harmonium.errors import DataError, did_you_mean
from harmonium.estimators.inference import INFERENCE_LABELS
from harmonium.estimators.paper import paper_options
from harmonium.experiments.datasets import CATALOGUE, DatasetSpec

Form = Literal[  # how the report shows the results
    "comparison",
    "damping",
    "approximations",
    "search",
    "completion",
    "learning-curve",
    "feature-groups",
]

ONE = "one"  # one true tag of the clip is known, and no other

Known = Annotated[float, Field(ge=0, lt=1)] | Literal["one"]
"""How many of a clip's tags a model observes: a share of the known ones, or `ONE`."""

Values = Annotated[tuple[Any, ...], Field(min_length=1)]  # A list of values to try

Search = Annotated[  # Grids, each around the best point of the one before; or one grid.
    tuple[dict[str, Values], ...],
    BeforeValidator(lambda values: [values] if isinstance(values, dict) else values),
]

# keys of a file that are not fields of a `Recipe`
FILE_KEYS = ("model", "dataset", "smoothing", "tests")

RAW = "raw"  # what tags are called that are not smoothed

SMOOTHER = "TagSmoother"

SKLEARN = "sklearn."
MODELS = {
    "DiscriminativeRBM": "harmonium.estimators",
    "GenerativeRBM": "harmonium.estimators",
    "MLPTagger": "harmonium.estimators",
    "LogisticTagger": "harmonium.estimators",
    "SVMTagger": "harmonium.estimators",
    "ChainTagger": "harmonium.estimators",
    "CooccurrenceTagger": "harmonium.estimators",
    "NaiveBayesTagger": "harmonium.estimators",
    f"{SKLEARN}MLPClassifier": "sklearn.neural_network",
    f"{SKLEARN}LogisticRegression": "sklearn.linear_model",
    f"{SKLEARN}ExtraTreesClassifier": "sklearn.ensemble",
    f"{SKLEARN}HistGradientBoostingClassifier": "sklearn.ensemble",
}
"""Name -> the module of its class. Harmonium's estimators take unknown and soft labels."""


@dataclass(frozen=True, kw_only=True)
class ArmAxes:
    """What may vary besides settings."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    # What to train on: raw tags (false), tags smoothed as by default (true), or the name of a
    # `SmoothingSpec`.
    smoothing: tuple[StrictBool | StrictStr, ...] = (False,)
    clips: tuple[Annotated[StrictInt, Field(ge=0)], ...] = (0,)  # on how many clips; 0 is all
    features: tuple[Literal["all", "timbre", "rhythm"], ...] = ("all",)


ARM_AXES = tuple(axis.name for axis in fields(ArmAxes))


@dataclass(frozen=True, kw_only=True)
class SmoothingSpec:
    """A way to smooth the tags that models learn from, and what each model's search chooses of it.

    Both are settings of `TagSmoother`. The search comes before the model's own, and judges by the
    validation AUC of the model that was trained on the smoothed tags.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    name: str  # in tables and figures
    settings: dict[str, Any] = field(default_factory=dict)
    search: Search = ()


BY_DEFAULT = SmoothingSpec(name="smoothed")


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model, and the settings that are fixed or searched."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    name: str  # in tables and figures
    estimator: str  # one of `MODELS`
    paper: StrictBool = False  # whether the settings start from `paper_options`
    settings: dict[str, Any] = field(default_factory=dict)
    search: Search = ()
    skip: tuple[str, ...] = ()  # datasets that it takes too long for
    refit: StrictBool = False  # when cross-fitting, tested as one model of all training clips

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that its search starts from."""
        if self.paper:
            return {**paper_options(self.estimator), **self.settings}
        return self.settings


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    title: str
    form: Form
    datasets: tuple[DatasetSpec, ...]
    models: Annotated[tuple[ModelSpec, ...], Field(min_length=1)]
    vary: dict[str, Values]  # settings and all `ARM_AXES`; each combination is an arm
    smoothings: tuple[SmoothingSpec, ...] = ()  # those that ``vary`` names
    # Ways to predict in the tests; by default the model's own.
    inference: tuple[str, ...] = ()
    known: tuple[Known, ...] = (0.0,)  # how much of a clip's tags is given in the tests
    n_folds: Annotated[StrictInt, Field(ge=3)] = 5
    search_folds: Annotated[StrictInt, Field(ge=1)] = 4  # of the search; the final runs use all
    search_known: tuple[Known, ...] = (0.0,)  # what the search gives; the mean over these chooses
    cross_fit: StrictBool = False  # a model is the mean of members, each stopped on another fold
    seed: Annotated[StrictInt, Field(ge=0)] = 0
    note: str = ""  # shown in the report

    def smoothing(self, value: bool | str) -> SmoothingSpec | None:
        """What a value of the axis ``smoothing`` stands for; None is raw tags."""
        if value is True:
            return BY_DEFAULT
        if value is False:
            return None
        return next(smoothing for smoothing in self.smoothings if smoothing.name == value)


def read_recipe(path: str | Path, *, trusted: bool = False) -> Recipe:
    """The recipe in a TOML file; ``trusted`` as in `parse_recipe`."""
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
    """A recipe from TOML, or a DataError that names the key and the most similar known one.

    A ``trusted`` recipe's settings are not checked again: the check imports the estimators and JAX.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, too large a number, too deep
        raise DataError(f"This is not TOML: {error}.") from None
    try:
        recipe = TypeAdapter(Recipe).validate_python(_recipe_fields(table))
    except ValidationError as error:
        raise DataError(_in_words(error)) from None
    except (TypeError, AttributeError) as error:
        raise DataError(f"A table of this recipe is of the wrong form: {error}.") from None
    _check_recipe(recipe)
    if not trusted:
        _check_models(recipe)
    return recipe


def _recipe_fields(table: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `Recipe`, not yet checked, from the tables of a file."""
    n_folds = table.get("n_folds", 5)
    values: dict[str, Any] = {
        "search_folds": n_folds - 1 if isinstance(n_folds, int) else 0,
        "vary": {},
        **table,
    }
    values["models"] = values.pop("model", [])
    values["smoothings"] = values.pop("smoothing", [])
    datasets = [
        _choice("a dataset of the catalogue", name, CATALOGUE)
        for name in values.get("datasets", [])
    ]
    for description in values.pop("dataset", []):
        datasets.append({"label": description.get("name", "")} | description)
    values["datasets"] = datasets
    values |= values.pop("tests", {})
    axes = {key: value for key, value in values["vary"].items() if key in ARM_AXES}
    values["vary"] = values["vary"] | vars(TypeAdapter(ArmAxes).validate_python(axes))
    return values


def _check_recipe(recipe: Recipe) -> None:
    """What no single field can say."""
    if not recipe.datasets:
        raise DataError("A recipe needs a dataset: datasets = [...], or a table [[dataset]].")
    if recipe.search_folds >= recipe.n_folds:
        raise DataError(
            f"'search_folds' must be at most {recipe.n_folds - 1}, one less than 'n_folds'."
        )
    if recipe.cross_fit and recipe.search_known != (0.0,):
        raise DataError("'search_known' must be [0.0] with 'cross_fit'.")
    for method in recipe.inference:
        _choice("a method of inference", method, INFERENCE_LABELS)
    _check_distinct("dataset label", [dataset.label for dataset in recipe.datasets])
    _check_distinct("model name", [model.name for model in recipe.models])
    _check_smoothings(recipe)


def _check_smoothings(recipe: Recipe) -> None:
    """Whether names are distinct, and each way to smooth is described and used."""
    values = recipe.vary["smoothing"]
    names = [smoothing.name for smoothing in recipe.smoothings]
    others = [RAW, BY_DEFAULT.name] if True in values else [RAW]
    _check_distinct("smoothing name", [*others, *names])
    named = [value for value in values if isinstance(value, str)]
    for value in named:
        _choice("a [[smoothing]] of the recipe", value, dict.fromkeys(names))
    for name in names:
        if name not in named:
            raise DataError(
                f"[[smoothing]] {name!r} is not used. Name it in [vary]: smoothing = [{name!r}]."
            )


def _check_distinct(what: str, values: Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise DataError(f"The {what} {value!r} occurs more than once. Give each its own.")


def _check_models(recipe: Recipe) -> None:
    """Whether estimators, their settings and skipped datasets exist."""
    labels = dict.fromkeys(dataset.label for dataset in recipe.datasets)
    varied = [key for key in recipe.vary if key not in ARM_AXES]
    for model in recipe.models:
        _choice("an estimator", model.estimator, MODELS)
        for label in model.skip:
            _choice("a dataset of the recipe", label, labels)
        where = f"model '{model.name}'"
        _check_settings(model.estimator, model.fixed, where=f"settings of {where}")
        _check_settings(model.estimator, chain(*model.search), where=f"search of {where}")
        _check_settings(model.estimator, varied, where="[vary]")
    for smoothing in recipe.smoothings:
        where = f"smoothing '{smoothing.name}'"
        _check_settings(SMOOTHER, smoothing.settings, where=f"settings of {where}")
        _check_settings(SMOOTHER, chain(*smoothing.search), where=f"search of {where}")


def model_class(estimator: str) -> Callable[..., Any]:
    """The class of one of `MODELS`, or the smoother's, imported only now: JAX takes a second."""
    module = MODELS.get(estimator, "harmonium.estimators")
    return getattr(import_module(module), estimator.removeprefix(SKLEARN))


def _check_settings(estimator: str, settings: Iterable[str], *, where: str) -> None:
    for key in settings:
        known = sorted(inspect.signature(model_class(estimator)).parameters)
        if key not in known:
            raise DataError(
                f"{where}: {estimator} has no setting '{key}'.{did_you_mean(key, known)} "
                f"It has {', '.join(known)}."
            )


def _in_words(error: ValidationError) -> str:
    """What is wrong with the first bad value, and the most similar valid name."""
    for problem in error.errors():
        # A misspelt key is also missing: the misspelling says more.
        if problem["type"] == "unexpected_keyword_argument":
            return _misspelt_key(problem["loc"])
    first, *others = error.errors()
    place = ".".join(map(str, first["loc"]))
    value = first["input"]
    messages = [first["msg"]]
    messages += [problem["msg"] for problem in others if problem["input"] == value]
    allowed = re.findall("'(.*?)'", str(first.get("ctx", {}).get("expected", "")))
    hint = did_you_mean(str(value), allowed)
    return f"'{place}': {'. Or: '.join(messages)}. Got {value!r}.{hint}"


def _misspelt_key(location: tuple[int | str, ...]) -> str:
    """What to say about a key that does not exist."""
    owner: type[ModelSpec | SmoothingSpec | DatasetSpec | Recipe] = Recipe
    if location[0] == "models":
        owner = ModelSpec
    elif location[0] == "smoothings":
        owner = SmoothingSpec
    elif location[0] == "datasets":
        owner = DatasetSpec
    known = [field.name for field in fields(owner)]
    place = ".".join(map(str, location))
    hint = did_you_mean(str(location[-1]), [*known, *FILE_KEYS])
    return f"'{place}' is not a key of a recipe.{hint}"


def _choice(what: str, value: Any, known: Mapping[str, Any]) -> Any:
    """What a name stands for."""
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(str(value), known)
        raise DataError(
            f"{value!r} is not {what}.{hint} The known ones are {', '.join(sorted(known))}."
        )
    return known[value]
