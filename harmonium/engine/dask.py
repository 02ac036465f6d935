"""A Dask cluster, by the address of its scheduler."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TextIO, TypeVar

from harmonium.engine.interface import Engine, EngineError, WorkerDied

T = TypeVar("T")

CONNECT_SECONDS = 5
"""How long the scheduler has to answer."""
WORKER_SECONDS = 10
"""How long its first worker has to be there: the cluster may just be starting."""
COUNT_SECONDS = 5
"""How old the number of the cluster's threads may be: workers come and go."""


class Cluster(Engine):
    """The workers of a Dask scheduler, through ``distributed.Client(address).get_executor()``.

    Dask gives the tasks of a worker that dies to others. Harmonium must be installed where the
    workers run, in the same version.

    Parameters
    ----------
    address : such as "tcp://host:8786"
    time_limit : seconds that a task may take before its worker ends itself, or None
    """

    def __init__(self, address: str, *, time_limit: float | None = None) -> None:
        self.address = address
        self.time_limit = time_limit
        self._client = _connect(address)
        self._executor = self._client.get_executor(pure=False)
        self._counted, self._threads = time.monotonic(), self._count_threads()
        if not self._threads:
            self._client.close()
            raise EngineError(
                f"The Dask scheduler at {address} has no worker. Start one where Harmonium is "
                f"installed: dask worker {address}"
            )

    @property
    def capacity(self) -> int:
        """A task under way and some that wait for each thread: Dask is slow between tasks."""
        if time.monotonic() - self._counted > COUNT_SECONDS:
            self._counted, self._threads = time.monotonic(), self._count_threads()
        return max(32, 4 * self._threads)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done by a worker of the cluster."""
        return self._executor.submit(within, self.time_limit, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which goes on; by default when the tasks are done."""
        try:
            self._executor.shutdown(wait=wait and not cancel_futures)
        finally:
            self._client.close(timeout=2)

    def explain(self, error: BaseException) -> BaseException:
        """KilledWorker: several workers died at the task. Cancelled: the scheduler is gone."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return WorkerDied("several workers died at it, or it took too long on each")
        if isinstance(error, CancelledError) or type(error).__name__ == "FutureCancelledError":
            return EngineError(
                f"The Dask scheduler at {self.address} has dropped the work, or no longer answers. "
                "Check the cluster, and start again."
            )
        return error

    def _count_threads(self) -> int:
        return sum(self._client.nthreads().values())


def within(
    seconds: float | None, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    """``fn(*args, **kwargs)``, which ends its process where it takes longer than ``seconds``."""
    with _watchdog.limit(seconds):
        return fn(*args, **kwargs)


class Watchdog:
    """Ends the process at the earliest deadline of its threads.

    A thread cannot be stopped from outside, above all not inside a decoder. Dask then has the task
    done elsewhere, and gives it up when it has ended several workers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[object, float] = {}

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        """The process ends if the block takes longer."""
        if seconds is None:
            yield
            return
        token = object()
        with self._lock:
            self._deadlines[token] = time.monotonic() + seconds
            self._arm()
        try:
            yield
        finally:
            with self._lock:
                del self._deadlines[token]
                self._arm()

    def _arm(self) -> None:
        if not self._deadlines:
            faulthandler.cancel_dump_traceback_later()
            return
        rest = max(0.001, min(self._deadlines.values()) - time.monotonic())
        # Its thread needs no lock of the interpreter, which a hanging decoder may hold.
        faulthandler.dump_traceback_later(rest, exit=True, file=_nowhere())


_watchdog = Watchdog()


@cache
def _nowhere() -> TextIO:
    return open(os.devnull, "w")  # noqa: PTH123


def _connect(address: str) -> Any:
    """A client of the scheduler, which has a worker or gets one soon."""
    try:
        from distributed import Client
    except ImportError:
        raise EngineError(
            f"The engine {address!r} needs Dask, which is not installed. "
            "Install it with: pip install 'harmonium[dask]'"
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {address} within {CONNECT_SECONDS} s ({error}). "
            "Check the address that 'dask scheduler' printed, and that this machine can reach it."
        ) from error
    with suppress(TimeoutError):  # the caller counts them
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    return client
