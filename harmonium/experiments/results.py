"""Results on disk, and progress.

Each run appends a line when it ends, so that stopping at any moment loses none.

    recipe.toml          what was run
    results.jsonl        a line per run: what it was and what it gave; the same for the same recipe
    measurements.jsonl   a line per run: seconds, memory, versions, when

A finished experiment's results are sorted, so the files do not show how often it was stopped.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonium.errors import DataError
from harmonium.experiments.plan import FoldState, Run, fold_states, most_runs
from harmonium.experiments.recipe import Recipe, parse_recipe
from harmonium.files import try_lock, write_atomically

RECIPE = "recipe.toml"
RESULTS = "results.jsonl"
MEASUREMENTS = "measurements.jsonl"

StoredLines = dict[str, dict[str, Any]]  # run key -> the line of that run


class ResultStore:
    """The results of one experiment, open for writing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = _repair(folder / RESULTS)
        self.measurements = _repair(folder / MEASUREMENTS)

    def add(self, run: Run, result: dict[str, Any], measured: dict[str, Any]) -> None:
        """Store a run: when this returns, it is on disk."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        measurement = {"key": run.key, "when": when, **measured}
        _append(self.folder / MEASUREMENTS, measurement)
        line = {"key": run.key, "run": asdict(run), **result}
        _append(self.folder / RESULTS, line)
        self.measurements[run.key] = measurement
        self.results[run.key] = json.loads(json.dumps(line))

    def finish(self) -> None:
        """Sort the files by run, atomically."""
        write_atomically(self.folder / RESULTS, _sorted_lines(self.results))
        write_atomically(self.folder / MEASUREMENTS, _sorted_lines(self.measurements))


@contextmanager
def open_results(folder: Path, recipe_text: str) -> Iterator[ResultStore]:
    """The results in a folder, new or begun before, with this recipe; for one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        if not try_lock(lock.fileno()):
            raise DataError(
                f"Another process is writing to {folder}. Wait for it, or name another folder."
            )
        write_atomically(folder / RECIPE, recipe_text.encode())
        yield ResultStore(folder)


class StoredResults(NamedTuple):
    """What a folder of results holds."""

    recipe: Recipe
    results: StoredLines
    measurements: StoredLines


def read_results(folder: str | Path) -> StoredResults:
    """The recipe, the results and the measurements in a folder, checked; nothing is changed."""
    folder = Path(folder)
    if not (folder / RECIPE).is_file():
        raise DataError(
            f"{folder} holds no results: it has no {RECIPE}. Give the folder that "
            "'harmonium experiment run' wrote."
        )
    try:
        text = (folder / RECIPE).read_text(encoding="utf-8")
        results, _ = _read(folder / RESULTS)
        measurements, _ = _read(folder / MEASUREMENTS)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{folder} cannot be read as results: {error}.") from None
    try:
        recipe = parse_recipe(text, trusted=True)  # its settings were checked before the first run
    except DataError as error:
        raise DataError(f"{folder / RECIPE}: {error}") from None
    if not results:
        raise DataError(
            f"{folder} holds no results yet: {RESULTS} is missing or empty. "
            "Let 'harmonium experiment run' finish some runs first."
        )
    for key, line in results.items():
        has_auc = isinstance(line.get("valid_auc"), int | float)
        has_tests = isinstance(line.get("tests"), list)
        if not has_auc or not has_tests:
            raise DataError(
                f"The result of run '{key}' is damaged: it needs a number 'valid_auc' and a list "
                f"'tests'. Remove its line from {RESULTS} and do that run again."
            )
    return StoredResults(recipe, results, measurements)


def _repair(path: Path) -> StoredLines:
    """The lines of a file; an unfinished last line is cut off."""
    lines, whole = _read(path)
    if path.exists() and path.stat().st_size > whole:
        with path.open("r+b") as file:
            file.truncate(whole)
    return lines


def _read(path: Path) -> tuple[StoredLines, int]:
    """The complete lines, and how many bytes they take. If a run has several, the last counts."""
    if not path.exists():
        return {}, 0
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    lines: StoredLines = {}
    for number, text in enumerate(content[:whole].splitlines(), start=1):
        try:
            line = json.loads(text)
            lines[line["key"]] = line
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DataError(
                f"{path}, line {number}, is not a result. Remove the line to do that run again."
            ) from None
    return lines, whole


def _sorted_lines(lines: StoredLines) -> bytes:
    return b"".join(_line(lines[key]) for key in sorted(lines))


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, allow_nan=False).encode() + b"\n"


def _append(path: Path, content: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(_line(content))
        file.flush()
        os.fsync(file.fileno())


def progress(recipe: Recipe, store: ResultStore) -> pl.DataFrame:
    """An experiment's progress: a row per dataset and model.

    Its columns: the most runs that it takes (total), those that ended (done), their mean seconds,
    and the mean AUC over tags and finished test folds; null if there is none yet.
    """
    rows = []
    for arm, state in fold_states(recipe, store.results):
        rows.append(
            {
                "dataset": arm.dataset.label,
                "model": arm.model.name,
                "total": most_runs(recipe, arm) // recipe.n_folds,
                "done": len(state.done),
                "seconds": _seconds_of_runs(state, store),
                "auc": _mean_auc(state, store),
            }
        )
    columns: dict[str, Any] = {"seconds": pl.List(pl.Float64), "auc": pl.Float64}
    return (
        pl.DataFrame(rows, schema_overrides=columns)
        .group_by("dataset", "model", maintain_order=True)
        .agg(pl.sum("total", "done"), pl.col("seconds").explode().mean(), pl.mean("auc"))
        .with_columns(done=pl.min_horizontal("done", "total"))
    )


def _seconds_of_runs(state: FoldState, store: ResultStore) -> list[float]:
    """What each finished run took in all, if it was measured."""
    totals = []
    for run in state.done:
        measured = store.measurements.get(run.key, {})
        if "seconds" in measured:
            parts = ("seconds", "test_seconds", "smoothing_seconds")
            totals.append(sum(measured[part] for part in parts))
    return totals


def _mean_auc(state: FoldState, store: ResultStore) -> float | None:
    """The mean AUC of a finished test fold, as its runs predict by default."""
    if not state.finished:
        return None
    aucs = [store.results[run.key]["tests"][0]["auc"] for run in state.final]
    return float(np.nanmean(np.array(aucs, dtype=float)))
