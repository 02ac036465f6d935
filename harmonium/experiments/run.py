"""Runs an experiment: does the missing runs until none is left.

One run trains a model on some folds, stops early on another, and tests it on the last. Or it trains
a member of a model for each fold except the test fold, and tests the mean of their log-odds.
"""

import json
import os
import platform
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NamedTuple, cast

import numpy as np

from harmonium import __version__
from harmonium.arrays import Floats, Places
from harmonium.engine import Runner, TaskOutcome
from harmonium.errors import DataError, HarmoniumError
from harmonium.estimators.history import content_with_max_epochs
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments.datasets import PreparedDataset, load_dataset
from harmonium.experiments.judging import judge, validation_score
from harmonium.experiments.models import CrossFittedModel, Model, model_of_run, model_seed
from harmonium.experiments.plan import Run, missing, ways_to_test
from harmonium.experiments.recipe import Recipe
from harmonium.experiments.results import ResultStore

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

STACKED = "stacked"  # the engine that trains many models as one program, on the GPU that JAX finds

MAX_STACK = 256  # the models in one stack; bounds the memory

Runs = tuple[Run, ...]  # runs to do together


class RunOutput(NamedTuple):
    """What a run gives."""

    result: dict[str, Any]  # depends only on the run
    measured: dict[str, Any]  # what it cost: seconds, memory, versions


class RunError(HarmoniumError):
    """A run that failed; the message says which, and why."""


def run_experiment(
    recipe: Recipe,
    store: ResultStore,
    *,
    engine: str = "processes",
    jobs: int | None = None,
    watch: Callable[[Run, dict[str, Any]], None] | None = None,
) -> None:
    """Do every run that the store does not have yet, and keep each as it ends.

    An interrupt or a failed run ends the experiment; finished runs are kept, and the next call
    continues from there.

    Parameters
    ----------
    recipe : what to run
    store : where the results are, from `harmonium.experiments.results.open_results`
    engine, jobs : as in `harmonium.engine.make_executor`; or "stacked", which trains all models
        that are alike as one program, and is for a GPU; it is one process unless ``jobs`` says more
    watch : called with each run that ended, and with what was measured
    """
    with closing(_outputs(recipe, store, engine, jobs)) as outputs:  # an interrupt ends the workers
        for run, output in outputs:
            store.add(run, output.result, output.measured)
            if watch:
                watch(run, output.measured)
    store.finish()


def _outputs(
    recipe: Recipe, store: ResultStore, engine: str, jobs: int | None
) -> Generator[tuple[Run, RunOutput], None, None]:
    """Every missing run with its output, as it ends; store it before asking for the next."""
    stacked = engine == STACKED
    if stacked:
        engine = "serial" if jobs in (None, 1) else "processes"
        # several processes share the GPU: none may take all its memory
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    waiting: deque[Runs] = deque()
    under_way: set[str] = set()
    with Runner[Runs, list[RunOutput]](_train_and_test, engine=engine, jobs=jobs) as runner:
        while True:
            if not waiting:  # search results may have made more runs possible
                left = [run for run in missing(recipe, store.results) if run.key not in under_way]
                waiting.extend(_stacks(left) if stacked else [(run,) for run in left])
            while waiting and not runner.full:
                runs = waiting.popleft()
                under_way.update(run.key for run in runs)
                runner.submit(runs)
            if not runner.pending:
                return
            outcome = runner.next()
            yield from zip(outcome.task, _checked(outcome), strict=True)
            under_way.difference_update(run.key for run in outcome.task)


def _checked(outcome: TaskOutcome[Runs, list[RunOutput]]) -> list[RunOutput]:
    """The outputs of runs that were done together; a RunError if they failed."""
    if outcome.error is None:
        assert outcome.result is not None
        return outcome.result
    run, *others = outcome.task
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    where = f"{run.dataset.label}, {run.model} ({settings}), test fold {run.test_fold}"
    if others:
        where += f" and {len(others)} more"
    if isinstance(outcome.error, HarmoniumError):
        raise RunError(f"{where}: {outcome.error}") from outcome.error
    raise outcome.error


def _stacks(runs: Iterable[Run]) -> list[Runs]:
    """Runs that can be trained as one program, the longest work first: RBMs, then by clips."""
    from harmonium.estimators.stacked import signature

    alike: dict[Any, list[Run]] = defaultdict(list)
    for run in runs:
        shared = signature(model_of_run(run))
        key: Any = run.key
        if shared is not None:
            key = (run.dataset, run.features, run.clips, run.smoothing is None, shared)
        alike[key].append(run)
    stacks: list[Runs] = []
    for group in alike.values():
        n_members = group[0].n_folds - 1 if group[0].valid_fold is None else 1
        size = MAX_STACK // n_members
        stacks += [tuple(group[first : first + size]) for first in range(0, len(group), size)]

    def order(stack: Runs) -> tuple[bool, int]:
        is_rbm = "RBM" in stack[0].estimator
        n_clips = len(stack) * (stack[0].dataset.n_clips or 1)
        return not is_rbm, -n_clips

    return sorted(stacks, key=order)


# Training


class Split(NamedTuple):
    """The clips that a run uses."""

    train: Places
    valid: Places  # to stop early on; empty for a cross-fitted run
    test: Places


def _train_and_test(runs: Runs) -> list[RunOutput]:
    """Do one run, or several similar ones as one program, which then share the time equally.

    Early stopping is always on raw tags. The SVM learns from the clips to which a tag was given
    most and least often, so tags that too few people gave do not matter.
    """
    first = runs[0]
    data = load_dataset(first.dataset)
    X = data.features(first.features)
    splits = [_split(run, data) for run in runs]
    models = [model_of_run(run) for run in runs]

    began = time.perf_counter()
    targets = _targets(runs, data)
    smoothed = time.perf_counter()
    if len(runs) == 1:
        _fit(first, models[0], splits[0], X, data, targets[0])
    else:
        _fit_stacked(first, models, splits, X, data, targets)
    seconds = (time.perf_counter() - smoothed) / len(runs)

    outputs = []
    for run, model, split in zip(runs, models, splits, strict=True):
        began_test = time.perf_counter()
        result = _test(run, model, split, X, data)
        measured = {
            "seconds": seconds,
            "test_seconds": time.perf_counter() - began_test,
            "smoothing_seconds": (smoothed - began) / len(runs),
            "seconds_to_best": _seconds_to_best(model),
            "clips": len(split.train),
            "peak_memory_mb": peak_memory_mb(),
            "versions": _versions(),
        }
        outputs.append(RunOutput(result=result, measured=measured))
    return outputs


def _fit(
    run: Run, model: Model, split: Split, X: Floats, data: PreparedDataset, targets: Floats
) -> None:
    """Train the model of one run."""
    train = split.train
    options: dict[str, Any] = {}
    if run.valid_fold is None:
        folds = _folds(data, run.n_folds, run.seed)
        options["groups"] = folds[train]
        options["eval_y"] = data.Y[train]
    else:
        options["eval_set"] = (X[split.valid], data.Y[split.valid])
    if run.estimator == "SVMTagger" and run.smoothing is None:
        options["counts"] = data.counts[train]
    with content_with_max_epochs():  # of the recipe
        model.fit(X[train], targets[train], **options)


def _fit_stacked(
    first: Run,
    models: list[Model],
    splits: list[Split],
    X: Floats,
    data: PreparedDataset,
    targets: list[Floats],
) -> None:
    """Train the models of several runs as one program."""
    from harmonium.estimators.stacked import fit_stacked  # imports JAX

    folds = None
    if first.valid_fold is None:
        folds = _folds(data, first.n_folds, first.seed)
    fit_stacked(
        cast(Any, models),
        X,
        data.Y,
        [split.train for split in splits],
        [split.valid for split in splits],
        targets=targets,
        folds=folds,
    )


def _split(run: Run, data: PreparedDataset) -> Split:
    """The clips that a run trains on, stops early on and tests on.

    A run on fewer clips trains on a subset of a larger run's clips. Members of a
    model stop early on folds of the training clips.
    """
    folds = _folds(data, run.n_folds, run.seed)
    train = np.flatnonzero((folds != run.test_fold) & (folds != run.valid_fold))
    if run.clips > len(train):
        raise DataError(
            f"clips = {run.clips} is more than the {len(train)} training clips that "
            f"'{run.dataset.label}' has. Ask for fewer."
        )
    if run.clips:
        rng = np.random.default_rng((run.seed, *run.place))
        train = np.sort(rng.permutation(train)[: run.clips])
    return Split(
        train=train,
        valid=np.flatnonzero(folds == run.valid_fold),
        test=np.flatnonzero(folds == run.test_fold),
    )


@lru_cache(maxsize=2)
def _folds(data: PreparedDataset, n_folds: int, seed: int) -> Places:
    return grouped_folds(data.groups, data.Y, n_folds=n_folds, seed=seed)


def _targets(runs: Runs, data: PreparedDataset) -> list[Floats]:
    """What each run learns from: raw tags, or smoothed ones, of which equal ones are one array."""
    targets = []
    smoothed: dict[str, Floats] = {}
    for run in runs:
        if run.smoothing is None:
            targets.append(data.Y)
            continue
        key = json.dumps([run.smoothing, *sorted(run.place)], sort_keys=True)
        if key not in smoothed:
            smoothed[key] = _smoothed_tags(run, data)
        targets.append(smoothed[key])
    return targets


def _smoothed_tags(run: Run, data: PreparedDataset) -> Floats:
    """The smoothed tags of a run's training clips.

    They are the same whichever of the two other folds is for testing, and which for validation.
    """
    assert run.smoothing is not None
    places = sorted(run.place)
    train = ~np.isin(_folds(data, run.n_folds, run.seed), places)
    return data.smoothed(np.flatnonzero(train), run.smoothing, seed=model_seed(run.seed, *places))


# Testing


def _test(run: Run, model: Model, split: Split, X: Floats, data: PreparedDataset) -> dict[str, Any]:
    """How well a trained model answers."""
    if run.valid_fold is None:
        valid_auc = _held_out_auc(cast(CrossFittedModel, model), data.Y[split.train])
    else:
        valid_auc = validation_score(
            model,
            X[split.valid],
            data.Y[split.valid],
            run.search_known,
            seed=(run.seed, run.test_fold, run.valid_fold),
        )
    tests = []
    for way in ways_to_test(run.inference, run.known):
        if way.inference is not None:
            cast(Any, model).set_params(inference=way.inference)
        measures = judge(
            model, X[split.test], data.Y[split.test], way.known, seed=(run.seed, run.test_fold)
        )
        tests.append({**way._asdict(), **measures})
    return {
        "tags": list(data.tags),
        "valid_auc": valid_auc,
        "tests": tests,
        "best_epoch": _best_epoch(model),
    }


def _held_out_auc(model: CrossFittedModel, labels: Floats) -> float:
    """The mean over folds of the mean AUC of a cross-fitted model's held-out scores."""
    aucs = []
    for fold in np.unique(model.folds_):
        held_out = model.folds_ == fold
        aucs.append(auc_per_tag(labels[held_out], model.held_out_[held_out]).mean)
    return float(np.mean(aucs))


def _best_epoch(model: Model) -> int:
    """The epoch at which training stopped; 0 for a model without epochs."""
    return int(getattr(model, "best_epoch_", 0))


def _seconds_to_best(model: Model) -> float | None:
    """The seconds until the best epoch; None for a model without epochs."""
    n_epochs = _best_epoch(model)
    if not n_epochs:
        return None
    history: dict[str, list[float]] = getattr(model, "history_")  # noqa: B009
    return float(sum(history["seconds"][:n_epochs]))


def peak_memory_mb() -> float | None:
    """This process's peak memory so far; None on Windows, which does not tell."""
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    """What the results were computed with."""
    packages = ("jax", "numpy", "scipy", "scikit-learn")
    return {
        "harmonium": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
