"""What a recipe says, as data."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

GENERATED = "generated"
"""The name of the dataset that is made and not read."""

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
GROUPS = ("artist", "track", "item")


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """A dataset, and what is made of it."""

    name: str
    """As `harmonium data list` shows it, or "generated"."""
    label: str = ""
    """In tables and figures; by default the name."""
    n_tags: int | None = None
    """The most popular tags only."""
    min_positives: int = 5
    """Tags with fewer positive clips than this are left out."""
    groups: Literal["artist", "track", "item"] = "artist"
    """What no two folds share: "artist", "track" or "item"."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the dataset's loader, or of the generated collection."""

    def __hash__(self) -> int:
        return hash((self.name, self.label, self.n_tags))


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
class Vary:
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
    vary: Vary = Vary()
    tests: Tests = Tests()
    n_folds: int = 5
    search_folds: int = 1
    """Validation folds that the search uses for each test fold; the final runs use all."""
    seed: int = 0
    note: str = ""
    """Said in the report."""


def grid(values: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, the last name varying fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
