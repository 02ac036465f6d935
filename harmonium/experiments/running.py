"""Runs an experiment: what is missing, until nothing is."""

from collections import deque
from collections.abc import Callable
from typing import Any

from harmonium.engine import Runner, TaskOutcome
from harmonium.errors import HarmoniumError
from harmonium.experiments.performing import perform
from harmonium.experiments.plan import Run, missing
from harmonium.experiments.results import Store
from harmonium.experiments.specs import Recipe

STACKED = "stacked"
"""The engine that trains many models as one program, on the GPU that JAX finds."""

Given = tuple[dict[str, Any], dict[str, Any]]
"""The result of a run, and what was measured."""

Watcher = Callable[[Run, dict[str, Any]], None]
"""Called with each run that ended and what was measured."""


class RunError(HarmoniumError):
    """A run that failed; the message says which, and why."""


def run_experiment(
    recipe: Recipe,
    store: Store,
    *,
    engine: str = "processes",
    jobs: int | None = None,
    watch: Watcher | None = None,
) -> None:
    """Do every run that the store does not have yet, and keep each as it ends.

    An interrupt, or a run that fails, ends the experiment; the runs that ended before are kept, and
    the next call goes on from there.

    Parameters
    ----------
    recipe : what to run
    store : where the results are, from `harmonium.experiments.results.opened`
    engine, jobs : as for `harmonium.engine.make_executor`; or "stacked", which trains all models
        that are alike as one program, and is for a GPU
    watch : called with each run that ended
    """

    def keep(run: Run, given: Given) -> None:
        store.add(run, *given)
        if watch:
            watch(run, given[1])

    if engine == STACKED:
        _run_stacked(recipe, store, keep)
    else:
        _run_on_engine(recipe, store, engine, jobs, keep)
    store.finish()


def _run_on_engine(
    recipe: Recipe,
    store: Store,
    engine: str,
    jobs: int | None,
    keep: Callable[[Run, Given], None],
) -> None:
    waiting: deque[Run] = deque()
    under_way: set[str] = set()
    with Runner[Run, Given](perform, engine=engine, jobs=jobs) as runner:
        while True:
            if not waiting:  # what a search found may have made more runs possible
                runs = missing(recipe, store.results)
                waiting.extend(run for run in runs if run.key not in under_way)
            while waiting and not runner.full:
                run = waiting.popleft()
                under_way.add(run.key)
                runner.submit(run)
            if not runner.pending:
                return
            outcome = runner.next()
            keep(outcome.task, _given(outcome))
            under_way.remove(outcome.task.key)


def _run_stacked(recipe: Recipe, store: Store, keep: Callable[[Run, Given], None]) -> None:
    from harmonium.experiments.stacking import perform_stacked

    while runs := missing(recipe, store.results):
        for run, given in perform_stacked(runs):
            keep(run, given)


def _given(outcome: TaskOutcome[Run, Given]) -> Given:
    if outcome.error is None:
        assert outcome.result is not None
        return outcome.result
    run = outcome.task
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    where = f"{run.dataset.label}, {run.model} ({settings}), test fold {run.test_fold}"
    if isinstance(outcome.error, HarmoniumError):
        raise RunError(f"{where}: {outcome.error}") from outcome.error
    raise outcome.error
