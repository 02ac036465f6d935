"""What every engine is, what can go wrong with one, and the simplest of them."""

import os
import signal
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from harmonium.errors import HarmoniumError

T = TypeVar("T")


class EngineError(HarmoniumError):
    """An engine that cannot be had, or that no longer works."""


class ConnectionLost(EngineError):
    """The cluster that had the task is gone, or has dropped it; it may come back."""


class WorkerDied(HarmoniumError):
    """The process that ran the task ended in the middle of it."""

    exit_code: int | None = None
    """The exit code of the process, negative for a signal; None where it is not known."""

    @classmethod
    def with_exit_code(cls, exit_code: int | None) -> "WorkerDied":
        """The error for a process that ended so."""
        error = cls(f"the process that worked on it died{_by(exit_code)}")
        error.exit_code = exit_code
        return error


class TimedOut(HarmoniumError):
    """The task took longer than it may, and its process was ended."""


class Engine(Executor):
    """A ``concurrent.futures.Executor`` that says how much work it can use, and stops at once."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many tasks to have under way so that no worker waits for the next one."""

    def abandon(self) -> None:
        """Stop without waiting for the tasks under way; their results are lost."""
        self.shutdown(wait=False, cancel_futures=True)

    def explain(self, error: BaseException) -> BaseException:
        """A future's exception in the terms of this module, where it is about the engine."""
        return error

    def check(self) -> None:
        """Called now and then while tasks are waited for; EngineError where that is in vain."""

    def renew(self, future: Future[Any]) -> None:
        """Be ready for tasks again after the future ended with `ConnectionLost`, or EngineError."""


class Serial(Engine):
    """Does each task in the caller, when it is submitted: for debugging and for small jobs.

    >>> Serial().submit(pow, 2, 10).result()
    1024
    """

    @property
    def capacity(self) -> int:
        """One task at a time."""
        return 1

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


def _by(exit_code: int | None) -> str:
    """What the exit code of a process says about its end."""
    if exit_code is None:
        return ""
    if exit_code >= 0:
        return f" (exit code {exit_code})"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        return f" (signal {-exit_code})"
    return f" ({name}{'; out of memory?' if name == 'SIGKILL' else ''})"
