"""Where work is done: in processes on this machine, in this process, or on a Dask cluster.

``make_executor`` turns an engine's name into a ``concurrent.futures.Executor``. ``Runner`` runs a
function over tasks; it survives the death of a worker.
docs/features.md says which engines there are, and what becomes of a task whose worker dies.
"""

import os
import pickle
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from harmonium import stopping
from harmonium.errors import HarmoniumError, did_you_mean

T = TypeVar("T")
Task = TypeVar("Task")
Result = TypeVar("Result")

ENGINES = ("processes", "serial")
_CHECK_SECONDS = 0.2  # how often a runner that waits looks whether it should stop
_CHECKS = 5  # after how many such looks it asks its engine, which may be on another machine


class EngineError(HarmoniumError):
    """An engine that is not available, or that no longer works."""


class WorkerDied(HarmoniumError):
    """The process that ran the task ended in the middle of it."""

    exit_code: int | None = None  # of the process, negative for a signal; None if it is unknown


class TimedOut(HarmoniumError):
    """The task exceeded its time limit, and its process was ended."""


class Engine(Executor):
    """A ``concurrent.futures.Executor`` that says how much work it can use, and stops at once."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many tasks keep all workers busy."""

    def abandon(self) -> None:
        """Stop without waiting for running tasks; their results are lost."""
        self.shutdown(wait=False, cancel_futures=True)

    def explain(self, error: BaseException) -> BaseException:
        """A future's exception as one of this module's, if it is about the engine."""
        return error

    def check(self) -> None:
        """Called now and then while tasks run; EngineError if they can no longer finish."""


class Serial(Engine):
    """Runs each task in the caller, when it is submitted: for debugging and for small jobs.

    >>> Serial().submit(pow, 2, 10).result()
    1024
    """

    capacity = 1

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` now; the future is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pickled(thing: object, what: str) -> bytes:
    """Something pickled for other processes; EngineError if that is impossible."""
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise EngineError(
            f"{what} cannot be sent to other processes ({error}). Define functions and classes at "
            "the top of a module, not inside other functions, or use engine='serial'."
        ) from error


def make_executor(
    engine: str = "processes", *, jobs: int | None = None, time_limit: float | None = None
) -> Engine:
    """The executor for an engine's name.

    Parameters
    ----------
    engine : "processes" for worker processes on this machine; "serial" for this process; or the
        address of a Dask scheduler, such as "tcp://host:8786"
    jobs : how many processes; by default one for each core that this process may use. The other
        engines ignore it.
    time_limit : seconds that one task may take before its process is ended; None for no limit.
        The engine "serial" ignores it.

    >>> with make_executor("serial") as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise EngineError(f"'jobs' must be a whole number of at least 1, got {jobs!r}.")
    if time_limit is not None and not time_limit > 0:
        raise EngineError(f"'time_limit' must be positive seconds, or None, got {time_limit!r}.")
    if engine == "serial":
        return Serial()
    if engine == "processes":
        from harmonium.engine.processes import Processes

        return Processes(jobs or available_cores(), time_limit=time_limit)
    if isinstance(engine, str) and "://" in engine:
        from harmonium.engine.dask import Cluster

        return Cluster(engine, time_limit=time_limit)
    raise EngineError(
        "'engine' must be 'processes', 'serial', or the address of a Dask scheduler such as "
        f"tcp://host:8786, got {engine!r}.{did_you_mean(engine, ENGINES)}"
    )


@dataclass(frozen=True)
class TaskOutcome(Generic[Task, Result]):
    """What became of a task: its result, or the exception that it ended with."""

    task: Task
    result: Result | None = None
    error: BaseException | None = None


class Runner(Generic[Task, Result]):
    """Runs ``function(task)`` for the tasks that are submitted, on an engine.

    When a worker dies, its task need not be the cause: memory may have run out. So the task is
    tried once more when no other is running, and its outcome is a `WorkerDied` only if that kills
    its worker, too. Every task has one outcome.

    Leaving the context by an exception ends the workers at once, such as the one that
    `harmonium.stopping.check` raises here while tasks run. An engine given as an object, not by
    name, keeps running; its waiting tasks are cancelled.

    >>> with Runner(abs, engine="serial") as runner:
    ...     _ = runner.submit(-3)
    ...     runner.next().result
    3
    """

    def __init__(
        self,
        function: Callable[[Task], Result],
        *,
        engine: str | Engine = "processes",
        jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.function = function
        self._is_mine = not isinstance(engine, Engine)
        if not isinstance(engine, Engine):
            engine = make_executor(engine, jobs=jobs, time_limit=time_limit)
        self.engine = engine
        self._under_way: dict[Future[Result], Task] = {}
        self._done: SimpleQueue[Future[Result]] = SimpleQueue()
        self._suspects: deque[Task] = deque()
        self._alone: Future[Result] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *raised: object) -> None:
        if not self._is_mine:
            for future in self._under_way:
                future.cancel()
        elif kind is None and not self.pending:
            self.engine.shutdown()
        else:
            self.engine.abandon()

    @property
    def pending(self) -> int:
        """The tasks whose outcome has not been taken."""
        return len(self._under_way) + len(self._suspects)

    @property
    def full(self) -> bool:
        """Whether an outcome should be taken before the next task is submitted."""
        return len(self._under_way) >= self.engine.capacity

    def submit(self, task: Task) -> Future[Result]:
        """Submit a task without waiting, even if the engine has more than it can use."""
        stopping.check()
        future = self.engine.submit(self.function, task)
        self._under_way[future] = task
        future.add_done_callback(self._done.put)
        return future

    def next(self) -> TaskOutcome[Task, Result]:
        """The next outcome, in the order that tasks end; EngineError if the engine fails."""
        if not self.pending:
            raise EngineError("There is no task under way. Submit one first.")
        while True:
            if not self._under_way:
                self._alone = self.submit(self._suspects.popleft())
            future = self._wait()
            task = self._under_way.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            error = error and self.engine.explain(error)
            if isinstance(error, EngineError):
                raise error
            if isinstance(error, WorkerDied) and future is not self._alone:
                self._suspects.append(task)
                continue
            return TaskOutcome(task, None if error else future.result(), error)

    def _wait(self) -> Future[Result]:
        while True:
            for _ in range(_CHECKS):
                stopping.check()
                with suppress(Empty):
                    return self._done.get(timeout=_CHECK_SECONDS)
            self.engine.check()
