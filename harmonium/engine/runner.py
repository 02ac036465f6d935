"""An engine by its name; and any number of tasks through it, a few at a time, none lost."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, Self, TypeVar

from harmonium.engine.interface import (
    ConnectionLost,
    Engine,
    EngineError,
    Serial,
    WorkerDied,
    available_cores,
)
from harmonium.errors import did_you_mean

Task = TypeVar("Task")
Result = TypeVar("Result")

ENGINES = ("processes", "serial")


def make_executor(
    engine: str = "processes", *, jobs: int | None = None, time_limit: float | None = None
) -> Engine:
    """The executor that an engine's name stands for.

    Parameters
    ----------
    engine : "processes" for worker processes on this machine; "serial" for this process; or the
        address of a Dask scheduler, such as "tcp://host:8786"
    jobs : how many processes; by default one for each core that this process may use. The other
        engines ignore it.
    time_limit : seconds that one task may take before its process is ended; None for no limit.
        The engine "serial" ignores it.

    Raises
    ------
    EngineError
        for another name, a number of jobs below 1, or a cluster that cannot be used

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

    When a worker dies, only the task that it was at can be the cause, but it need not be: memory
    may have run out, or somebody ended the process. So that task is tried once more when no other
    is under way, and its outcome is a `WorkerDied` only if that takes its worker down too.

    When a cluster is lost, the tasks under way are given to it again as soon as it is back. Every
    task has one outcome, however often it was begun.

    Use it as a context: leaving it by an exception, Ctrl-C for instance, ends the workers at once.
    An engine that is given as an object, not by name, goes on; its waiting tasks are cancelled.

    >>> with Runner(abs, engine="serial") as runner:
    ...     runner.submit(-3)
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
        if isinstance(engine, Engine):
            self._engine = engine
        else:
            self._engine = make_executor(engine, jobs=jobs, time_limit=time_limit)
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
            self._engine.shutdown()
        else:
            self._engine.abandon()

    @property
    def pending(self) -> int:
        """The tasks whose outcome has not been taken."""
        return len(self._under_way) + len(self._suspects)

    @property
    def full(self) -> bool:
        """Whether an outcome should be taken before the next task is submitted."""
        return len(self._under_way) >= self._engine.capacity

    def submit(self, task: Task) -> None:
        """Have the task done; never waits, and takes more tasks than the engine can use."""
        self._start(task)

    def next(self) -> TaskOutcome[Task, Result]:
        """The next outcome, in the order in which tasks end; waits for it.

        Raises EngineError where the engine itself no longer works.
        """
        if not self.pending:
            raise EngineError("There is no task under way. Submit one first.")
        while True:
            if not self._under_way:
                self._alone = self._start(self._suspects.popleft())
            future = self._wait()
            task = self._under_way.pop(future)
            error = self._error_of(future)
            if isinstance(error, ConnectionLost):
                self._engine.renew(future)
                again = self._start(task)
                self._alone = again if future is self._alone else self._alone
                continue
            if isinstance(error, EngineError):
                raise error
            if isinstance(error, WorkerDied) and future is not self._alone:
                self._suspects.append(task)
                continue
            return TaskOutcome(task, None if error else future.result(), error)

    def _start(self, task: Task) -> Future[Result]:
        future = self._engine.submit(self.function, task)
        self._under_way[future] = task
        future.add_done_callback(self._done.put)
        return future

    def _error_of(self, future: Future[Result]) -> BaseException | None:
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        return None if error is None else self._engine.explain(error)

    def _wait(self) -> Future[Result]:
        while True:
            try:
                # The time is for systems on which a wait without an end ignores Ctrl-C.
                return self._done.get(timeout=1)
            except Empty:
                self._engine.check()


def completed(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    engine: str | Engine = "processes",
    jobs: int | None = None,
    time_limit: float | None = None,
) -> Iterator[TaskOutcome[Task, Result]]:
    """Run ``function`` over the tasks, and yield their outcomes in the order in which they end.

    Tasks are taken from the iterable only as they can be worked on, so it may be of any length.

    Parameters
    ----------
    function : of one argument; with processes, one that can be imported by its name
    tasks : the arguments
    engine, jobs, time_limit : as for `make_executor`; or an executor that it made, which stays open

    >>> sorted(outcome.result for outcome in completed(abs, [-1, 2, -3], engine="serial"))
    [1, 2, 3]
    """
    with Runner[Task, Result](function, engine=engine, jobs=jobs, time_limit=time_limit) as runner:
        for task in tasks:
            while runner.full:
                yield runner.next()
            runner.submit(task)
        while runner.pending:
            yield runner.next()
