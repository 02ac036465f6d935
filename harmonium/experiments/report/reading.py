"""A folder of results, read and checked; nothing is trained and JAX is not imported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.experiments.plan import Run
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.results import RECIPE, RESULTS, Lines, read_results
from harmonium.experiments.specs import Recipe

_WAY_OUT = f"Remove its line from {RESULTS} and do that run again."


def read_folder(folder: str | Path) -> tuple[Recipe, Lines, Lines]:
    """The recipe, the results and the measurements that an experiment left in a folder."""
    folder = Path(folder)
    try:
        text, results, measurements = read_results(folder)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{folder} cannot be read as results: {error}.") from None
    try:
        recipe = stored_recipe(text)
    except DataError as error:
        raise DataError(f"{folder / RECIPE}: {error}") from None
    if not results:
        raise DataError(
            f"{folder} holds no results yet: {RESULTS} is missing or empty. "
            "Let 'harmonium experiment run' finish some runs first."
        )
    for key, line in results.items():
        _check_line(key, line)
    return recipe, results, measurements


def stored_recipe(text: str) -> Recipe:
    """The recipe, its settings as they are: checking them would import every estimator, and JAX.

    They were checked before the first run.
    """
    return parse_recipe(text, trusted=True)


def _check_line(key: str, line: Mapping[str, Any]) -> None:
    auc, tests = line.get("valid_auc"), line.get("tests")
    if not isinstance(auc, int | float) or not isinstance(tests, list):
        raise DataError(
            f"The result of run '{key}' is damaged: it needs a number 'valid_auc' and a list "
            f"'tests'. {_WAY_OUT}"
        )


def aucs_of(line: Mapping[str, Any], run: Run) -> NDArray[np.float64]:
    """(n_tests, n_tags) the AUCs of a run, a row per way of testing, NaN where undefined."""
    where = f"The result of run '{run.key}' ({run.dataset.label}, {run.model})"
    try:
        found = [(test["inference"], test["known"]) for test in line["tests"]]
        matrix = np.stack([np.array(test["auc"], dtype=np.float64) for test in line["tests"]])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where} is damaged ({error!r}). {_WAY_OUT}") from None
    wanted = ways_of_testing(run.inference, run.known)
    if found != wanted or matrix.ndim != 2:
        raise DataError(f"{where} has the tests {found}, expected {wanted}. {_WAY_OUT}")
    return matrix


def ways_of_testing(
    inference: tuple[str, ...], known: tuple[float, ...]
) -> list[tuple[str | None, float]]:
    """Each way to predict with each share of known tags, in the order of a run's tests."""
    return [(way, share) for way in inference or (None,) for share in known]
