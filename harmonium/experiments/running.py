"""Runs an experiment on an executor: what is missing, until nothing is."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any

from harmonium.errors import HarmoniumError
from harmonium.experiments.performing import perform
from harmonium.experiments.plan import Run, missing
from harmonium.experiments.results import Store
from harmonium.experiments.specs import Recipe

Watcher = Callable[[Run, dict[str, Any]], None]
"""Called with each run that ended and what was measured."""


def run_experiment(
    recipe: Recipe, store: Store, executor: Executor, *, jobs: int, watch: Watcher | None = None
) -> None:
    """Do every run that the store does not have yet.

    At most two runs per worker wait at a time. An interrupt, or a run that fails, ends the
    experiment; the runs that ended before are kept, and the next call goes on from there.
    """
    pending: dict[Future[Any], Run] = {}
    try:
        while True:
            _submit(recipe, store, executor, pending, room=2 * jobs)
            if not pending:
                break
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                run = pending.pop(future)
                result, measured = _outcome(run, future)
                store.add(run, result, measured)
                if watch:
                    watch(run, measured)
    except BaseException:
        for future in pending:
            future.cancel()
        raise
    store.finish()


def _submit(
    recipe: Recipe, store: Store, executor: Executor, pending: dict[Future[Any], Run], *, room: int
) -> None:
    under_way = {run.key for run in pending.values()}
    for run in missing(recipe, store.results):
        if len(pending) >= room:
            return
        if run.key not in under_way:
            pending[executor.submit(perform, run)] = run


def _outcome(run: Run, future: "Future[Any]") -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        return future.result()
    except HarmoniumError as error:
        where = f"{run.dataset.label}, {run.model}, {run.settings}, test fold {run.test_fold}"
        raise type(error)(f"{where}: {error}") from error
